"""openstack-ccm on a real control plane and a real OpenStack, from outside."""

import datetime
import functools
import json
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.grounds import servers
from lib.lab.kube import simulated_kubelet
from lib.lab.openstack import accounts, tenant
from lib.lab.run import processes, waiting

NAMES = tuple(f"e2e-{n}" for n in range(1, 6))
REFRESH_S = 3
PASSES = 3
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Node = Mapping[str, Any]


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Story:
    """Steps of one test, with what was seen and when; printed as a table."""

    def __init__(self, api: client.Api) -> None:
        self.api = api
        self.rows: list[tuple[str, str, float]] = []

    def node(self, name: str) -> Node | None:
        try:
            read = self.api.read(resources.NODES, name, timeout_s=10)
        except kube_errors.NotFound:
            return None
        node: Node = json.loads(read)
        return node

    def until(self, what: str, is_met: Callable[[], bool]) -> None:
        began = time.monotonic()
        result = "not seen"
        try:
            waiting.until(what, is_met, poll_s=0.3)
            result = "seen"
        finally:
            self.rows.append((what, result, time.monotonic() - began))

    def show(self) -> None:
        for what, result, took_s in self.rows:
            print(f"{what:55} {result:9} {took_s:5.1f}s")


def taints(node: Node | None) -> set[str]:
    assert node is not None
    return {taint["key"] for taint in node["spec"].get("taints", [])}


def addresses(node: Node | None) -> list[tuple[str, str]]:
    assert node is not None
    return [(a["type"], a["address"]) for a in node["status"].get("addresses", [])]


def is_initialised(node: Node | None) -> bool:
    return node is not None and simulated_kubelet.TAINT not in taints(node)


@pytest.fixture(scope="module")
def mine(project: MakeProject) -> tuple[accounts.Account, tenant.Tenant]:
    return project("nodes")


@pytest.fixture(scope="module")
def kubelets(
    api: client.Api, mine: tuple[accounts.Account, tenant.Tenant]
) -> Iterator[None]:
    """Be the kubelets of all servers named, for as long as the module runs."""
    stop = threading.Event()
    thread = threading.Thread(
        target=simulated_kubelet.run,
        args=(api, mine[1], NAMES, utc_now, lambda: not stop.wait(1.5), print),
    )
    thread.start()
    yield
    stop.set()
    thread.join(60)
    for name in NAMES:
        try:
            api.delete(resources.NODES, name, timeout_s=10)
        except kube_errors.NotFound:
            continue


@pytest.fixture(scope="module")
def manager(
    where: places.Places,
    ccm_pex: pathlib.Path,
    ccm_kubeconfig: pathlib.Path,
    mine: tuple[accounts.Account, tenant.Tenant],
) -> Iterator[None]:
    """Run openstack-ccm as its own ServiceAccount."""
    conf = where.state / "e2e-cloud.conf"
    conf.write_text(accounts.cloud_conf(where, mine[0]))
    period = f"--node-status-update-frequency={REFRESH_S}s"
    words = ccm.arguments(where, ccm_kubeconfig, conf, [period])
    ccm.start(where, ccm_pex, words)
    yield
    processes.stop(where, [ccm.NAME])


def has_event(api: client.Api, name: str, reason: str) -> bool:
    """Report whether the Node has an Event of that reason, from who should send it."""
    path = resources.EVENTS.path("default")
    selector = f"involvedObject.kind=Node,involvedObject.name={name}"
    listed = json.loads(
        api.request("GET", path, query={"fieldSelector": selector}, timeout_s=10)
    )
    sender = {"Synced": "cloud-node-controller"}.get(
        reason, "cloud-node-lifecycle-controller"
    )
    senders = {(row["source"]["component"], row["reason"]) for row in listed["items"]}
    return (sender, reason) in senders


@pytest.mark.usefixtures("manager", "kubelets")
def test_nodes_follow_their_servers(
    api: client.Api, mine: tuple[accounts.Account, tenant.Tenant]
) -> None:
    """Initialise five, add a floating IP, stop, start, rename, delete."""
    story = Story(api)
    booted = mine[1].boot_all(NAMES)
    try:
        initialised(story, booted)
        # A Node whose server is deleted later than that goes; this one has to stay.
        check_renamed = renamed(story, mine[1], booted[NAMES[2]])
        floating_ip(story, mine[1], booted[NAMES[0]])
        stopped_and_started(story, mine[1], booted[NAMES[1]])
        deleted(story, mine[1], booted[NAMES[3]])
        check_renamed()
    finally:
        story.show()
    assert is_initialised(story.node(NAMES[4]))


def initialised(story: Story, booted: Mapping[str, servers.Server]) -> None:
    story.until(
        "five Nodes are initialised",
        lambda: all(is_initialised(story.node(name)) for name in NAMES),
    )
    for name in NAMES:
        node = story.node(name)
        assert node is not None
        assert node["spec"]["providerID"] == f"openstack:///{booted[name].id}"
        labels = node["metadata"]["labels"]
        for key, value in (
            ("instance-type", booted[name].flavor),
            ("zone", booted[name].zone),
            ("region", "RegionOne"),
        ):
            of_type = key == "instance-type"
            new = "node" if of_type else "topology"
            old = "beta" if of_type else "failure-domain.beta"
            assert labels[f"{new}.kubernetes.io/{key}"] == value
            assert labels[f"{old}.kubernetes.io/{key}"] == value
        shown = addresses(node)
        assert ("InternalIP", booted[name].addresses[0]) in shown
        assert ("Hostname", name) in shown
        synced = functools.partial(has_event, story.api, name, "Synced")
        story.until(f"{name} has its event", synced)


