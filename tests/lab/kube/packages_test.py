"""Debian packages of a node are fetched before its network without a way out begins."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import container_tools
from lib.lab.kube import kubelet
from lib.lab.proxy import kube_proxy
from lib.lab.run import progress
from lib.lab.storage import file_system_tools

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_an_empty_cache_is_filled_by_the_build_and_used_without_apt(
    elsewhere: places.Places, tmp_path: pathlib.Path
) -> None:
    if reason := kubelet.unavailable(elsewhere):
        pytest.skip(reason)
    where = dataclasses.replace(elsewhere, cache=tmp_path / "cache")
    (tmp_path / "bin").mkdir()
    bare = {"PATH": str(tmp_path / "bin")}
    with pytest.raises(errors.LabError, match="mooring lab build --node"):
        container_tools.require(where, bare)

    shown = progress.Lines(sys.stderr)
    with shown.step("Fetch packages") as step:
        container_tools.fetch(where, os.environ, step)
        file_system_tools.ensure(where, os.environ, step)
    kube_proxy.fetch_nft(where, os.environ, shown)

    runc = container_tools.require(where, bare).runc
    programs: dict[str, tuple[str, Mapping[str, str]]] = {
        "runc": (str(runc), os.environ),
        "nft": ("nft", kube_proxy.environment(where, bare)),
        "mkfs.xfs": ("mkfs.xfs", file_system_tools.environment(where, bare)),
    }
    for name, (program, env) in programs.items():
        path = shutil.which(program, path=env["PATH"])
        assert path is not None, name
        flag = "-V" if name == "mkfs.xfs" else "--version"
        done = subprocess.run(
            [path, flag], env=dict(env), capture_output=True, text=True, check=True
        )
        print(f"{name:10} {done.stdout.splitlines()[0]}")
