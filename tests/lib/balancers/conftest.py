"""A cluster and a cloud in memory, and lives of the daemon upon them."""

import collections
import copy
import dataclasses
import datetime
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lib.balancers import flow, model, observe
from lib.balancers.fake.snapshots import NOW
from lib.balancers.model import Topic
from lib.cloud.fake import load_balancers as fake_cloud
from lib.cloud.load_balancers import Cluster, Node
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.kube import events, resources, store
from lib.kube.fake import api as fake_api
from lib.plans import writing
from lib.reconcile import carrying, failure, outcome, queue, runner

QUIET_S = 30.0
"""So long nothing may be due for the daemon to count as settled."""


class Death(BaseException):
    """The process ends here."""


class Ground:
    """A cluster and a cloud, which outlive the processes that work on them."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.api = fake_api.FakeApi(lambda: NOW)
        self.cloud: Any = fake_cloud.FakeLoadBalancers(lambda: self.now_s)
        self.nodes: tuple[Node, ...] = (Node("node-1"), Node("node-2"))
        self.acting = "reading"
        self.actions = collections.Counter[str]()
        self.passed = 0
        self.die_at: int | None = None
        self.died_in = ""
        self.api.before_call = self.api.after_call = self._at_call
        self.cloud.before_call = self.cloud.after_call = self._at_call

    def _at_call(self, call: object) -> None:
        del call
        self.passed += 1
        if self.passed - 1 == self.die_at:
            self.died_in = self.acting
            raise Death

    def service(
        self,
        name: str,
        *ports: int,
        type: str = "LoadBalancer",
        annotations: dict[str, str | None] | None = None,
    ) -> None:
        """Make a Service, or change it as a user would; None removes an annotation."""
        old = self.get(name) or {"metadata": {"name": name, "namespace": "default"}}
        merged = {**old["metadata"].get("annotations", {}), **(annotations or {})}
        kept = {key: value for key, value in merged.items() if value is not None}
        old["metadata"]["annotations"] = kept
        listed = [
            {"port": port, "protocol": "TCP", "nodePort": 30000 + port}
            for port in ports
        ]
        old["spec"] = {"type": type, "ports": listed}
        self.api.put(resources.SERVICES, old)

    def delete(self, name: str) -> None:
        self.api.remove(resources.SERVICES, name, "default")

    def get(self, name: str) -> dict[str, Any] | None:
        for service in copy.deepcopy(self.api.all(resources.SERVICES)):
            typed: dict[str, Any] = dict(service)
            if typed["metadata"]["name"] == name:
                return typed
        return None

    def state(self) -> dict[str, Any]:
        """What a user sees: each Service's finalizers and addresses, and the cloud."""
        services = {}
        for service in copy.deepcopy(self.api.all(resources.SERVICES)):
            typed: dict[str, Any] = dict(service)
            ingress = typed.get("status", {}).get("loadBalancer", {}).get("ingress")
            services[typed["metadata"]["name"]] = (
                typed["metadata"].get("finalizers"),
                len(ingress or ()),
            )
        cloud = sorted(
            (balancer.name, repr(balancer.request))
            for balancer in self.cloud.load_balancers.values()
        )
        return {"services": services, "cloud": cloud}

    def events(self) -> list[str]:
        """Type, reason and message of each Event, in order."""
        recorded: list[dict[str, Any]] = [
            dict(e) for e in self.api.all(resources.EVENTS)
        ]
        return [f"{e['type']} {e['reason']}: {e['message']}" for e in recorded]


@dataclasses.dataclass(frozen=True)
class _Counted(carrying.Steps[model.Snapshot, model.Action]):
    """The steps of a flow; the ground counts its actions."""

    flow: flow.BalancersFlow
    ground: Ground
    name = "balancers"

    def act(self, snapshot: model.Snapshot, action: model.Action) -> model.Snapshot:
        kind = type(action).__name__
        self.ground.acting = kind
        try:
            snapshot = self.flow.act(snapshot, action)
        finally:
            self.ground.acting = "reading"
        self.ground.actions[kind] += 1
        return snapshot

    def decide(
        self, snapshot: model.Snapshot, now: datetime.datetime
    ) -> outcome.Outcome[model.Action]:
        return self.flow.decide(snapshot, now)

    def failure(self, error: Exception) -> failure.Failure | None:
        return self.flow.failure(error)

    def left_after(
        self, failed: model.Action, error: Exception, rest: Sequence[model.Action]
    ) -> Sequence[model.Action]:
        return self.flow.left_after(failed, error, rest)


