"""Fixtures of the tests with a cloud or a cluster that fails."""

import pathlib

import pytest

from lib.lab.artifacts import pexes
from tests.harness.openstack import fixtures

shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project


@pytest.fixture(scope="session")
def ccm_pex() -> pathlib.Path:
    """Return the PEX file of openstack-ccm."""
    return pexes.beside("openstack-ccm")
