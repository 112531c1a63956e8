"""The flow of Services on DVP: VMs that the parent refuses to label stop no other."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lib.cloud.dvp import kinds
from lib.cloud.dvp.load_balancers import parent_reader
from lib.cloud.dvp.load_balancers.cloud import DvpLoadBalancers
from lib.cloud.load_balancers import Cluster, Depth, Node, Ref, Target
from lib.cloud.steps import Asked
from lib.kube import errors
from lib.kube.fake import calls
from lib.reconcile.failure import SLOW_S
from tests.contract.dvp_balancers import FakeParent
from tests.lib.balancers import conftest as cluster
from tests.lib.cloud.dvp.machines.stage import ListedParent

VMS = kinds.VIRTUAL_MACHINES.resource
DENIED = errors.Forbidden(
    'admission webhook "vm.virtualization-controller.validate.d8-virtualization" denied'
    " the request: the sizing policy of the class does not allow 3 cores",
    operation="PATCH",
    status=403,
)
UUID = "cluster-1"


@dataclasses.dataclass
class Scene:
    """A Service of many Nodes, and its parent."""

    count: int
    denied: set[str] = dataclasses.field(default_factory=set)
    error: errors.KubeError = DENIED

    def __post_init__(self) -> None:
        self.ground: Any = cluster.Ground()
        self.ground.nodes = tuple(
            Node(f"node-{number}") for number in range(1, self.count + 1)
        )
        self.parent = FakeParent()
        for node in self.ground.nodes:
            self.parent.add_vm(node.name, cluster=UUID)
        self.parent.before_call = self._admit
        self.start()

    def start(self) -> None:
        """Begin a new life of the daemon."""
        self.access = ListedParent(self.parent, UUID, lambda: self.ground.now_s)
        self.ground.cloud = DvpLoadBalancers(self.access)
        self.ground.cloud._reader._clock = lambda: self.ground.now_s
        self.process = cluster.Process(self.ground)

    def _admit(self, call: calls.Call) -> None:
        """Refuse writes of VMs as the validators of the parent do."""
        if call.verb == "patch" and call.name in self.denied:
            raise self.error

    def run(self, seconds: float) -> None:
        for _ in range(int(2 * seconds)):
            self.access.relist()
            self.process.services.relist()
            self.process.turn()
            self.ground.now_s += 0.5

    @property
    def labelled(self) -> list[str]:
        uid = self.ground.get("web")["metadata"]["uid"]
        return self.parent.labelled(uid)

    def events(self) -> list[str]:
        """Return the Events of refused writes; more than 25 at once are not sent."""
        if len(self.denied) > 20:
            return []
        self.process.say()
        return [event for event in self.ground.events() if "denied" in event]

    def patches(self) -> int:
        return sum(call.verb == "patch" for call in self.parent.calls)


@pytest.mark.parametrize(
    ("count", "denied"),
    [(5, (1,)), (5, (3,)), (20, (20,)), (60, range(1, 31)), (5, range(1, 6))],
    ids=[
        "the first of 5",
        "the third of 5",
        "the last of 20",
        "30 of 60, more than one reconciliation writes",
        "all of 5",
    ],
)
def test_vms_that_the_parent_refuses_to_label_stop_no_other(
    count: int, denied: Any
) -> None:
    """All others receive traffic within seconds; the refused are reported."""
    names = {f"node-{number}" for number in denied}
    scene = Scene(count, names)
    scene.ground.service("web", 80)
    scene.run(5)
    expected = {node.name for node in scene.ground.nodes} - names
    print(f"labelled after 5 s: {len(scene.labelled)} of {count}")
    assert set(scene.labelled) == expected
    service = scene.ground.get("web")
    assert service["status"]["loadBalancer"]["ingress"]
    scene.run(1800)
    print(f"{scene.patches()} patches in 30 minutes")
    assert set(scene.labelled) == expected
    assert scene.patches() <= count + 14 * len(names)
    events = scene.events()
    assert len({event for event in events if "sizing policy" in event}) == len(events)
    if events:
        assert all(any(name in event for event in events) for name in names)
    scene.denied.clear()
    scene.run(600)
    assert len(scene.labelled) == count


def failed(kind: type[errors.KubeError], status: int, text: str) -> errors.KubeError:
    return kind(text, operation="PATCH", status=status)


WEBHOOK = (
    'Internal error occurred: failed calling webhook "vm.virtualization-controller'
    '.validate.d8-virtualization": connect: connection refused'
)
REFUSALS = {
    "invalid": failed(errors.Invalid, 422, "spec.cpu.cores: Invalid value: 3"),
    "no right": failed(
        errors.Forbidden,
        403,
        'virtualmachines "node-3" is forbidden: User "u" cannot patch resource',
    ),
    "another policy": failed(
        errors.Forbidden, 403, 'admission webhook "guard" denied the request: frozen'
    ),
    "conflict": failed(errors.Conflict, 409, "the object has been modified"),
    "gone": errors.NotFound(
        'virtualmachines "node-3" not found',
        operation="PATCH",
        status=404,
        about="virtualmachines/node-3",
    ),
    "a webhook that does not answer": failed(errors.KubeError, 500, WEBHOOK),
    "no answer in time": failed(errors.Unavailable, 0, "no answer in time"),
    "too many requests": failed(errors.Unavailable, 429, "too many requests"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_whatever_the_refusal_of_one_label_is_the_others_are_served(
    refusal: str,
) -> None:
    """And the deletion of the Service ends, whether the label is left or not."""
    scene = Scene(5, {"node-3"}, REFUSALS[refusal])
    scene.ground.service("web", 80)
    scene.run(120)
    print(f"labelled after 120 s: {scene.labelled}, {scene.patches()} patches")
    assert set(scene.labelled) == {"node-1", "node-2", "node-4", "node-5"}
    assert scene.ground.get("web")["status"]["loadBalancer"]["ingress"]
    scene.run(600)
    print(f"{scene.patches()} patches in 12 minutes")
    assert scene.patches() <= 40
    scene.denied.clear()
    scene.run(600)
    assert len(scene.labelled) == 5
    scene.denied = {"node-3"}
    scene.ground.delete("web")
    scene.run(900)
    print(f"left: {scene.ground.get('web')}")
    assert scene.ground.get("web") is None


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same process", "new"])
@pytest.mark.parametrize("denied", [1, 30], ids=["one VM", "30 VMs"])
def test_a_label_that_is_left_over_does_not_hold_a_deleted_service(
    denied: int, *, is_restarted: bool
) -> None:
    scene = Scene(max(5, denied))
    scene.ground.service("web", 80)
    scene.run(30)
    assert len(scene.labelled) == scene.count
    scene.denied = {f"node-{number}" for number in range(1, denied + 1)}
    uid = scene.ground.get("web")["metadata"]["uid"]
    if is_restarted:
        scene.start()
    scene.ground.delete("web")
    # The label is tried three times, a minute apart: the parent refuses it for good.
    scene.run(5 * SLOW_S)
    left = scene.parent.labelled(uid)
    print(f"left after {5 * SLOW_S:g} s: {scene.ground.get('web')}, labels of {left}")
    assert scene.ground.get("web") is None
    assert scene.parent.all(kinds.SERVICES.resource) == ()
    assert set(left) == scene.denied
    if denied == 1:
        assert "node-1" in scene.events()[0]


class SilentParent(ListedParent):
    """A parent whose watches do not show our own writes any more."""

    def __init__(self, api: FakeParent) -> None:
        self.now_s = 100.0
        super().__init__(api, UUID, lambda: self.now_s)

    def wait(
        self,
        kind: kinds.ParentKind[Any],
        name: str,
        is_done: Callable[[Any], bool],
        timeout_s: float,
    ) -> Any:
        del kind, name, is_done
        self.now_s += timeout_s
        return None


@pytest.mark.parametrize("serves_checked", [False, True], ids=["plain", "both kinds"])
@pytest.mark.parametrize("number", [1, 8, 100])
def test_a_silent_watch_costs_one_wait_for_any_number_of_services(
    number: int, *, serves_checked: bool
) -> None:
    """One observation, and one question for gates, have one deadline each."""
    access = SilentParent(FakeParent(serves_checked=serves_checked))
    cloud = DvpLoadBalancers(access)
    cloud._reader._clock = lambda: access.now_s
    targets = [
        Target(Ref(Cluster(UUID, ""), "default", f"web-{index}", f"uid-{index}"), None)
        for index in range(number)
    ]
    cloud.observe(targets, Depth.TREE)
    took_s = access.now_s - 100.0
    cloud.gates({Asked(f"a{index}", 0.0) for index in range(number)})
    print(
        f"{number} Services: {took_s:.1f} s, gates {access.now_s - took_s - 100:.1f} s"
    )
    assert took_s <= parent_reader.CATCH_UP_S
    assert access.now_s - 100.0 <= 2 * parent_reader.CATCH_UP_S
