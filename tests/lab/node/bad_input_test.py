"""Bad input: each case has its code and one message, and no data is destroyed.

One table: real disks and mounts, and the packaged program where it refuses to start.
"""

import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Mapping

import grpc
import pytest

from lib.csi import node
from lib.csi.spec import csi_pb2
from lib.kernel.linux import commands
from lib.kernel.linux import kernel as linux_kernel
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.storage import loop_disks
from lib.node_volumes.flow import NodeVolumesFlow
from lib.volumes import callers
from lib.volumes.csi_codes import RefusedCall
from tests.harness.csi import csi_wire
from tests.harness.node import node_plugins

MIB = 2**20
SIZE = 320 * MIB
ID = "11111111-2222-3333-4444-555555555555"
OTHER = "22222222-2222-3333-4444-555555555555"
LINK = f"virtio-{ID[:20]}"
CALL_S = 180.0
OURS = "csi-node: "
"""The beginning of each line that the program prints."""
_Mode = csi_pb2.VolumeCapability.AccessMode

REQUIRED = """
    unknown file system, unknown mount flag, unknown mkfs option, unsuitable
    mkfs option, unknown flag, unknown cloud, volume without id, context without
    serial, size beyond the limit, disk smaller than required, serial mismatch,
    two disks match, device absent, device busy, partitioned gpt, partitioned
    dos, encrypted, LVM, md, other file system, corrupt ext4, corrupt xfs, read
    errors, target is a file, target is a directory, target is a symbolic link,
    target outside the kubelet directory, target leads out of the kubelet
    directory, target is relative, target not set, staging path is a file, not
    staged, second target of one writer, disk full, mkfs missing, no identity
    source, endpoint too long, endpoint in use, endpoint is a file, registration
    socket too long, registration socket in use
"""
"""The list of issue 17 in cases."""


class Place:
    """A node service on a machine with the volume's disk, which has some content."""

    def __init__(
        self, machine: loop_disks.Machine, env: Mapping[str, str], folder: pathlib.Path
    ) -> None:
        self.machine, self.env, self.folder = machine, env, folder
        self.disk = machine.plug(ID[:20], SIZE, LINK)
        self.staging = str(machine.kubelet / "staging")
        self.target = str(machine.kubelet / "pods/1/mount")
        self.serial: node.Serial = lambda volume_id, _: volume_id

    def service(self, env: Mapping[str, str] | None = None) -> node.NodeService:
        """Return a service; env: in which programs are found."""
        runner = commands.Commands(env or self.env)
        kernel = linux_kernel.LinuxKernel(runner, self.machine.dev, self.machine.sys)
        info = node.NodeInfo("node", {}, 1)
        settings = node.NodeServiceSettings(
            lambda id_, context: self.serial(id_, context),
            lambda: info,
            str(self.machine.kubelet),
        )
        return node.NodeService(NodeVolumesFlow(kernel), settings)

    def stage(
        self,
        fs_type: str = "ext4",
        flags: tuple[str, ...] = (),
        mkfs: str = "",
        wait_s: float = CALL_S,
        env: Mapping[str, str] | None = None,
        volume_id: str = ID,
    ) -> None:
        """Stage the volume."""
        request = csi_pb2.NodeStageVolumeRequest(
            volume_id=volume_id,
            staging_target_path=self.staging,
            volume_capability=mounted(fs_type, flags),
            volume_context={"mooring.io/mkfs-options": mkfs} if mkfs else {},
        )
        self.service(env).stage(request, caller(wait_s))

    def unstage(self) -> None:
        """Unstage the volume."""
        request = csi_pb2.NodeUnstageVolumeRequest(
            volume_id=ID, staging_target_path=self.staging
        )
        self.service().unstage(request, caller())

    def publish(
        self,
        target: str | None = None,
        capability: csi_pb2.VolumeCapability | None = None,
    ) -> None:
        """Publish the volume."""
        request = csi_pb2.NodePublishVolumeRequest(
            volume_id=ID,
            staging_target_path=self.staging,
            target_path=self.target if target is None else target,
            volume_capability=capability or mounted("ext4"),
        )
        self.service().publish(request, caller())

    def published(self, target: str) -> None:
        """Stage, then publish at a target."""
        self.stage()
        self.publish(target)

    def expand(self, required: int, limit: int = 0) -> None:
        """Stage, then expand."""
        self.stage()
        sizes = csi_pb2.CapacityRange(required_bytes=required, limit_bytes=limit)
        request = csi_pb2.NodeExpandVolumeRequest(
            volume_id=ID, volume_path=self.staging, capacity_range=sizes
        )
        self.service().expand(request, caller(0.5))

    def write(self, *parts: tuple[int, bytes]) -> None:
        """Put data on the disk, then stage."""
        for offset, data in parts:
            self.disk.write(offset, data)
        self.guarded(self.stage)

    def guarded(self, act: Callable[[], None]) -> None:
        """Act; the disk must be the same afterwards."""
        before = self.digest()
        try:
            act()
        finally:
            assert self.digest() == before, "the disk was changed"

    def digest(self) -> str:
        """Return a digest of both ends of the disk."""
        ends = self.disk.read(0, 8 * MIB), self.disk.read(SIZE - MIB, MIB)
        return hashlib.sha256(b"".join(ends)).hexdigest()


