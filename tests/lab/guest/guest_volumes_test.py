"""csi-node in a virtual machine: real disks, real udev, both kinds of config drive.

QEMU emulates the machine, without KVM. Disks are plugged, resized and unplugged by QMP.
"""

import contextlib
import functools
import lzma
import os
import pathlib
import shlex
import shutil
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from lib.csi.spec import csi_pb2
from lib.lab import errors
from lib.lab.artifacts import pexes
from lib.lab.run import waiting
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.guest import (
    disk_server,
    guest_packages,
    initramfs,
    virtual_machine,
)

IMAGES = pathlib.Path("tests/lib/cloud/openstack/instance_metadata/images")
SERVER = "83679162-1378-4288-a2d4-70e13ec132aa"
ZONE_KEY = "topology.cinder.csi.openstack.org/zone"
ZONE = "Zone-A"
"""As a label; the images have "Zone A"."""
MIB = 2**20
KUBELET = "/var/lib/kubelet"
NO_SERVICE = "--metadata-address=http://127.0.0.1:9"
CASES = (
    "config drive, iso9660",
    "config drive, vfat",
    "DMI product UUID",
    *(
        f"{bus}: {step}"
        for bus in ("virtio-blk", "virtio-scsi")
        for step in (
            "udev link",
            "plugged while it is waited for",
            "staged and written",
            "ext4 expanded while mounted",
            "data after the expansion",
            "unplugged",
        )
    ),
    *(
        f"stopped backend: {step}"
        for step in (
            "the serial does not answer",
            "another volume",
            "another volume, csi-node started again",
            "its own volume unpublished",
            "data after it answers again",
        )
    ),
)
BUSES = {"virtio-blk": "virtio-blk-pci", "virtio-scsi": "scsi-hd"}
LINKS = {"virtio-blk": "virtio-{}", "virtio-scsi": "scsi-0QEMU_QEMU_HARDDISK_{}"}
_Capability = csi_pb2.VolumeCapability


class CaseTable:
    """Results by case, with the seconds."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self._began = time.monotonic()

    def add(self, case: str, result: object) -> None:
        """Add a row: what was observed, and the seconds since the row before."""
        now = time.monotonic()
        self.rows[case] = f"{now - self._began:6.1f} s  {result}"
        self._began = now
        print(f"{case:46} {self.rows[case]}")


@pytest.fixture(scope="module")
def table() -> CaseTable:
    return CaseTable()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder for sockets and disks: the path of a socket is short."""
    return tmp_path_factory.mktemp("g")


@pytest.fixture(scope="module")
def machine(
    lease: leases.Lease, folder: pathlib.Path, table: CaseTable
) -> Iterator[virtual_machine.VirtualMachine]:
    """Boot a machine with csi-node in its file system."""
    if reason := guest_packages.unavailable():
        pytest.skip(reason)
    where = lease.where
    with testing.shown().step("Packages of the guest") as step:
        guest_packages.ensure(where, os.environ, step)
    code = guest_packages.unpacked_pex(pexes.beside("csi-node"), folder / "code")
    agent = folder / "agent"
    agent.mkdir()
    shutil.copy(pathlib.Path(initramfs.__file__).with_name("agent.py"), agent)
    tree = guest_packages.guest_tree(where)
    modules = initramfs.modules(tree / "lib/modules", guest_packages.MODULES)
    programs = [("opt/agent", agent), ("opt/csi-node", code)]
    archive = folder / "initramfs"
    initramfs.write(archive, tree, modules, programs)
    table.add("(built)", f"{archive.stat().st_size / 1e6:.0f} MB of initramfs")
    try:
        with virtual_machine.running(where, archive, folder) as booted:
            table.add("(booted)", booted.run("uname -r"))
            yield booted
    finally:
        console = folder / "console.log"
        if console.exists():
            print(console.read_text(errors="replace")[-6000:])


def image(folder: pathlib.Path, name: str) -> pathlib.Path:
    """Unpack the image of a config drive that Nova's own tools wrote."""
    file = folder / f"{name}.img"
    data = lzma.decompress((IMAGES / f"{name}.img.xz").read_bytes())
    file.write_bytes(data + bytes(-len(data) % MIB))
    return file


