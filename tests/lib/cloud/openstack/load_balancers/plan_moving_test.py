"""A Service moves when its load-balancer-id does: first served, then off the old."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable

import pytest

from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Port,
    PortProtocol,
    Reason,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason, ProblemReason

ID = keys.LOAD_BALANCER_ID
PORTS = (Port(80, node_port=30080), Port(53, PortProtocol.UDP, 30053))
OTHERS = (Port(81, node_port=30081),)
MONITORED = settings.LoadBalancer(create_monitor=True, max_shared_lb=3)
SHARED_TAG = "kube_service_kubernetes_default_web"
ADDRESSES = {"a": "198.51.100.101", "b": "198.51.100.102"}


@dataclasses.dataclass
class Scene:
    """A Service, two load balancers of a user's, "a" and "b", and others on both."""

    driven: driver.Driver
    ids: dict[str, str]
    others: tuple[driver.Driver, ...] = ()

    @property
    def cloud(self) -> session.FakeOpenStack:
        return self.driven.cloud

    def copied(self) -> "Scene":
        """Return the same in another cloud, with processes that know nothing yet."""
        driven = self.driven.copied()
        others = (other.copied(driven.ground) for other in self.others)
        return Scene(driven, self.ids, tuple(others))

    def left(self) -> str:
        """All that a process can find: what the cloud and the Service hold."""
        return f"{self.driven.facts} {self.cloud.content()}"

    def point(self, where: str) -> None:
        """Set the load balancer that the user names; "own": none."""
        self.driven.annotate({ID: self.ids.get(where)})

    def places(self) -> dict[str, int]:
        """How many listeners of the Service each load balancer has."""
        result: dict[str, int] = {}
        names = {id_: name for name, id_ in self.ids.items()}
        for listener in self.cloud.octavia.listeners.values():
            (on,) = wire.objects(listener, "loadbalancers")
            if f"mooring:cluster-1:{driver.UID}" in wire.texts(listener["tags"]):
                name = names.get(str(on["id"]), "own")
                result[name] = result.get(name, 0) + 1
        return result

    def held(self, other: driver.Driver) -> str:
        """All that is another Service's."""
        octavia = self.cloud.octavia
        shown: list[object] = [other.floating_ip]
        for listener in octavia.listeners.values():
            if any(other.facts.uid in tag for tag in wire.texts(listener["tags"])):
                pool = octavia.pools[str(listener["default_pool_id"])]
                shown += [listener, pool, octavia.members[str(pool["id"])]]
                shown.append(octavia.monitors[str(pool["healthmonitor_id"])])
        assert len(shown) > 1
        return repr(shown)

    def foreign(self) -> str:
        """All that is not the Service's."""
        octavia = self.cloud.octavia
        shown: list[object] = [self.held(other) for other in self.others]
        for id_ in self.ids.values():
            tags = wire.texts(octavia.load_balancers[id_]["tags"])
            shown.append([tag for tag in tags if not is_own(tag)])
        return repr(shown)

    def assert_served_at(self, where: str) -> None:
        """It is there and nowhere else, with all that it needs; and at rest."""
        driven, octavia = self.driven, self.cloud.octavia
        octavia.finish()  # nobody waits for the end of what goes
        assert self.places() == {where: len(PORTS)}
        assert driven.facts.annotations[ID] == self.ids.get(
            where, driven.balancer["id"]
        )
        assert driven.floating_ip
        shown = [ingress.ip for ingress in driven.facts.ingress]
        assert shown == [driven.floating_ip["floating_ip_address"]]
        assert (keys.OWNED_ID in driven.facts.annotations) == (where == "own")
        count = len(PORTS) + len(self.others)
        assert len(octavia.listeners) == len(octavia.pools) == count
        assert len(octavia.monitors) == len(octavia.members) == count
        own = set(octavia.load_balancers) - set(self.ids.values())
        assert len(own) == (where == "own")
        for name, id_ in self.ids.items():
            tags = wire.texts(octavia.load_balancers[id_]["tags"])
            assert (SHARED_TAG in tags) == (name == where), tags
            assert any(driver.UID in tag for tag in tags) == (name == where), tags
        before = len(self.cloud.writes)
        driven.restart()
        driven.depth = Depth.FULL
        assert driven.one_pass()
        assert self.cloud.writes[before:] == []

    def assert_gone(self) -> None:
        octavia = self.cloud.octavia
        assert self.places() == {}
        assert octavia.load_balancers.keys() == set(self.ids.values())
        for id_ in self.ids.values():
            tags = wire.texts(octavia.load_balancers[id_]["tags"])
            assert not any(map(is_own, tags))
        ips = {str(ip["id"]) for ip in self.cloud.neutron.floating_ips.values()}
        assert ips == set(ADDRESSES.values())