def caller(wait_s: float = CALL_S) -> callers.Caller:
    return callers.Caller(time.monotonic() + wait_s)


def mounted(
    fs_type: str,
    flags: tuple[str, ...] = (),
    mode: _Mode.Mode = _Mode.SINGLE_NODE_WRITER,
) -> csi_pb2.VolumeCapability:
    kind = csi_pb2.VolumeCapability
    mount = kind.MountVolume(fs_type=fs_type, mount_flags=flags)
    return kind(mount=mount, access_mode=_Mode(mode=mode))


def raw() -> csi_pb2.VolumeCapability:
    kind = csi_pb2.VolumeCapability
    mode = _Mode(mode=_Mode.SINGLE_NODE_WRITER)
    return kind(block=kind.BlockVolume(), access_mode=mode)


def without_id(place: Place) -> None:
    place.stage(volume_id="")


def without_serial(place: Place) -> None:
    place.serial = lambda volume_id, context: ""
    place.guarded(place.stage)


def serial_mismatch(place: Place) -> None:
    """A link that udev did not remove leads to another volume's disk."""
    place.machine.show(place.disk, OTHER[:20])
    place.guarded(lambda: place.stage(wait_s=0.5))


def two_disks(place: Place) -> None:
    place.machine.plug(ID[:20], SIZE)
    place.guarded(place.stage)


def absent(place: Place) -> None:
    place.machine.pull(place.disk)
    place.machine.plug(OTHER[:20], SIZE, f"virtio-{OTHER[:20]}")
    place.stage(wait_s=0.5)


def busy(place: Place) -> None:
    device = place.machine.dev / place.disk.name
    holder = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        place.guarded(place.stage)
    finally:
        os.close(holder)


def other_file_system(place: Place) -> None:
    place.stage("ext4")
    place.unstage()
    place.guarded(lambda: place.stage("xfs"))


def corrupt_ext4(place: Place) -> None:
    place.stage("ext4")
    place.unstage()
    for at in (4096, *range(8 * MIB, 64 * MIB, MIB)):
        place.disk.write(at, b"\xff" * 4096)
    # fsck may correct what is safe: the superblock stays one of ext4.
    try:
        place.stage("ext4")
    finally:
        assert place.disk.read(1024 + 56, 2) == b"\x53\xef"


