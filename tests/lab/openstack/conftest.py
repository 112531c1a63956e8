"""Fixtures of the tests of the lab's own OpenStack."""

from tests.harness.openstack import fixtures

shares_lab = fixtures.shares_lab
where = fixtures.where
