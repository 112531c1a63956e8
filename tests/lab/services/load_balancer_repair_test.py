"""Manual changes to load balancers are repaired by the daemon, or reported.

One table. openstack-ccm checks for drift every ten seconds here; every sixth check is a
deep one. Octavia's database is written to for what no call can bring about.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import openstack.connection
import pytest

from lib.cloud.load_balancers import Reason
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason, ProblemReason
from lib.lab import places
from lib.lab.daemons import ccm, metrics
from lib.lab.openstack import accounts, cloud, layout
from lib.lab.run import waiting
from tests.harness.openstack import balancer_watch, balancers
from tests.harness.services import services, stages
from tests.harness.services.services import RecordedEvent

NAMESPACE = "repair"
CLUSTER = "repaired-cluster"
FLAGS = (f"--cluster-id={CLUSTER}", "--lb-drift-period=10s")
NODES = ("repaired-1", "repaired-2")
SERVED_S = waiting.LIMIT_S
AT_ONCE = 7
"""Number of Services made at a time: Octavia is slow with many."""
CHECKS = 18
"""Drift checks within which all is repaired, three of them full ones."""
REPAIRED_S = waiting.LIMIT_S
POLL_S = 0.7
NEVER = "never-usable"
INTERNAL: Mapping[str, str] = {
    keys.INTERNAL: "true",
    keys.ENABLE_MONITOR: "true",
}


@dataclasses.dataclass
class Ground:
    """The Services, and the cloud as its owner and its admin see it."""

    where: places.Places
    services: services.Services
    connection: openstack.connection.Connection
    admin: openstack.connection.Connection
    token: str
    states: balancer_watch.States

    def problems(self) -> Mapping[str, float]:
        """Return the metric of problems by reason."""
        text = ccm.metrics(self.where, self.token)
        return metrics.by(text, "mooring_load_balancer_problem", "reason")

    def checks(self) -> float:
        """Count the drift checks so far."""
        text = ccm.metrics(self.where, self.token)
        return metrics.total(text, "mooring_reconcile_total", controller="drift")

    def set_status(self, id_: str, status: str) -> None:
        balancers.set_status(layout.of(self.where), id_, status)


@dataclasses.dataclass(frozen=True)
class Observed:
    """A Service with all there is of its load balancer.

    known: its settings of then; members are read when they are compared.
    """

    service: Mapping[str, Any]
    view: balancers.BalancerView
    known: Mapping[str, object] | None = None

    @property
    def id(self) -> str:
        return services.balancer_id(dict(self.service))

    @property
    def balancer(self) -> balancers.Json:
        return self.view.balancers.get(self.id, {})

    def part(self, kind: str) -> balancers.Json:
        part = getattr(self.view, kind)(self.id, 80)
        assert isinstance(part, dict)
        return part

    @property
    def members(self) -> list[tuple[object, ...]]:
        fields = ("name", "address", "weight", "admin_state_up")
        members = self.view.members(self.id, 80)
        return [tuple(member[field] for field in fields) for member in members]

    @property
    def switches(self) -> list[object]:
        """Whether load balancer, listener, pool and monitor are switched on."""
        parts = map(self.part, ("listener", "pool", "monitor"))
        return [part.get("admin_state_up") for part in (self.balancer, *parts)]

    @property
    def address(self) -> str:
        return str(self.view.floating_ip(self.id).get("floating_ip_address", ""))

    @property
    def ingress(self) -> list[str]:
        return services.addresses(dict(self.service))

    def settings(self) -> Mapping[str, object]:
        """Return what must be the same again after a repair, without ids."""
        if self.known is not None:
            return self.known
        pool, monitor = self.part("pool"), self.part("monitor")
        listener = self.part("listener")
        return {
            "status": self.balancer.get("provisioning_status"),
            "limit": listener.get("connection_limit"),
            "cidrs": listener.get("allowed_cidrs"),
            "algorithm": pool.get("lb_algorithm"),
            "monitor": (monitor.get("type"), monitor.get("delay")),
            "members": self.members,
            "switches": self.switches,
            "tags": set(self.balancer.get("tags", ())) - {"mooring-made"},
            "floating IP": bool(self.address),
        }


Act = Callable[[Ground, Observed], object]
"""What is done by hand."""
Check = Callable[[Observed, Observed], bool]
"""Whether all is well, by what was before and what is now."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A manual change. reason: of the Event and of the metric, if any."""

    title: str
    act: Act
    check: Check
    annotations: Mapping[str, str] = dataclasses.field(default_factory=lambda: INTERNAL)
    reason: ProblemReason | None = None

    @property
    def name(self) -> str:
        return self.title.replace(",", "").replace(" ", "-").lower()