def is_own(tag: str) -> bool:
    return driver.UID in tag or tag == SHARED_TAG


def add_balancer(on: driver.Ground, name: str) -> str:
    """Make a user's load balancer with a floating IP."""
    body: wire.Json = {
        "loadbalancer": {
            "name": name,
            "provider": "amphora",
            "vip_subnet_id": on.subnet_id,
        }
    }
    url = "fake://load-balancer/lbaas/loadbalancers"
    call = wire.call_of("load-balancer", "POST", url, body, {})
    created = wire.part(on.cloud.octavia.answer(call).body or {}, "loadbalancer")
    on.cloud.octavia.finish()
    ip: wire.Json = {
        "id": ADDRESSES[name],
        "floating_ip_address": ADDRESSES[name],
        "floating_network_id": on.external_id,
        "port_id": created["vip_port_id"],
        "description": "of the user",
        "tags": [],
    }
    on.cloud.neutron.floating_ips[ADDRESSES[name]] = ip
    return str(created["id"])


def add_other(scene: Scene, on: str, **fields: object) -> driver.Driver:
    """Put another Service on a load balancer."""
    usual: dict[str, object] = {
        "name": f"on-{on}",
        "uid": f"uid-on-{on}",
        "ports": OTHERS,
        "annotations": {ID: scene.ids[on]},
    }
    nodes = scene.driven.facts.nodes
    facts = driver.service(nodes, **usual | fields)
    other = driver.Driver(scene.driven.ground, facts, MONITORED)
    other.settle()
    return other


def start(where: str = "own") -> Scene:
    on = driver.ground()
    facts = driver.service((on.node(1), on.node(2)), ports=PORTS)
    driven = driver.Driver(on, facts, MONITORED)
    scene = Scene(driven, {name: add_balancer(on, name) for name in ("a", "b")})
    scene.others = (add_other(scene, "a"), add_other(scene, "b"))
    scene.point(where)
    driven.settle()
    return scene


MOVES = [("a", "b"), ("own", "a"), ("a", "own")]
IDS = [f"{before} to {after}" for before, after in MOVES]


def never_early(scene: Scene, before: str) -> Callable[[wire.Call], None]:
    """See that nothing is deleted while clients still go to the old address."""
    old = scene.driven.facts.ingress

    def fault(call: wire.Call) -> None:
        if call.method == "DELETE":
            assert scene.driven.facts.ingress not in (old, ()), (before, call.path)

    return fault


@pytest.mark.parametrize(("before", "after"), MOVES, ids=IDS)
def test_it_is_served_there_before_anything_goes_here(before: str, after: str) -> None:
    """Its status has the new address; nothing of others is touched; all of it goes."""
    scene = start(before)
    scene.assert_served_at(before)
    foreign = scene.foreign()
    scene.cloud.fault = never_early(scene, before)
    scene.point(after)
    scene.driven.settle()
    scene.cloud.fault = session.nothing
    scene.assert_served_at(after)
    assert scene.foreign() == foreign
    scene.driven.settle(gone=True)
    scene.assert_gone()
    assert scene.foreign() == foreign


class Died(BaseException):
    """The process is no more."""


