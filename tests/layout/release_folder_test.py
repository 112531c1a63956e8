"""The folder of a release: checksums, bills of materials and notes of its files.

Pants is run by hand and in build-support/release_folder.py alone: the files are given.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import zipfile
from types import ModuleType

import pytest

GO_MOD = """\
module mooring/lab/kube

go 1.26.0

require k8s.io/kubernetes v1.36.3

require (
\tgolang.org/x/sys v0.40.0 // indirect
)
"""
CHANGELOG = """\
# Changelog of mooring

## 0.1.0 (2026-12-01)

### Added

- The tool.

## 0.0.9 (2026-11-01)

- Older.
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = pathlib.Path("build-support/release_folder.py")
    spec = importlib.util.spec_from_file_location("release_folder", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release_folder"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture()
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """Write a repository with one component and one Go module."""
    for name, text in {
        "cmd/mooring/CHANGELOG.md": CHANGELOG,
        "lib/lab/artifacts/modules/kube/go.mod": GO_MOD,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture()
def folder(script: ModuleType, root: pathlib.Path) -> pathlib.Path:
    """Finish a folder with a program, an image, a chart and the archive."""
    folder = root / "release"
    for name in ("images/mooring.tar", "charts/a-0.1.0.tgz", "charts/a-0.1.0.tgz.prov"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / script.archive_name()).write_bytes(b"archive")
    with zipfile.ZipFile(folder / "mooring.pex", "w") as pex:
        wheels = {"click-8.1.7-py3-none-any.whl": "1", "PyYAML-6.0.2-cp311.whl": "2"}
        pex.writestr("PEX-INFO", json.dumps({"distributions": wheels}))
    script.finish(root, folder)
    return folder


def test_checksums_cover_every_file(folder: pathlib.Path) -> None:
    """As the user compares them; images and provenance files are among them."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    print(done.stdout)
    checked = {line.partition(":")[0] for line in done.stdout.splitlines()}
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert checked == files - {"SHA256SUMS"}
    assert {"charts/a-0.1.0.tgz.prov", "NOTES.md", "mooring.pex.cdx.json"} <= checked


def test_bills_of_materials_name_each_part(
    script: ModuleType, folder: pathlib.Path
) -> None:
    expected = {
        "mooring.pex": ["pkg:pypi/pyyaml@6.0.2", "pkg:pypi/click@8.1.7"],
        script.archive_name(): [
            "pkg:golang/golang.org/x/sys@v0.40.0",
            "pkg:golang/k8s.io/kubernetes@v1.36.3",
        ],
    }
    for name, purls in expected.items():
        bill = json.loads((folder / f"{name}.cdx.json").read_text())
        assert [part["purl"] for part in bill["components"]] == purls
        (digest,) = bill["metadata"]["component"]["hashes"]
        assert digest["content"] == script.digest(folder / name)


def test_notes_have_the_newest_entries_and_the_first_command(
    script: ModuleType, folder: pathlib.Path
) -> None:
    text = (folder / "NOTES.md").read_text()
    assert "## mooring 0.1.0 (2026-12-01)" in text
    assert "- The tool." in text
    assert "Older" not in text
    assert f"MOORING_LAB_PROGRAMS={script.archive_name()} ./mooring.pex lab up" in text


def test_a_folder_with_files_is_refused(
    script: ModuleType, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main([str(folder), "--unsigned"]) == 1
    assert "not empty: must be a new folder" in capsys.readouterr().err


def test_charts_without_a_key_are_refused(
    script: ModuleType, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main([str(tmp_path / "new"), "--sign-key=release"]) == 1
    error = capsys.readouterr().err
    assert "--sign-key and --keyring: not set" in error
    assert not (tmp_path / "new").exists()


def test_options_of_helm_follow_from_the_key(script: ModuleType) -> None:
    parsed = argparse.Namespace(unsigned=False, sign_key="release", keyring="/keys.gpg")
    options = script.signing(parsed)
    assert options == ["--sign-key", "release", "--keyring", "/keys.gpg"]