def corrupt_xfs(place: Place) -> None:
    place.stage("xfs")
    place.unstage()
    place.disk.write(512, b"\xff" * 60 * 1024)
    # mount itself writes counters and to the log of XFS; mkfs makes a new UUID.
    superblock = place.disk.read(0, 64)
    try:
        place.stage("xfs")
    finally:
        assert place.disk.read(0, 64) == superblock


def read_errors(place: Place) -> None:
    place.disk.truncate(0)
    place.stage()


def target_is_a_file(place: Place) -> None:
    target = pathlib.Path(place.target)
    target.parent.mkdir(parents=True)
    target.write_text("kept")
    try:
        place.published(place.target)
    finally:
        assert target.read_text() == "kept"


def target_is_a_directory(place: Place) -> None:
    kept = pathlib.Path(place.target) / "kept"
    kept.mkdir(parents=True)
    try:
        place.publish(capability=raw())
    finally:
        assert kept.is_dir()


def target_is_a_link(place: Place) -> None:
    target = pathlib.Path(place.target)
    target.parent.mkdir(parents=True)
    target.symlink_to("/etc")
    place.published(place.target)


def target_leads_out(place: Place) -> None:
    (place.machine.kubelet / "out").symlink_to(place.folder)
    place.published(str(place.machine.kubelet / "out/mount"))


def staging_is_a_file(place: Place) -> None:
    pathlib.Path(place.staging).write_text("kept")
    place.guarded(place.stage)


def second_target(place: Place) -> None:
    place.published(place.target)
    alone = mounted("ext4", (), _Mode.SINGLE_NODE_SINGLE_WRITER)
    place.publish(f"{place.target}2", alone)


def disk_full(place: Place) -> None:
    """The disk on which the kubelet's folder is has no room for a directory."""
    full = place.machine.kubelet / "full"
    full.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", str(full)]
    subprocess.run(words, check=True)
    place.published(str(full / "mount"))


def mkfs_missing(place: Place) -> None:
    programs = place.folder / "bin"
    programs.mkdir()
    (programs / "blkid").symlink_to("/usr/sbin/blkid")
    place.guarded(lambda: place.stage("btrfs", env={"PATH": str(programs)}))


def no_identity(place: Place) -> None:
    """No config drive, no metadata service, no product UUID."""
    nowhere = "http://127.0.0.1:9"
    with node_plugins.ours(place.machine, place.env, place.folder, nowhere) as plugin:
        plugin.start()
        client = csi_wire.Caller(plugin.endpoint)
        kind = csi_pb2.NodeGetInfoResponse
        try:
            client("Node/NodeGetInfo", csi_pb2.NodeGetInfoRequest(), kind, CALL_S)
        finally:
            client.close()


class NotStarted(Exception):
    """csi-node refused to start. code: its exit code. message: what it printed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def started(place: Place, *flags: str) -> None:
    """Start csi-node with an endpoint and flags, which it must refuse.

    Raises:
        NotStarted: it did.
    """
    flags_of = {f"--endpoint=unix://{place.folder}/csi.sock": None}
    flags_of |= dict.fromkeys(flags)
    words = [*pexes.command(pexes.beside("csi-node")), *flags_of]
    env = {**place.env, **pexes.environment(places.default())}
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, check=False, timeout=CALL_S
    )
    # The runtime of PEX files may warn of variables first.
    lines = [line for line in done.stderr.splitlines() if line.startswith(OURS)]
    raise NotStarted(done.returncode, "\n".join(lines))


def with_socket(place: Place, flag: str, prefix: str, state: str) -> None:
    """Start csi-node with a socket in some state.

    Raises:
        NotStarted: it refuses.
    """
    path = place.folder / ("s" * 120 if state == "too long" else "s")
    flag_text = f"--{flag}={prefix}{path}"
    if state == "a file":
        path.write_text("kept")
        try:
            started(place, flag_text)
        finally:
            assert path.read_text() == "kept"
    if state == "in use":
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
        server.add_insecure_port(f"unix://{path}")
        server.start()
        try:
            started(place, flag_text)
        finally:
            server.stop(0).wait()
    started(place, flag_text)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A case. code: of CSI, or "exit 2". texts: parts of its message."""

    code: str
    run: Callable[[Place], None]
    texts: tuple[str, ...]


