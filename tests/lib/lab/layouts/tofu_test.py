"""What is known of OpenTofu and the provider before they are built."""

import pathlib

import pytest

from lib.lab import errors
from lib.lab.layouts import tofu, tools


def test_versions_are_those_of_the_pins() -> None:
    assert tofu.version("tofu", tools.TOFU.source) == "1.12.6"
    assert tofu.version(tools.OPENSTACK.name, tools.OPENSTACK.package) == "3.4.0"


def test_a_module_that_is_not_required_is_named() -> None:
    with pytest.raises(errors.LabError, match="modules/tofu/go.mod .* example.org/x"):
        tofu.version("tofu", "example.org/x")


def test_a_copy_of_the_tree_has_files_in_place_of_links(tmp_path: pathlib.Path) -> None:
    tree = tmp_path / "cloud"
    tree.mkdir()
    (tree / "shared.tf").write_text("# shared")
    (tree / "root.tf").symlink_to("shared.tf")

    with tofu.copied(tree) as copy:
        assert not (copy / "root.tf").is_symlink()
        assert (copy / "root.tf").read_text() == "# shared"

    assert not copy.exists()
