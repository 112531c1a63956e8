"""Fixtures of the tests of the lab's own OpenStack."""

from tests.harness.openstack import fixtures

where = fixtures.where
