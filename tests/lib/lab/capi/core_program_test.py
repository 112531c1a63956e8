import pathlib
import textwrap

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import go_modules, go_toolchain
from lib.lab.capi import core_program
from lib.lab.run import progress

GO = """\
    #!/bin/sh
    echo "$1" >> "$HOME/calls"
    case "$1" in
    env) echo go99.1.0 ;;
    list)
      echo "go: downloading example.org/x v1.0.0"
      echo "example.org/x /nowhere"
      echo "sigs.k8s.io/cluster-api $HOME/module" ;;
    build)
      [ -z "$GO_SAYS" ] || { echo "$GO_SAYS"; exit 1; }
      while [ "$1" != -o ]; do shift; done
      echo "built from $3" > "$2" ;;
    esac
    """


@pytest.fixture()
def env(tmp_path: pathlib.Path) -> dict[str, str]:
    """Environment with a `go` that notes its calls, and a module in its cache."""
    folder = tmp_path / "go-bin"
    folder.mkdir()
    (folder / "go").write_text(textwrap.dedent(GO))
    (folder / "go").chmod(0o755)
    for part in ("crd/bases", "rbac", "webhook"):
        kept = tmp_path / "module/core/config" / part
        kept.mkdir(parents=True)
        (kept / "one.yaml").write_text(part)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path)}


@pytest.fixture()
def where(tmp_path: pathlib.Path) -> places.Places:
    return places.Places(tmp_path / "cache", tmp_path / "state")


def calls(env: dict[str, str]) -> list[str]:
    return (pathlib.Path(env["HOME"]) / "calls").read_text().split()


def test_the_program_is_built_once_with_its_manifests(
    where: places.Places, env: dict[str, str]
) -> None:
    core_program.build(where, progress.Silent(), env)
    assert "sigs.k8s.io/cluster-api/core" in core_program.path(where).read_text()
    assert (
        core_program.config(where) / "crd/bases/one.yaml"
    ).read_text() == "crd/bases"
    before = calls(env)
    core_program.build(where, progress.Silent(), env)
    assert calls(env) == before
    assert before.count("build") == 1


def test_a_failed_build_leaves_no_program(
    where: places.Places, env: dict[str, str]
) -> None:
    failing = {**env, "GO_SAYS": "no space left"}
    with pytest.raises(errors.LabError, match=r"cannot build cluster-api:\nno space"):
        core_program.build(where, progress.Silent(), failing)
    with pytest.raises(errors.LabError, match="not built yet"):
        core_program.path(where)
    core_program.build(where, progress.Silent(), env)
    assert core_program.path(where).exists()


def test_pinned_go_builds_the_module() -> None:
    least = go_modules.least_go(go_modules.files("cluster-api")["go.mod"].decode())
    pinned = go_toolchain.parse_version(f"go{go_toolchain.pinned_version()}")
    assert () < least <= pinned


def test_the_release_is_the_one_that_is_named() -> None:
    """The pages state 1.14, and its API is of the same release."""
    go_mod = go_modules.files("cluster-api")["go.mod"].decode()
    assert "\tsigs.k8s.io/cluster-api v1.14.2 " in go_mod
    assert (
        "sigs.k8s.io/cluster-api/api => sigs.k8s.io/cluster-api/api v1.14.2" in go_mod
    )