def row(code: str, run: Callable[[Place], None], *texts: str) -> Row:
    return Row(code, run, texts)


def content(type_: str, *parts: tuple[int, bytes]) -> Row:
    """Return the case of a disk that contains something else than a file system."""
    texts = (
        ID,
        f"contains {type_}",
        'requested fs_type "ext4": must be',
        "not changed",
    )
    return row("FAILED_PRECONDITION", lambda place: place.write(*parts), *texts)


def on_socket(flag: str, state: str, expected: str) -> Row:
    prefix = "unix://" if flag == "endpoint" else ""
    texts = (f"--{flag}: ", "must be ", expected)
    return row("exit 2", lambda p: with_socket(p, flag, prefix, state), *texts)


INVALID, REFUSED, LATE = "INVALID_ARGUMENT", "FAILED_PRECONDITION", "DEADLINE_EXCEEDED"
KNOWN = "must be one of ext4, ext3, ext2, xfs, btrfs"
KEY = "mooring.io/mkfs-options"

ROWS: Mapping[str, Row] = {
    "unknown file system": row(
        INVALID, lambda p: p.stage("vfat"), 'fs_type: unsupported value "vfat"', KNOWN
    ),
    "unknown mount flag": row(
        "INTERNAL",
        lambda p: p.stage(flags=("no-such",)),
        'mount_flags: value "no-such": must be options of ext4 or mount(8)',
    ),
    "unknown mkfs option": row(
        INVALID,
        lambda p: p.stage(mkfs="-d /etc"),
        f'{KEY}: unsupported option "-d" of mkfs.ext4: must be one of',
    ),
    "unsuitable mkfs option": row(
        "INTERNAL",
        lambda p: p.stage(mkfs="-N 999999999999"),
        f'{KEY}: value "-N 999999999999": must suit the disk',
    ),
    "unknown flag": row("exit 2", lambda p: started(p, "--no-such"), "--no-such"),
    "unknown cloud": row(
        "exit 2",
        lambda p: started(p, "--cloud=x"),
        '--cloud: unsupported value "x": must be ',
        "openstack",
    ),
    "volume without id": row(INVALID, without_id, "volume_id: not set"),
    "context without serial": row(
        INVALID, without_serial, "publish_context: does not name the disk", "must be"
    ),
    "size beyond the limit": row(
        "OUT_OF_RANGE",
        lambda p: p.expand(2, 1),
        'capacity_range.limit_bytes: invalid value "1": must be at least',
    ),
    "disk smaller than required": row(
        LATE,
        lambda p: p.expand(2 * SIZE),
        f"capacity_range.required_bytes: invalid value {2 * SIZE}: must be at most",
        f"the {SIZE} bytes of ",
    ),
    "serial mismatch": row(LATE, serial_mismatch, ID, "not found", OTHER[:20]),
    "two disks match": row("INTERNAL", two_disks, ID, "several match", "must be one"),
    "device absent": row(
        LATE, absent, ID, f"searched for {LINK}", "present: loop", OTHER[:20]
    ),
    "device busy": row("ABORTED", busy, ID, "busy", "must not be held by"),
    "partitioned gpt": content("gpt", (512, b"EFI PART")),
    "partitioned dos": content(
        "dos", (446, b"\x80" + bytes(3) + b"\x83"), (510, b"\x55\xaa")
    ),
    "encrypted": content("crypto_LUKS", (0, b"LUKS\xba\xbe\0\1")),
    "LVM": content("LVM2_member", (512, b"LABELONE"), (536, b"LVM2 001")),
    "md": content("linux_raid_member", (4096, b"\xfc\x4e\x2b\xa9")),
    "other file system": row(
        REFUSED,
        other_file_system,
        'contains ext4, requested fs_type "xfs": must be blank or match; not changed',
    ),
    "corrupt ext4": row(REFUSED, corrupt_ext4, ID, "fsck found errors", "by hand"),
    "corrupt xfs": row("INTERNAL", corrupt_xfs, ID, "mount"),
    "read errors": row("INTERNAL", read_errors, ID, "Input/output error"),
    "target is a file": row(
        INVALID, target_is_a_file, "target_path: ", "is a file, must be a directory"
    ),
    "target is a directory": row(
        INVALID, target_is_a_directory, "target_path: ", "is a directory, must be a "
    ),
    "target is a symbolic link": row(
        INVALID, target_is_a_link, "target_path: ", "is a symbolic link, must be a dir"
    ),
    "target outside the kubelet directory": row(
        INVALID,
        lambda p: p.published("/etc/mount"),
        'target_path: invalid value "/etc/mount": must be below ',
    ),
    "target leads out of the kubelet directory": row(
        INVALID, target_leads_out, "target_path: invalid value", "must be below "
    ),
    "target is relative": row(
        INVALID, lambda p: p.published("pods"), '"pods": must be an absolute path'
    ),
    "target not set": row(INVALID, lambda p: p.published(""), "target_path: not set"),
    "staging path is a file": row(
        INVALID, staging_is_a_file, "staging_target_path: ", "must be a directory"
    ),
    "not staged": row(REFUSED, lambda p: p.publish(), "not staged: nothing is mounted"),
    "second target of one writer": row(
        REFUSED, second_target, "published at", "its access mode allows one target"
    ),
    "disk full": row(
        "INTERNAL", disk_full, "target_path: value", "No space left", "must be a path"
    ),
    "mkfs missing": row(
        "INTERNAL", mkfs_missing, "'mkfs.btrfs': not found", 'fs_type: value "btrfs"'
    ),
    "no identity source": row(
        "UNAVAILABLE", no_identity, "configDrive", "metadataService", "product_uuid"
    ),
    "endpoint too long": on_socket("endpoint", "too long", "at most 107 bytes"),
    "endpoint in use": on_socket("endpoint", "in use", "no running process serves"),
    "endpoint is a file": on_socket("endpoint", "a file", "path of a socket"),
    "registration socket too long": on_socket(
        "registration-socket", "too long", "at most 107 bytes"
    ),
    "registration socket in use": on_socket(
        "registration-socket", "in use", "no running process serves"
    ),
}


