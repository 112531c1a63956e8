"""openstack-ccm, the PEX, through the faults of a cloud and an API server.

Three daemons share a control plane of their own. Each serves one region of the real
cloud, which it reaches through proxies, and has three Nodes: one is healthy, one never
Ready, so that a wrong answer would delete it, and one is born in each fault.
"""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import itertools
import json
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane, simulated_kubelet
from lib.lab.openstack import accounts, grounds, layout, tenant
from lib.lab.openstack import lab as openstack
from lib.lab.run import processes, progress, waiting
from lib.lab.slots import leases
from tests.harness.faults import fault_proxy
from tests.harness.kube import audit
from tests.harness.openstack import faults, regions
from tests.harness.services import services

if TYPE_CHECKING:
    from lib.lab.grounds import servers

REGIONS = ("faults-1", "faults-2", "faults-3")
HEALTHY, SILENT, NEWBORN = "healthy", "silent", "newborn"
OTHERS = "of-another-provider"
CLOUD = (layout.NOVA, layout.NEUTRON)
FLAGS = (
    "--node-status-update-frequency=5s",
    # To outlive a restart of the API server on a slow machine.
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=60s",
)
TIMEOUT_S = 7  # of one cloud call: request-timeout in cloud.conf
WINDOW_S = 20.0
"""Longer than the 15 s between the two reads after which a Node would be deleted."""
FROZEN_S = 75.0
"""Longer than a minute, after which an open circuit probes."""
PROBE_FAILURES = 3
"""In a row. Source: Kubernetes core/v1 Probe, failureThreshold."""
PAUSE_S = 8  # Retry-After of the throttled services
OURS = "node.cloudprovider.kubernetes.io/"
SPARE = {("", kind, "get"): "when the watch is late" for kind in ("nodes", "services")}
"""Rights that may go unused here, and what they are for."""
MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Node = Mapping[str, Any]


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def until(what: str, is_met: Callable[[], bool], poll_s: float = 0.2) -> None:
    """Wait for it; an API server that is away is no answer."""

    def holds() -> bool:
        with contextlib.suppress(kube_errors.KubeError):
            return is_met()
        return False

    waiting.until(what, holds, poll_s=poll_s)


@dataclasses.dataclass(frozen=True)
class Lab:
    """What all daemons share. where: of the cloud. apart: of the control plane."""

    where: places.Places
    apart: places.Places
    api: client.Api
    pex: pathlib.Path
    token: str
    restarts: list[tuple[datetime.datetime, datetime.datetime]]

    def node(self, name: str) -> Node | None:
        try:
            read = self.api.read(resources.NODES, name, timeout_s=30)
        except kube_errors.NotFound:
            return None
        node: Node = json.loads(read)
        return node

    def events(self, name: str) -> set[str]:
        """Return the reasons of a Node's Events."""
        selector = f"involvedObject.kind=Node,involvedObject.name={name}"
        listed = self.api.list_page(
            resources.EVENTS, "default", query={"fieldSelector": selector}, timeout_s=30
        )
        return {row["reason"] for row in json.loads(listed)["items"]}

    def node_writes(self, names: Sequence[str]) -> list[str]:
        """Return what the daemons have done to Nodes so far, from the audit log."""
        return [
            f"{row.verb} {row.name}/{row.subresource}: {row.code}"
            for row in audit.rows(self.apart, ccm.ACCOUNT)
            if row.resource == "nodes"
            and row.verb in ("patch", "update", "delete")
            and row.name in names
        ]


