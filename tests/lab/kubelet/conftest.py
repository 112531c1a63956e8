"""A real node: kubelet, scheduler, sidecars, csi-controller, csi-node."""

import os
import secrets
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.daemons import csi
from lib.lab.kube import control_plane, kube_objects, kubelet
from lib.lab.openstack import accounts, layout
from lib.lab.slots import leases
from lib.lab.storage import file_system_tools, loop_disks, storage_node
from tests.harness import testing as shared
from tests.harness.node import volume_users
from tests.harness.openstack import fixtures, testing

ZONE = "nova"
GROUPS = (control_plane.SCHEDULER_GROUP, csi.GROUP)


shares_lab = fixtures.shares_lab


@pytest.fixture(scope="session")
def where(lease: leases.Lease) -> Iterator[places.Places]:
    """Run a control plane and OpenStack, outside this process's mount namespace."""
    if reason := kubelet.unavailable(lease.where) or loop_disks.unavailable():
        pytest.skip(reason)
    with testing.running(lease) as place:
        programs.build(place, GROUPS, shared.shown())
        kubelet.build(place, shared.shown())
        with shared.shown().step("File system tools") as step:
            file_system_tools.ensure(place, os.environ, step)
        loop_disks.enter_private_mounts()
        yield place


@pytest.fixture(scope="module")
def storage_settings(
    where: places.Places, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[storage_node.StorageNodeSettings]:
    """Boot a server, which is the node, in a project of its own."""
    with testing.projects(where, has_router=False) as make:
        account, mine = make("kubelet")
        name = f"node-{secrets.token_hex(2)}"
        server = mine.boot_all([name])[name]
        conf = tmp_path_factory.mktemp("conf") / "cloud.conf"
        conf.write_text(accounts.cloud_conf(where, account))
        yield storage_node.StorageNodeSettings(
            name,
            pexes.beside("csi-controller"),
            pexes.beside("csi-node"),
            conf,
            server.id,
            ZONE,
            file_system_tools.environment(where, os.environ),
            layout.attachments(where, server.id),
        )


@pytest.fixture(scope="module")
def user(
    where: places.Places,
    api: client.Api,
    storage_settings: storage_node.StorageNodeSettings,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[volume_users.VolumeUser]:
    """Run the node, and be a user of its volumes."""
    root = tmp_path_factory.mktemp("machine")
    objects = kube_objects.Objects(api, "default")
    with storage_node.running(where, storage_settings, root) as (node, disks):
        new_user = volume_users.VolumeUser(objects, node, storage_settings.name, disks)
        new_user.add_classes()
        yield new_user
        new_user.clear()
        print(new_user.table())
    new_user.forget_node()
