"""Descriptions of images, and the packages that are pinned for them."""

import pathlib
import re

import pytest

from lib.lab import errors
from lib.lab.images import description, package_lock

ROOT = pathlib.Path()


NO_IMAGE = {"mooring", "capz"}
"""The tool runs on its user's machine; the image of capz comes with its chart."""


def test_each_component_has_one_image() -> None:
    components = {
        name
        for file in ROOT.glob("cmd/*/BUILD")
        for name in re.findall(r'output_path="(.+)\.pex"', file.read_text())
    }
    described = {description.read(ROOT, x).pex: x for x in description.names(ROOT)}
    for name in sorted(components):
        print(f"{name:24} {described.get(name, 'none')}")
    assert components - described.keys() == NO_IMAGE
    assert described.keys() <= components


def test_only_csi_node_is_root() -> None:
    users = {x: description.read(ROOT, x).user for x in description.names(ROOT)}
    print(users)
    assert {name for name, user in users.items() if user == 0} == {"csi-node"}
    assert set(users.values()) == {0, 64535}


def test_each_package_is_pinned_and_each_pin_is_used() -> None:
    for file in sorted(ROOT.glob("images/packages.*.lock")):
        pins = package_lock.parse(file)
        print(f"{file.name}: {len(pins)} packages")
        assert tuple(sorted(pins)) == description.packages(ROOT)
        assert not [pin for pin in pins.values() if "://" in pin.path]


@pytest.mark.parametrize("text", ["pex: p", "- a", "user: many"])
def test_a_malformed_description_is_rejected(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "images/x").mkdir(parents=True)
    (tmp_path / "images/x/image.yaml").write_text(text)
    with pytest.raises(errors.LabError, match="image.yaml"):
        description.read(tmp_path, "x")
