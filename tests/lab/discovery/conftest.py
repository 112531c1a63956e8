"""Fixtures of the tests of cloud-data-discoverer."""

import pathlib
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.slots import leases
from tests.harness.openstack import testing

pytest.register_assert_rewrite("tests.contract.catalog")


@pytest.fixture(scope="session")
def where(lease: leases.Lease) -> Iterator[places.Places]:
    """Run a control plane and OpenStack."""
    with testing.running(lease) as place:
        yield place


@pytest.fixture(scope="module")
def project(where: places.Places) -> Iterator[testing.MakeProject]:
    """Return a factory of projects, each with a user and a network of its own."""
    with testing.projects(where) as make:
        yield make


@pytest.fixture(scope="session")
def pex() -> pathlib.Path:
    """Return the PEX file of cloud-data-discoverer."""
    return pexes.beside("cloud-data-discoverer")
