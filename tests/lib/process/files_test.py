"""Noticing changed files."""

import os
import pathlib

import pytest

from lib.process import files


@pytest.fixture()
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "cloud.conf"
    path.write_text("one")
    return path


def test_a_changed_content_is_told_once(file: pathlib.Path) -> None:
    watch = files.FileWatch([file])
    assert not watch.changed()
    file.write_text("two")
    assert watch.changed()
    assert not watch.changed()


def test_a_file_that_is_only_touched_has_not_changed(file: pathlib.Path) -> None:
    watch = files.FileWatch([file])
    os.utime(file, (1, 1))
    assert not watch.changed()


def test_a_file_replaced_by_renaming_is_noticed(file: pathlib.Path) -> None:
    watch = files.FileWatch([file])
    part = file.with_suffix(".new")
    part.write_text("two")
    part.replace(file)
    assert watch.changed()


def test_two_changed_files_are_one_change(tmp_path: pathlib.Path) -> None:
    pair = [tmp_path / "tls.crt", tmp_path / "tls.key"]
    for path in pair:
        path.write_text("one")
    watch = files.FileWatch(pair)
    for path in pair:
        path.write_text("two")
    assert watch.changed()
    assert not watch.changed()


def test_the_swap_of_a_secret_volume_is_noticed(tmp_path: pathlib.Path) -> None:
    """The file's own link stays; the link to the folder above is replaced."""
    for name, text in (("..1", "one"), ("..2", "one"), ("..3", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tls.crt").write_text(text)

    def swap(folder: str) -> None:
        (tmp_path / "..new").symlink_to(folder)
        (tmp_path / "..new").replace(tmp_path / "..data")

    swap("..1")
    (tmp_path / "tls.crt").symlink_to("..data/tls.crt")
    watch = files.FileWatch([tmp_path / "tls.crt"])
    swap("..2")
    assert not watch.changed(), "another key of the Secret changed, not this one"
    swap("..3")
    assert watch.changed()


def test_a_missing_file_is_no_change_until_it_is_back(file: pathlib.Path) -> None:
    watch = files.FileWatch([file])
    file.unlink()
    assert not watch.changed()
    file.write_text("one")
    assert not watch.changed()
    file.unlink()
    file.write_text("two")
    assert watch.changed()


def test_a_file_that_appears_later_is_a_change(tmp_path: pathlib.Path) -> None:
    watch = files.FileWatch([tmp_path / "later"])
    assert not watch.changed()
    (tmp_path / "later").write_text("")
    assert watch.changed()


def test_why_a_file_can_not_be_read(tmp_path: pathlib.Path) -> None:
    """A folder and a missing file have different reasons, in the system's words."""
    file = tmp_path / "file"
    file.touch()
    os.mkfifo(tmp_path / "pipe")
    rows = {
        "file": "",
        "missing": "no such file",
        "file/below": "not a directory",
        "": "is a directory",
        "pipe": "is not a regular file",
    }
    assert {name: files.unreadable(f"{tmp_path}/{name}") for name in rows} == rows


def test_a_file_of_others_can_not_be_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    # Root may read everything.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert files.unreadable(str(file)) == "permission denied"