class Daemon:
    """One daemon, its region of the cloud, and its Nodes."""

    def __init__(
        self,
        name: str,
        lab: Lab,
        project: tuple[accounts.Account, tenant.Tenant],
        number: int,
    ) -> None:
        account, mine = project
        self.name = name
        self.lab = lab
        self.mine = mine
        self.servers: Mapping[str, servers.Server] = {}
        base = lab.apart.port_base + 20 * number
        self.place = places.Places(lab.apart.cache, lab.apart.state / name, base)
        proxied = (*regions.PROXIED, layout.OCTAVIA)
        self.region = regions.Region(lab.where, name, account.project, proxied)
        self.settled: Mapping[str, object] = {}
        self.kept = [self.node_name(HEALTHY), self.node_name(SILENT)]
        self.unwell: list[str] = []
        self.unanswered: list[str] = []
        self.probed = 0
        self._stop = threading.Event()

    def node_name(self, role: str) -> str:
        return f"{self.name}-{role}"

    def start(self, stack: contextlib.ExitStack) -> None:
        """Have servers, the daemon, and two Nodes, of which one never beats."""
        self.servers = self.mine.boot_all(
            [self.node_name(role) for role in (HEALTHY, SILENT, NEWBORN)]
        )
        stack.enter_context(self.region.open("one"))
        self.place.state.mkdir(parents=True)
        self.write_conf("one")
        for role in (HEALTHY, SILENT):
            self.register(role)
        stack.enter_context(self._running())
        until(f"{self.name} has its Nodes", self._is_settled)
        self.settled = self.picture()

    def write_conf(self, password: str) -> None:
        file = self.place.state / "cloud.conf"
        part = file.with_suffix(".new")
        part.write_text(self.region.cloud_conf(password, TIMEOUT_S))
        part.replace(file)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        threads = [threading.Thread(target=t) for t in (self._beat, self._probe)]
        self.run(self.place)
        try:
            until("ready", lambda: self.ask("/readyz")[0] == 200)
            for thread in threads:
                thread.start()
            yield
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(60)
            processes.stop(self.place, [ccm.NAME])

    def run(self, place: places.Places) -> None:
        """Start one process of the daemon, with the rights of the chart."""
        kubeconfig = place.state / "kubeconfig"
        admin = control_plane.admin_kubeconfig(self.lab.apart)
        cluster.service_account_kubeconfig(self.lab.api, admin, ccm.ACCOUNT, kubeconfig)
        conf = self.place.state / "cloud.conf"
        lease = f"--leader-elect-resource-name={self.name}"
        # All three have one cluster, whose Services the first one serves.
        more = [] if self.name == REGIONS[0] else ["--controllers=*,-service"]
        words = ccm.arguments(place, kubeconfig, conf, [*FLAGS, lease, *more])
        ccm.start(place, self.lab.pex, words, {"OS_CCM_REGIONAL": "true"})

    def _is_settled(self) -> bool:
        """Report whether both Nodes are initialised, and one is known to be silent."""
        node = self.lab.node(self.node_name(SILENT))
        assert node is not None
        ready = {row["type"]: row["status"] for row in node["status"]["conditions"]}
        all_in = all(self.is_initialised(role) for role in (HEALTHY, SILENT))
        return all_in and ready["Ready"] != "True"

    def _beat(self) -> None:
        while not self._stop.wait(2.0):
            for role in (HEALTHY, NEWBORN):
                with contextlib.suppress(kube_errors.KubeError):
                    simulated_kubelet.beat(
                        self.lab.api, self.node_name(role), utc_now()
                    )

    def _probe(self) -> None:
        """Ask as a kubelet does, all the time: each answer has to be "ok".

        A probe that gets no answer on a busy machine is counted apart: a kubelet
        restarts a container after several in a row.
        """
        unanswered = 0
        while not self._stop.wait(1.0):
            for path in ("/livez", "/readyz"):
                self.probed += 1
                try:
                    code, text = self.ask(path)
                except OSError as error:
                    unanswered += 1
                    self.unanswered.append(f"{path}: {error}")
                    if unanswered >= PROBE_FAILURES:
                        self.unwell.append(f"{path}: {unanswered} times: {error}")
                    continue
                unanswered = 0
                if code != 200:
                    self.unwell.append(f"{path}: {code} {text}")

    def ask(self, path: str, token: str = "") -> tuple[int, str]:
        return ccm.ask(self.place, path, token, timeout_s=60)

    def register(self, role: str, *, is_named_only: bool = False) -> None:
        """Be a kubelet that registers its Node, with its provider id or without."""
        name = self.node_name(role)
        body = simulated_kubelet.manifest(name, utc_now())
        if not is_named_only:
            spec = body["spec"]
            assert isinstance(spec, dict)
            spec["providerID"] = f"openstack://{self.name}/{self.servers[name].id}"
        self.lab.api.create(resources.NODES, json.dumps(body).encode(), timeout_s=30)

    def is_initialised(self, role: str) -> bool:
        node = self.lab.node(self.node_name(role))
        assert node is not None, f"{self.node_name(role)} is lost"
        return simulated_kubelet.TAINT not in {
            t["key"] for t in node["spec"].get("taints", [])
        }

    def picture(self) -> Mapping[str, object]:
        """Return all that the daemon could have changed in the Nodes that stay."""
        return {name: shown(self.lab.node(name)) for name in self.kept}

    def metric(self, name: str, *labels: str) -> float:
        """Sum a metric over the rows with these labels."""
        code, text = self.ask("/metrics", self.lab.token)
        assert code == 200, text
        rows = [line.rpartition(" ") for line in text.splitlines()]
        return sum(
            float(value)
            for key, _, value in rows
            if key.startswith(name + "{") and all(label in key for label in labels)
        )

    def answers_since(self, began: float) -> list[float]:
        """Return when it asked Nova what Nova has answered since."""
        calls = self.region.proxies[layout.NOVA].answered()
        return sorted(
            call.at for call, code in calls if code == 200 and call.at > began
        )

    def pid(self) -> int | None:
        process = processes.find(self.place, ccm.NAME)
        return process.pid if process else None


