"""A failure during apply names the resource, and the next apply completes."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.openstack import accounts, cloud
from tests.harness.layouts import changes, objects, roots

FLAVOR = "no-host-has-this-memory"


@pytest.fixture()
def flavor(where: places.Places) -> Iterator[str]:
    """Yield a flavor for which Nova finds no host."""
    admin = cloud.connect(where, accounts.ADMIN)
    created = admin.compute.create_flavor(name=FLAVOR, ram=9_000_000, vcpus=1, disk=1)
    try:
        yield FLAVOR
    finally:
        admin.compute.delete_flavor(created)
        admin.close()


def test_a_server_without_a_host_is_created_again_from_its_volume(
    cluster: roots.MakeCluster, flavor: str
) -> None:
    """Nova can delete a volume with its server, but the next apply needs it."""
    mine, user = cluster("Standard", instance_class={"rootDiskSize": 1})
    before = objects.take(user.connection)
    master = roots.master(0)
    change = {"masterNodeGroup.instanceClass.flavorName": flavor}
    wrong = mine.with_document(changes.changed(mine.document, change))
    mine.apply(roots.BASE)

    words = ("apply", "-auto-approve", *wrong.arguments(master))
    refused = wrong.program.run(wrong.folder(master), *words)
    mine.apply(master)

    assert refused.code == 1
    assert "module.master.openstack_compute_instance_v2.server" in refused.text
    assert mine.plan(master) == {}
    mine.destroy(roots.BASE, master)
    assert objects.take(user.connection) == before
