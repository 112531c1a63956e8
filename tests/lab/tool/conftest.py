"""Fixtures of the tests of the operator's tool."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from tests.harness.openstack import fixtures, testing
from tests.harness.services import balancing

shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project


@pytest.fixture(scope="session")
def ccm_pex() -> pathlib.Path:
    """Return the PEX file of openstack-ccm."""
    return pexes.beside("openstack-ccm")


@pytest.fixture(scope="session")
def ccm_kubeconfig(where: places.Places, api: client.Api) -> pathlib.Path:
    """Return a kubeconfig of openstack-ccm's own ServiceAccount, with its rights."""
    control_plane.apply_manifests(where, ccm.manifest())
    admin, target = control_plane.admin_kubeconfig(where), where.state / "ccm-account"
    cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, target)
    return target


@pytest.fixture(scope="module")
def open_room(
    where: places.Places,
    project: testing.MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> Iterator[balancing.Open]:
    """Return a factory of rooms in which calls are counted and refused."""
    with contextlib.ExitStack() as stack:

        def opened(name: str, nodes: int) -> balancing.Room:
            account, _ = project(name)
            room = balancing.room(where, ccm_pex, ccm_kubeconfig, account, nodes)
            return stack.enter_context(room)

        yield opened
