"""docs/design.md and the picture of README.md name the packages that there are."""

import pathlib
import re
import sys

from lib.ccm import manager
from lib.csi import driver
from lib.discoverer import discoverer

PROGRAMS = (manager, driver, discoverer)
ROOT = pathlib.Path()
ROW = re.compile(r"^\| `(lib/[a-z_/]+)` \| (.*?) \|", re.MULTILINE)

PICTURE = re.compile(r"^```text\n( cmd/.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\b(?:cmd|lib)/[a-z_/]+")


def packages() -> set[str]:
    """Return the packages of lib, and those of clouds."""
    folders = [file.parent for file in ROOT.glob("lib/*/__init__.py")]
    clouds = [file.parent for file in ROOT.glob("lib/cloud/*/__init__.py")]
    return {folder.as_posix() for folder in (*folders, *clouds)}


def test_each_package_has_a_row() -> None:
    rows = dict(ROW.findall((ROOT / "docs/design.md").read_text()))
    print(f"{len(rows)} rows")
    layers = {file.parent.as_posix() for file in ROOT.glob("lib/osdpl/*/__init__.py")}
    assert rows.keys() == packages() | layers


def test_each_package_and_program_is_in_the_picture_of_the_readme() -> None:
    picture = PICTURE.search((ROOT / "README.md").read_text())
    assert picture is not None
    programs = {f"cmd/{file.parent.name}" for file in ROOT.glob("cmd/*/BUILD")}
    names = NAME.findall(picture[1])
    print(f"{len(names)} names")
    assert sorted(names) == sorted(packages() | programs)


def test_a_package_that_a_program_runs_is_not_called_unused() -> None:
    assert all(program.__name__ in sys.modules for program in PROGRAMS)
    rows = dict(ROW.findall(pathlib.Path("docs/design.md").read_text()))
    unused = [name for name, text in rows.items() if "no program runs it" in text]
    print(f"{len(rows)} packages, not run by any program: {unused or 'none'}")
    assert {"lib/balancers", "lib/volumes", "lib/discovery"} <= rows.keys()
    assert [name for name in unused if name.replace("/", ".") in sys.modules] == []