def same(before: Observed, now: Observed) -> bool:
    """The same load balancer, with all that it had."""
    return now.id == before.id and now.settings() == before.settings()


def another(before: Observed, now: Observed) -> bool:
    """Another load balancer, with all that the former had; the floating IP too."""
    is_same = now.settings() == before.settings() and now.address == before.address
    return now.id != before.id and is_same and now.ingress == before.ingress


def another_address(before: Observed, now: Observed) -> bool:
    """The same load balancer at another floating IP, which the status shows."""
    is_new = now.address not in ("", before.address)
    return same(before, now) and is_new and now.ingress == [now.address]


def same_address(before: Observed, now: Observed) -> bool:
    return same(before, now) and now.address == before.address != ""


def untouched(before: Observed, now: Observed) -> bool:
    """Nothing was done about it."""
    return now.id == before.id


def failed(before: Observed, now: Observed) -> bool:
    return now.id == before.id and now.balancer["provisioning_status"] == "ERROR"


# -------------------------------------------------------------------- done by hand


def delete(kind: str) -> Act:
    """Delete the listener, pool or monitor, once Octavia lets us."""

    def act(ground: Ground, observed: Observed) -> None:
        octavia = ground.connection.load_balancer
        path = {"monitor": "healthmonitor"}.get(kind, kind)
        octavia.delete(f"/lbaas/{path}s/{observed.part(kind)['id']}").raise_for_status()

    return act


def change(kind: str, **fields: object) -> Act:
    def act(ground: Ground, observed: Observed) -> None:
        octavia = ground.connection.load_balancer
        word = {"monitor": "healthmonitor"}.get(kind, kind)
        path = f"/lbaas/{word}s/{observed.part(kind)['id']}"
        octavia.put(path, json={word: fields}).raise_for_status()

    return act


def balancer_deleted(ground: Ground, observed: Observed) -> None:
    ground.connection.load_balancer.delete_load_balancer(observed.id, cascade=True)


def changed(**fields: object) -> Act:
    def act(ground: Ground, observed: Observed) -> None:
        octavia = ground.connection.load_balancer
        path = f"/lbaas/loadbalancers/{observed.id}"
        octavia.put(path, json={"loadbalancer": fields}).raise_for_status()

    return act


def port_deleted(ground: Ground, observed: Observed) -> None:
    ground.admin.network.delete_port(observed.balancer["vip_port_id"])


def member_deleted(ground: Ground, observed: Observed) -> None:
    first = observed.view.members(observed.id, 80)[0]
    path = f"/lbaas/pools/{observed.part('pool')['id']}/members/{first['id']}"
    ground.connection.load_balancer.delete(path).raise_for_status()


def member_changed(**fields: object) -> Act:
    def act(ground: Ground, observed: Observed) -> None:
        first = observed.view.members(observed.id, 80)[0]
        path = f"/lbaas/pools/{observed.part('pool')['id']}/members/{first['id']}"
        octavia = ground.connection.load_balancer
        octavia.put(path, json={"member": fields}).raise_for_status()

    return act


def member_added(ground: Ground, observed: Observed) -> None:
    path = f"/lbaas/pools/{observed.part('pool')['id']}/members"
    body = {"member": {"address": "10.42.9.9", "protocol_port": 1, "name": "a-guest"}}
    ground.connection.load_balancer.post(path, json=body).raise_for_status()


def address_deleted(ground: Ground, observed: Observed) -> None:
    ground.connection.network.delete_ip(observed.view.floating_ip(observed.id)["id"])