def shown(node: Node | None) -> object:
    if node is None:
        return None
    taints = [t["key"] for t in node["spec"].get("taints", [])]
    return (
        node["metadata"]["uid"],
        node["spec"].get("providerID"),
        sorted(node["metadata"]["labels"].items()),
        [(a["type"], a["address"]) for a in node["status"].get("addresses", [])],
        sorted(taint for taint in taints if taint.startswith(OURS)),
    )


@dataclasses.dataclass(frozen=True)
class Fault:
    """One row of the table.

    inflict: the fault lasts as long as its block. metric: name and labels of one that
    grows. event: reason of the newborn Node's Event; empty when nothing fails.
    calls_max: of the cloud by one daemon, in a minute of the fault; a shorter fault
    counts as a minute, since its first calls are the densest. during: what happens once
    the newborn is there. is_named_only: it has no provider id.
    """

    name: str
    inflict: Callable[[Sequence[Daemon]], contextlib.AbstractContextManager[None]]
    metric: tuple[str, ...]
    calls_max: int
    event: str = "CloudUnavailable"
    during: Callable[[Daemon], None] = lambda daemon: None
    is_named_only: bool = False


class Trial:
    """One daemon in one fault."""

    def __init__(self, fault: Fault, daemon: Daemon) -> None:
        self.fault = fault
        self.daemon = daemon
        self.writes = daemon.lab.node_writes(daemon.kept)
        self.metric = daemon.metric(*fault.metric)
        self.calls = daemon.region.calls()
        self.began = time.monotonic()
        self.pid = daemon.pid()
        self.row = ""

    def befall(self) -> None:
        """Create a Node in the fault, and check that an Event reports it."""
        daemon, fault = self.daemon, self.fault
        daemon.register(NEWBORN, is_named_only=fault.is_named_only)
        fault.during(daemon)
        name, what = daemon.node_name(NEWBORN), f"{fault.name}: Event {fault.event}"
        if fault.event:
            until(what, lambda: fault.event in daemon.lab.events(name))

    def check(self) -> None:
        """See that nothing was done to the Nodes, and little to the cloud."""
        daemon, fault = self.daemon, self.fault
        calls = daemon.region.calls() - self.calls
        minutes = max(1.0, (time.monotonic() - self.began) / 60)
        grown = daemon.metric(*fault.metric) - self.metric
        most = fault.calls_max * minutes
        self.row = f"{fault.event:19} {grown:+4.0f} {calls:4} of {most:.0f}"
        assert grown > 0, f"{fault.name}: {fault.metric} did not grow"
        assert calls <= most, fault.name
        if fault.event:
            assert not daemon.is_initialised(NEWBORN), fault.name
        self.unharmed()

    def unharmed(self) -> None:
        daemon, name = self.daemon, self.fault.name
        assert daemon.picture() == daemon.settled, name
        assert daemon.lab.node_writes(daemon.kept) == self.writes, name
        assert daemon.pid() == self.pid, f"{name}: the daemon was restarted"
        assert daemon.unwell == [], name

    def recover(self, ended: float) -> str:
        """See that it works again; give the row of the table."""
        daemon, name = self.daemon, self.fault.name
        until(f"{name}: an answer", lambda: daemon.answers_since(ended) != [])
        answered_s = daemon.answers_since(ended)[0] - ended
        what = f"{name}: the newborn is initialised"
        until(what, lambda: daemon.is_initialised(NEWBORN))
        took_s = time.monotonic() - ended
        self.unharmed()
        cluster.delete_node(daemon.lab.api, daemon.node_name(NEWBORN))
        left = sum(node is not None for node in daemon.picture().values())
        seconds = f"{answered_s:5.1f} s, {took_s:5.1f} s"
        return f"{len(daemon.settled)} -> {left}  {self.row:31}  {seconds}"


