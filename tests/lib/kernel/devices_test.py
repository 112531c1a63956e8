"""Disks are read from trees like /sys and /dev; changes of /dev wake waiting calls."""

import pathlib
import threading

import pytest

from lib.kernel.linux import commands, devices, kernel, watching
from lib.kernel.model import DeviceNumber, Disk

SERIAL = "11111111-2222-3333-4444-555555555555"


@pytest.fixture()
def sys(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "sys"


def disk(sys: pathlib.Path, name: str, **files: bytes) -> pathlib.Path:
    folder = sys / "block" / name
    (folder / "device").mkdir(parents=True)
    (folder / "dev").write_text("254:16\n")
    (folder / "size").write_text("2048\n")
    for file, data in files.items():
        (folder / file.replace("__", "/")).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"serial": SERIAL[:20].encode()}, SERIAL[:20], id="virtio"),
        pytest.param({"device__serial": b"NVME1  \n"}, "NVME1", id="nvme"),
        pytest.param(
            {"device__vpd_pg80": b"\x00\x80\x00\x24" + SERIAL.encode()},
            SERIAL,
            id="scsi",
        ),
        pytest.param({}, "", id="none"),
    ],
)
def test_serials(sys: pathlib.Path, files: dict[str, bytes], expected: str) -> None:
    disk(sys, "vdb", **files)
    number = DeviceNumber(254, 16)
    runner = commands.Commands({})
    linux = kernel.LinuxKernel(runner, pathlib.Path("/dev"), sys)
    assert linux.disks() == (Disk("vdb", "/dev/vdb", number, expected, 2**20),)
    assert runner.started == 0


def test_a_disk_that_is_half_removed_is_omitted(sys: pathlib.Path) -> None:
    (disk(sys, "vdb") / "size").unlink()
    disk(sys, "vdc")
    (observed,) = devices.disks(pathlib.Path("/dev"), sys)
    assert observed.disk.name == "vdc"
    assert devices.disks(pathlib.Path("/dev"), sys / "absent") == ()


def test_links_point_to_devices_or_to_nothing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "virtio-gone").symlink_to("nowhere")
    (link,) = devices.links(tmp_path)
    assert (link.name, link.number) == ("virtio-gone", None)
    assert devices.links(tmp_path / "absent") == ()


def test_rescans_are_written_where_the_kernel_has_them(sys: pathlib.Path) -> None:
    host = sys / "class/scsi_host/host0"
    host.mkdir(parents=True)
    folder = disk(sys, "sda", device__rescan=b"")
    devices.rescan_hosts(sys)
    devices.rescan_disk(sys, "sda")
    assert not (host / "scan").exists()
    (host / "scan").touch()
    devices.rescan_hosts(sys)
    assert (host / "scan").read_text() == "- - -"
    assert (folder / "device/rescan").read_text() == "1"
    disk(sys, "vda")
    devices.rescan_disk(sys, "vda")


def test_a_new_link_wakes_whoever_waits(tmp_path: pathlib.Path) -> None:
    by_id = tmp_path / "disk/by-id"
    with watching.watch((tmp_path, tmp_path / "disk", by_id)) as changes:
        assert not changes.wait(0.01)
        by_id.mkdir(parents=True)
        assert changes.wait(60)
        while changes.wait(0.05):
            pass
        timer = threading.Timer(0.05, (by_id / "virtio-1").symlink_to, ("x",))
        timer.start()
        assert changes.wait(60)
        timer.join()
