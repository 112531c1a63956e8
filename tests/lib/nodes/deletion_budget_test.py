"""No more Nodes go in any window than the limit allows, whatever happens."""

import datetime
import math
from collections.abc import Iterator

import hypothesis
import msgspec
import pytest
from hypothesis import strategies

from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Instance, InstanceId, Phase
from lib.kube import events, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.nodes import act, deletion_budget, flow, model, observe
from lib.reconcile import queue, runner

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
WALL = NOW
"""The time of day of the API server."""
TOPICS = frozenset({str(model.Topic.LIVENESS)})
WINDOW_S = 100.0


class Death(BaseException):
    """The process ends here."""


class World:
    """A cluster and its cloud, with one process at a time that follows them.

    deletions: when each Node was deleted that no human had confirmed, how many Nodes
    there were just before, and in which life. lives: when each process began to follow.
    """

    def __init__(self, limit: deletion_budget.Limit, size: int) -> None:
        self.now_s = 1000.0
        self.wall = WALL
        self.settings = model.NodeSettings(limit=limit)
        self.api = fake_api.FakeApi(lambda: WALL)
        self.cloud = fake_instances.FakeInstances()
        self.deletions: list[tuple[float, int, int]] = []
        self.lives: list[float] = []
        self.reported = 0
        for number in range(size):
            self.join(f"n{number}")
        self.start()

    def start(self) -> None:
        self.nodes = store.Store(self.api, resources.NODES, kube_nodes.Node)
        recorders = {
            source: events.Recorder(self.api, component=source, host="")
            for source in model.Source
        }
        clocks = runner.Clocks(lambda: self.wall, lambda: self.now_s)
        observer = observe.NodeObserver(
            self.nodes, self.api, lambda: self.cloud, self.settings, clocks
        )
        actor = act.NodeActor(self.api, self.nodes, recorders)
        self.flow = flow.NodesFlow(observer, actor, self.settings)
        flow.watch(self.nodes, self.flow, lambda name, topic: None)
        self.nodes.relist()
        self.lives.append(self.now_s)

    def join(self, name: str) -> None:
        provider_id = fake_instances.provider_id(name)
        self.cloud.put(Instance(InstanceId(name), name, Phase.RUNNING, provider_id))
        self.node(name, ready="True")

    def node(
        self,
        name: str,
        *,
        ready: str,
        annotations: dict[str, str] | None = None,
        finalizers: tuple[str, ...] = (),
    ) -> None:
        self.api.put(
            resources.NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "annotations": annotations or {},
                    "finalizers": list(finalizers),
                },
                "spec": {"providerID": fake_instances.provider_id(name)},
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            },
        )

    def join_unnamed(self, name: str) -> None:
        """Register a Node that no provider has initialised, without a server."""
        self.api.put(
            resources.NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "spec": {
                    "taints": [
                        {
                            "key": kube_nodes.UNINITIALIZED_TAINT,
                            "value": "true",
                            "effect": "NoSchedule",
                        }
                    ]
                },
                "status": {"conditions": [{"type": "Ready", "status": "False"}]},
            },
        )

    def vanish(self, name: str) -> None:
        """Remove the server, and its kubelet with it."""
        self.cloud.instances.pop(InstanceId(name), None)
        if name in self.names:
            self.node(name, ready="Unknown")

    @property
    def names(self) -> set[str]:
        nodes = self.api.all(resources.NODES)
        return {msgspec.convert(node, kube_nodes.Node).name for node in nodes}

    def round(self, names: set[str] | None = None) -> None:
        """Take these Nodes once, all of them if None."""
        self.nodes.relist()
        expected = [
            name for name in self.nodes.items() if names is None or name in names
        ]
        claims = [queue.Claim(name, TOPICS) for name in expected]
        for observed_snapshot in self.flow.observe(claims).values():
            snapshot = observed_snapshot
            for action in runner.decide(self.flow, observed_snapshot, NOW).actions:
                before = self.names
                self.reported += isinstance(action, model.HoldNodeBack)
                try:
                    snapshot = self.flow.act(snapshot, action)
                finally:
                    self._count(snapshot, before)

    def _count(self, snapshot: model.Snapshot, before: set[str]) -> None:
        assert snapshot.node is not None
        if not model.is_confirmed(snapshot.node) and self.names != before:
            self.deletions.append((self.now_s, len(before), len(self.lives) - 1))

    def check(self) -> None:
        """See that no window of one process saw more deletions than it may."""
        limit = self.settings.limit
        for end, present, life in self.deletions:
            began = end - limit.window_s
            own = [at for at, _, of in self.deletions if of == life]
            count = sum(began < at <= end for at in own)
            share = 0
            if began >= self.lives[life]:
                share = math.floor((present + count) * limit.percent / 100)
            assert count <= max(limit.count, share)


