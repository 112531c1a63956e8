"""The files of terraform/ keep their form: thin roots, plain modules."""

import pathlib
import re
from collections.abc import Iterator

import pytest

TREE = pathlib.Path("terraform/openstack")
STEPS = ("base-infrastructure", "master-node", "static-node")
BLOCK = re.compile(r'^(variable|output) "(\w+)" \{\n(.*?)^\}', re.M | re.DOTALL)
FORBIDDEN = ("provider ", "backend ", "provisioner ", "local-exec", "terraform_remote")
THIN = 160
"""Lines of a root's main.tf and outputs.tf, and as many of a bastion."""


def _files(pattern: str) -> Iterator[pathlib.Path]:
    files = sorted(TREE.glob(pattern))
    assert files
    return iter(files)


def test_each_variable_and_output_has_its_text() -> None:
    lacking = [
        f"{file}: {kind} {name}"
        for file in _files("**/*.tf")
        for kind, name, body in BLOCK.findall(file.read_text())
        if not re.search(r'^  description = "\S.*\."$', body, re.MULTILINE)
        or (kind == "variable" and not re.search(r"^  type +=", body, re.MULTILINE))
    ]
    assert lacking == []


def test_each_variable_of_a_root_is_validated_unless_its_type_says_all() -> None:
    lacking = [
        f"{file}: {name}"
        for file in _files("shared/*variables.tf")
        for kind, name, body in BLOCK.findall(file.read_text())
        if "validation {" not in body and not re.search(r"type += bool$", body, re.M)
    ]
    assert lacking == []


def test_a_module_has_no_provider_backend_or_program() -> None:
    for file in _files("modules/*/*.tf"):
        code = re.sub(r"#.*", "", file.read_text())
        assert not [word for word in FORBIDDEN if re.search(rf"^ *{word}", code, re.M)]


def test_each_file_pins_the_upstream_provider_in_one_range() -> None:
    pinned = {
        file.read_text()
        for file in _files("modules/*/versions.tf")
        if "required_providers" in file.read_text()
    }
    assert pinned == {(TREE / "shared" / "versions.tf").read_text()}


@pytest.mark.parametrize("step", STEPS)
def test_the_roots_of_a_step_have_the_same_variables(step: str) -> None:
    roots = list(_files(f"layouts/*/{step}"))
    variables = {
        tuple((root / name).read_text() for name in sorted(_shared(root)))
        for root in roots
    }
    assert len(roots) == 4
    assert len(variables) == 1


def _shared(root: pathlib.Path) -> list[str]:
    shared = {file.name for file in (TREE / "shared").iterdir()}
    return [file.name for file in root.iterdir() if file.name in shared]


def test_roots_are_thin() -> None:
    for root in _files("layouts/*/*"):
        own = {"main.tf", "outputs.tf", "bastion.tf"}
        lines = sum(
            len((root / name).read_text().splitlines())
            for name in own
            if (root / name).exists()
        )
        text = (root / "main.tf").read_text()
        assert lines <= THIN * (2 if (root / "bastion.tf").exists() else 1), root
        assert 'resource "' not in text, root
