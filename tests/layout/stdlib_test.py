"""The folder cmd/ must never hide the standard library's module of that name."""

import cmd
import importlib
import os
import pathlib
import sys


def test_pdb_can_be_imported() -> None:
    sys.modules.pop("pdb", None)
    pdb = importlib.import_module("pdb")
    assert issubclass(pdb.Pdb, cmd.Cmd)


def test_our_folder_lies_on_the_path_and_is_not_taken() -> None:
    """Else the test above would prove nothing."""
    here = [pathlib.Path(entry or os.curdir) / "cmd" for entry in sys.path]
    assert any((folder / "openstack_ccm").is_dir() for folder in here)
    assert pathlib.Path(str(cmd.__file__)).name == "cmd.py"


def test_cmd_is_no_package() -> None:
    for entry in sys.path:
        assert not (pathlib.Path(entry or os.curdir) / "cmd" / "__init__.py").exists()
