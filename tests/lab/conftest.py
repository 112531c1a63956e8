"""One lab for all tests here: a real control plane and a real OpenStack.

It keeps ports and folders of its own, so that a user's lab may run beside it. Pants
runs several of these at once, each in a slot with a block of ports of its own;
MOORING_TEST_PORT_BASE moves them all, for a second checkout. What a killed run has left
behind is ended first.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator

import pytest

from lib.kube import client
from lib.lab import (
    balancing,
    ccm,
    cluster,
    control_plane,
    csi,
    places,
    processes,
    programs,
    progress,
    stages,
)
from lib.lab.openstack import accounts, cloud, tenant
from lib.lab.openstack import lab as openstack_lab

PORT_BASE = 22000
"""A block of its own; see lib/lab/places.py for that of a user's lab."""
SLOT_PORTS = 1000

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


def port_base() -> int:
    first = int(os.environ.get("MOORING_TEST_PORT_BASE", PORT_BASE))
    return first + SLOT_PORTS * int(os.environ.get("TEST_SLOT", "0"))


def end(where: places.Places) -> None:
    openstack_lab.down(where)
    control_plane.down(where)
    processes.stop(where, processes.names(where))
    shutil.rmtree(where.state, ignore_errors=True)


@pytest.fixture(scope="session")
def where() -> Iterator[places.Places]:
    """Build what is missing and start everything; end it all in the end."""
    usual = places.default()
    base = port_base()
    name = "test-lab" if base == PORT_BASE else f"test-lab-{base}"
    place = places.Places(usual.cache, usual.state.parent / name, base)
    shown = progress.Lines(sys.stderr)
    end(place)
    programs.build(place, [control_plane.GROUP], shown)
    openstack_lab.build(place, shown)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            started = [
                pool.submit(control_plane.up, place, shown),
                pool.submit(openstack_lab.up, place, shown),
            ]
            for one in started:
                one.result()
        yield place
    finally:
        end(place)


@pytest.fixture()
def elsewhere(tmp_path: pathlib.Path) -> places.Places:
    """Give the places of one more lab, with the control plane's programs built."""
    usual = places.default()
    place = places.Places(usual.cache, tmp_path, port_base() + 100)
    programs.build(place, [control_plane.GROUP], progress.Lines(sys.stderr))
    return place


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[places.Places]:
    """Run one more control plane for a module that breaks it, or reads its log."""
    shown = progress.Lines(sys.stderr)
    state = tmp_path_factory.mktemp("apart")
    place = places.Places(places.default().cache, state, port_base() + 100)
    programs.build(place, [control_plane.GROUP], shown)
    try:
        control_plane.up(place, shown)
        yield place
    finally:
        processes.stop(place, control_plane.PROGRAMS, patience_s=1)


@pytest.fixture(scope="session")
def api(where: places.Places) -> client.Api:
    """Give the control plane with all rights."""
    return cluster.connect(control_plane.admin_kubeconfig(where))


@pytest.fixture(scope="session")
def ccm_kubeconfig(where: places.Places, api: client.Api) -> pathlib.Path:
    """Give a kubeconfig that is openstack-ccm's own ServiceAccount, with its rights."""
    control_plane.apply_manifests(where, ccm.manifest())
    admin, target = control_plane.admin_kubeconfig(where), where.state / "ccm-account"
    cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, target)
    return target


def pex(name: str) -> pathlib.Path:
    """Give the PEX that Pants put beside the tests; in a checkout the one in dist/."""
    here = pathlib.Path.cwd()
    found = [here / f"{name}.pex", here / "dist" / f"{name}.pex"]
    return next(file for file in found if file.exists())


@pytest.fixture(scope="session")
def ccm_pex() -> pathlib.Path:
    """Give openstack-ccm."""
    return pex("openstack-ccm")


@pytest.fixture(scope="session")
def csi_pex() -> pathlib.Path:
    """Give csi-controller."""
    return pex("csi-controller")


@pytest.fixture(scope="session")
def csi_programs(where: places.Places) -> None:
    """Build csi-sanity, the sidecars and the scheduler, if they are missing."""
    groups = [csi.GROUP, control_plane.SCHEDULER_GROUP]
    programs.build(where, groups, progress.Lines(sys.stderr))


@pytest.fixture(scope="module")
def project(where: places.Places) -> Iterator[MakeProject]:
    """Give a factory of projects, each with a user and a network of its own."""
    with contextlib.ExitStack() as stack:

        def make(name: str) -> tuple[accounts.Account, tenant.Tenant]:
            account = cloud.project(where, name)
            connection = cloud.connect(where, account)
            stack.callback(connection.close)
            mine = tenant.Tenant(connection)
            mine.ensure_network()
            stack.callback(mine.clear)
            return account, mine

        yield make


@pytest.fixture(scope="module")
def open_stage(
    where: places.Places,
    api: client.Api,
    project: MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> stages.Open:
    """Give a way to have Services served from a project of their own."""

    def opened(name: str) -> contextlib.AbstractContextManager[stages.Stage]:
        account, mine = project(name)
        cluster = stages.Cluster(where, api, ccm_kubeconfig, ccm_pex)
        return stages.opened(cluster, mine, accounts.cloud_conf(where, account), name)

    return opened


@pytest.fixture(scope="module")
def open_room(
    where: places.Places,
    project: MakeProject,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
) -> Iterator[balancing.Open]:
    """Give a factory of rooms in which calls are counted, refused and held back."""
    with contextlib.ExitStack() as stack:

        def opened(name: str, nodes: int) -> balancing.Room:
            account, _ = project(name)
            room = balancing.room(where, ccm_pex, ccm_kubeconfig, account, nodes)
            return stack.enter_context(room)

        yield opened
