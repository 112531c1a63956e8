"""The flow converges on the fakes, from any state and with a crash at every call."""

import collections
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lib.balancers import model
from lib.cloud import errors
from lib.cloud.fake import load_balancers as fake_cloud
from lib.cloud.load_balancers import Node
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.fake import calls
from lib.reconcile import failure

LIVES_MAX = 20

OTHER = {fake_cloud.ALGORITHM_ANNOTATION: "least-busy"}


def first(ground: Any) -> None:
    """Services that want one, that want none, and one that can't have any."""
    ground.service("new", 80, 443)
    ground.service("small", 80)
    ground.service("inside", 80, type="ClusterIP")
    ground.service("wrong", 80, annotations={fake_cloud.ALGORITHM_ANNOTATION: "best"})
    ground.service("careless", 80)
    ground.service("leaves", 80)
    ground.service("turns", 80)


def second(ground: Any) -> None:
    """What users do to them afterwards."""
    ground.service("new", 80, annotations=OTHER)
    ground.service("small", 80, 8080)
    ground.service("careless", 80, annotations={fake_cloud.ID_ANNOTATION: None})
    ground.service("turns", 80, type="ClusterIP")
    ground.delete("leaves")
    ground.nodes = (*ground.nodes, Node("node-3"))


def live(
    ground: Any, make_process: Callable[[Any], Any], death: Any, quiet_s: float
) -> None:
    """Run processes, each until it crashes, until one settles."""
    for _ in range(LIVES_MAX):
        try:
            make_process(ground).settle(quiet_s)
        except death:
            continue
        return
    raise AssertionError("the flow does not settle")


@pytest.fixture(scope="module")
def story(make_ground: Any, make_process: Any, death: Any) -> Callable[..., Any]:
    """Return both parts of the scenario; each may be killed at a call."""

    def tell(
        die_at: int | None = None,
        arrange: Callable[[Any], None] = lambda ground: None,
        quiet_s: float = 30.0,
    ) -> Any:
        ground = make_ground()
        first(ground)
        arrange(ground)
        ground.die_at = die_at
        live(ground, make_process, death, quiet_s)
        second(ground)
        live(ground, make_process, death, quiet_s)
        return ground

    return tell


@pytest.fixture(scope="module")
def undisturbed(story: Callable[..., Any]) -> Any:
    return story()


def test_every_service_ends_as_it_should(undisturbed: Any) -> None:
    state = undisturbed.state()
    kept = [model.FINALIZER]
    assert state["services"] == {
        "new": (kept, 1),
        "small": (kept, 1),
        "careless": (kept, 1),
        "inside": (None, 0),
        "wrong": (None, 0),
        "turns": ([], 0),
    }
    names = [name for name, _ in state["cloud"]]
    assert names == ["default/careless", "default/new", "default/small"]
    requests = {
        balancer.name: balancer.request
        for balancer in undisturbed.cloud.load_balancers.values()
    }
    everybody = frozenset({"node-1", "node-2", "node-3"})
    assert requests["default/new"] == fake_cloud.Request(
        frozenset({("TCP", 80, 30080)}), everybody, "least-busy"
    )
    assert requests["default/small"].members == everybody


def test_a_settled_cluster_costs_one_read_and_no_write(
    undisturbed: Any, make_process: Any
) -> None:
    """Also right after a start."""
    before = len(undisturbed.api.calls), len(undisturbed.cloud.calls)
    make_process(undisturbed).settle()
    assert not [c for c in undisturbed.api.calls[before[0] :] if c.is_write]
    assert undisturbed.cloud.calls[before[1] :] == ["list load balancers (CHANGED)"]


def deaths(story: Callable[..., Any]) -> Iterator[tuple[int, Any]]:
    at = 0
    while (ground := story(at)).died_in:
        yield at, ground
        at += 1