def run(world: World, seconds: float, step_s: float = 5.0) -> None:
    for _ in range(int(seconds / step_s)):
        world.round()
        world.now_s += step_s


def test_a_few_nodes_go() -> None:
    world = World(deletion_budget.Limit(), 10)
    for number in range(3):
        world.vanish(f"n{number}")
    run(world, 30)
    assert len(world.names) == 7
    assert world.reported == 0


FOREIGN = ("karpenter.sh/termination",)


def hold(world: World, names: set[str]) -> None:
    """Remove the servers of Nodes that have the finalizer of another controller."""
    for name in names:
        world.vanish(name)
        world.node(name, ready="Unknown", finalizers=FOREIGN)


def test_nodes_that_wait_for_finalizers_count_once_and_are_deleted_once() -> None:
    world = World(deletion_budget.Limit(), 8)
    held = {"n0", "n1", "n2"}
    hold(world, held)
    run(world, 60)
    assert len([call for call in world.api.calls if call.verb == "delete"]) == 3
    world.vanish("n5")
    run(world, 60)
    assert "n5" in world.names  # three have been deleted within the window
    run(world, 3600, 30.0)
    assert world.names == {"n0", "n1", "n2", "n3", "n4", "n6", "n7"}
    assert len([call for call in world.api.calls if call.verb == "delete"]) == 4
    assert world.flow.suspended == 0


def test_their_end_after_the_window_counts_no_second_time() -> None:
    world = World(deletion_budget.Limit(), 8)
    held = {"n0", "n1", "n2"}
    hold(world, held)
    run(world, 900, 30.0)
    for name in held:
        world.node(name, ready="Unknown")  # the finalizer is removed
    for name in ("n3", "n4", "n5"):
        world.vanish(name)
    run(world, 60)
    assert world.names == {"n6", "n7"}


def test_nodes_that_others_delete_count_although_finalizers_hold_them() -> None:
    world = World(deletion_budget.Limit(), 8)
    held = {"n0", "n1", "n2"}
    hold(world, held)
    world.nodes.relist()
    for name in held:
        world.api.delete(resources.NODES, name, timeout_s=1.0)
    world.nodes.relist()
    for name in ("n3",):
        world.vanish(name)
    run(world, 60)
    assert "n3" in world.names
    assert world.flow.suspended == 1


def test_nodes_that_wait_for_finalizers_are_a_metric() -> None:
    world = World(deletion_budget.Limit(), 8)
    hold(world, {"n0", "n1"})
    run(world, 60)
    assert world.flow.waiting == 0
    world.wall = world.wall + datetime.timedelta(minutes=6)
    assert world.flow.waiting == 2
    world.node("n0", ready="Unknown")
    world.nodes.relist()
    assert world.flow.waiting == 1


def test_a_mass_of_nodes_stays_is_told_and_costs_no_direct_look() -> None:
    """None goes at all, each is told once a minute, and the gauge says how many."""
    world = World(deletion_budget.Limit(), 50)
    for number in range(28):
        world.vanish(f"n{number}")
    run(world, 700)
    assert len(world.names) == 50
    assert world.reported == 28 * math.ceil(700 / deletion_budget.REPORT_EVERY_S)
    assert world.flow.suspended == 28
    assert set(world.cloud.calls) == {"list instances"}


