"""Fixtures of the tests of openstack-ccm's Services."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import (
    balancing,
    ccm,
    cluster,
    control_plane,
    leases,
    pexes,
    places,
    stages,
)
from lib.lab.openstack import accounts, testing


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


@pytest.fixture(scope="module")
def open_stage(
    where: places.Places,
    api: client.Api,
    project: testing.MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> stages.Open:
    """Return a way to have Services served from a project of their own."""

    def opened(name: str) -> contextlib.AbstractContextManager[stages.Stage]:
        account, mine = project(name)
        kubernetes = stages.Cluster(where, api, ccm_kubeconfig, ccm_pex)
        return stages.opened(
            kubernetes, mine, accounts.cloud_conf(where, account), name
        )

    return opened


@pytest.fixture(scope="module")
def open_room(
    where: places.Places,
    project: testing.MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> Iterator[balancing.Open]:
    """Return a factory of rooms in which calls are counted, refused and held back."""
    with contextlib.ExitStack() as stack:

        def opened(name: str, nodes: int) -> balancing.Room:
            account, _ = project(name)
            room = balancing.room(where, ccm_pex, ccm_kubeconfig, account, nodes)
            return stack.enter_context(room)

        yield opened
