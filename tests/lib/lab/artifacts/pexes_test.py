import os
import pathlib
import subprocess

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.run import progress

CCM = "openstack-ccm"
USUAL = (CCM, pexes.TOOL)


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    return places.Places(tmp_path / "cache", tmp_path / "state", 21900)


def filled(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (CCM, pexes.TOOL):
        (folder / f"{name}.pex").write_text(f"print('I am {name}')")
    return folder


def checkout(folder: pathlib.Path, script: str) -> pathlib.Path:
    """Make what passes for a checkout; its ./pants is a script."""
    folder.mkdir()
    (folder / "pants.toml").touch()
    launcher = folder / "pants"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    return folder


def test_checkout_is_found_from_below(tmp_path: pathlib.Path) -> None:
    """A user may be anywhere inside the checkout."""
    top = checkout(tmp_path / "repository", "")
    below = top / "lib" / "lab"
    below.mkdir(parents=True)
    assert pexes.checkout_above(below) == top
    assert pexes.checkout_above(tmp_path) is None


def test_files_come_from_a_folder_without_a_checkout(
    where: places.Places, tmp_path: pathlib.Path
) -> None:
    """Outside a checkout the released files are taken, and they run."""
    pexes.bring(where, None, filled(tmp_path / "bin"), progress.Silent(), USUAL)
    command = pexes.command(pexes.path(where, CCM))
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == "I am openstack-ccm\n"


def test_a_missing_file_is_told(where: places.Places, tmp_path: pathlib.Path) -> None:
    """The sentence names the file and what helps."""
    with pytest.raises(
        errors.LabError, match=r"openstack-ccm\.pex is missing.*--pex-folder"
    ):
        pexes.bring(where, None, tmp_path, progress.Silent(), USUAL)


def test_the_same_file_is_not_copied_again(
    where: places.Places, tmp_path: pathlib.Path
) -> None:
    """A running program is not taken for outdated when nothing has changed."""
    folder = filled(tmp_path / "bin")
    pexes.bring(where, None, folder, progress.Silent(), USUAL)
    copy = pexes.path(where, CCM)
    os.utime(copy, (1, 1))
    pexes.bring(where, None, folder, progress.Silent(), USUAL)
    assert copy.stat().st_mtime == 1
    (folder / "openstack-ccm.pex").write_text("print('new')")
    pexes.bring(where, None, folder, progress.Silent(), USUAL)
    assert copy.stat().st_mtime > 1


def test_a_checkout_is_packaged_beside_a_running_pants(
    where: places.Places, tmp_path: pathlib.Path
) -> None:
    """Pants is told that another one runs, and keeps out of its daemon."""
    top = checkout(
        tmp_path / "repository",
        'echo "$PANTS_CONCURRENT $PEX_EXTRA_SYS_PATH $@"; mkdir -p dist;'
        " echo 1 > dist/openstack-ccm.pex; echo 2 > dist/mooring.pex",
    )
    pexes.bring(where, top, tmp_path / "nowhere", progress.Silent(), USUAL)
    assert (where.log / "package.log").read_text().split() == [
        "true",
        "--no-pantsd",
        "--no-dynamic-ui",
        "package",
        *map(pexes.address, USUAL),
    ]
    assert pexes.path(where, pexes.TOOL).read_text() == "2\n"


def test_failed_packaging_carries_what_pants_said(
    where: places.Places, tmp_path: pathlib.Path
) -> None:
    """The reason is in the error, not only in a log."""
    top = checkout(tmp_path / "repository", "echo no such target; exit 1")
    with pytest.raises(errors.LabError, match="package cmd.*failed.*\n*no such target"):
        pexes.bring(where, top, tmp_path, progress.Silent(), USUAL)