def test_death_at_every_call_ends_the_same(
    undisturbed: Any, story: Callable[..., Any]
) -> None:
    """Prints the action at each crash, and how often; each must appear."""
    desired = undisturbed.state()
    table = collections.Counter[str]()
    for at, ground in deaths(story):
        assert ground.state() == desired, f"death {at}, in {ground.died_in}"
        table[ground.died_in] += 1
    for name, count in sorted(table.items()):
        print(f"{name:22} died {count:3} times, converged {count:3}")
    within = {
        "RecordEvent",
        "TellProblems",
        "Settle",
        "StartBackoff",
        "Await",
    }  # no call
    writing = {kind.__name__ for kind in model.Action.__args__} - within
    assert set(table) == {"reading", *writing}


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize(
    "error",
    [
        kube_errors.Conflict("changed", operation="PATCH"),
        kube_errors.Unavailable("time-out", operation="PATCH"),
    ],
    ids=["conflict", "time-out"],
)
def test_every_write_of_a_service_may_fail(
    undisturbed: Any,
    story: Callable[..., Any],
    error: kube_errors.KubeError,
    lost: bool,
) -> None:
    """Each kind of write on each Service, three times over."""

    def arrange(ground: Any) -> None:
        ground.api.faults += [
            calls.Fault(error, "patch", "services", name, after=lost)
            for name in ground.state()["services"]
            for _ in range(3)
        ]

    assert story(arrange=arrange).state() == undisturbed.state()


@pytest.mark.parametrize("where", ["faults", "lost"])
@pytest.mark.parametrize(
    "error",
    [
        errors.Unavailable("503", operation="step"),
        errors.Busy("409", operation="step"),
        errors.QuotaExceeded("full", operation="step"),
        errors.Forbidden("403", operation="step"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_cloud_call_may_fail(
    undisturbed: Any, story: Callable[..., Any], error: errors.CloudError, where: str
) -> None:
    """Each third of them, reads and writes, before and after it was carried out."""

    def arrange(ground: Any) -> None:
        setattr(ground.cloud, where, [None, None, error] * 6)

    ended = story(arrange=arrange, quiet_s=2 * failure.SLOW_S)
    assert ended.state() == undisturbed.state()


def test_two_processes_at_once_make_one_of_each(ground: Any, make_process: Any) -> None:
    """They do not know of one another, and take turns."""
    first(ground)
    both = [make_process(ground), make_process(ground)]
    for _ in range(60):
        for process in both:
            process.services.relist()
            process.turn()
        ground.now_s += 0.5
    names = sorted(balancer.name for balancer in ground.cloud.load_balancers.values())
    desired = ["careless", "leaves", "new", "small", "turns"]
    assert names == [f"default/{name}" for name in desired]


def test_one_that_does_not_start_is_made_again_later_and_later(
    ground: Any, make_process: Any
) -> None:
    ground.cloud.fails_to_start = 3
    ground.service("web", 80)
    took_s = make_process(ground).settle(quiet_s=120)
    created = [call for call in ground.cloud.calls if call.startswith("create")]
    assert len([call for call in created if "address" not in call]) == 4
    assert took_s > 10 + 20  # the second and the third try waited
    assert ground.state()["services"]["web"][1] == 1


def test_a_service_of_another_class_keeps_its_finalizer_until_it_is_deleted(
    ground: Any, make_process: Any
) -> None:
    """Nothing of ours exists for it; the finalizer may be the other controller's."""
    ground.service("theirs", 80)
    other = ground.get("theirs")
    other["spec"]["loadBalancerClass"] = "example.com/other"
    other["metadata"]["finalizers"] = [model.FINALIZER]
    ground.api.put(resources.SERVICES, other)
    make_process(ground).settle()
    assert ground.state()["services"]["theirs"] == ([model.FINALIZER], 0)
    ground.delete("theirs")
    make_process(ground).settle()
    assert "theirs" not in ground.state()["services"]
    assert {call.split()[0] for call in ground.cloud.calls} == {"list"}