def info(machine: virtual_machine.VirtualMachine) -> csi_pb2.NodeGetInfoResponse:
    return machine.call(
        "Node/NodeGetInfo",
        csi_pb2.NodeGetInfoRequest(),
        csi_pb2.NodeGetInfoResponse,
    )


@pytest.mark.parametrize(("kind", "name"), [("iso9660", "iso"), ("vfat", "fat16")])
def test_a_config_drive_has_the_identity(
    machine: virtual_machine.VirtualMachine,
    folder: pathlib.Path,
    table: CaseTable,
    kind: str,
    name: str,
) -> None:
    """By udev's link with its label; neither file system is in the kernel."""
    disk = machine.plug("virtio-blk-pci", image(folder, name), f"config-{name}")
    link = "/dev/disk/by-label/config-2"
    waiting.until("udev has linked the label", exists(machine, link))
    assert kind not in machine.run("cat /proc/filesystems").split()
    machine.start_driver(NO_SERVICE)
    answer = info(machine)
    assert answer.node_id == SERVER
    segments = dict(answer.accessible_topology.segments)
    assert segments == {ZONE_KEY: ZONE}
    table.add(f"config drive, {kind}", f"{answer.node_id}, {segments[ZONE_KEY]}")
    machine.unplug(disk)
    waiting.until("the link is removed", lambda: not exists(machine, link)())


def exists(machine: virtual_machine.VirtualMachine, path: str) -> Callable[[], bool]:
    """Return a check that a path of the guest exists."""
    return lambda: machine.run(f"test -e {path} && echo yes || echo no") == "yes"


def test_the_machine_has_the_identity(
    machine: virtual_machine.VirtualMachine, table: CaseTable
) -> None:
    """Without config drive and metadata service; a zone is not guessed."""
    machine.start_driver(NO_SERVICE, "--with-topology=false")
    answer = info(machine)
    assert answer.node_id == virtual_machine.PRODUCT_UUID
    assert not answer.accessible_topology.segments
    table.add("DMI product UUID", answer.node_id)


class GuestVolume:
    """One volume on one bus, and the calls that a kubelet makes for it."""

    def __init__(
        self, machine: virtual_machine.VirtualMachine, folder: pathlib.Path, bus: str
    ) -> None:
        self.machine = machine
        self.bus = bus
        self.id = str(uuid.uuid4())
        self.file = folder / self.id
        self.staging = f"{KUBELET}/staging/{self.id}"
        self.target = f"{KUBELET}/pods/{self.id}"

    @property
    def link(self) -> str:
        """Return udev's link; virtio-blk shows 20 characters of a serial."""
        return f"/dev/disk/by-id/{LINKS[self.bus].format(self.serial)}"

    @property
    def serial(self) -> str:
        """Return the serial that Nova gives the disk, as the bus shows it."""
        return self.id[:20] if self.bus == "virtio-blk" else self.id

    def make_file(self, size_bytes: int) -> pathlib.Path:
        """Create the file of an empty disk."""
        self.file.touch()
        os.truncate(self.file, size_bytes)
        return self.file

    def plug(self, size_bytes: int) -> virtual_machine.GuestDisk:
        """Plug an empty disk."""
        self.make_file(size_bytes)
        return self.machine.plug(BUSES[self.bus], self.file, self.serial)

    @property
    def capability(self) -> csi_pb2.VolumeCapability:
        """Return the capability: ext4, one node writes."""
        mode = _Capability.AccessMode(mode=_Capability.AccessMode.SINGLE_NODE_WRITER)
        mount = _Capability.MountVolume(fs_type="ext4")
        return _Capability(mount=mount, access_mode=mode)

    def begin_stage(self) -> None:
        """Begin to stage; the disk may still be absent."""
        self.machine.run(f"mkdir -p {self.staging} {KUBELET}/pods")
        request = csi_pb2.NodeStageVolumeRequest(
            volume_id=self.id,
            staging_target_path=self.staging,
            volume_capability=self.capability,
        )
        self.machine.begin("Node/NodeStageVolume", request)

    def publish(self) -> None:
        """Publish."""
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id=self.id,
            staging_target_path=self.staging,
            target_path=self.target,
            volume_capability=self.capability,
        )
        kind = csi_pb2.NodePublishVolumeResponse
        self.machine.call("Node/NodePublishVolume", request, kind)

    def expand(self, size_bytes: int) -> None:
        """Expand the file system to the size of the disk."""
        request = csi_pb2.NodeExpandVolumeRequest(
            volume_id=self.id,
            volume_path=self.target,
            staging_target_path=self.staging,
            capacity_range=csi_pb2.CapacityRange(required_bytes=size_bytes),
        )
        kind = csi_pb2.NodeExpandVolumeResponse
        self.machine.call("Node/NodeExpandVolume", request, kind)

    def total_bytes(self) -> int:
        """Return the size of the file system, of the statistics."""
        request = csi_pb2.NodeGetVolumeStatsRequest(
            volume_id=self.id, volume_path=self.target
        )
        kind = csi_pb2.NodeGetVolumeStatsResponse
        answer = self.machine.call("Node/NodeGetVolumeStats", request, kind)
        assert not answer.volume_condition.abnormal, answer.volume_condition.message
        return next(
            usage.total
            for usage in answer.usage
            if usage.unit == csi_pb2.VolumeUsage.BYTES
        )

    def unpublish(self) -> None:
        """Unpublish."""
        unpublish = csi_pb2.NodeUnpublishVolumeRequest(
            volume_id=self.id, target_path=self.target
        )
        kind = csi_pb2.NodeUnpublishVolumeResponse
        self.machine.call("Node/NodeUnpublishVolume", unpublish, kind)

    def remove(self) -> None:
        """Unpublish and unstage."""
        self.unpublish()
        unstage = csi_pb2.NodeUnstageVolumeRequest(
            volume_id=self.id, staging_target_path=self.staging
        )
        kind_ = csi_pb2.NodeUnstageVolumeResponse
        self.machine.call("Node/NodeUnstageVolume", unstage, kind_)


