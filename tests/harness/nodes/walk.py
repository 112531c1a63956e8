"""Runs the nodes flow as processes that die, on clouds and clusters in memory."""

import collections
import copy
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from lib.cloud import protocol
from lib.cloud.model import Address, AddressType
from lib.kube import errors as kube_errors
from lib.kube import events, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.nodes import act, flow, model, observe
from lib.reconcile import queue, runner

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NEW = {"key": kube_nodes.UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
SHUT = {"key": kube_nodes.SHUTDOWN_TAINT, "effect": "NoSchedule"}
IP = Address(AddressType.INTERNAL_IP, "10.0.0.1")
MINE = {"key": "mine", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
AGE = datetime.timedelta(hours=1)
ROUNDS_MAX = 20
STEP_S = 5.0
SETTINGS = model.NodeSettings(unnamed_age_s=2 * STEP_S)
"""A process that has just started must wait as long as one that has seen a Node join;
a walk has no ten minutes."""


class Death(BaseException):
    """The process ends here."""


def put_node(
    api: fake_api.FakeApi,
    name: str,
    taints: Sequence[Mapping[str, str]],
    ready: str,
    provider_id: str,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Create or replace a Node; one with the taint of a new Node has no provider ID."""
    is_new = NEW in taints
    spec: dict[str, object] = {"taints": list(taints)}
    if not is_new:
        spec["providerID"] = provider_id
    ip = {"type": "InternalIP", "address": "10.0.0.1"}
    hostname = {"type": "Hostname", "address": name}
    api.put(
        resources.NODES,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {"mine": "kept"})},
            "spec": spec,
            "status": {
                "addresses": [hostname] if is_new else [ip, hostname],
                "conditions": [{"type": "Ready", "status": ready}],
            },
        },
    )


def state(api: fake_api.FakeApi) -> Mapping[str, Any]:
    """Return what a user sees of the Nodes, versions and uids aside."""
    nodes = [dict[str, Any](node) for node in copy.deepcopy(api.all(resources.NODES))]
    return {
        str(node["metadata"]["name"]): {
            "labels": node["metadata"]["labels"],
            "spec": node["spec"],
            "status": node["status"],
        }
        for node in nodes
    }


class WalkGround(Protocol):
    """A cluster and a cloud, which outlive the processes that work on them.

    now_s: time of the cloud. acting: what the process does now. actions: how often each
    kind was executed. die_at: the call at which the process dies; died_in: what it was
    doing then.
    """

    api: fake_api.FakeApi
    now_s: float
    acting: str
    actions: collections.Counter[str]
    die_at: int | None
    died_in: str

    def open(self) -> protocol.Instances:
        """Open the cloud, as a process does at its start."""
        ...

    def state(self) -> Mapping[str, Any]:
        """What a user sees of the Nodes, versions and uids aside."""
        ...


G = TypeVar("G", bound=WalkGround)


class NodesProcess:
    """One life of the daemon, with all that it keeps in memory."""

    def __init__(self, ground: WalkGround, settings: model.NodeSettings) -> None:
        self.ground = ground
        self.cloud = ground.open()
        self.nodes = store.Store(ground.api, resources.NODES, kube_nodes.Node)
        recorders = {
            source: events.Recorder(ground.api, component=source, host="")
            for source in model.Source
        }
        observer = observe.NodeObserver(
            self.nodes,
            ground.api,
            lambda: self.cloud,
            settings,
            runner.Clocks(lambda: NOW + AGE, lambda: ground.now_s),
        )
        actor = act.NodeActor(ground.api, self.nodes, recorders)
        self.initialised: list[str] = []
        self.flow = flow.NodesFlow(
            observer, actor, settings, lambda node: self.initialised.append(node.name)
        )
        self.nodes.relist()

    def round(self) -> int:
        """Take every Node for every topic once; return the number of actions."""
        self.nodes.relist()
        topics = frozenset(str(topic) for topic in model.Topic)
        claims = [queue.Claim(name, topics) for name in self.nodes.items()]
        done = sum(map(self._pass, self.flow.observe(claims).values()))
        self.ground.now_s += STEP_S
        return done

    def _pass(self, snapshot: model.Snapshot) -> int:
        actions = runner.decide(self.flow, snapshot, NOW).actions
        for action in actions:
            self.ground.acting = type(action).__name__
            try:
                snapshot = self.flow.act(snapshot, action)
            except kube_errors.KubeError as error:
                if self.flow.failure(error) is None:
                    raise
                break
            finally:
                self.ground.acting = "reading"
            self.ground.actions[type(action).__name__] += 1
        # What lasts is said again and again: it only counts the Event up.
        return sum(not isinstance(action, model.RecordEvent) for action in actions)


def settle(ground: WalkGround, settings: model.NodeSettings) -> int:
    """Run processes, each until it exits, until one has nothing to do for long enough.

    Returns the number of rounds it took.
    """
    idle = rounds = 0
    process: NodesProcess | None = None
    while idle * STEP_S <= settings.confirm_after_s:
        rounds += 1
        assert rounds < ROUNDS_MAX, "the flow does not converge"
        try:
            process = process or NodesProcess(ground, settings)
            idle = 0 if process.round() else idle + 1
        except Death:
            process, idle = None, 0
    return rounds


def deaths(everything: Callable[[], G]) -> Iterator[tuple[int, G]]:
    """Yield the ground after a death at each call, before and after it, in turn."""
    at = 0
    while True:
        ground = everything()
        ground.die_at = at
        settle(ground, SETTINGS)
        if not ground.died_in:
            return
        yield at, ground
        at += 1


def converges(everything: Callable[[], G], expected: Mapping[str, Any]) -> set[str]:
    """Kill a process at each call; return what was being done then.

    Prints what was being done when death came, and how often.
    """
    table = collections.Counter[str]()
    for at, ground in deaths(everything):
        assert ground.state() == expected, f"death {at}, in {ground.died_in}"
        table[ground.died_in] += 1
    for name, count in sorted(table.items()):
        print(f"{name:22} died {count:3} times, converged {count:3}")
    return set(table)


def kinds_of_writes() -> set[str]:
    """Return the names of all actions that write; the others only queue an Event."""
    telling = {"RecordEvent", "HoldNodeBack"}
    return {kind.__name__ for kind in model.Action.__args__} - telling