def go_through(
    befalling: Mapping[Fault, Sequence[Daemon]], window_s: float
) -> Mapping[str, list[str]]:
    """Run the faults of all daemons in parallel; return a row for each of them."""
    trials = [
        Trial(fault, daemon) for fault, each in befalling.items() for daemon in each
    ]
    ended: dict[Fault, float] = {}

    def end(fault: Fault) -> None:
        ended[fault] = time.monotonic()

    with contextlib.ExitStack() as stack:
        for fault, each in befalling.items():
            stack.callback(end, fault)
            stack.enter_context(fault.inflict(each))
        over = time.monotonic() + window_s
        for trial in trials:
            trial.befall()
        time.sleep(max(0.0, over - time.monotonic()))
        for trial in trials:
            trial.check()
    rows: dict[str, list[str]] = {}
    for trial in trials:
        row = trial.recover(ended[trial.fault])
        rows.setdefault(trial.fault.name, []).append(row)
    return rows


def answering(
    each: Sequence[Daemon], fault: fault_proxy.Fault, *services: str
) -> contextlib.AbstractContextManager[None]:
    proxies = [
        daemon.region.proxies[service] for daemon in each for service in services
    ]
    return fault_proxy.answering(proxies, fault)


@contextlib.contextmanager
def expired(each: Sequence[Daemon]) -> Iterator[None]:
    """Expire the password in Keystone; in the end there is a new one.

    Services cache a token for minutes, so the proxies refuse the current ones.
    """
    (daemon,) = each
    proxies = [daemon.region.proxies[service] for service in CLOUD]
    calls = [request for proxy in proxies for request in proxy.requests()]
    old = {call.headers.get("x-auth-token", "") for call in calls}
    faults.expire_password(daemon.lab.where, daemon.region.user)
    with fault_proxy.answering(proxies, faults.refused(old)):
        yield
    daemon.region.set_password("two")
    daemon.write_conf("two")


@contextlib.contextmanager
def held(each: Sequence[Daemon]) -> Iterator[None]:
    """Hold the next list of servers back: a pass stands still in its middle."""
    go_on = threading.Event()

    def hold(request: fault_proxy.Request) -> None:
        if "/servers/detail" in request.path:
            go_on.wait(TIMEOUT_S)

    with answering(each, hold, layout.NOVA):
        try:
            yield
        finally:
            go_on.set()


def restart_api_server(daemon: Daemon) -> None:
    """Once a pass stands still."""
    nova = daemon.region.proxies[layout.NOVA]
    until("a list that is held", lambda: len(nova.requests()) > len(nova.answered()))
    began = utc_now()
    processes.stop(daemon.lab.apart, ["kube-apiserver"], patience_s=0.5)
    control_plane.up(daemon.lab.apart, progress.Silent())
    daemon.lab.restarts.append((began, utc_now()))


@contextlib.contextmanager
def renamed(each: Sequence[Daemon]) -> Iterator[None]:
    """Yield the silent Node's server the name of the newborn's."""
    (daemon,) = each
    silent = daemon.servers[daemon.node_name(SILENT)]
    daemon.mine.rename(silent.id, daemon.node_name(NEWBORN))
    try:
        yield
    finally:
        daemon.mine.rename(silent.id, silent.name)
    # A Node that is ambiguous is looked at once a minute, or when it changes.
    note = json.dumps({"metadata": {"annotations": {"faults": "renamed"}}}).encode()
    name = daemon.node_name(NEWBORN)
    daemon.lab.api.patch(resources.NODES, name, note, timeout_s=30)


