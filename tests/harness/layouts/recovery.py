"""A killed apply, and what recovers it: the tool, run as its users run it."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from lib.lab import places
from lib.lab.openstack import accounts
from tests.harness.daemons import tool, unreachable
from tests.harness.layouts import roots


def apply_until(mine: roots.LayoutCluster, root: roots.Root, moment_s: float) -> None:
    """Apply a root, and end OpenTofu and its provider with SIGKILL at a moment."""
    words = ("apply", "-auto-approve", *mine.arguments(root))
    process = mine.program.start(mine.folder(root), *words)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment_s)
    # The provider may outlive OpenTofu; both are in the group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def blocks(mine: roots.LayoutCluster, root: roots.Root) -> str:
    """Return the blocks for the next plan of a root."""
    file = mine.room / f"{root.name}.plan.json"
    file.write_text(json.dumps(mine.plan_json(root)))
    return text(file)


def text(file: pathlib.Path) -> str:
    """Return the blocks for a plan or a state."""
    result = tool.mooring("layouts", "recover", str(file))
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextlib.contextmanager
def with_blocks(
    mine: roots.LayoutCluster, root: roots.Root, content: str
) -> Iterator[None]:
    """Keep blocks in a file of a root."""
    file = mine.folder(root) / "recover.tf"
    file.write_text(content)
    try:
        yield
    finally:
        file.unlink()


def orphans(where: places.Places, mine: roots.LayoutCluster) -> tuple[int, list[str]]:
    """Return the exit code of `mooring orphans` and the IDs that it lists.

    The cluster does not answer: an apply was killed before there was one.
    """
    provider = mine.document["provider"]
    account = accounts.Account("", provider["username"], provider["tenantName"])
    conf, kubeconfig = mine.room / "cloud.conf", mine.room / "kubeconfig"
    conf.write_text(accounts.cloud_conf(where, account))
    kubeconfig.write_text(unreachable.KUBECONFIG)
    result = tool.mooring(
        "orphans",
        f"--cloud-config={conf}",
        f"--kubeconfig={kubeconfig}",
        "--cluster-is-gone",
        f"--cluster-id={mine.uuid}",
        "--kind=layout",
        "--min-age=0s",
        "--output=json",
    )
    document: Mapping[str, Any] = json.loads(result.stdout)
    return result.returncode, sorted(each["id"] for each in document["orphans"])
