"""The flow converges on the fakes, from any state and with a crash at every call."""

import collections
import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lib.cloud import errors
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.machines import model
from lib.reconcile import failure

LIVES_MAX = 20
HALF = ("clone", "tag", "resize", "attach", "start")
"""The steps of a creation. Source: capz-controller-manager of Deckhouse."""


def first(ground: Any) -> None:
    """Machines that are complete, and one without bootstrap data."""
    ground.machine("plain")
    ground.machine("leaves")
    ground.machine("early", secret=None)


def second(ground: Any) -> None:
    """What users and the core do to them afterwards."""
    ground.machine("early")
    ground.delete("leaves")


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


def test_every_machine_ends_as_it_should(undisturbed: Any) -> None:
    state = undisturbed.state()
    for name in ("plain", "early"):
        machine = state["machines"][name]
        assert machine["finalizers"] == [undisturbed.kinds.finalizer]
        assert (machine["provisioned"], machine["ready"]) == (True, True)
        assert (machine["has ID"], machine["addresses"]) == (True, 3)
        assert machine["zone"] == "zone-a"
        assert machine["conditions"]["Ready"] == ("True", "VMRunning")
    assert set(state["machines"]) == {"plain", "early"}
    assert state["cloud"] == [
        (name, "up", 20, (True,), ("cluster-1",)) for name in ("early", "plain")
    ]


def test_a_settled_cluster_costs_one_read_and_no_write(
    undisturbed: Any, make_process: Any
) -> None:
    """Also right after a start; then an idle process costs nothing."""
    before = len(undisturbed.api.calls), len(undisturbed.cloud.calls)
    process = make_process(undisturbed)
    process.settle()
    assert not [c for c in undisturbed.api.calls[before[0] :] if c.is_write]
    assert undisturbed.cloud.calls[before[1] :] == ["list machines"]
    process.drift()
    process.settle()
    assert undisturbed.cloud.calls[before[1] :] == ["list machines"] * 2
    assert not [c for c in undisturbed.api.calls[before[0] :] if c.is_write]


def deaths(story: Callable[..., Any]) -> Iterator[Any]:
    at = 0
    while (ground := story(at)).died_in:
        yield ground
        at += 1


def test_death_at_every_call_ends_the_same(
    undisturbed: Any, story: Callable[..., Any]
) -> None:
    """Prints the action at each crash and its result; each must appear."""
    desired = undisturbed.state()
    table: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for ground in deaths(story):
        result = "converged" if ground.state() == desired else "differs"
        table[ground.died_in][result] += 1
    for name, results in sorted(table.items()):
        print(f"{name:24} killed {results.total():3} times: {dict(results)}")
    notes = {"RecordEvent", "TellProblems", "SettleMachine", "StartBackoff", "Await"}
    # A released machine has a test of its own, see flow_test.py.
    writing = {kind.__name__ for kind in model.Action.__args__} - notes
    assert set(table) == {"reading", *writing} - {"AnnotateMachine"}
    assert not any(results["differs"] for results in table.values())


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.parametrize(
    "error",
    [
        kube_errors.Conflict("changed", operation="PATCH"),
        kube_errors.Unavailable("time-out", operation="PATCH"),
    ],
    ids=["conflict", "time-out"],
)
def test_every_write_of_a_machine_may_fail(
    undisturbed: Any,
    story: Callable[..., Any],
    error: kube_errors.KubeError,
    lost: bool,
) -> None:
    def arrange(ground: Any) -> None:
        ground.api.faults += [
            calls.Fault(error, "patch", "fakemachines", name, after=lost)
            for name in ("plain", "early", "leaves")
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


def test_each_step_may_be_lost_locked_or_half_done(
    ground: Any, make_ground: Any, make_process: Any
) -> None:
    """The five steps of a creation, each in the three ways in which it goes wrong."""
    ground.machine("plain")
    make_process(ground).settle()
    desired = copy.deepcopy(ground.state())
    ways = {
        "lost": errors.Unavailable("no response", operation="step"),
        "locked": errors.Busy("locked", operation="step"),
        "half done": None,
    }
    for step in HALF:
        for way, error in ways.items():
            disturbed = make_ground()
            disturbed.machine("plain")
            _disturb(disturbed, step, way, error)
            took_s = make_process(disturbed).settle(quiet_s=150)
            creations = [c for c in disturbed.cloud.calls if c.startswith("create")]
            print(f"{step:7} {way:9} {took_s:6.1f} s {len(creations)} creations")
            assert disturbed.state() == desired, (step, way)


def _disturb(ground: Any, step: str, way: str, error: errors.CloudError | None) -> None:
    if error is None:
        ground.cloud.half.append(step)
        return
    number = HALF.index(step)
    if way == "lost":
        ground.cloud.lost = [*[None] * number, error]
        return
    texts = ("there is none", "tag", "GiB", "NIC", "is down")
    matching, pending = texts[number], [error]

    def before(operation: str) -> None:
        if matching in operation and pending:
            raise pending.pop()

    ground.cloud.before_call = before


def test_two_processes_at_once_create_one_of_each(
    ground: Any, make_process: Any
) -> None:
    """They do not know of one another, and take turns."""
    ground.machine("plain")
    ground.machine("other")
    both = [make_process(ground), make_process(ground)]
    for _ in range(120):
        for process in both:
            process.relist()
            process.turn()
        ground.now_s += 0.5
    names = sorted(vm.name for vm in ground.cloud.vms.values())
    assert names == ["other", "plain"]