class Process:
    """One life of the daemon, with all that it keeps in memory."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.services = store.Store(ground.api, resources.SERVICES, model.Service)
        self.queue = queue.Queue(
            queue.Backoff(base_s=5, max_s=300),
            clock=lambda: ground.now_s,
            chance=lambda: 0.0,
        )
        self.recorders = {
            source: events.Recorder(
                ground.api,
                component=source,
                host="",
                clock=self._clock_of(number),
                poll_s=0.01,
            )
            for number, source in enumerate(model.Source)
        }
        self.flow = flow.BalancersFlow(
            sources=observe.Sources(
                self.services,
                ground.api,
                lambda: ground.nodes,
                lambda: Cluster("cluster-id", "kubernetes"),
            ),
            load_balancers=lambda: ground.cloud,
            writing=ground.api,
            recorders=self.recorders,
            on_open=self.queue.add_now,
            clock=lambda: ground.now_s,
            applying=writing.Writing(places=lambda: ground.cloud.places),
        )
        flow.watch(self.services, self.flow, self.queue.add)
        self.services.relist()

    def _clock_of(self, number: int) -> Callable[[], float]:
        """Return recorders times of their own: an Event's name is made of its time."""
        return lambda: self.ground.now_s + number / 1000

    def settle(self, quiet_s: float = QUIET_S) -> float:
        """Go on until nothing is due for a while; give the seconds that it took."""
        began = last = self.ground.now_s
        self.services.relist()
        while self.ground.now_s < last + quiet_s:
            if self.turn():
                last = self.ground.now_s
                self.services.relist()
            assert last < began + 3600, "the flow does not converge"
            self.ground.now_s += 0.5
        return last - began

    def turn(self) -> int:
        """Pass all keys that are due, as one batch; give how many there were."""
        claims = self.queue.take_due(1000)
        if not claims:
            return 0
        snapshots = self.flow.read(self.flow.observe(claims))
        for claim in claims:
            if claim.key in snapshots:
                self._pass(claim, snapshots[claim.key])
            self.queue.done(claim.key)
        return len(claims)

    def _pass(self, claim: queue.Claim, snapshot: model.Snapshot) -> None:
        decided = runner.decide(self.flow, snapshot, NOW)
        carrier = carrying.Carrier(_Counted(self.flow, self.ground))
        snapshot, error = carrier.carry_out(claim.key, snapshot, decided)
        self.flow.ended(snapshot, error)
        for requeue in self.flow.requeues(snapshot, error):
            self.queue.add_all(claim.key, requeue.topics, requeue.after_s)
        if error is not None:
            known = self.flow.failure(error)
            if known is None:
                raise error
            self.queue.retry(claim.key, claim.topics, known.retry_after_s)
            return
        self.queue.forget(claim.key)
        if decided.requeue_after_s is not None:
            self.queue.add_all(claim.key, claim.topics, decided.requeue_after_s)

    def say(self) -> None:
        """Send the Events that wait; time passes where there are too many at once."""
        for recorder in self.recorders.values():
            stop = threading.Event()
            sender = threading.Thread(target=recorder.run, args=(stop,))
            sender.start()
            for _ in range(200):
                if recorder.flush(0.05):
                    break
                self.ground.now_s += 1.0
            stop.set()
            sender.join()


MakeGround = Callable[[], Ground]
MakeProcess = Callable[[Ground], Process]


@pytest.fixture()
def ground() -> Ground:
    return Ground()


@pytest.fixture(scope="session")
def make_ground() -> MakeGround:
    return Ground


@pytest.fixture(scope="session")
def make_process() -> MakeProcess:
    return Process


@pytest.fixture(scope="session")
def death() -> type[BaseException]:
    return Death


class SameClock(session.FakeClock):
    """The time of a ground: there is only one."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self._ground = ground

    def __call__(self) -> float:
        return float(self._ground.now_s)

    def sleep(self, seconds: float) -> None:
        self._ground.now_s += seconds


@dataclasses.dataclass
class Scene:
    """A cluster on an OpenStack in memory, and the process that serves it."""

    ground: Ground
    on: driver.Ground
    config: settings.LoadBalancer
    process: Any = None

    @property
    def cloud(self) -> session.FakeOpenStack:
        return self.on.cloud

    def start(self) -> None:
        """Begin a new life, which knows nothing."""
        self.ground.cloud = OctaviaLoadBalancers(self.cloud.client(), self.config)
        self.process = Process(self.ground)

    def calls(
        self, do: Callable[[], object] = lambda: None, quiet_s: float = 30.0
    ) -> int:
        """Do something, let it come to rest, and count the calls."""
        before = len(self.cloud.calls)
        do()
        self.process.settle(quiet_s)
        return len(self.cloud.calls) - before

    def again(self, topic: Topic) -> None:
        """Bring all Services in."""
        for key in self.process.services.items():
            self.process.queue.add(key, topic)

    def add_node(self) -> None:
        """Add a Node."""
        self.ground.nodes = (*self.ground.nodes, self.node(len(self.ground.nodes) + 1))
        self.again(Topic.NODES)

    def node(self, number: int) -> Node:
        address = f"10.0.0.{number}"
        self.cloud.neutron.add_port(self.on.subnet_id, address, f"server-{number}")
        result = (Address(AddressType.INTERNAL_IP, address),)
        return Node(f"node-{number}", "", result)

    def lose_creation(self) -> list[wire.Call]:
        """Drop the answer of the next creation; return it once it was sent."""
        lost: list[wire.Call] = []

        def lose(call: wire.Call) -> session.Fault | None:
            is_creation = (call.method, call.path) == ("POST", "lbaas/loadbalancers")
            if not is_creation or lost:
                return None
            lost.append(call)
            return session.Fault()

        self.cloud.fault = lose
        return lost

    def address(self, name: str) -> str:
        """The address in a Service's status."""
        service = self.ground.get(name)
        assert service is not None
        return str(service["status"]["loadBalancer"]["ingress"][0]["ip"])


@pytest.fixture()
def make_scene() -> Callable[..., Scene]:
    """Return a factory of scenes with some Nodes; the process has begun."""

    def make(nodes: int = 2, config: settings.LoadBalancer | None = None) -> Scene:
        ground = Ground()
        cloud = session.FakeOpenStack(SameClock(ground))
        on = driver.ground(cloud)
        usual = config or settings.LoadBalancer(subnet_id=on.subnet_id)
        scene = Scene(ground, on, usual)
        ground.nodes = tuple(scene.node(number) for number in range(1, nodes + 1))
        scene.start()
        return scene

    return make
