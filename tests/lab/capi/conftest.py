"""Fixtures of the tests on the core of Cluster API."""

from tests.harness.dvp import parent_fixtures
from tests.harness.machines import core_fixtures

where = parent_fixtures.where
parent = parent_fixtures.parent
project = parent_fixtures.project
core = core_fixtures.core
stage = core_fixtures.stage