def floating_ip(story: Story, mine: tenant.Tenant, server: servers.Server) -> None:
    address = mine.add_floating_ip(server.id)
    story.until(
        "a floating IP becomes an ExternalIP",
        lambda: ("ExternalIP", address) in addresses(story.node(server.name)),
    )


def stopped_and_started(
    story: Story, mine: tenant.Tenant, server: servers.Server
) -> None:
    mine.stop(server.id)
    story.until(
        "a stopped server's Node is tainted",
        lambda: SHUTDOWN in taints(story.node(server.name)),
    )
    mine.start(server.id)
    story.until(
        "the taint goes when its Node is Ready again",
        lambda: SHUTDOWN not in taints(story.node(server.name)),
    )


def renamed(
    story: Story, mine: tenant.Tenant, server: servers.Server
) -> Callable[[], None]:
    """Rename a server; return the check that its Node has stayed as it was.

    Its kubelet is silent after that, for a simulated one knows servers by name.
    """
    before = story.node(server.name)
    assert before is not None
    mine.rename(server.id, f"{server.name}-renamed")

    def check() -> None:
        story.until("a renamed server's Node is not Ready", is_unknown)
        after = story.node(server.name)
        assert after is not None, "a renamed server's Node was deleted"
        for path in ("labels", "uid"):
            assert after["metadata"][path] == before["metadata"][path]
        assert after["spec"]["providerID"] == before["spec"]["providerID"]
        assert addresses(after) == addresses(before)
        story.rows.append(("a renamed server's Node stays as it is", "seen", 0.0))

    def is_unknown() -> bool:
        node = story.node(server.name)
        assert node is not None, "a renamed server's Node was deleted"
        listed = node["status"]["conditions"]
        conditions: dict[str, str] = {c["type"]: c["status"] for c in listed}
        return conditions["Ready"] != "True"

    return check


def deleted(story: Story, mine: tenant.Tenant, server: servers.Server) -> None:
    mine.delete(server.id)
    story.until(
        "a deleted server's Node is deleted",
        lambda: story.node(server.name) is None,
    )
    story.until(
        "and an Event says so",
        functools.partial(has_event, story.api, server.name, "DeletingNode"),
    )


@pytest.fixture(scope="module")
def metrics_token(api: client.Api) -> str:
    """Return the token of somebody who may read /metrics and nothing else."""
    return ccm.reader_token(api)


def metrics(where: places.Places, token: str) -> dict[str, float]:
    """Read openstack-ccm's counters, by name and labels."""
    status, text = ccm.ask(where, "/metrics", token, timeout_s=10)
    assert status == 200, text
    lines = text.splitlines()
    pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def counted(read: Mapping[str, float], name: str, *labels: str) -> int:
    return sum(
        int(value)
        for key, value in read.items()
        if key.startswith(name + "{") and all(label in key for label in labels)
    )


@pytest.mark.usefixtures("manager", "kubelets")
def test_an_address_pass_costs_two_calls_and_no_write(
    where: places.Places,
    mine: tuple[accounts.Account, tenant.Tenant],
    metrics_token: str,
    api: client.Api,
) -> None:
    """One list of servers and one of ports, for all Nodes together."""
    mine[1].boot_all(NAMES[:1])
    story = Story(api)
    story.until("a Node is there", lambda: is_initialised(story.node(NAMES[0])))
    before = after = metrics(where, metrics_token)

    def grown(name: str, *labels: str) -> int:
        return counted(after, name, *labels) - counted(before, name, *labels)

    def passed() -> bool:
        nonlocal after
        after = metrics(where, metrics_token)
        return (
            grown("mooring_reconcile_total", 'controller="refresh addresses"') >= PASSES
        )

    story.until("the addresses are reconciled", passed)
    passes = grown("mooring_reconcile_total", 'controller="refresh addresses"')
    lists = {
        operation: grown("mooring_cloud_requests_total", f'operation="{operation}"')
        for operation in ("list servers", "list ports")
    }
    print(f"{passes} address passes: {lists}")
    # One more may be under way; a Node that is not Ready may cost one for each look.
    looks = grown("mooring_reconcile_total", 'controller="monitor nodes"')
    assert lists["list ports"] <= passes + looks + 1
    assert lists["list servers"] <= passes + looks + 1
    assert grown("rest_client_requests_total", 'method="PATCH"', '"nodes"') == 0


def test_metrics_are_for_those_who_may_read_them(
    where: places.Places, manager: None, metrics_token: str
) -> None:
    del manager
    assert counted(metrics(where, metrics_token), "mooring_build_info") == 1
    assert ccm.ask(where, "/metrics", "not-a-token")[0] == 401


@pytest.mark.usefixtures("manager", "kubelets")
def test_the_rights_of_the_chart_are_those_that_are_used(where: places.Places) -> None:
    """What the API server's audit log says of the daemon was never refused."""
    user = f"system:serviceaccount:{ccm.ACCOUNT[0]}:{ccm.ACCOUNT[1]}"
    used = set()
    for line in (where.log / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] == user and event["stage"] == "ResponseComplete":
            about = event.get("objectRef", {})
            code = event.get("responseStatus", {}).get("code", 0)
            used.add((event["verb"], about.get("resource", ""), code))
    for verb, resource, code in sorted(used):
        print(f"{verb:8} {resource:25} {code}")
    assert ("patch", "nodes", 200) in used
    assert not [row for row in used if row[2] in (401, 403)]
