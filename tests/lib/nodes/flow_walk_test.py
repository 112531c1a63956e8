"""The flow converges on the fakes, from any state and through death at every call."""

import collections
import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import errors as kube_errors
from lib.kube import nodes as kube_nodes
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.nodes import deletion_budget, model
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome
from tests.harness.nodes import walk


class Ground:
    """A cluster and a cloud, which outlive the processes that work on them."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(lambda: walk.NOW)
        self.cloud = fake_instances.FakeInstances()
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.die_at: int | None = None
        self.died_in = ""
        self.api.before_call = self._at_call
        self.api.after_call = self._at_call
        self.cloud.before_call = self._at_call
        self.cloud.after_call = self._at_call

    def _at_call(self, call: object) -> None:
        del call
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise walk.Death

    def server(self, name: str, phase: Phase = Phase.RUNNING, ip: str = "1") -> None:
        self.cloud.put(
            Instance(
                id=InstanceId(f"id-{name}"),
                name=name,
                phase=phase,
                provider_id=fake_instances.provider_id(f"id-{name}"),
                addresses=(Address(AddressType.INTERNAL_IP, f"10.0.0.{ip}"),),
                instance_type="m1.small",
                zone="az1",
                region="RegionOne",
            )
        )

    def node(
        self,
        name: str,
        *taints: dict[str, str],
        ready: str = "True",
        provider_id: str | None = None,
        labels: dict[str, str] | None = None,
    ) -> None:
        named = provider_id or fake_instances.provider_id(f"id-{name}")
        walk.put_node(self.api, name, taints, ready, named, labels)

    def open(self) -> fake_instances.FakeInstances:
        return self.cloud

    def state(self) -> Mapping[str, Any]:
        return walk.state(self.api)


def test_a_node_whose_last_write_the_watch_has_not_shown_is_held() -> None:
    ground = Ground()
    ground.server("web")
    ground.node("web", walk.NEW)
    process = walk.NodesProcess(ground, model.NodeSettings())
    process.nodes.note_write("web", "999999")
    claim = queue.Claim("web", frozenset({str(model.Topic.SYNC)}))
    (snapshot,) = process.flow.observe([claim]).values()
    outcome = runner.decide(process.flow, snapshot, walk.NOW)
    assert outcome == Outcome(requeue_after_s=runner.HELD_S)


def everything() -> Ground:
    """Set up one Node for every thing the flow does, and two it must leave alone."""
    ground = Ground()
    for name in ("new-1", "new-2", "steady", "renumbered", "labelled"):
        ground.server(name, ip="2" if name == "renumbered" else "1")
    ground.server("off", Phase.STOPPED)
    ground.server("back")
    ground.node("new-1", walk.NEW, walk.MINE)
    ground.node("new-2", walk.NEW)
    ground.node("steady", walk.MINE)
    ground.node("renumbered")
    ground.node("labelled", labels={"failure-domain.beta.kubernetes.io/zone": "az1"})
    ground.node("off", walk.MINE, ready="Unknown")
    ground.node("back", walk.SHUT)
    ground.node("gone", ready="Unknown")
    ground.node("gone-new", walk.NEW, ready="Unknown")
    ground.node("foreign", ready="Unknown", provider_id="static://a/b")
    return ground


@pytest.fixture(scope="module")
def undisturbed() -> Ground:
    ground = everything()
    walk.settle(ground, walk.SETTINGS)
    return ground


def test_every_node_ends_as_it_should(undisturbed: Ground) -> None:
    state = undisturbed.state()
    keys = {name: [t["key"] for t in n["spec"]["taints"]] for name, n in state.items()}
    assert keys == {
        "new-1": ["mine"],
        "new-2": [],
        "steady": ["mine"],
        "renumbered": [],
        "labelled": [],
        "off": ["mine", kube_nodes.SHUTDOWN_TAINT],
        "back": [],
        "foreign": [],
    }
    assert state["new-1"]["spec"]["taints"] == [walk.MINE]
    assert state["new-1"]["spec"]["providerID"] == "openstack:///id-new-1"
    assert state["new-1"]["labels"]["topology.kubernetes.io/zone"] == "az1"
    assert state["new-1"]["labels"]["mine"] == "kept"
    assert state["labelled"]["labels"]["topology.kubernetes.io/zone"] == "az1"
    assert state["renumbered"]["status"]["addresses"][0]["address"] == "10.0.0.2"
    assert state["foreign"] == everything().state()["foreign"]
    assert state["steady"] == everything().state()["steady"]


def test_a_settled_cluster_costs_no_write(undisturbed: Ground) -> None:
    before = len(undisturbed.api.calls)
    walk.settle(undisturbed, walk.SETTINGS)
    assert not [call for call in undisturbed.api.calls[before:] if call.is_write]


def test_death_at_every_call_ends_the_same(undisturbed: Ground) -> None:
    """Each action appears among those in which a process died."""
    table = walk.converges(everything, undisturbed.state())
    assert table == {"reading", *walk.kinds_of_writes()}


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize(
    "error",
    [
        kube_errors.Conflict("changed", operation="PATCH"),
        kube_errors.Unavailable("time-out", operation="PATCH"),
    ],
    ids=["conflict", "time-out"],
)
def test_every_write_may_fail_once(
    undisturbed: Ground, error: kube_errors.KubeError, lost: bool
) -> None:
    ground = everything()
    for node in ground.state():
        for verb in ("patch", "delete"):
            fault = calls.Fault(error, verb, "nodes", node, after=lost)
            ground.api.faults.append(fault)
    walk.settle(ground, walk.SETTINGS)
    assert ground.state() == undisturbed.state()


@pytest.mark.parametrize(
    "error",
    [
        errors.Unavailable("503", operation="list"),
        errors.Forbidden("403", operation="list"),
        errors.Unauthenticated("401", operation="list"),
    ],
    ids=["outage", "forbidden", "refused"],
)
def test_a_cloud_that_fails_costs_no_node(error: errors.CloudError) -> None:
    ground = everything()
    ground.cloud.faults = [error] * 60
    process = walk.NodesProcess(ground, walk.SETTINGS)
    for _ in range(10):
        process.round()
    assert set(ground.state()) == set(everything().state())


def test_one_direct_not_found_deletes_nothing() -> None:
    """The list and the first look say gone, then the server is back."""
    ground = everything()
    process = walk.NodesProcess(ground, walk.SETTINGS)
    process.round()
    ground.server("gone")
    ground.server("gone-new")
    for _ in range(10):
        process.round()
    assert {"gone", "gone-new"} <= set(ground.state())


def test_the_number_of_cloud_calls_does_not_grow_with_the_nodes() -> None:
    counts = []
    for number in (1, 100):
        ground = Ground()
        for n in range(number):
            ground.server(f"node-{n}")
            ground.node(f"node-{n}", walk.NEW)
        walk.NodesProcess(ground, walk.SETTINGS).round()
        counts.append(len(ground.cloud.calls))
    assert counts == [1, 1]


def test_writes_per_new_node() -> None:
    ground = Ground()
    ground.server("one")
    ground.node("one", walk.NEW)
    walk.settle(ground, walk.SETTINGS)
    writes = [c for c in ground.api.calls if c.is_write and c.resource == "nodes"]
    assert [(c.verb, c.subresource) for c in writes] == [
        ("patch", "status"),
        ("patch", None),
    ]


def test_each_initialised_node_is_told_of_once() -> None:
    """Those that were new, once they are written, and no other."""
    ground = everything()
    process = walk.NodesProcess(ground, walk.SETTINGS)
    for _ in range(3):
        process.round()
    assert sorted(process.initialised) == ["new-1", "new-2"]


class World:
    """Two names for Nodes and servers, in which anything may happen at any time.

    No Node is ever deleted while the cloud has its server: looked at in each deletion.
    A third Node stays as it is; its server shows which project is the cluster's.
    """

    names = ("a", "b")
    rest = "rest"

    def __init__(self) -> None:
        self.ground = Ground()
        self.settings = dataclasses.replace(
            walk.SETTINGS, limit=deletion_budget.Limit(count=100)
        )
        self.process: walk.NodesProcess | None = None
        self.booted = 0
        self.ground.api.before_call = self._look
        self.ground.server(self.rest)
        self.ground.node(self.rest)
        for name in self.names:
            self.boot(name)
            self.register(name)
        self.work()

    def _look(self, call: calls.Call) -> None:
        if (call.verb, call.resource) == ("delete", "nodes"):
            assert self.server_of(self.node(str(call.name))) is None, call.name

    def node(self, name: str) -> dict[str, Any] | None:
        nodes = self.ground.api.all(resources.NODES)
        copies = [copy.deepcopy(dict[str, Any](node)) for node in nodes]
        return next((node for node in copies if node["metadata"]["name"] == name), None)

    def server_of(self, node: dict[str, Any] | None) -> Instance | None:
        assert node is not None
        named = node["spec"].get("providerID")
        for instance in self.ground.cloud.instances.values():
            if named == instance.provider_id:
                return instance
            if not named and instance.name == node["metadata"]["name"]:
                return instance
        return None

    def server(self, name: str) -> Instance | None:
        present = self.ground.cloud.instances.values()
        return next((server for server in present if server.name == name), None)

    def boot(self, name: str) -> None:
        if self.server(name) is None:
            self.booted += 1
            self.ground.server(f"{name}-{self.booted}", ip=str(self.booted))
            server = self.server(f"{name}-{self.booted}")
            assert server is not None
            self.ground.cloud.put(dataclasses.replace(server, name=name))

    def destroy(self, name: str) -> None:
        if server := self.server(name):
            self.ground.cloud.remove(server.id)

    def _change(self, name: str, **fields: Any) -> None:
        if server := self.server(name):
            self.ground.cloud.put(dataclasses.replace(server, **fields))

    def stop(self, name: str) -> None:
        self._change(name, phase=Phase.STOPPED)

    def start(self, name: str) -> None:
        self._change(name, phase=Phase.RUNNING)

    def renumber(self, name: str) -> None:
        address = Address(AddressType.INTERNAL_IP, f"10.1.0.{self.ground.passed % 250}")
        self._change(name, addresses=(address,))

    def register(self, name: str) -> None:
        if self.node(name) is None:
            self.ground.node(name, walk.NEW)

    def _report(self, name: str, ready: str) -> None:
        if node := self.node(name):
            node["status"]["conditions"] = [{"type": "Ready", "status": ready}]
            self.ground.api.put(resources.NODES, node)

    def fall_silent(self, name: str) -> None:
        self._report(name, "Unknown")

    def speak(self, name: str) -> None:
        self._report(name, "True")

    def outage(self, name: str) -> None:
        del name
        self.ground.cloud.faults += [errors.Unavailable("503", operation="list")] * 2

    def conflict(self, name: str) -> None:
        error = kube_errors.Conflict("changed", operation="PATCH")
        self.ground.api.faults.append(calls.Fault(error, "patch", "nodes", name))

    def lose_answer(self, name: str) -> None:
        error = kube_errors.Unavailable("time-out", operation="x")
        for verb in ("patch", "delete"):
            fault = calls.Fault(error, verb, "nodes", name, after=True)
            self.ground.api.faults.append(fault)

    def die(self, name: str) -> None:
        del name
        self.process = None

    def short_list(self, name: str) -> None:
        """Make lists lack all present servers, until the end."""
        del name
        self.ground.cloud.unlisted.update(self.ground.cloud.instances)

    def elsewhere(self, name: str) -> None:
        """Start a process with credentials of another project; it runs for a while."""
        del name
        cloud, before = self.ground.cloud, self.ground.state().keys()
        servers = dict(cloud.instances)
        cloud.instances.clear()
        self.process = None
        for _ in range(2 + int(self.settings.confirm_after_s / walk.STEP_S)):
            self.work()
        self.process = None
        cloud.instances.update(servers)
        assert self.ground.state().keys() == before

    def work(self) -> None:
        self.process = self.process or walk.NodesProcess(self.ground, self.settings)
        self.process.round()

    def no_trouble(self, name: str) -> None:
        """Do nothing."""

    def settle(self) -> None:
        """End all faults, and work until nothing is left to do."""
        self.ground.cloud.faults.clear()
        self.ground.cloud.unlisted.clear()
        self.ground.api.faults.clear()
        walk.settle(self.ground, self.settings)

    def check(self, name: str) -> None:
        """See that a Node is as its server and its kubelet say."""
        node = self.node(name)
        if node is None:
            return
        server = self.server_of(node)
        is_ready = node["status"]["conditions"][0]["status"] == "True"
        taints = {taint["key"] for taint in node["spec"].get("taints", ())}
        assert server is not None or is_ready, "it should have been deleted"
        if server is None:
            return
        assert kube_nodes.UNINITIALIZED_TAINT not in taints
        assert node["spec"]["providerID"] == server.provider_id
        shown = [a["address"] for a in node["status"]["addresses"]]
        assert shown == [server.addresses[0].address, name]
        if is_ready or server.phase is Phase.STOPPED:
            assert (kube_nodes.SHUTDOWN_TAINT in taints) is not is_ready


MOVES = (
    *("boot", "destroy", "stop", "start", "renumber", "register"),
    *("fall_silent", "speak"),
)
TROUBLES = (
    "no_trouble",
    "no_trouble",
    "outage",
    "conflict",
    "lose_answer",
    "die",
    "elsewhere",
    "short_list",
)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    strategies.lists(
        strategies.tuples(
            strategies.sampled_from(MOVES),
            strategies.sampled_from(TROUBLES),
            strategies.sampled_from(World.names),
            strategies.integers(0, 2),
        ),
        min_size=20,
        max_size=50,
    )
)
def test_from_whatever_happened_the_flow_ends_as_it_should(
    moves: list[tuple[str, str, str, int]],
) -> None:
    """Servers and kubelets come and go, calls fail, processes die, in any order.

    moves: what happens, what goes wrong then, to whom, and how often the daemon works
    after it.
    """
    world = World()
    for move, trouble, name, rounds in moves:
        getattr(world, move)(name)
        getattr(world, trouble)(name)
        for _ in range(rounds):
            world.work()
    world.settle()
    for name in World.names:
        world.check(name)
