"""Services wait for places in the cloud: in order, and without calls."""

import contextlib
import dataclasses
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.support import places

MakeProcess = Any


@pytest.fixture()
def slow(ground: Any) -> Any:
    """Return a cluster whose cloud takes 20 s for each write."""
    ground.cloud.busy_s = 20.0
    ground.cloud.places = places.AdaptivePlaces(lambda: ground.now_s)
    return ground


def names(ground: Any) -> list[str]:
    """Return the names of the load balancers, in the order of their creation."""
    return [balancer.name for balancer in ground.cloud.load_balancers.values()]


def advance(process: Any, seconds: float) -> None:
    """Work for some seconds."""
    for _ in range(int(seconds * 2)):
        process.turn()
        process.services.relist()
        process.ground.now_s += 0.5


def test_ten_services_are_not_written_at_the_same_time(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    for number in range(10):
        slow.service(f"web-{number}", 80)
    advance(process, 1)
    assert len(names(slow)) == 1
    process.settle()
    assert len(names(slow)) == 10
    assert all(len_ for _, len_ in slow.state()["services"].values())


def test_a_service_that_waits_costs_no_call(
    slow: Any, make_process: MakeProcess
) -> None:
    alone = make_process(slow)
    slow.service("first", 80)
    advance(alone, 1)
    slow.cloud.places.overloaded(0.5, retry_after_s=40)
    for number in range(10):
        slow.service(f"web-{number}", 80)
    advance(alone, 2)
    before = len(slow.cloud.calls)
    reads = slow.cloud.calls.count("observe")
    advance(alone, 15)
    later = slow.cloud.calls[before:]
    assert set(later) == {"read gates"}
    assert slow.cloud.calls.count("observe") == reads


def test_a_deletion_and_a_change_are_not_behind_many_creations(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    slow.service("old", 80)
    slow.service("changed", 80)
    process.settle()
    for number in range(100):
        slow.service(f"web-{number}", 80)
    advance(process, 3)
    slow.delete("old")
    slow.service("changed", 80, 443)
    process.services.relist()
    began = slow.now_s
    while "default/old" in names(slow):
        advance(process, 1)
        assert slow.now_s < began + 60
    assert len(names(slow)) < 80


def test_a_service_that_is_deleted_while_it_waits_is_never_created(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    slow.service("first", 80)
    slow.service("second", 80)
    advance(process, 1)
    assert len(names(slow)) == 1
    waiting = "second" if "first" in names(slow)[0] else "first"
    slow.delete(waiting)
    process.settle()
    assert len(names(slow)) == 1
    assert slow.cloud.places.standing().waiting == 0
    assert slow.cloud.places.standing().held == 0


def test_a_service_that_waited_long_is_read_again_before_it_is_created(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    slow.cloud.places.overloaded(0.5, retry_after_s=100)
    slow.service("web", 80)
    advance(process, 1)
    reads = len(slow.cloud.calls)
    advance(process, 105)
    assert len(slow.cloud.calls) > reads
    process.settle()
    assert names(slow) == ["default/web"]


def test_a_change_that_waited_is_planned_again_when_its_load_balancer_is_gone(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    slow.service("web", 80)
    process.settle()
    slow.cloud.places.overloaded(0.5, retry_after_s=20)
    slow.service("web", 80, 443)
    process.services.relist()
    advance(process, 5)
    slow.cloud.load_balancers.clear()
    process.settle()
    (balancer,) = slow.cloud.load_balancers.values()
    assert {port for _, port, _ in balancer.request.sockets} == {80, 443}


def test_a_service_that_waits_for_two_minutes_has_one_event_about_it(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    slow.cloud.places.overloaded(0.5, retry_after_s=200)
    slow.service("web", 80)
    advance(process, 110)
    process.say()
    assert not any("WaitingForCloud" in event for event in slow.events())
    advance(process, 80)
    process.say()
    assert sum("Normal WaitingForCloud" in event for event in slow.events()) == 1


def test_no_place_is_kept_when_all_is_done(
    slow: Any, make_process: MakeProcess
) -> None:
    process = make_process(slow)
    for number in range(5):
        slow.service(f"web-{number}", 80)
    process.settle()
    for number in range(5):
        slow.delete(f"web-{number}")
    process.settle()
    standing = slow.cloud.places.standing()
    assert (standing.held, standing.waiting) == (0, 0)
    assert names(slow) == []


def test_a_crash_anywhere_creates_no_load_balancer_twice(
    make_ground: Any, make_process: MakeProcess, death: type[BaseException]
) -> None:
    for die_at in range(0, 80, 3):
        ground = make_ground()
        ground.cloud.places = places.AdaptivePlaces(lambda: 0.0)
        ground.cloud.busy_s = 5.0
        for number in range(3):
            ground.service(f"web-{number}", 80)
        ground.die_at = die_at
        with contextlib.suppress(death):
            make_process(ground).settle()
        ground.die_at = None
        ground.cloud.places = None
        make_process(ground).settle()
        assert sorted(names(ground)) == [f"default/web-{number}" for number in range(3)]


def test_a_hundred_services_and_a_minute_of_silence(
    slow: Any, make_process: MakeProcess
) -> None:
    """No write is sent twice, and the limit recovers within a minute."""
    silent_from = slow.now_s + 30

    def answer(operation: str) -> None:
        if silent_from <= slow.now_s < silent_from + 60:
            slow.cloud.places.overloaded(30.0)
            raise errors.Unavailable("no answer", operation=operation)
        slow.cloud.places.measured(operation.split()[0], 0.5)

    slow.cloud.before_call = answer
    slow.cloud.after_call = lambda operation: None
    slow.cloud.busy_s = 40.0
    process = make_process(slow)
    for number in range(100):
        slow.service(f"web-{number}", 80)
    advance(process, 30)
    before = slow.cloud.places.standing().limit
    advance(process, 60)
    during = slow.cloud.places.standing().limit
    advance(process, 60)
    after = slow.cloud.places.standing().limit
    print(f"limit before, at the end, a minute later: {before}, {during}, {after}")
    assert during <= before / 2
    assert after >= 0.75 * min(before, 64)  # more than 64 are not in progress then
    process.settle(60)
    assert len(names(slow)) == len(set(names(slow))) == 100


@pytest.mark.parametrize(
    ("servers", "count", "takes_s", "first_s", "last_s"),
    [
        pytest.param(1, 10, 30.0, 65.0, 330.0, id="one server that is shared"),
        pytest.param(2, 10, 30.0, 65.0, 165.0, id="two servers that are shared"),
        pytest.param(50, 10, 30.0, 35.0, 35.0, id="a large cloud"),
        pytest.param(50, 100, 30.0, 62.0, 75.0, id="a large cloud, many Services"),
        pytest.param(1, 10, 1.0, 4.0, 11.0, id="one quick server that is shared"),
        pytest.param(50, 100, 0.3, 3.0, 5.0, id="a quick and large cloud"),
    ],
)
def test_addresses_come_as_soon_as_the_cloud_allows(
    slow: Any,
    make_process: MakeProcess,
    servers: int,
    count: int,
    takes_s: float,
    first_s: float,
    last_s: float,
) -> None:
    """With all of them at the same time the first would come as late as the last."""
    shared = Shared(slow, servers, takes_s)
    process = make_process(slow)
    began = slow.now_s
    for number in range(count):
        slow.service(f"web-{number}", 80)
    process.services.relist()
    addresses: list[float] = []
    while len(addresses) < count:
        shared.advance(process)
        served = sum(bool(n) for _, n in slow.state()["services"].values())
        addresses += [slow.now_s - began] * (served - len(addresses))
        assert slow.now_s < began + 2 * last_s + 60
    mean_s = sum(addresses) / count
    print(f"first {addresses[0]:.1f}, mean {mean_s:.1f}, last {addresses[-1]:.1f} s")
    assert addresses[0] <= first_s
    assert addresses[-1] <= last_s


@dataclasses.dataclass
class Shared:
    """Servers of the cloud that all load balancers in progress share evenly."""

    ground: Any
    servers: int
    takes_s: float

    def __post_init__(self) -> None:
        self.ground.cloud.busy_s = self.takes_s
        self.ground.cloud.before_call = lambda operation: None
        self.ground.cloud.after_call = lambda operation: self._measure(0.6)

    def _busy(self) -> list[Any]:
        balancers = self.ground.cloud.load_balancers.values()
        return [each for each in balancers if each.busy_until > self.ground.now_s]

    def _measure(self, seconds: float) -> None:
        if self.ground.cloud.places is not None:
            slowness = max(1.0, (len(self._busy()) + 1) / self.servers)
            kind = "read" if seconds < 0.5 else "write"
            self.ground.cloud.places.measured(kind, seconds * slowness)

    def advance(self, process: Any) -> None:
        """Work for a fifth of a second."""
        busy = self._busy()
        speed = min(1.0, self.servers / max(1, len(busy)))
        for each in busy:
            each.busy_until += 0.2 * (1 - speed)
        self._measure(0.1)
        if process.turn():
            process.services.relist()
        self.ground.now_s += 0.2