def die(scene: Scene, at: int, *, after: bool) -> bool:
    """Move on until the call of that number; False: there are fewer calls."""
    calls: list[str] = []

    def hook(call: wire.Call) -> None:
        calls.append(call.path)
        if len(calls) == at:
            raise Died

    if after:
        scene.cloud.after = hook
    else:
        scene.cloud.fault = hook
    with contextlib.suppress(Died):
        scene.driven.settle()
    scene.cloud.after, scene.cloud.fault = (lambda call: None), session.nothing
    scene.driven.restart()
    return len(calls) >= at


ENDS = ("goes on", "turns back", "is deleted")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("old", "new"), MOVES, ids=IDS)
def test_death_at_any_call_of_a_move_leaves_nothing_behind(
    old: str, new: str, after: bool
) -> None:
    """Whether it then goes on, the user takes it back, or deletes the Service.

    A process that begins knows what it finds: where two deaths leave the same behind,
    one is followed to the end.
    """
    settled = start(old)
    foreign = settled.foreign()
    left: dict[str, Scene] = {}
    is_more, deaths = True, 0
    while is_more:
        scene = settled.copied()
        assert scene.driven.settle() == []  # the process that dies knows the place
        scene.point(new)
        is_more = die(scene, deaths + 1, after=after)
        deaths += is_more
        left.setdefault(scene.left(), scene)
    assert deaths >= 20
    for (number, scene), end in itertools.product(enumerate(left.values()), ENDS):
        follow(scene.copied(), end, old if end == "turns back" else new)
        assert scene.foreign() == foreign, (end, number)
    print(f"{old:3} to {new:3}: {deaths:3} deaths, {len(left):3} states, all well")
    assert len(left) >= 8


def follow(scene: Scene, end: str, where: str) -> None:
    """Continue with a new process after a crash; all must be well in the end."""
    foreign = scene.foreign()
    if end == "is deleted":
        scene.driven.settle(gone=True)
        scene.assert_gone()
    else:
        scene.point(where)
        scene.driven.settle()
        scene.assert_served_at(where)
    assert scene.foreign() == foreign, end


def test_its_own_stays_for_those_that_share_it() -> None:
    """Only its listeners and tags go; the others keep address and load balancer."""
    scene = start("own")
    own = str(scene.driven.balancer["id"])
    scene.ids["owned"] = own
    guest = add_other(scene, "owned", name="guest", uid="uid-guest")
    kept = scene.held(guest)
    scene.point("a")
    scene.driven.settle()
    assert scene.places() == {"a": len(PORTS)}
    assert scene.held(guest) == kept
    assert guest.settle() == []
    guest.settle(gone=True)  # the last to leave what was made for a Service
    assert own not in scene.cloud.octavia.load_balancers


def test_a_namesake_of_another_cluster_keeps_its_listeners_and_tag() -> None:
    """Both have default/web on one load balancer: the reference's tag is the same."""
    scene = start("a")
    namesake = add_other(
        scene,
        "a",
        cluster=Cluster("cluster-2", "kubernetes"),
        name="web",
        uid="uid-namesake",
        ports=(Port(8080, node_port=30088),),
    )
    kept = scene.held(namesake)
    scene.point("b")
    scene.driven.settle()
    assert scene.places() == {"b": len(PORTS)}
    assert scene.held(namesake) == kept
    tags = wire.texts(namesake.balancer["tags"])
    assert SHARED_TAG in tags
    assert "mooring-user:cluster-2:uid-namesake" in tags
    assert not any(driver.UID in tag for tag in tags)
    assert namesake.settle() == []


def test_a_floating_ip_that_is_kept_is_let_go_and_comes_back() -> None:
    """keep-floatingip: its address outlives the move, and is the first choice again."""
    scene = start("own")
    scene.driven.annotate({keys.KEEP_FLOATING_IP: "true"})
    address = scene.driven.facts.ingress[0].ip
    scene.point("a")
    scene.driven.settle()
    assert scene.places() == {"a": len(PORTS)}
    scene.point("own")
    scene.driven.settle()
    assert scene.driven.facts.ingress[0].ip == address


