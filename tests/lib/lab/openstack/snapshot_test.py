"""A snapshot is found by what made it, and put back whole or not at all."""

import pathlib

import pytest

from lib.lab import places
from lib.lab.openstack import install, layout, snapshot


@pytest.fixture()
def home(tmp_path: pathlib.Path) -> layout.Layout:
    where = places.Places(tmp_path / "cache", tmp_path / "state", 21000)
    return layout.Layout(where, install.Install(tmp_path / "cache" / "a"))


def test_data_comes_back_as_it_was_taken(home: layout.Layout) -> None:
    (home.data / "keys").mkdir(parents=True)
    (home.data / "keys" / "0").write_text("old")
    snapshot.take(home)
    (home.data / "keys" / "0").write_text("new")
    (home.data / "more").touch()

    assert snapshot.restore(home)

    assert (home.data / "keys" / "0").read_text() == "old"
    assert not (home.data / "more").exists()


def test_without_a_snapshot_the_data_is_left_alone(home: layout.Layout) -> None:
    home.data.mkdir(parents=True)
    (home.data / "more").touch()

    assert not snapshot.restore(home)
    assert (home.data / "more").exists()


def test_a_broken_snapshot_is_removed_and_the_data_left_alone(
    home: layout.Layout,
) -> None:
    home.data.mkdir(parents=True)
    (home.data / "more").write_bytes(bytes(range(256)) * 500)
    snapshot.take(home)
    kept = snapshot.file(home)
    kept.write_bytes(kept.read_bytes()[:100])

    assert not snapshot.restore(home)
    assert not kept.exists()
    assert (home.data / "more").exists()


def test_other_ports_or_packages_have_another_snapshot(home: layout.Layout) -> None:
    where = places.Places(home.where.cache, home.where.state, 21100)
    packages = install.Install(home.install.folder.with_name("b"))

    files = {
        snapshot.file(home),
        snapshot.file(layout.Layout(where, home.install)),
        snapshot.file(layout.Layout(home.where, packages)),
    }

    assert len(files) == 3


def test_an_outdated_snapshot_for_the_same_ports_makes_room(
    home: layout.Layout,
) -> None:
    home.data.mkdir(parents=True)
    old = snapshot.file(home).with_name("21000-old.tar.gz")
    other = old.with_name("21100-old.tar.gz")
    old.parent.mkdir(parents=True)
    old.touch()
    other.touch()

    snapshot.take(home)

    assert not old.exists()
    assert other.exists()