FAILED = ("mooring_cloud_requests_total", 'outcome="CloudUnavailable"')
UNTOLD = ("mooring_instance_observations_total", 'result="unknown"')
# Grows when the watch is opened anew.
REOPENED = ("rest_client_requests_total", 'method="GET"', 'resource="nodes"')
THROTTLED = Fault(
    "throttled: 429 with Retry-After",
    lambda each: answering(each, faults.throttled(PAUSE_S), *CLOUD),
    FAILED,
    calls_max=15,
)
EMPTIED = Fault(
    "lists come back empty",
    lambda each: answering(each, faults.emptied, *CLOUD),
    UNTOLD,
    calls_max=60,
)
EXPIRED = Fault(
    "password expired, then rotated",
    expired,
    ("mooring_cloud_requests_total", 'outcome="CredentialsRejected"'),
    calls_max=25,
    event="CredentialsRejected",
)
RESTARTED = Fault(
    "API server restarted in mid-pass",
    held,
    REOPENED,
    calls_max=30,
    event="",
    during=restart_api_server,
)
TWINS = Fault(
    "two Nodes with one server name",
    renamed,
    UNTOLD,
    calls_max=30,
    event="AmbiguousMatch",
    is_named_only=True,
)
NO_DATABASE = Fault(
    "MariaDB stopped",
    lambda each: grounds.without_database(each[0].lab.where),
    FAILED,
    calls_max=25,
)
FROZEN = Fault(
    "Nova frozen for 75 s",
    lambda each: faults.frozen(each[0].lab.where, layout.NOVA),
    FAILED,
    calls_max=25,
)

FAULTS = (THROTTLED, EMPTIED, EXPIRED, RESTARTED, TWINS, NO_DATABASE, FROZEN)


@pytest.fixture(scope="module")
def lab(where: places.Places, apart: places.Places, ccm_pex: pathlib.Path) -> Lab:
    leases.mark_damaged(where, "its database was stopped and nova was frozen")
    api = cluster.connect(control_plane.admin_kubeconfig(apart))
    cluster.create_all(api, ccm.manifest())
    return Lab(where, apart, api, ccm_pex, ccm.reader_token(api), [])


@pytest.fixture(scope="module")
def daemons(lab: Lab, project: MakeProject) -> Iterator[tuple[Daemon, ...]]:
    """Run the daemons, each with two initialised Nodes."""
    new_daemons = tuple(
        Daemon(name, lab, project(name), number)
        for number, name in enumerate(REGIONS, start=1)
    )
    with (
        contextlib.ExitStack() as stack,
        concurrent.futures.ThreadPoolExecutor(len(REGIONS)) as pool,
    ):
        for _ in pool.map(lambda daemon: daemon.start(stack), new_daemons):
            pass
        yield new_daemons


@pytest.fixture(scope="module")
def story(daemons: tuple[Daemon, ...]) -> Mapping[str, list[str]]:
    """Go through all faults; give the rows of the table, by fault."""
    first, second, third = daemons
    shown: dict[str, list[str]] = {}
    # Its Event is counted up a minute later at the earliest: see `repeat_its_event`.
    add_a_node_of_another_provider(first.lab)
    try:
        shown |= go_through(
            {THROTTLED: [first], EMPTIED: [second], EXPIRED: [third]}, WINDOW_S
        )
        shown |= go_through({RESTARTED: [first], TWINS: [second]}, 5)
        shown |= go_through({NO_DATABASE: daemons}, WINDOW_S)
        if FROZEN in FAULTS:
            shown |= go_through({FROZEN: daemons}, FROZEN_S)
    finally:
        for daemon in daemons:
            lost = len(daemon.unanswered)
            print(f"{daemon.name}: {daemon.probed} probes, {lost} without an answer")
        print(f"{'fault':34} Nodes   Event, metric, calls; answered, newborn in after")
        for fault in FAULTS:
            for row in shown.get(fault.name, ["MISSING"]):
                print(f"{fault.name:34} {row}")
    where = first.lab.where
    until(
        "OpenStack answers",
        lambda: all(row.is_answering for row in openstack.status(where)),
    )
    leases.mark_repaired(where)
    return shown