REFUSED: dict[str, tuple[ProblemReason, Callable[[Scene], object]]] = {
    "a port is taken": (
        Reason.PORT_CONFLICT,
        lambda scene: add_other(scene, "b", name="x", uid="x", ports=PORTS[:1]),
    ),
    "too many": (
        OctaviaReason.SHARED_LIMIT,
        lambda scene: scene.cloud.octavia.load_balancers[scene.ids["b"]].update(
            tags=["kube_service_1", "kube_service_2", "kube_service_3"]
        ),
    ),
    "in error": (
        Reason.IN_ERROR,
        lambda scene: scene.cloud.octavia.load_balancers[scene.ids["b"]].update(
            provisioning_status="ERROR"
        ),
    ),
    "no address": (
        OctaviaReason.NO_FLOATING_NETWORK,
        lambda scene: scene.cloud.neutron.floating_ips.pop(ADDRESSES["b"]),
    ),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("before", ["own", "a"])
def test_where_it_can_not_be_served_nothing_goes_here(before: str, why: str) -> None:
    """It is said, with the load balancer that still serves; then it moves after all."""
    reason, spoil = REFUSED[why]
    scene = start(before)
    scene.others = ()
    old, shown = str(scene.driven.balancer["id"]), scene.driven.facts.ingress
    spoil(scene)
    scene.point("b")
    with contextlib.suppress(driver.NotSettledError):
        scene.driven.settle(passes=10)
    assert scene.places()[before] == len(PORTS)
    assert scene.driven.facts.ingress == shown
    messages = {problem.reason: problem.message for problem in scene.driven.problems}
    assert set(messages) == {reason, CommonReason.CLEANUP_INCOMPLETE}
    assert old in messages[CommonReason.CLEANUP_INCOMPLETE]
    scene.point("own")
    scene.driven.settle()
    assert scene.places() == {"own": len(PORTS)}
    assert list(scene.driven.problems) == []


def test_one_that_is_not_there_is_no_reason_to_leave_its_own() -> None:
    """As in a manifest that is older than the load balancer."""
    scene = start("own")
    was = scene.driven.balancer["id"]
    scene.driven.annotate({ID: driver.UID})
    assert scene.driven.settle() == []
    assert [problem.reason for problem in scene.driven.problems] == [Reason.NOT_OWNED]
    assert scene.driven.facts.annotations[ID] == was


@pytest.mark.parametrize("gone", [False, True], ids=["moved", "deleted"])
def test_what_octavia_does_not_let_go_is_named_until_it_can_be_taken(
    gone: bool,
) -> None:
    """A user's load balancer in ERROR takes no changes: the listeners are listed."""
    scene = start("a")
    scene.point("a" if gone else "b")
    former = scene.cloud.octavia.load_balancers[scene.ids["a"]]
    former["provisioning_status"] = "ERROR"
    for _ in range(30):
        scene.driven.one_pass(gone=gone)
    (left,) = (
        problem
        for problem in scene.driven.problems
        if problem.reason is CommonReason.CLEANUP_INCOMPLETE
    )
    assert scene.ids["a"] in left.message
    for shown in ("(TCP 80)", "(UDP 53)", "tags"):
        assert shown in left.message
    assert scene.places().get("b", 0) == (0 if gone else len(PORTS))
    assert scene.driven.one_pass(gone=gone) is not gone  # a deletion is not done yet
    former["provisioning_status"] = "ACTIVE"
    scene.driven.settle(gone=gone)
    assert list(scene.driven.problems) == []
    assert scene.places() == ({} if gone else {"b": len(PORTS)})


def test_its_own_in_error_is_taken_down_whole() -> None:
    """Its listeners can't be deleted one by one, and need not be."""
    scene = start("own")
    scene.driven.balancer["provisioning_status"] = "ERROR"
    scene.point("a")
    scene.driven.settle()
    scene.assert_served_at("a")