def test_half_of_the_nodes_go_at_the_limited_rate_the_oldest_absence_first() -> None:
    """Ten of twenty servers were deleted: six Nodes in the first full window."""
    world = World(deletion_budget.Limit(window_s=WINDOW_S), 20)
    run(world, WINDOW_S)
    for number in range(10):
        world.vanish(f"n{number}")
        world.round()
        world.now_s += 5
    run(world, 45)
    assert {f"n{number}" for number in range(20)} - world.names == {
        f"n{number}" for number in range(6)
    }
    assert world.flow.suspended == 4
    run(world, 2 * WINDOW_S)
    assert world.names == {f"n{number}" for number in range(10, 20)}
    assert world.flow.suspended == 0


def test_the_annotation_releases_its_node_only() -> None:
    world = World(deletion_budget.Limit(), 10)
    for number in range(8):
        world.vanish(f"n{number}")
    run(world, 60)
    world.node(
        "n0", ready="Unknown", annotations={deletion_budget.CONFIRM_ANNOTATION: ""}
    )
    run(world, 60)
    assert world.names == {f"n{number}" for number in range(1, 10)}
    assert world.flow.suspended == 7


def test_they_go_when_the_share_falls() -> None:
    """Servers that come back release the others; so do those that a human confirms."""
    world = World(deletion_budget.Limit(), 10)
    for number in range(6):
        world.vanish(f"n{number}")
    run(world, 60)
    assert len(world.names) == 10
    for number in range(3):
        world.join(f"n{number}")
    run(world, 60)
    assert world.names == {f"n{number}" for number in (0, 1, 2, 6, 7, 8, 9)}
    assert world.flow.suspended == 0


def test_the_share_counts_in_a_process_that_has_followed_for_a_window() -> None:
    world = World(deletion_budget.Limit(window_s=WINDOW_S), 100)
    for number in range(30):
        world.vanish(f"n{number}")
    run(world, 95)
    assert len(world.names) == 97
    run(world, 40)
    assert len(world.names) == 70
    for number in range(30, 33):
        world.vanish(f"n{number}")
    run(world, 120)
    assert len(world.names) == 67
    world.check()


def test_a_standby_knows_what_its_leader_deleted() -> None:
    """It has seen the Nodes go."""
    world = World(deletion_budget.Limit(window_s=WINDOW_S), 10)
    for number in range(3):
        world.vanish(f"n{number}")
    world.nodes.relist()
    world.now_s += WINDOW_S
    for number in range(3):
        world.api.remove(resources.NODES, f"n{number}")
    world.nodes.relist()
    world.vanish("n3")
    run(world, 60)
    assert "n3" in world.names
    run(world, 60)
    assert "n3" not in world.names


def test_a_node_that_went_and_came_again_unseen_has_gone() -> None:
    """A relist shows another Node of its name; the first one counts as deleted."""
    world = World(deletion_budget.Limit(window_s=WINDOW_S), 10)
    for number in range(3):
        world.vanish(f"n{number}")
    world.nodes.relist()
    for number in range(3):
        world.api.remove(resources.NODES, f"n{number}")
        world.join(f"n{number}")
    world.vanish("n3")
    run(world, 60)
    assert "n3" in world.names


def test_a_node_that_was_ready_between_two_looks_is_looked_at_twice_again() -> None:
    world = World(deletion_budget.Limit(), 10)
    world.vanish("n0")
    world.round()
    world.node("n0", ready="True")
    world.round()
    world.now_s += 1000
    world.node("n0", ready="Unknown")
    world.round()
    assert "n0" in world.names
    run(world, 30)
    assert "n0" not in world.names


@pytest.mark.parametrize("hours", [-1, 1], ids=["behind", "ahead"])
@pytest.mark.parametrize("provider_id", [True, False], ids=["initialised", "joining"])
def test_a_clock_that_is_wrong_by_an_hour_deletes_no_node(
    hours: int, provider_id: bool
) -> None:
    """Whatever the time of day is: only Nodes whose servers are absent are deleted."""
    world = World(deletion_budget.Limit(), 10)
    world.wall = WALL + datetime.timedelta(hours=hours)
    if not provider_id:
        world.join_unnamed("new")  # no server has its name yet
    run(world, 300)
    assert len(world.names) == (10 if provider_id else 11)
    world.vanish("n0")
    run(world, 60)
    assert "n0" not in world.names, "an absent server is found all the same"


