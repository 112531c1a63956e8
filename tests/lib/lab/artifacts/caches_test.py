import os
import pathlib

from lib.lab import places
from lib.lab.artifacts import caches


def test_sizes_are_by_part_and_count_a_file_once(tmp_path: pathlib.Path) -> None:
    """A file with two names takes room once; a link takes none of its target's."""
    where = places.Places(tmp_path / "cache", tmp_path / "state")
    part = where.cache / "go"
    part.mkdir(parents=True)
    empty = caches.sizes(where)["go"]
    (part / "one").write_bytes(os.urandom(1 << 20))
    (part / "same").hardlink_to(part / "one")
    (part / "link").symlink_to(part / "one")
    grown = caches.sizes(where)["go"] - empty
    assert 1 << 20 <= grown < (1 << 20) + 65536


def test_a_lock_is_no_part_of_the_cache(tmp_path: pathlib.Path) -> None:
    """What keeps two builds apart weighs nothing and is not listed."""
    where = places.Places(tmp_path / "cache", tmp_path / "state")
    (where.cache / "go").mkdir(parents=True)
    (where.cache / "build.lock").touch()
    assert list(caches.sizes(where)) == ["go"]


def test_removed_caches_weigh_nothing(tmp_path: pathlib.Path) -> None:
    """Removing leaves no part behind, and may be repeated."""
    where = places.Places(tmp_path / "cache", tmp_path / "state")
    (where.cache / "go").mkdir(parents=True)
    caches.remove(where)
    caches.remove(where)
    assert caches.sizes(where) == {}
