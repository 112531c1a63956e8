"""What differs between clouds is frozen: names, topology, identity, serials, limits."""

import dataclasses
import hashlib
import pathlib

import prometheus_client
import pytest

from csi_node import dvp_node, main
from lib.csi import node, node_driver
from lib.kernel.fake.kernel import FakeKernel
from lib.node_volumes import lookup
from lib.process import config, flags

MACHINE = "83679162-1378-4288-a2d4-70e13ec132aa"
DISK = "11111111-2222-3333-4444-555555555555"
UID = "0b9e3a5e-6a0f-4f0e-8a53-0a4d7d7a2f11"


@dataclasses.dataclass(frozen=True)
class Row:
    """Forms of one cloud. serial, link: of the disk of volume `DISK`.

    limit: of the devices of a machine; None: that of the bus.
    """

    cloud: str
    driver: str
    zone_key: str
    node_id: str
    serial: str
    link: str
    limit: int | None


MD5 = hashlib.md5(UID.encode()).hexdigest()  # noqa: S324 - as the cloud does
TABLE = (
    Row(
        "openstack",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
        MACHINE,
        DISK,
        f"virtio-{DISK[:20]}",
        None,
    ),
    Row(
        "dvp",
        "csi.dvp.deckhouse.io",
        "",
        "worker-1",
        MD5,
        f"scsi-0QEMU_QEMU_HARDDISK_{MD5}",
        16,
    ),
    Row(
        "zvirt",
        "csi.ovirt.org",
        "",
        MACHINE,
        DISK,
        f"scsi-0QEMU_QEMU_HARDDISK_{DISK}",
        None,
    ),
)


@pytest.fixture()
def sys(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a /sys with the UUID of the machine, as some firmware writes it."""
    file = tmp_path / "class/dmi/id/product_uuid"
    file.parent.mkdir(parents=True)
    file.write_text(f"{MACHINE.upper()}\n")
    (file.parent / "product_name").write_text("OpenStack Nova\n")
    return tmp_path


def program(
    cloud: str, sys: pathlib.Path, *words: str
) -> node_driver.NodeDriverProgram:
    arguments = (
        f"--cloud={cloud}",
        "--endpoint=unix:///csi.sock",
        f"--sys-root={sys}",
        "--metadata-address=http://127.0.0.1:9",
        *words,
    )
    values = flags.parse(main.FLAGS, arguments)
    config.require(main.judge(values))
    return main.PROVIDERS[cloud].program(values, FakeKernel())


def test_every_cloud_has_a_row() -> None:
    assert [row.cloud for row in TABLE] == list(main.PROVIDERS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.cloud)
def test_forms_of_a_cloud(row: Row, sys: pathlib.Path) -> None:
    node_program = program(
        row.cloud, sys, "--node-name=worker-1", "--with-topology=false"
    )
    serial = node_program.serial(DISK, {dvp_node.DISK_UID: UID})
    shown = (
        node_program.driver,
        node_program.zone_key,
        node_program.place(False).id,
        serial,
    )
    print(f"{row.cloud:10} {' '.join(shown)} {row.link} limit={node_program.slots}")
    assert shown == (row.driver, row.zone_key, row.node_id, row.serial)
    assert row.link in lookup.names(serial)
    assert node_program.volumes_max is None
    assert (node_program.slots.most if node_program.slots else None) == row.limit


SLOTS = ((0, 16), (1, 15), (3, 13), (15, 1), (16, 1), (20, 1))
"""Static disks and volumes. Source: Deckhouse dvp-csi-driver, node_test.go."""


@pytest.mark.parametrize(("static", "expected"), SLOTS)
def test_a_node_of_dvp_offers_the_slots_without_static_disks(
    sys: pathlib.Path, static: int, expected: int
) -> None:
    """Disks without a serial of DVP take none; nor do those of volumes in use."""
    kernel = FakeKernel()
    kernel.plug("vdz", "", 2**20)
    for number in range(static):
        kernel.plug(f"sd{chr(97 + number)}", f"{number:032x}", 2**30)
    mounts = (
        "/k/plugins/kubernetes.io/csi/csi.dvp.deckhouse.io/1/globalmount",
        "/k/pods/1/volumes/kubernetes.io~csi/pvc-1/mount",
    )
    for number, target in enumerate(mounts):
        plugged = kernel.plug(f"sdy{number}", f"{number + 99:032x}", 2**30)
        kernel.make_directory(target)
        kernel.make_file_system(plugged.disk.path, "ext4", ())
        kernel.mount(plugged.disk.path, target, "ext4", ())
    words = ("--node-name=worker-1", "--with-topology=false")
    values = flags.parse(
        main.FLAGS, ("--endpoint=unix:///s", "--kubelet-directory=/k", *words)
    )
    plugin = node_driver.NodePlugin(
        program("dvp", sys, *words),
        kernel,
        values,
        prometheus_client.CollectorRegistry(),
    )
    info = plugin.info()
    print(f"{static} static disks: {info.volumes_max} volumes")
    assert info.volumes_max == expected
    assert info.segments == {}


def test_keys_of_the_publish_context_are_frozen() -> None:
    assert dvp_node.DISK_UID == "mooring.io/virtual-disk-uid"
    assert dvp_node.serial(DISK, {}) == ""


def test_a_node_of_dvp_must_be_named(sys: pathlib.Path) -> None:
    with pytest.raises(config.ConfigError, match="--node-name"):
        program("dvp", sys)


def test_a_node_of_zvirt_is_never_guessed(sys: pathlib.Path) -> None:
    (sys / "class/dmi/id/product_uuid").unlink()
    with pytest.raises(node.IdentityUnknown, match="product_uuid: no UUID"):
        program("zvirt", sys).place(False)
