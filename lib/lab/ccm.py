"""Runs openstack-ccm in a lab, under its own ServiceAccount."""

import http.client
import os
import pathlib
import ssl
from collections.abc import Mapping, Sequence

from lib.lab import pexes, places, processes

NAME = "openstack-ccm"
ACCOUNT = ("kube-system", "openstack-ccm")
QUICK = ("--node-status-update-frequency=5s",)
"""So that a floating IP shows within seconds; five minutes by default."""
START_S = 60


def manifest() -> str:
    """Give the RBAC manifest of the chart."""
    # Two rooms up from this file in a checkout, a sandbox and an unpacked PEX alike.
    root = pathlib.Path(__file__).parents[2]
    return (root / "charts/openstack-ccm/files/rbac.yaml").read_text()


def arguments(
    where: places.Places,
    kubeconfig: pathlib.Path,
    cloud_conf: pathlib.Path,
    extra: Sequence[str] = (),
) -> tuple[str, ...]:
    """Give the reference's own command line."""
    return (
        "--cloud-provider=openstack",
        f"--cloud-config={cloud_conf}",
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={where.port(NAME)}",
        "--cluster-name=mooring-lab",
        "--leader-elect=true",
        "--v=2",
        *extra,
    )


def start(
    where: places.Places,
    pex: pathlib.Path,
    words: Sequence[str],
    env: Mapping[str, str] | None = None,
) -> None:
    """Start it and wait until it serves; one that runs from an older PEX is replaced.

    words: its command line. env: added to the caller's own environment.

    Raises:
        LabError: it ended, or did not serve in time.
    """
    replace_outdated(where, NAME, pex)
    whole = {**pexes.environment(where), **(env or {})}
    processes.start(where, NAME, [*pexes.command(pex), *words], whole)
    processes.wait_for(where, NAME, lambda: serves(where), START_S)


def replace_outdated(where: places.Places, name: str, file: pathlib.Path) -> None:
    """Stop the program `name` if it was started before `file` was written."""
    process = processes.find(where, name)
    if process is not None and os.stat(file).st_mtime > process.create_time():
        processes.stop(where, [name])


def serves(where: places.Places) -> bool:
    """Say whether it answers at all; its certificate is its own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        "127.0.0.1", where.port(NAME), timeout=5, context=context
    )
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
