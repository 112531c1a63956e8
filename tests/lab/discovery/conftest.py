"""Fixtures of the tests of cloud-data-discoverer."""

import pathlib

import pytest

from lib.lab.artifacts import pexes
from tests.harness.openstack import fixtures

pytest.register_assert_rewrite("tests.contract.catalog")


shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project_without_router


@pytest.fixture(scope="session")
def pex() -> pathlib.Path:
    """Return the PEX file of cloud-data-discoverer."""
    return pexes.beside("cloud-data-discoverer")
