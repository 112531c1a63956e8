"""A snapshot is found by what made it, and put back whole or not at all."""

import os
import pathlib
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from lib.lab import errors, places
from lib.lab.openstack import install, layout, snapshot
from lib.lab.run import progress


@pytest.fixture()
def home(tmp_path: pathlib.Path) -> layout.Layout:
    where = places.Places(tmp_path / "cache", tmp_path / "state", 21000)
    home_layout = layout.Layout(where, install.Install(tmp_path / "cache" / "a"))
    home_layout.data.mkdir(parents=True)
    (home_layout.data / snapshot.SEEDED).write_text("{}")
    (home_layout.data / "more").write_bytes(bytes(range(256)) * 500)
    return home_layout


def taken(home: layout.Layout) -> pathlib.Path:
    snapshot.take(home)
    file = snapshot.find(home)
    assert file is not None
    return file


def test_data_comes_back_as_it_was_taken(home: layout.Layout) -> None:
    """But it must not be used before its addresses are those of this lab."""
    (home.data / "keys").mkdir(parents=True)
    (home.data / "keys" / "0").write_text("old")
    taken(home)
    (home.data / "keys" / "0").write_text("new")
    (home.data / "later").touch()

    snapshot.restore(home)

    assert (home.data / "keys" / "0").read_text() == "old"
    assert not (home.data / "later").exists()
    assert not (home.data / snapshot.SEEDED).exists()
    assert (home.data / snapshot.RESTORED).exists()


def cut(content: bytes) -> bytes:
    return content[:100]


def one_bit_flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    changed = bytes([content[middle] ^ 1])
    return content[:middle] + changed + content[middle + 1 :]


def emptied(content: bytes) -> bytes:
    return content[:0]


@pytest.mark.parametrize("damage", [cut, one_bit_flipped, emptied])
def test_a_damaged_snapshot_is_removed_and_the_data_left_alone(
    home: layout.Layout, damage: Callable[[bytes], bytes]
) -> None:
    kept = taken(home)
    kept.write_bytes(damage(kept.read_bytes()))

    with pytest.raises(snapshot.DamagedError, match=f"{kept.name} is damaged .*hash"):
        snapshot.restore(home)

    assert not kept.exists()
    assert (home.data / "more").exists()


def test_a_snapshot_that_is_not_there_is_an_error_and_not_the_end_of_the_data(
    home: layout.Layout,
) -> None:
    with pytest.raises(snapshot.DamagedError):
        snapshot.restore(home)
    assert (home.data / "more").exists()


def test_a_snapshot_fits_all_ports_but_no_other_packages(home: layout.Layout) -> None:
    kept = taken(home)
    where = places.Places(home.where.cache, home.where.state, 21100)
    packages = install.Install(home.install.folder.with_name("b"))

    assert snapshot.find(layout.Layout(where, home.install)) == kept
    assert snapshot.find(layout.Layout(home.where, packages)) is None


def test_the_latest_snapshots_are_kept(home: layout.Layout) -> None:
    folder = snapshot.folder(home)
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"20000-{number}.tar.gz").touch()

    kept = taken(home)

    files = list(folder.glob("*.tar.gz"))
    assert kept in files
    assert len(files) == 3


def test_a_disk_that_is_full_is_told_and_leaves_no_half_snapshot(
    home: layout.Layout, full: pathlib.Path
) -> None:
    where = places.Places(full, home.where.state, 21000)
    (home.data / "more").write_bytes(os.urandom(64 * 1024))

    with pytest.raises(errors.LabError, match=r"could not be kept.*No space left"):
        snapshot.take(layout.Layout(where, home.install))

    assert list(full.rglob("*.new")) == list(full.rglob("*.tar.gz")) == []


def test_a_full_disk_under_the_data_is_told_and_the_snapshot_stays(
    home: layout.Layout, full: pathlib.Path
) -> None:
    kept = taken(home)
    where = places.Places(home.where.cache, full, 21000)

    with pytest.raises(errors.LabError, match=r"could not be unpacked.*No space left"):
        snapshot.restore(layout.Layout(where, home.install))

    assert kept.exists()


def test_only_one_lab_starts_for_the_first_time(home: layout.Layout) -> None:
    """Others wait; the lock is that of the cache, whatever the lab's folder."""
    elsewhere = places.Places(home.where.cache, home.where.state / "b", 21100)
    steps: list[str] = []

    class Shown:
        def step(self, what: str) -> AbstractContextManager[progress.ProgressStep]:
            steps.append(what)
            raise InterruptedError

        def overall(self, done: int, total: int, remaining_s: float | None) -> None:
            del done, total, remaining_s

    with (
        snapshot.alone(home, progress.Silent()),
        pytest.raises(InterruptedError),
        snapshot.alone(layout.Layout(elsewhere, home.install), Shown()),
    ):
        pass

    assert steps == ["Wait for the first start of another OpenStack"]
