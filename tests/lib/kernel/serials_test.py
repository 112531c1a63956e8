"""Disks are asked for their serials once, and one that hangs delays no other."""

import os
import pathlib

import pytest

from lib.kernel.linux import commands, kernel, serials
from lib.kernel.model import Disk

NAMES = ("vda", "vdb", "vdc")
ANSWER_S = 0.3


@pytest.fixture()
def sys(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a tree of three disks, the last of which does not answer."""
    for number, name in enumerate(NAMES):
        folder = tmp_path / "block" / name
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"254:{16 * number}\n")
        (folder / "size").write_text("2048\n")
        (folder / "diskseq").write_text(f"{number}\n")
        (folder / "serial").write_text(f"serial-of-{name}")
    silence(tmp_path, "vdc")
    return tmp_path


def silence(sys: pathlib.Path, name: str) -> None:
    """Make reads of a serial wait: nothing ever writes to the FIFO."""
    file = sys / "block" / name / "serial"
    file.unlink()
    os.mkfifo(file)


def answer(sys: pathlib.Path, name: str, text: str) -> None:
    """Make a disk answer from now on."""
    file = sys / "block" / name / "serial"
    file.unlink()
    file.write_text(text)


class Clock:
    """Seconds that a test moves; a question takes none of them."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Machine:
    """A kernel over such a tree, and the child processes that it has started."""

    def __init__(self, sys: pathlib.Path) -> None:
        self.clock = Clock()
        self.runner = commands.Commands({}, serials.EXIT_S)
        self.linux = kernel.LinuxKernel(self.runner, pathlib.Path("/dev"), sys)
        own = serials.Serials(self.runner, ANSWER_S, self.clock)
        self.linux._serials = own

    def shown(self, has_serials: bool = True) -> list[str]:
        """Return serials, or that the disk is silent."""
        return [_shown(disk) for disk in self.linux.disks(has_serials)]


def _shown(disk: Disk) -> str:
    return "silent" if disk.is_silent else disk.serial


@pytest.fixture()
def machine(sys: pathlib.Path) -> Machine:
    return Machine(sys)


def test_each_disk_is_asked_once_and_one_that_hangs_is_silent(machine: Machine) -> None:
    expected = ["serial-of-vda", "serial-of-vdb", "silent"]
    for _ in range(3):
        assert machine.shown() == expected
    assert machine.runner.started == len(NAMES)


def test_a_caller_that_needs_no_serial_asks_no_disk(machine: Machine) -> None:
    assert machine.shown(has_serials=False) == ["", "", ""]
    assert machine.runner.started == 0
    machine.shown()
    known = ["serial-of-vda", "serial-of-vdb", "silent"]
    assert machine.shown(has_serials=False) == known


def test_a_silent_disk_is_asked_again_after_a_while(
    machine: Machine, sys: pathlib.Path
) -> None:
    machine.shown()
    answer(sys, "vdc", "serial-of-vdc")
    assert machine.shown()[2] == "silent"
    machine.clock.now_s += serials.RETRY_S
    assert machine.shown()[2] == "serial-of-vdc"
    assert machine.runner.started == len(NAMES) + 1


def test_the_next_disk_of_a_name_is_asked_too(
    machine: Machine, sys: pathlib.Path
) -> None:
    """The new disk has the name and device number of the former."""
    machine.shown()
    (sys / "block/vdb/diskseq").write_text("77\n")
    answer(sys, "vdb", "another")
    assert machine.shown()[1] == "another"


def test_a_disk_that_was_asked_before_it_hung_keeps_its_serial(
    machine: Machine, sys: pathlib.Path
) -> None:
    machine.shown()
    silence(sys, "vdb")
    assert machine.shown()[1] == "serial-of-vdb"


def test_without_sequence_numbers_the_folder_tells_disks_apart(
    machine: Machine, sys: pathlib.Path
) -> None:
    """As before Linux 5.15."""
    for name in NAMES:
        (sys / "block" / name / "diskseq").unlink()
    assert machine.shown()[:2] == ["serial-of-vda", "serial-of-vdb"]


def test_a_serial_that_cannot_be_read_is_none(
    machine: Machine, sys: pathlib.Path
) -> None:
    file = sys / "block/vdb/serial"
    file.unlink()
    file.mkdir()
    assert machine.shown()[1] == ""