def address_detached(ground: Ground, observed: Observed) -> None:
    network = ground.connection.network
    network.update_ip(observed.view.floating_ip(observed.id)["id"], port_id=None)


def turned_error(ground: Ground, observed: Observed) -> None:
    ground.set_status(observed.id, "ERROR")


IN_ERROR = Reason.IN_ERROR
OFF: Mapping[str, object] = {"admin_state_up": False}
ROWS = (
    Row("LB deleted", balancer_deleted, another, {}, CommonReason.DRIFT),
    Row("VIP port deleted", port_deleted, untouched, reason=CommonReason.DRIFT),
    Row("LB tags removed", changed(tags=[]), same),
    Row("LB switched off", changed(**OFF), same),
    Row("listener deleted", delete("listener"), same),
    Row("listener limit changed", change("listener", connection_limit=3), same),
    Row("listener switched off", change("listener", **OFF), same),
    Row("listener opened", change("listener", allowed_cidrs=["10.0.0.0/8"]), same),
    Row("pool deleted", delete("pool"), same),
    Row("pool changed, off", change("pool", lb_algorithm="SOURCE_IP", **OFF), same),
    Row("member deleted", member_deleted, same),
    Row("member changed", member_changed(weight=7), same),
    Row("member switched off", member_changed(**OFF), same),
    Row("member added", member_added, same),
    Row("monitor deleted", delete("monitor"), same),
    Row("monitor changed, off", change("monitor", delay=60, **OFF), same),
    Row("floating IP deleted", address_deleted, another_address, {}),
    Row("floating IP detached", address_detached, same_address, {}),
    Row("ERROR, report", turned_error, failed, reason=IN_ERROR),
    # Octavia's usual policy lets only its admins do that: one more Event says so.
    Row(
        "ERROR, failover",
        turned_error,
        failed,
        {**INTERNAL, keys.ON_ERROR: "failover"},
        IN_ERROR,
    ),
    Row(
        "ERROR, recreate",
        turned_error,
        another,
        {keys.ON_ERROR: "recreate"},
        IN_ERROR,
    ),
)


def never_usable(ground: Ground, subnet_id: str) -> str:
    """Create the state after a crash during the creation of a load balancer.

    It has our ownership tag, is in ERROR, and its Service shows nothing of it.
    """
    service = ground.services.make(NEVER, INTERNAL)
    name = f"kube_service_kubernetes_{NAMESPACE}_{NEVER}"
    mark = f"mooring:{CLUSTER}:{service['metadata']['uid']}"
    octavia = ground.connection.load_balancer
    tags = [name, mark, "mooring-made"]
    balancer = octavia.create_load_balancer(
        name=name, vip_subnet_id=subnet_id, tags=tags
    )
    end = time.monotonic() + SERVED_S
    while octavia.get_load_balancer(balancer.id).provisioning_status != "ACTIVE":
        assert time.monotonic() < end
        time.sleep(POLL_S)
    ground.set_status(str(balancer.id), "ERROR")
    return str(balancer.id)


@dataclasses.dataclass
class Scene:
    """All Services as they are before anything is done by hand."""

    ground: Ground
    failed_id: str
    before: Mapping[str, Observed]


@pytest.fixture(scope="module")
def scene(where: places.Places, open_stage: stages.Open) -> Iterator[Scene]:
    """Have all Services served by the daemon, under its chart's ServiceAccount."""
    with (
        contextlib.closing(cloud.connect(where, accounts.ADMIN)) as admin,
        open_stage(NAMESPACE) as stage,
        balancer_watch.states(layout.of(where), stage.mine.connection) as states,
    ):
        network_id, subnet_id = stage.network()
        ports = balancers.node_ports(stage.mine.connection, network_id, len(NODES))
        stage.add_nodes(dict(zip(NODES, ports, strict=True)))
        token = ccm.reader_token(stage.cluster.api)
        connection = stage.mine.connection
        ground = Ground(where, stage.services, connection, admin, token, states)
        failed_id = never_usable(ground, subnet_id)
        stage.serve(FLAGS)
        for at in range(0, len(ROWS), AT_ONCE):
            for row in ROWS[at : at + AT_ONCE]:
                stage.services.make(row.name, row.annotations)
            settled(ground)
        yield Scene(ground, failed_id, settled(ground))


