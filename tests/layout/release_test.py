"""A release is prepared, or rejected with its reason; the script is loaded by its path.

The repository of these tests is a real one of git. Pants is run by hand and in
build-support/release.py alone: the files of a component are given here.
"""

import dataclasses
import importlib.util
import json
import pathlib
import subprocess
import sys
import zipfile
from hashlib import sha256
from types import ModuleType
from typing import Any

import pytest

CHART = """\
name: openstack-ccm
version: {version}
appVersion: {app}
"""
LOCK = (
    "click==8.1.7 \\\n    --hash=sha256:1\nmsgspec=={msgspec} \\\n    --hash=sha256:2\n"
)


@pytest.fixture(scope="module")
def release() -> ModuleType:
    path = pathlib.Path("build-support/release.py")
    spec = importlib.util.spec_from_file_location("release", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release"] = module
    spec.loader.exec_module(module)
    return module


def write(root: pathlib.Path, **texts: str) -> None:
    files = {
        "version": "cmd/openstack_ccm/version.py",
        "changelog": "cmd/openstack_ccm/CHANGELOG.md",
        "chart": "charts/openstack-ccm/Chart.yaml",
        "snapshot": "charts/openstack-ccm/snapshots/usual.yaml",
        "umbrella": "charts/cloud-provider-openstack/Chart.yaml",
        "image": "images/openstack-ccm/image.yaml",
        "code": "lib/ccm.py",
        "lock": "3rdparty/python/default.lock.txt",
    }
    for key, text in texts.items():
        file = root / files[key]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def git(root: pathlib.Path, *words: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=900)


@pytest.fixture()
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a repository in which openstack-ccm 0.1.0 was released."""
    git(tmp_path, "init", "-q")
    write(
        tmp_path,
        version='VERSION = "0.1.0"\n',
        changelog="# Changelog\n\n## 0.1.0 (2026-01-02)\n",
        chart=CHART.format(version="0.1.0", app="0.1.0"),
        snapshot="kind: Deployment\n",
        umbrella="version: 0.1.0\ndependencies:\n  - name: openstack-ccm\n",
        image="pex: openstack-ccm\n",
        code="A = 1\n",
        lock=LOCK.format(msgspec="0.18.0"),
    )
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    for tag in ("openstack-ccm/v0.0.9", "openstack-ccm/v0.1.0", "csi-node/v0.3.0"):
        git(tmp_path, "tag", tag)
    return tmp_path


def facts(release: ModuleType, root: pathlib.Path, **changes: Any) -> Any:
    """Return the state as release.py reads it, for a program of one file."""
    tag = release.last_tag(root, "openstack-ccm")
    text = (root / "cmd/openstack_ccm/CHANGELOG.md").read_text()
    heading = text.rpartition("## ")[2].split()
    state = release.Facts(
        "openstack-ccm",
        "0.2.0",
        tag,
        release.dirty_files(root),
        release.changed_files(root, tag),
        {"lib/ccm.py"} | release.own_files(root, "openstack-ccm"),
        release.changed_pins(root, tag, {"msgspec"}),
        release.stated_versions(root, "openstack-ccm"),
        (heading[0], heading[1].strip("()")),
    )
    return dataclasses.replace(state, **changes)


def bump(root: pathlib.Path, **more: str) -> None:
    """Commit all that a release of 0.2.0 needs."""
    write(
        root,
        version='VERSION = "0.2.0"\n',
        changelog="# Changelog\n\n## 0.2.0 (2026-02-03)\n",
        chart=CHART.format(version="0.2.0", app="0.2.0"),
        umbrella="version: 0.1.1\ndependencies:\n  - name: openstack-ccm\n",
        **more,
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")


def test_a_release_is_prepared(release: ModuleType, root: pathlib.Path) -> None:
    bump(root, code="A = 2\n", lock=LOCK.format(msgspec="0.19.0"))
    state = facts(release, root)
    assert release.judge(state) == []
    assert (state.last_tag, state.tag) == (
        "openstack-ccm/v0.1.0",
        "openstack-ccm/v0.2.0",
    )
    assert state.causes == [
        "charts/openstack-ccm/Chart.yaml",
        "lib/ccm.py",
        "3rdparty/python/default.lock.txt: msgspec 0.18.0 -> 0.19.0",
    ]
    assert release.chart_bumps(root, "openstack-ccm", state.last_tag) == [
        "openstack-ccm 0.1.0 -> 0.2.0",
        "cloud-provider-openstack 0.1.0 -> 0.1.1",
    ]


def test_a_component_of_two_clouds_changes_both_umbrella_charts(
    release: ModuleType, tmp_path: pathlib.Path
) -> None:
    for chart, component in (
        ("csi-controller", ""),
        ("cloud-provider-dvp", "csi-controller"),
        ("cloud-provider-openstack", "csi-controller"),
    ):
        folder = tmp_path / "charts" / chart
        folder.mkdir(parents=True)
        text = f"version: 0.2.0\ndependencies:\n  - name: {component or 'library'}\n"
        (folder / "Chart.yaml").write_text(text)
    assert release.chart_bumps(tmp_path, "csi-controller", "") == [
        "csi-controller none -> 0.2.0",
        "cloud-provider-dvp none -> 0.2.0",
        "cloud-provider-openstack none -> 0.2.0",
    ]
    assert release.chart_bumps(tmp_path, "capdvp", "") == []


FOUR = ("capdvp", "cloud-data-discoverer", "csi-controller", "dvp-ccm")
"""Components of the module for DVP with a Deployment."""
MAIN = {name: f"cmd/{name.replace('-', '_')}/main.py" for name in FOUR}
USES = {"lib/disks.py": {"capdvp", "csi-controller"}}
"""Files of libraries, with the components whose programs contain them."""
CHANGES: dict[str, tuple[str, set[str]]] = {
    **{f"program of {name}": (MAIN[name], {name}) for name in FOUR},
    **{f"chart of {name}": (f"charts/{name}/values.yaml", {name}) for name in FOUR},
    "library of charts": ("charts/library/templates/_pod.tpl", set(FOUR)),
    "page of that library": ("charts/library/README.md", set()),
    "rows of its schema": ("charts/library/shared.schema.json", set()),
    "library of two": ("lib/disks.py", USES["lib/disks.py"]),
    "library of the other cloud": ("lib/servers.py", set()),
    "page": ("docs/page.md", set()),
}


@pytest.fixture()
def module(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a repository in which the components of DVP were released one by one."""
    git(tmp_path, "init", "-q")
    files = {row[0] for row in CHANGES.values()}
    for file in (*files, "3rdparty/python/default.lock.txt"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("one\n")
    umbrella = "".join(f"  - name: {name}\n" for name in FOUR)
    (tmp_path / "charts/cloud-provider-dvp").mkdir()
    (tmp_path / "charts/cloud-provider-dvp/Chart.yaml").write_text(
        f"version: 0.1.0\ndependencies:\n{umbrella}"
    )
    for name in FOUR:
        chart = CHART.replace("openstack-ccm", name).format(version="0.1.0", app="0")
        (tmp_path / f"charts/{name}/Chart.yaml").write_text(chart)
        (tmp_path / f"charts/{name}/charts").mkdir()
        (tmp_path / f"charts/{name}/charts/library").symlink_to("../../library")
    git(tmp_path, "add", "-A")
    for name in FOUR:
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", name)
        git(tmp_path, "tag", f"{name}/v0.1.0")
    return tmp_path


@pytest.mark.parametrize("title", CHANGES)
def test_only_what_has_changed_gets_a_new_version(
    release: ModuleType, module: pathlib.Path, title: str
) -> None:
    """Each component is asked for in turn; only the umbrella changes with each."""
    file, expected = CHANGES[title]
    (module / file).write_text("two\n")
    git(module, "commit", "-qam", "two")
    released = set()
    for name in FOUR:
        used = {library for library, users in USES.items() if name in users}
        tag = release.last_tag(module, name)
        state = release.Facts(
            name,
            "0.2.0",
            tag,
            release.dirty_files(module),
            release.changed_files(module, tag),
            {MAIN[name], *used} | release.own_files(module, name),
            release.changed_pins(module, tag, {"msgspec"}),
            changelog=("0.2.0", "2026-02-03"),
        )
        problems = release.judge(state)
        print(f"{title:28} {name:24} {problems or state.causes}")
        if not problems:
            released.add(name)
            assert state.causes == [file]
        assert release.chart_bumps(module, name, tag) == [
            f"{chart} 0.1.0 -> 0.1.0 (unchanged: must be increased)"
            for chart in (name, "cloud-provider-dvp")
        ]
    assert released == expected


def test_files_that_no_release_contains_are_no_change(
    release: ModuleType, root: pathlib.Path
) -> None:
    """Neither snapshots, nor files and distributions of other components."""
    other = LOCK.format(msgspec="0.18.0").replace("8.1.7", "8.2.0")
    write(root, snapshot="kind: DaemonSet\n", lock=other)
    (root / "lib/csi.py").write_text("B = 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")
    problems = release.judge(facts(release, root))
    assert any("unchanged since openstack-ccm/v0.1.0" in row for row in problems)


def test_a_distribution_of_its_pex_is_a_change(
    release: ModuleType, root: pathlib.Path
) -> None:
    write(root, lock=LOCK.format(msgspec="0.19.0"))
    git(root, "commit", "-qam", "two")
    state = facts(release, root)
    assert not any("unchanged" in row for row in release.judge(state))


PANTS = """#!/bin/sh
case "$*" in
  *package*) ;;
  *filedeps*) printf '%s\\n' lib/ccm.py lib/BUILD 3rdparty/python/default.lock.txt ;;
  *"lab image openstack-ccm")
    mkdir -p dist/images/openstack-ccm
    cd dist/images
    echo '{"manifests": [{"digest": "sha256:abc"}]}' > openstack-ccm/index.json
    echo '{}' > openstack-ccm.cdx.json ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""
"""Pants as far as release.py runs it: the files of a program, and an image."""


def test_the_printed_rows_of_a_release(
    release: ModuleType,
    root: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From the command line to the last row, in a repository of git."""
    (root / ".gitignore").write_text("dist/\n")
    (root / "pants").write_text(PANTS)
    (root / "pants").chmod(0o755)
    pex = root / "dist/openstack-ccm.pex"
    pex.parent.mkdir()
    wheel = {"distributions": {"msgspec-0.19.0-cp311-cp311-linux_x86_64.whl": "1"}}
    with zipfile.ZipFile(pex, "w") as archive:
        archive.writestr("PEX-INFO", json.dumps(wheel))
    bump(root, code="A = 2\n", lock=LOCK.format(msgspec="0.19.0"))
    monkeypatch.chdir(root)
    assert release.main(["openstack-ccm", "0.2.0"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    bumps = ("openstack-ccm 0.1.0 -> 0.2.0", "cloud-provider-openstack 0.1.0 -> 0.1.1")
    assert printed.out.splitlines() == [
        "tag      openstack-ccm/v0.2.0",
        "changes  3 since openstack-ccm/v0.1.0",
        f"PEX      openstack-ccm.pex sha256:{sha256(pex.read_bytes()).hexdigest()}",
        "image    sha256:abc",
        "SBOM     dist/images/openstack-ccm.cdx.json",
        f"chart    {', '.join(bumps)}",
    ]
    assert release.main(["openstack-ccm", "0.1.0"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "must be greater than 0.1.0" in printed.err


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "version of no three numbers": ({"version": "0.2"}, "VERSION: invalid value"),
    "version with a letter": ({"version": "v0.2.0"}, "must be MAJOR.MINOR.PATCH"),
    "version of the last release": ({"version": "0.1.0"}, "must be greater than 0.1.0"),
    "older version": ({"version": "0.0.10"}, "must be greater than 0.1.0"),
    "no change": ({"changed": (), "pins": {}}, "unchanged since"),
    "file not committed": ({"dirty": ["a.py"]}, "working tree: not clean (a.py)"),
    "changelog without an entry": (
        {"changelog": ("0.1.0", "2026-01-02")},
        'CHANGELOG.md: invalid value "0.1.0": must be 0.2.0',
    ),
    "changelog without a date": (
        {"changelog": ("0.2.0", "unreleased")},
        'invalid value "unreleased": must be the date',
    ),
    "chart of another version": (
        {"versions": {"charts/openstack-ccm/Chart.yaml: appVersion": "0.1.0"}},
        'appVersion: invalid value "0.1.0": must be 0.2.0',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_release_is_rejected_with_its_reason(
    release: ModuleType, root: pathlib.Path, name: str
) -> None:
    changes, reason = CASES[name]
    bump(root, code="A = 2\n")
    problems = release.judge(facts(release, root, **changes))
    print(f"{name:30} {problems}")
    assert any(reason in problem for problem in problems)


def test_the_first_release_needs_no_tag(
    release: ModuleType, root: pathlib.Path
) -> None:
    bump(root, code="A = 2\n")
    state = facts(release, root, last_tag="", changed=(), pins={})
    assert release.judge(state) == []
    assert release.chart_bumps(root, "openstack-ccm", "") == [
        "openstack-ccm none -> 0.2.0",
        "cloud-provider-openstack none -> 0.1.1",
    ]


def test_an_unknown_component_is_rejected(
    release: ModuleType, root: pathlib.Path
) -> None:
    with pytest.raises(release.ReleaseError, match="did you mean openstack-ccm"):
        release.read(root, "openstack-cmm", "0.2.0")


def test_the_distributions_of_a_pex(
    release: ModuleType, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "a.pex"
    wheels = {
        "PyYAML-6.0-cp311-cp311-linux_x86_64.whl": "1",
        "a_b-1-py3-none-any.whl": "2",
    }
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("PEX-INFO", json.dumps({"distributions": wheels}))
    assert release.distributions(file) == {"pyyaml", "a-b"}


def test_components_have_a_changelog(release: ModuleType) -> None:
    """In this checkout: those with code and a chart."""
    assert "openstack-ccm" in release.components(pathlib.Path())
