"""Fixtures of the tests of openstack-ccm's Nodes."""

import pathlib

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from tests.harness.openstack import fixtures

pytest.register_assert_rewrite("tests.contract.instances")


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
