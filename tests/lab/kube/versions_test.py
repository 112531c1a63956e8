"""openstack-ccm, the PEX, stays at work while its API server becomes an older one.

A newer kube-apiserver can emulate the three minor versions before its own, with the
features that they had switched on by default. Once it also runs without its watch
cache: no bookmarks then, and every list is read from etcd.
"""

import contextlib
import datetime
import json
import pathlib
from collections.abc import Callable, Iterator

import pytest

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, simulated_kubelet
from lib.lab.run import processes, progress, waiting
from tests.harness.kube import audit

SERVERS = {
    "1.36": (),
    "1.35": ("--emulated-version=1.35",),
    "1.34": ("--emulated-version=1.34",),
    "1.33": ("--emulated-version=1.33", "--min-compatibility-version=1.33"),
    "1.36 without watch cache": ("--watch-cache=false",),
}
FLAGS = (
    # It outlives a restart of the API server on a slow machine.
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=60s",
)
CONF = """
[Global]
auth-url = http://127.0.0.1:1/v3
username = nobody
password = nothing
tenant-name = none
domain-id = default
region = nowhere
"""
ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
WANTED = {
    ("nodes", "watch"),
    ("nodes", "patch"),
    ("events", "create"),
    ("leases", "update"),
}


def until(what: str, is_met: Callable[[], bool], poll_s: float = 0.2) -> None:
    """Wait for it; an API server that is away is no answer."""

    def holds() -> bool:
        with contextlib.suppress(kube_errors.KubeError):
            return is_met()
        return False

    waiting.until(what, holds, poll_s=poll_s)


def is_made(api: client.Api, name: str, *, is_new: bool) -> bool:
    """Create a Node with a label whose newer name it lacks.

    A new one belongs to another provider, so that an Event says so; the labels of the
    others are reconciled although their cloud does not answer.
    """
    body = simulated_kubelet.manifest(name, datetime.datetime.now(datetime.UTC))
    owner = "static://" if is_new else "openstack:///"
    taints = (
        [{"key": simulated_kubelet.TAINT, "effect": "NoSchedule"}] if is_new else []
    )
    status = body["status"]
    assert isinstance(status, dict)
    status["addresses"] = [{"type": "InternalIP", "address": "10.0.0.1"}]
    changed = {
        "metadata": {"name": name, "labels": {ZONE[0]: "right"}},
        "spec": {"providerID": f"{owner}{name}", "taints": taints},
    }
    with contextlib.suppress(kube_errors.AlreadyExists):
        api.create(
            resources.NODES, json.dumps({**body, **changed}).encode(), timeout_s=10
        )
    return True


@pytest.fixture()
def running(elsewhere: places.Places, ccm_pex: pathlib.Path) -> Iterator[places.Places]:
    """Run a control plane, and the daemon with a cloud that nobody answers for."""
    with contextlib.ExitStack() as stack:
        stack.callback(
            processes.stop, elsewhere, (ccm.NAME, *control_plane.PROGRAMS), 1
        )
        control_plane.up(elsewhere, progress.Silent())
        admin = control_plane.admin_kubeconfig(elsewhere)
        kubeconfig = elsewhere.state / "ccm.kubeconfig"
        api = cluster.connect(admin)
        cluster.create_all(api, ccm.manifest())
        cluster.service_account_kubeconfig(api, admin, ccm.ACCOUNT, kubeconfig)
        conf = elsewhere.state / "cloud.conf"
        conf.write_text(CONF)
        words = ccm.arguments(elsewhere, kubeconfig, conf, FLAGS)
        ccm.start(elsewhere, ccm_pex, words)
        yield elsewhere


def at_work(where: places.Places, number: int, before: int) -> str:
    """See that it labels a Node, sends an Event, and renews its Lease; say how.

    before: how long the audit log was when this server started. Until it is ready it
    may refuse everybody, for it does not know the roles yet.
    """
    ready = datetime.datetime.now(datetime.UTC)
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    until("a Node", lambda: is_made(api, f"old-{number}", is_new=False))
    until("a new one", lambda: is_made(api, f"new-{number}", is_new=True))
    rows: list[audit.Row] = []

    def all_done() -> bool:
        rows[:] = audit.rows(where, ccm.ACCOUNT)[before:]
        done = {(row.resource, row.verb) for row in rows if 200 <= row.code < 300}
        return done >= WANTED

    until(f"{WANTED} are answered", all_done)
    later = [
        row for row in rows if datetime.datetime.fromisoformat(row.received) > ready
    ]
    assert {row.code for row in later} <= {0, 200, 201, 409}
    node = json.loads(api.read(resources.NODES, f"old-{number}", timeout_s=10))
    assert node["metadata"]["labels"][ZONE[1]] == "right"
    version = json.loads(api.request("GET", "/version", timeout_s=10))
    minor = version.get("emulationMinor") or version["minor"]
    return f"says it is 1.{minor}; {len(rows)} requests, all well"


def test_each_version_serves_all_that_is_asked(running: places.Places) -> None:
    """Nothing is negotiated, so each version must serve what the newest does."""
    daemon = processes.find(running, ccm.NAME)
    shown: dict[str, str] = {}
    try:
        for number, (version, more) in enumerate(SERVERS.items()):
            processes.stop(running, ["kube-apiserver"], patience_s=0.5)
            before = len(audit.rows(running, ccm.ACCOUNT))
            control_plane.up(running, progress.Silent(), api_arguments=more)
            shown[version] = at_work(running, number, before)
            assert shown[version].startswith(f"says it is {version.split()[0]};")
    finally:
        for version in SERVERS:
            print(f"{version:26} {shown.get(version, 'MISSING')}")
    assert shown.keys() == SERVERS.keys()
    assert processes.find(running, ccm.NAME) == daemon, "it was started anew"