@pytest.mark.parametrize("bus", BUSES)
def test_a_volume_is_plugged_expanded_and_unplugged(
    machine: virtual_machine.VirtualMachine,
    folder: pathlib.Path,
    table: CaseTable,
    bus: str,
) -> None:
    """The call to stage begins before the disk is there; ext4 grows while mounted."""
    volume = GuestVolume(machine, folder, bus)
    add = functools.partial(_add, table, bus)
    volume.begin_stage()
    time.sleep(2)  # the disk is late
    disk = volume.plug(64 * MIB)
    machine.finish(csi_pb2.NodeStageVolumeResponse)
    add("plugged while it is waited for", machine.run(f"readlink {volume.link}"))
    add("udev link", pathlib.PurePath(volume.link).name)
    volume.publish()
    machine.run(f"echo kept > {volume.target}/data && sync")
    before = volume.total_bytes()
    assert 50 * MIB < before <= 64 * MIB
    mounted = machine.run(f"grep {volume.target} /proc/mounts").split()
    assert mounted[2] == "ext4"
    add("staged and written", f"{before / MIB:.0f} MiB of {mounted[2]}")

    machine.resize(disk, 192 * MIB)
    volume.expand(192 * MIB)
    after = volume.total_bytes()
    assert 160 * MIB < after <= 192 * MIB
    add("ext4 expanded while mounted", f"{after / MIB:.0f} MiB")
    data = machine.run(f"cat {volume.target}/data")
    assert data == "kept"
    machine.run(f"dd if=/dev/zero of={volume.target}/more bs=1M count=100 && sync")
    add("data after the expansion", f"{data}, 100 MiB more written")

    volume.remove()
    machine.unplug(disk)
    waiting.until("the link is removed", lambda: not exists(machine, volume.link)())
    assert KUBELET not in machine.run("cat /proc/mounts")
    add("unplugged", "0 links, 0 mounts")


SERIAL = "/run/serial"
"""Where the guest writes what a disk answers when it is asked for its serial."""
READERS = """
import mmap, os, sys, threading

disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)

def read(number):
    os.preadv(disk, [mmap.mmap(-1, 4096)], number * 65536)

for number in range(64):
    threading.Thread(target=read, args=(number,)).start()
"""
"""Reads past the cache, like a database. The kernel throttles dirty pages alone so that
they leave half of a queue free."""


