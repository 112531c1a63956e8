"""Pinned Debian packages: their file, and what is reported when one is missing."""

import hashlib
import pathlib

import pytest

from lib.lab import errors, places
from lib.lab.images import package_lock
from lib.lab.images.package_lock import Pinned
from lib.lab.run import progress

CONTENT = b"a package"
PIN = Pinned("a", "1.0", hashlib.sha256(CONTENT).hexdigest(), "pool/a/a_1.0_all.deb")


def fetch(folder: pathlib.Path, pin: Pinned = PIN) -> pathlib.Path:
    """Fetch a package from two repositories on disk, of which the second has it."""
    if not package_lock.can_fetch():
        pytest.skip("apt is absent")
    where = places.Places(folder / "cache", folder / "state")
    sources = [f"copy:{folder}/first", f"copy:{folder}/second/"]
    with progress.Silent().step("") as step:
        return package_lock.fetch(where, [pin], sources, step)[pin.name]


def publish(folder: pathlib.Path, content: bytes = CONTENT) -> pathlib.Path:
    folder.chmod(0o755)
    file = folder / "second" / PIN.path
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def test_a_package_is_fetched_once(tmp_path: pathlib.Path) -> None:
    published = publish(tmp_path)
    file = fetch(tmp_path)
    assert file.read_bytes() == CONTENT
    published.unlink()
    assert fetch(tmp_path) == file


def test_a_damaged_file_is_fetched_again(tmp_path: pathlib.Path) -> None:
    publish(tmp_path)
    fetch(tmp_path).write_bytes(b"damaged")
    assert fetch(tmp_path).read_bytes() == CONTENT


def test_a_version_that_the_mirror_dropped_is_one_sentence(
    tmp_path: pathlib.Path,
) -> None:
    publish(tmp_path).unlink()
    with pytest.raises(errors.LabError) as caught:
        fetch(tmp_path)
    assert str(caught.value) == (
        "a 1.0: no package source has this pinned version any more:"
        " `mooring lab image --update-packages` pins the present one"
    )


def test_another_file_under_the_same_name_is_rejected(tmp_path: pathlib.Path) -> None:
    publish(tmp_path, b"another")
    with pytest.raises(errors.LabError, match="a 1.0: cannot be downloaded"):
        fetch(tmp_path)


def test_the_lock_file_is_read_as_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "images").mkdir()
    other = Pinned("b", "1:2", "0" * 64, "pool/b/b_2_all.deb")
    assert package_lock.read_if_any(tmp_path) == {}
    package_lock.write(tmp_path, [other, PIN])
    assert package_lock.read(tmp_path) == {"a": PIN, "b": other}
    assert list(package_lock.read(tmp_path)) == ["a", "b"]


def test_a_missing_or_malformed_lock_file_is_reported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "images").mkdir()
    with pytest.raises(errors.LabError, match="packages are pinned for"):
        package_lock.read(tmp_path)
    package_lock.lock_file(tmp_path).write_text("a 1.0\n")
    with pytest.raises(errors.LabError, match='invalid value "a 1.0": must be'):
        package_lock.read(tmp_path)


def test_apt_sources_of_another_release_are_rejected() -> None:
    if not package_lock.can_fetch():
        pytest.skip("apt is absent")
    with pytest.raises(errors.LabError, match="apt has no source of nonesuch"):
        package_lock.repositories({"PATH": "/usr/bin:/bin"}, "nonesuch")
