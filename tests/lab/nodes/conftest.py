"""Fixtures of the tests of openstack-ccm's Nodes."""

import pathlib
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from lib.lab.slots import leases
from tests.harness.openstack import testing

pytest.register_assert_rewrite("tests.contract.instances")


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
