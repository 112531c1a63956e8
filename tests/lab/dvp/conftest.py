"""Fixtures of the tests on a simulated parent cluster of DVP."""

from tests.harness.dvp import parent_fixtures

where = parent_fixtures.where
parent = parent_fixtures.parent
project = parent_fixtures.project