def settled(ground: Ground) -> Mapping[str, Observed]:
    """Wait until all are served and Octavia is at rest; give them by name."""
    end = time.monotonic() + SERVED_S
    while True:
        late = waiting_for(ground)
        if late:
            assert time.monotonic() < end, f"not served: {late}"
            time.sleep(POLL_S)
            continue
        view, existing = balancers.look(ground.connection), ground.services.all()
        observed = {name: Observed(service, view) for name, service in existing.items()}
        late = [
            name
            for name, view_ in observed.items()
            if not services.ingress(dict(view_.service))
            or view_.balancer.get("provisioning_status") != "ACTIVE"
        ]
        if not late:
            return {
                name: dataclasses.replace(view_, known=view_.settings())
                for name, view_ in observed.items()
            }
        assert time.monotonic() < end, f"not served: {late}"
        time.sleep(POLL_S)


def waiting_for(ground: Ground) -> list[str]:
    """Return what is not finished, by what is quickly read."""
    late = [
        name
        for name, service in ground.services.all().items()
        if not services.ingress(service)
    ]
    return late or list(ground.states.pending())


def test_what_never_was_usable_is_made_again(scene: Scene) -> None:
    """One with our tag, in ERROR, that no Service ever showed; it is reported."""
    now = scene.before[NEVER]
    assert now.id != scene.failed_id
    assert scene.failed_id not in now.view.balancers
    recorded = scene.ground.services.events()[NEVER]
    messages = [event.message for event in recorded if event.reason == IN_ERROR]
    assert len(messages) == 1
    assert "never was usable" in messages[0]


def events_of(
    events: Mapping[str, list[RecordedEvent]], row: Row
) -> list[RecordedEvent]:
    return [event for event in events.get(row.name, ()) if event.reason == row.reason]


def well(scene: Scene, rows: list[Row]) -> list[Row]:
    """Return the rows that are repaired, and reported if they must be."""
    ground = scene.ground
    view, existing = balancers.look(ground.connection), ground.services.all()
    events = ground.services.events()
    return [
        row
        for row in rows
        if (row.reason is None or events_of(events, row))
        and row.check(scene.before[row.name], Observed(existing[row.name], view))
    ]


def test_each_change_by_hand_is_repaired_or_reported(scene: Scene) -> None:
    """One table: what was done, how long it took, which Event it led to."""
    ground = scene.ground
    results: dict[str, str] = {}
    began = {}
    for row in ROWS:
        row.act(ground, scene.before[row.name])
        began[row.title] = time.monotonic()
    pending = list(ROWS)
    counted: set[str] = set()
    end, before = time.monotonic() + REPAIRED_S, ground.checks()
    checks = 0.0
    try:
        while pending and time.monotonic() < end:
            counted |= {key for key, value in ground.problems().items() if value}
            time.sleep(POLL_S)
            if ground.states.pending():
                continue
            checks = ground.checks() - before
            for row in well(scene, pending):
                took_s = time.monotonic() - began[row.title]
                results[row.title] = f"{took_s:5.0f} s, {checks:2.0f} checks"
                pending.remove(row)
    finally:
        for row in ROWS:
            verb = "reported" if row.check in (untouched, failed) else "repaired"
            event = f"  Event {row.reason}" if row.reason else ""
            print(f"{row.title:25} {verb} {results.get(row.title, 'MISSING')}{event}")
    assert not pending
    assert checks <= CHECKS
    assert counted >= {Reason.IN_ERROR, CommonReason.DRIFT}
    events = ground.services.events()
    for row in ROWS:
        assert {event.count for event in events_of(events, row)} <= {1}


def test_one_that_recovers_is_a_problem_no_more(scene: Scene) -> None:
    """The metric follows what is, the Events stay what was."""
    for row in ROWS:
        if row.check is failed:
            scene.ground.set_status(scene.before[row.name].id, "ACTIVE")
    end = time.monotonic() + REPAIRED_S
    while scene.ground.problems()[Reason.IN_ERROR]:
        assert time.monotonic() < end
        time.sleep(POLL_S)