def test_holding_back_reads_each_pending_node_once() -> None:
    """5,000 absent Nodes: the verdict on each is a look-up, not a search."""

    class Counted(dict[str, int]):
        reads = 0

        def get(self, key: str, default: int = 0) -> int:  # type: ignore[override]
            self.reads += 1
            return super().get(key, default)

        def __iter__(self) -> Iterator[str]:
            raise AssertionError("it is searched")

    pending = Counted({f"n{number}": number for number in range(5000)})
    budget = deletion_budget.DeletionBudget(nodes=10_000, pending=pending)
    limit = deletion_budget.Limit()
    held = [
        uid for uid in pending.copy() if deletion_budget.suspends(budget, limit, uid)
    ]
    assert len(held) == 2000
    assert pending.reads == 5000


NAMES = strategies.sampled_from([f"n{number}" for number in range(12)])
STEPS = strategies.one_of(
    strategies.tuples(
        strategies.just("vanish"), strategies.sets(NAMES, min_size=1, max_size=12)
    ),
    strategies.tuples(
        strategies.just("join"), strategies.sets(NAMES, min_size=1, max_size=12)
    ),
    strategies.tuples(
        strategies.just("confirm"), strategies.sets(NAMES, min_size=1, max_size=2)
    ),
    strategies.tuples(
        strategies.just("look"), strategies.sets(NAMES, min_size=1, max_size=12)
    ),
    strategies.tuples(strategies.just("rounds"), strategies.integers(1, 8)),
    strategies.tuples(strategies.just("wait"), strategies.integers(1, 120)),
    strategies.tuples(strategies.just("restart"), strategies.just(0)),
    strategies.tuples(strategies.just("die"), strategies.integers(0, 30)),
)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    strategies.builds(
        deletion_budget.Limit,
        window_s=strategies.just(WINDOW_S),
        count=strategies.integers(0, 4),
        percent=strategies.sampled_from([0, 10, 30, 50]),
    ),
    strategies.lists(STEPS, max_size=25),
)
def test_never_more_than_the_limit_in_any_window(
    limit: deletion_budget.Limit, steps: list[tuple[str, object]]
) -> None:
    """For any sequence of losses, returns, looks, deaths and confirmations.

    Within one process; a new one may delete as many as the number says, once.
    """
    world = World(limit, 12)
    for kind, value in steps:
        step(world, kind, value)
        world.check()


def step(world: World, kind: str, value: object) -> None:
    if isinstance(value, set):
        change(world, kind, value)
    elif isinstance(value, int):
        pass_time(world, kind, value)


def change(world: World, kind: str, names: set[str]) -> None:
    if kind == "look":
        world.round(names)
        world.now_s += 5
        return
    marked = {deletion_budget.CONFIRM_ANNOTATION: "yes"}
    for name in names:
        if kind == "vanish":
            world.vanish(name)
        elif kind == "join":
            world.join(name)
        elif name in world.names:
            world.node(name, ready="Unknown", annotations=marked)


def pass_time(world: World, kind: str, number: int) -> None:
    match kind:
        case "rounds":
            run(world, number * 5)
        case "wait":
            world.now_s += number
        case "restart":
            world.start()
        case "die":
            dies(world, number)
            world.start()


def dies(world: World, calls: int) -> None:
    """Kill the process at one of its next calls, before or after it."""
    left = calls

    def at_call(call: object) -> None:
        nonlocal left
        del call
        left -= 1
        if left < 0:
            raise Death

    world.api.before_call = world.api.after_call = at_call
    try:
        run(world, 20)
    except Death:
        pass
    finally:
        world.api.before_call = world.api.after_call = None


@pytest.mark.parametrize("at", range(40))
def test_death_at_each_call_lets_no_more_go(at: int) -> None:
    """Three of ten go, and a fourth later, wherever the process dies between."""
    world = World(deletion_budget.Limit(window_s=WINDOW_S), 10)
    for number in range(3):
        world.vanish(f"n{number}")
    dies(world, at)
    world.start()
    run(world, 60)
    assert world.names == {f"n{number}" for number in range(3, 10)}
    world.check()
