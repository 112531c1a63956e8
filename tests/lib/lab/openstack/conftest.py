"""A disk that is full."""

import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest


@pytest.fixture()
def full(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return a folder on a real file system with 64 kB, all but 4 kB of them in use."""
    folder = tmp_path / "full"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    (folder / "ballast").write_bytes(os.urandom(60 * 1024))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