def test_a_disk_whose_backend_is_stopped_stops_no_other(
    lease: leases.Lease,
    machine: virtual_machine.VirtualMachine,
    folder: pathlib.Path,
    table: CaseTable,
) -> None:
    """Its queue is full, so that it does not even answer with its serial."""
    add = functools.partial(_add, table, "stopped backend")
    hung = GuestVolume(machine, folder, "virtio-blk")
    file = hung.make_file(64 * MIB)
    with disk_server.serving(lease.where, file, folder) as server:
        disk = machine.plug_served(server, hung.serial)
        hung.begin_stage()
        machine.finish(csi_pb2.NodeStageVolumeResponse)
        hung.publish()
        pages = f"dd if=/dev/zero of={hung.target}/pages bs=1M count=16 conv=notrunc"
        machine.run(f"echo kept > {hung.target}/data && {pages} && sync")
        device = pathlib.PurePath(machine.run(f"readlink {hung.link}")).name
        server.stop()
        try:
            machine.run(f"{pages}; (setsid sync >/dev/null 2>&1 &)")
            readers = f"python3.11 -c {shlex.quote(READERS)} /dev/{device}"
            machine.run(f"(setsid {readers} >/dev/null 2>&1 &)")
            waiting.until("its queue is full", lambda: under_way(machine, device))
            read = f"cat /sys/block/{device}/serial > {SERIAL} 2>&1"
            machine.run(f"(setsid {read} &) ; sleep 2; test ! -s {SERIAL}")
            add("the serial does not answer", f"{device}, {under_way(machine, device)}")
            add("another volume", live(machine, folder))
            machine.start_driver(NO_SERVICE, "--with-topology=false")
            assert info(machine).node_id == virtual_machine.PRODUCT_UUID
            add("another volume, csi-node started again", live(machine, folder))
            hung.unpublish()
            add("its own volume unpublished", f"{hung.target} is absent")
            machine.run(f"test ! -e {hung.target} && test ! -s {SERIAL}")
        finally:
            server.go_on()
        answered = f"grep -qs {hung.serial} {SERIAL} && echo yes || echo no"
        waiting.until("its serial", lambda: machine.run(answered) == "yes")
        # Until csi-node asks the disk again, it is one that does not answer.
        waiting.until("it is published again", lambda: is_published(hung))
        data = machine.run(f"cat {hung.target}/data")
        assert data == "kept"
        hung.remove()
        machine.unplug(disk)
        add("data after it answers again", data)


def is_published(volume: GuestVolume) -> bool:
    """Publish a volume, unless its disk does not answer yet."""
    try:
        volume.publish()
    except errors.LabError as error:
        if "does not answer" not in str(error):
            raise
        return False
    return True


def under_way(machine: virtual_machine.VirtualMachine, device: str) -> str:
    """Return the number of requests of a disk; empty: its queue is not full."""
    counts = machine.run(f"cat /sys/block/{device}/inflight").split()
    total = sum(map(int, counts))
    return f"{total} requests" if total >= virtual_machine.QUEUE else ""


def live(machine: virtual_machine.VirtualMachine, folder: pathlib.Path) -> str:
    """Plug, stage, publish, measure, unmount and unplug a volume."""
    volume = GuestVolume(machine, folder, "virtio-blk")
    disk = volume.plug(64 * MIB)
    volume.begin_stage()
    machine.finish(csi_pb2.NodeStageVolumeResponse)
    volume.publish()
    size_bytes = volume.total_bytes()
    volume.remove()
    machine.unplug(disk)
    return f"{size_bytes / MIB:.0f} MiB staged, published, measured, unmounted"


def _add(table: CaseTable, bus: str, step: str, result: object) -> None:
    table.add(f"{bus}: {step}", result)


def test_every_case_has_a_row(table: CaseTable) -> None:
    for case in CASES:
        with contextlib.suppress(KeyError):
            print(f"{case:46} {table.rows[case]}")
    assert [case for case in CASES if case not in table.rows] == []