def outcome(place: Place, case: Row) -> tuple[str, str]:
    """Run a case; return code and message."""
    try:
        case.run(place)
    except RefusedCall as refused:
        return refused.code.value, refused.message
    except NotStarted as error:
        return f"exit {error.code}", error.message
    except grpc.RpcError as error:
        return error.code().name, str(error.details())
    return "OK", ""


def test_each_case_has_its_code_and_message(
    tools: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case that is missing, or has another code or message, fails the table."""
    monkeypatch.setattr(commands, "_SEARCH", "")
    env = {**tools, "PATH": f"{tools['PATH']}:/usr/sbin:/sbin:/usr/bin:/bin"}
    required = {" ".join(name.split()) for name in REQUIRED.split(",")}
    assert set(ROWS) == required
    wrong = []
    top = tmp_path_factory.mktemp("b")
    for number, (name, case) in enumerate(ROWS.items()):
        folder = top / str(number)  # short, for the paths of sockets
        (root := folder / "m").mkdir(parents=True)
        with loop_disks.machine(root) as machine:
            code, message = outcome(Place(machine, env, folder), case)
        missing = [text for text in case.texts if text not in message]
        print(f"{name:42} {code:20} {message.replace(str(top), '')[:400]}")
        if code != case.code or missing or "\n" in message:
            wrong.append((name, code, case.code, missing, message))
    assert wrong == []
