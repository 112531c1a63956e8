"""Fixtures of the tests of csi-controller."""

import pathlib

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi
from lib.lab.kube import control_plane
from tests.harness import testing as shared
from tests.harness.openstack import fixtures

pytest.register_assert_rewrite("tests.contract.volumes")


shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project_without_router


@pytest.fixture(scope="session")
def csi_pex() -> pathlib.Path:
    """Return the PEX file of csi-controller."""
    return pexes.beside("csi-controller")


@pytest.fixture(scope="session")
def csi_programs(where: places.Places) -> None:
    """Build csi-sanity, the sidecars and the scheduler, if they are missing."""
    groups = [csi.GROUP, csi.SANITY_GROUP, control_plane.SCHEDULER_GROUP]
    programs.build(where, groups, shared.shown())
