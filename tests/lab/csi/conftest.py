"""Fixtures of the tests of csi-controller."""

import pathlib
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi
from lib.lab.kube import control_plane
from lib.lab.slots import leases
from tests.harness import testing as shared
from tests.harness.openstack import testing

pytest.register_assert_rewrite("tests.contract.volumes")


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
def csi_pex() -> pathlib.Path:
    """Return the PEX file of csi-controller."""
    return pexes.beside("csi-controller")


@pytest.fixture(scope="session")
def csi_programs(where: places.Places) -> None:
    """Build csi-sanity, the sidecars and the scheduler, if they are missing."""
    groups = [csi.GROUP, control_plane.SCHEDULER_GROUP]
    programs.build(where, groups, shared.shown())
