"""The generated messages are those of the csi.proto in the tree."""

import importlib.resources
import pathlib

import pytest

from lib.csi.spec import csi_pb2, generate

MADE = ("csi_pb2.py", "csi_pb2.pyi")


def _tree(at: pathlib.Path, proto: str) -> pathlib.Path:
    (at / generate.PROTO).parent.mkdir(parents=True)
    (at / generate.PROTO).write_text(proto)
    return at


def _proto() -> str:
    return (importlib.resources.files("lib.csi.spec") / "csi.proto").read_text()


def _kept(name: str) -> str:
    return (pathlib.Path(csi_pb2.__file__).parent / name).read_text()


def test_generating_anew_gives_what_is_in_the_tree(tmp_path: pathlib.Path) -> None:
    root = _tree(tmp_path, _proto())
    generate.generate(root, root)
    for name in MADE:
        assert (root / "lib/csi/spec" / name).read_text() == _kept(name), name


def test_a_changed_specification_would_be_noticed(tmp_path: pathlib.Path) -> None:
    root = _tree(tmp_path, _proto().replace("vendor_version", "vendor_release"))
    generate.generate(root, root)
    assert (root / "lib/csi/spec" / "csi_pb2.py").read_text() != _kept("csi_pb2.py")


def test_a_broken_specification_is_an_error(tmp_path: pathlib.Path) -> None:
    root = _tree(tmp_path, "no proto")
    with pytest.raises(RuntimeError, match="can't be compiled"):
        generate.generate(root, root)


def test_the_registration_messages_are_those_of_the_proto(
    tmp_path: pathlib.Path,
) -> None:
    root = _tree(tmp_path, _proto())
    proto = importlib.resources.files("lib.csi.spec") / "pluginregistration.proto"
    (root / generate.REGISTRATION).write_text(proto.read_text())
    generate.generate(root, root, generate.REGISTRATION)
    for name in ("pluginregistration_pb2.py", "pluginregistration_pb2.pyi"):
        assert (root / "lib/csi/spec" / name).read_text() == _kept(name), name
