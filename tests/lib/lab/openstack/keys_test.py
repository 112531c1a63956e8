"""Keys are made once and kept."""

import datetime
import pathlib

from cryptography import fernet

from lib.lab.openstack import keys

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def test_every_key_is_private_and_a_second_call_changes_none(
    tmp_path: pathlib.Path,
) -> None:
    keys.make(tmp_path, NOW)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    keys.make(tmp_path, NOW)

    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert after == before
    assert len(after) == 7
    assert {file.stat().st_mode & 0o077 for file in after} == {0}
    fernet.Fernet((tmp_path / "fernet" / "1").read_bytes())
