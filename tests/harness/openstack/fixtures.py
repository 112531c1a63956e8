"""Fixtures of every part whose lab has an OpenStack; conftest.py names those it uses.

They are not in tests/lab/conftest.py: the parts without OpenStack would read its code,
and be run again whenever that changes.
"""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.slots import leases
from tests.harness.openstack import testing


@pytest.fixture(scope="session")
def shares_lab() -> bool:
    """OpenStack may run already, see `lease`."""
    return True


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


@pytest.fixture(scope="module")
def project_without_router(where: places.Places) -> Iterator[testing.MakeProject]:
    """Return a factory of projects that need no floating IP."""
    with testing.projects(where, has_router=False) as make:
        yield make