def test_no_fault_loses_a_node(story: Mapping[str, list[str]]) -> None:
    """Whatever fails, Nodes stay as they are, and new ones are served afterwards."""
    assert story.keys() == {fault.name for fault in FAULTS}


def used(lab: Lab) -> Mapping[ccm.Right, set[int]]:
    """Return what the daemons asked for, with the answers' codes, by the audit log.

    An API server that has just started refuses every user: it does not know the roles
    yet. Those answers are ignored.
    """
    codes: dict[ccm.Right, set[int]] = {}
    for row in audit.rows(lab.apart, ccm.ACCOUNT):
        at = datetime.datetime.fromisoformat(row.received)
        resource = "/".join(part for part in (row.resource, row.subresource) if part)
        if not any(began < at < ended for began, ended in lab.restarts):
            codes.setdefault((row.group, resource, row.verb), set()).add(row.code)
    return codes


def make_service(daemon: Daemon) -> services.Services:
    """Create a Service whose load balancer has one Node."""
    its = services.Services(daemon.lab.api, "default")
    mine = f"kubernetes.io/hostname={daemon.node_name(HEALTHY)}"
    its.make("web", {keys.INTERNAL: "true", keys.NODE_SELECTOR: mine})
    return its


def add_a_node_of_another_provider(lab: Lab) -> None:
    """Create a Node that another provider runs, and wait for the Event about it."""
    body = simulated_kubelet.manifest(OTHERS, utc_now())
    spec = body["spec"]
    assert isinstance(spec, dict)
    spec["providerID"] = f"static://{OTHERS}"
    lab.api.create(resources.NODES, json.dumps(body).encode(), timeout_s=30)
    until("its Event", lambda: "ProviderMismatch" in lab.events(OTHERS))


def repeat_its_event(lab: Lab) -> None:
    """Change that Node until its Event is counted up, which is done once a minute."""
    zones = itertools.count()

    def is_repeated() -> bool:
        label = {"failure-domain.beta.kubernetes.io/zone": f"zone-{next(zones)}"}
        patch = json.dumps({"metadata": {"labels": label}}).encode()
        lab.api.patch(resources.NODES, OTHERS, patch, timeout_s=30)
        return ("", "events", "patch") in used(lab)

    until("its Event is repeated", is_repeated, poll_s=1.0)


@pytest.mark.usefixtures("story")
def test_the_rights_of_the_chart_are_those_that_are_used(
    daemons: tuple[Daemon, ...], lab: Lab
) -> None:
    """None was missing in all of this, and none of them is for nothing.

    Four things have not happened yet: a Service that gets a load balancer and loses
    it, a server that is deleted, an Event that recurs, and a second replica. They
    happen at one time.
    """
    daemon = daemons[0]
    its = make_service(daemon)
    daemon.mine.delete(daemon.servers[daemon.node_name(SILENT)].id)
    state, base = lab.apart.state / "follower", lab.apart.port_base + 80
    follower = places.Places(lab.apart.cache, state, base)
    daemon.run(follower)
    try:
        repeat_its_event(lab)
        until("served", lambda: services.addresses(its.get("web")) != [])
        its.delete(["web"])
        what = "the Node of a server that was deleted is deleted"
        until(what, lambda: lab.node(daemon.node_name(SILENT)) is None)
        watch = ("coordination.k8s.io", "leases", "watch")
        until("the follower watches the Lease", lambda: watch in used(lab), poll_s=1.0)
        until("the Service is deleted", lambda: its.get("web") is None)
    finally:
        processes.stop(follower, [ccm.NAME])
    asked, allowed = used(lab), ccm.granted()
    for right in sorted(allowed | asked.keys()):
        codes = " ".join(map(str, sorted(asked.get(right, ()))))
        shown = codes or SPARE.get(right, "MISSING")
        print(f"{right[0] or 'core':22} {right[1]:22} {right[2]:7} {shown}")
    assert not [right for right, codes in asked.items() if codes & {401, 403}]
    assert asked.keys() <= allowed, "used by another rule than the chart's"
    assert allowed - asked.keys() <= SPARE.keys(), "never used"
