"""The lines that a whole provider takes, by room: DVP, and zVirt without machines.

Code is neither blank, nor docstring, nor import. Of files that several clouds share,
those lines are counted that name the cloud.
"""

import ast
import pathlib
import re
from collections.abc import Mapping

import pytest

from tests.harness.structure import code_lines

ROOMS: Mapping[str, tuple[str, ...]] = {
    "dvp": (
        "lib/cloud/dvp",
        "lib/cloud/dvp/instances",
        "lib/cloud/dvp/load_balancers",
        "lib/cloud/dvp/volumes",
        "lib/cloud/dvp/catalog",
        "cmd/dvp_ccm",
        "cmd/csi_controller/dvp_clouds.py",
        "cmd/csi_node/dvp_node.py",
        "cmd/cloud_data_discoverer/dvp.py",
        "cmd/mooring/commands/on_dvp.py",
        "cmd/mooring/commands/provider_dvp.py",
    ),
    "zvirt": (
        "lib/cloud/zvirt",
        "lib/cloud/zvirt/instances",
        "lib/cloud/zvirt/volumes",
        "lib/cloud/zvirt/catalog",
        "cmd/zvirt_ccm",
        "cmd/csi_controller/zvirt_clouds.py",
        "cmd/csi_node/zvirt_node.py",
        "cmd/cloud_data_discoverer/zvirt.py",
        "cmd/mooring/commands/on_zvirt.py",
        "cmd/mooring/commands/provider_zvirt.py",
    ),
}
"""Folders without those below them, and files, by cloud."""
SHARED = (
    "cmd/cloud_data_discoverer/main.py",
    "cmd/csi_controller/main.py",
    "cmd/csi_node/main.py",
    "cmd/mooring/commands/providers.py",
    "lib/cloud/provider_id.py",
)
"""Files with an entry for each cloud."""
FLOWS = (
    *("balancers", "ccm", "csi", "daemon", "discoverer", "nodes", "volumes"),
    "discovery",
)
"""Packages of `lib` for every cloud."""
OF_CLOUDS = ("lib/discovery/dvp", "lib/discovery/openstack")
"""Packages below them with the formats of one cloud's installer."""
SOURCE = re.compile(r'Source:.*?(?=\n\s*\n|""")', re.DOTALL)
MOST = {"dvp": 3_500, "zvirt": 3_500}
"""Lines of code of the product that a provider may take, without machines."""


def word(cloud: str) -> re.Pattern[str]:
    return re.compile(cloud, re.IGNORECASE)


def files(room: str) -> list[pathlib.Path]:
    path = pathlib.Path(room)
    return [path] if path.suffix else sorted(path.glob("*.py"))


def size(room: str) -> int:
    return sum(code_lines.count(file.read_text()) for file in files(room))


def entry_size(path: pathlib.Path, cloud: str) -> int:
    """Count the lines that name a cloud, and those of functions with such a name."""
    text, named = path.read_text(), word(cloud)
    lines = {n for n, line in enumerate(text.splitlines(), 1) if named.search(line)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and named.search(node.name):
            lines |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines & set(code_lines.numbers(text)))


@pytest.mark.parametrize("cloud", ROOMS)
def test_a_provider_of_its_own_size(cloud: str) -> None:
    """A table is printed; the sum does not grow unnoticed."""
    rows = {room: size(room) for room in ROOMS[cloud]}
    rows |= {path: entry_size(pathlib.Path(path), cloud) for path in SHARED}
    product, lab = sum(rows.values()), size(f"lib/lab/{cloud}")
    for room, lines in rows.items():
        print(f"{room:40} {lines:6}")
    print(f"{'product':40} {product:6}")
    print(f"{'lab (simulated cloud)':40} {lab:6}")
    assert all(rows.values())
    assert product <= MOST[cloud]


@pytest.mark.parametrize("cloud", ROOMS)
def test_no_flow_knows_the_provider(cloud: str) -> None:
    """Neither code nor text, but for paragraphs that name a source."""
    named = {}
    for package in FLOWS:
        paths = [
            path
            for path in sorted(pathlib.Path("lib", package).rglob("*.py"))
            if not path.as_posix().startswith(OF_CLOUDS)
        ]
        assert paths, package
        texts = [SOURCE.sub("", path.read_text()) for path in paths]
        count = sum(len(word(cloud).findall(text)) for text in texts)
        print(f"lib/{package:12} {len(paths):4} files, {count} lines about {cloud}")
        named[package] = count
    assert set(named.values()) == {0}
