import pathlib

import msgspec
import pytest

from lib.lab import errors, places
from lib.lab.grounds import servers
from lib.lab.whole import record


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    return places.Places(tmp_path / "cache", tmp_path / "state", 21900)


def test_what_was_written_is_read(where: places.Places) -> None:
    """The next command knows what the lab was started with."""
    kept = record.Record(
        kubeconfig="/k", existing_cloud="c", kind=servers.Kind("small"), booted=("1",)
    )
    record.write(where, kept)
    assert record.read(where) == kept


def test_without_a_lab_there_is_no_record(where: places.Places) -> None:
    """Nothing started is not an error, and forgetting twice neither."""
    assert record.read(where) is None
    record.forget(where)


def test_updates_add_up(where: places.Places) -> None:
    """Two steps that note something each do not lose the other's note."""

    def add(old: record.Record) -> record.Record:
        more = str(len(old.booted) + 1)
        return msgspec.structs.replace(old, booted=(*old.booted, more))

    for _ in range(2):
        record.update(where, add)
    kept = record.read(where)
    assert kept is not None
    assert kept.booted == ("1", "2")


def test_a_broken_record_is_told(where: places.Places) -> None:
    """Not a traceback but the way out."""
    record.write(where, record.Record())
    (where.state / "lab.json").write_text("{")
    with pytest.raises(errors.LabError, match="down --wipe"):
        record.read(where)
