"""C headers for the SDK of oVirt: those of the system, or unpacked without root.

README's promise is that Python 3.11, git and a C compiler suffice.
"""

import os
import pathlib
import subprocess

import pytest

SCRIPT = "build-support/headers.sh"
XML = "usr/include/libxml2/libxml/xmlreader.h"
LIBRARY = "usr/lib/x86_64-linux-gnu/libxml2.so"
PYTHON = "usr/bin/python3.11"
PYTHON_H = "usr/include/python3.11/Python.h"
COMPLETE = {
    "a Debian with both": (XML, LIBRARY, PYTHON, PYTHON_H),
    "a Python that was built here": (XML, LIBRARY),
}
MISSING = {
    "neither": (PYTHON,),
    "no libxml2": (PYTHON, PYTHON_H),
    "libxml2 without its link": (XML, PYTHON, PYTHON_H),
    "no Python.h": (XML, LIBRARY, PYTHON),
}
APT = """#!/usr/bin/env bash
# Creates empty packages, as the test's dpkg takes them.
echo "$0 $*" >> "$CALLS"
case "$*" in
*download*) [ -z "${OFFLINE:-}" ] || exit 100; touch libxml2-dev.deb ;;
*depends*) echo "  Depends: libicu72" ;;
esac
"""
DPKG = """#!/usr/bin/env bash
mkdir -p "$3/usr/include/libxml2" "$3/usr/lib/x86_64-linux-gnu"
touch "$3/usr/lib/x86_64-linux-gnu/libxml2.a" "$3/usr/lib/x86_64-linux-gnu/libxml2.so"
"""


@pytest.fixture()
def tools(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with apt and dpkg of the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("apt-get", APT), ("apt-cache", APT), ("dpkg", DPKG)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def run(
    tmp_path: pathlib.Path, tools: pathlib.Path, files: tuple[str, ...], **env: str
) -> subprocess.CompletedProcess[str]:
    system = tmp_path / "system"
    for file in files:
        path = system / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return subprocess.run(
        [SCRIPT, str(system), str(tmp_path / "cache")],
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "CALLS": str(tmp_path / "calls"),
            "HOME": str(tmp_path),
            **env,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("case", COMPLETE)
def test_headers_of_the_system_are_used(
    case: str, tmp_path: pathlib.Path, tools: pathlib.Path
) -> None:
    done = run(tmp_path, tools, COMPLETE[case])
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("case", MISSING)
def test_missing_headers_are_unpacked_once(
    case: str, tmp_path: pathlib.Path, tools: pathlib.Path
) -> None:
    folder = tmp_path / "cache" / "headers-1"
    for _ in range(2):
        done = run(tmp_path, tools, MISSING[case])
        assert (done.returncode, done.stdout.strip()) == (0, str(folder)), done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    (download,) = (call for call in calls if " download " in call)
    packages = "libxml2-dev libxml2 libicu-dev libpython3.11-dev libicu72"
    assert download.endswith(packages)
    # A link would take an archive where it lacks a library.
    assert [file.name for file in folder.rglob("libxml2*.*")] == ["libxml2.so"]


def test_without_a_mirror_the_packages_are_named(
    tmp_path: pathlib.Path, tools: pathlib.Path
) -> None:
    done = run(tmp_path, tools, MISSING["neither"], OFFLINE="yes")
    assert done.returncode == 1
    assert done.stderr.startswith("pants: the headers of libxml2 and Python 3.11")
    assert "apt-get install libxml2-dev libpython3.11-dev" in done.stderr
    assert not (tmp_path / "cache" / "headers-1").exists()
