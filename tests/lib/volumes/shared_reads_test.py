"""Callers that wait share one read, wake early, and stop when nobody waits any more."""

import concurrent.futures
import threading
import time
from collections.abc import Collection

import pytest

from lib.cloud import errors
from lib.cloud.fake import clock
from lib.cloud.fake import volumes as fake
from lib.cloud.model import Unknown
from lib.cloud.volumes import (
    ById,
    ByName,
    Found,
    Ref,
    Volume,
    VolumeId,
    VolumePhase,
    VolumesReading,
)
from lib.volumes import cache, callers, shared_reads
from lib.volumes.csi_codes import Code, RefusedCall


def _volume(number: int) -> Volume:
    return Volume(VolumeId(f"id-{number}"), f"name-{number}", 1, VolumePhase.AVAILABLE)


class Gated(fake.FakeVolumes):
    """A cloud whose reads wait until they are let go, and are counted."""

    def __init__(self) -> None:
        super().__init__(time.monotonic)
        self.put(*(_volume(number) for number in range(100)))
        self.began = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.sizes: list[int] = []
        self.allowed: list[float] = []
        self.bugs = 0

    def observe(
        self, refs: Collection[Ref], within_s: float | None = None
    ) -> VolumesReading:
        self.sizes.append(len(refs))
        self.allowed.append(within_s or 0.0)
        self.began.release()
        assert self.go.acquire(timeout=10)
        if self.bugs:
            self.bugs -= 1
            raise RuntimeError("a bug")
        return super().observe(refs, within_s)


class Reads:
    """A reader over a gated cloud, and callers of it in threads."""

    def __init__(self) -> None:
        self.cloud = Gated()
        self.effects = callers.CallEffects()
        known = cache.Cache(lambda: self.cloud, self.effects)
        self.reader = shared_reads.VolumesReader(
            lambda: self.cloud, known, self.effects
        )
        self.pool = concurrent.futures.ThreadPoolExecutor(128)

    def ask(
        self, ref: Ref, due_s: float = 0.0, patience_s: float = 10.0
    ) -> tuple[callers.Caller, "concurrent.futures.Future[tuple[Found, ...]]"]:
        now = time.monotonic()
        call = callers.Caller(now + patience_s)
        asked = self.pool.submit(self.reader.read, (ref,), now, now + due_s, call)
        return call, asked

    def until(self, number: int) -> None:
        """Wait until so many callers stand in line."""
        end = time.monotonic() + 10
        while len(self.reader._tickets) < number and time.monotonic() < end:
            threading.Event().wait(0.001)

    def let_go(self, times: int = 1) -> None:
        for _ in range(times):
            self.cloud.go.release()

    def close(self) -> None:
        self.let_go(100)
        self.pool.shutdown()


@pytest.fixture()
def reads() -> Reads:
    return Reads()


def _id(number: int) -> ById:
    return ById(VolumeId(f"id-{number}"))


def test_all_who_come_during_a_read_share_the_next(reads: Reads) -> None:
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    others = [reads.ask(_id(number))[1] for number in range(1, 100)]
    reads.until(100)
    reads.let_go(2)
    for number, item in enumerate([first, *others]):
        (observed,) = item.result(10)
        assert isinstance(observed, tuple)
        assert [volume.id for volume in observed] == [f"id-{number}"]
    reads.close()
    assert reads.cloud.sizes == [1, 99]
    assert reads.cloud.calls == ["get volume", "list volumes"]


def test_a_list_answers_early_whom_it_shows(reads: Reads) -> None:
    """Those whose look is not due for long are woken by a list made for others."""
    _, late = reads.ask(_id(50), due_s=9)
    _, named = reads.ask(ByName("name-51"), due_s=9)
    reads.until(2)
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    others = [reads.ask(_id(number))[1] for number in range(1, 10)]
    reads.until(12)
    reads.let_go(2)
    began = time.monotonic()
    for item in [late, named, first, *others]:
        item.result(10)
    assert time.monotonic() - began < 8
    reads.close()


def test_a_reading_from_before_does_not_count(reads: Reads) -> None:
    """Who writes during a read is not answered by it, though it would show the ref."""
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    _, second = reads.ask(_id(0))
    reads.until(2)
    reads.let_go()
    first.result(10)
    assert not second.done()
    reads.let_go()
    second.result(10)
    reads.close()
    assert reads.cloud.sizes == [1, 1]


def test_a_cancelled_caller_wakes_and_the_others_go_on(reads: Reads) -> None:
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    call, second = reads.ask(_id(1))
    _, third = reads.ask(_id(2))
    reads.until(3)
    call.cancel()
    with pytest.raises(RefusedCall) as raised:
        second.result(10)
    assert raised.value.code is Code.CANCELLED
    reads.let_go(2)
    first.result(10)
    third.result(10)
    reads.close()


def test_a_caller_leaves_at_its_deadline(reads: Reads) -> None:
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    _, second = reads.ask(_id(1), patience_s=0.05)
    with pytest.raises(RefusedCall) as raised:
        second.result(10)
    assert raised.value.code is Code.DEADLINE_EXCEEDED
    reads.let_go(2)
    first.result(10)
    reads.close()


def test_a_read_that_breaks_leaves_nobody_behind(reads: Reads) -> None:
    """Whoever led it fails; another leads the next."""
    reads.cloud.bugs = 1
    _, first = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    _, second = reads.ask(_id(1))
    reads.until(2)
    reads.let_go(2)
    with pytest.raises(RuntimeError):
        first.result(10)
    second.result(10)
    reads.close()


class Quiet:
    """A cloud, its facts and a clock that only waiting moves."""

    def __init__(self, volumes: int) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.put(*(_volume(number) for number in range(volumes)))
        effects = callers.CallEffects(self.clock, self.clock.wait)
        self.facts = cache.Cache(lambda: self.cloud, effects)
        self.reader = shared_reads.VolumesReader(
            lambda: self.cloud, self.facts, effects
        )

    def call(self) -> callers.Caller:
        return callers.Caller(self.clock() + 600)

    def see(self, *refs: Ref) -> tuple[Found, ...]:
        return self.reader.read(refs, self.clock(), self.clock(), self.call())

    def ids(self) -> set[str]:
        return set(self.facts.all(self.call()))


def test_the_list_is_made_once_a_minute_however_often_it_is_asked() -> None:
    """5,000 volumes are five pages."""
    world = Quiet(5000)
    for _ in range(59):
        assert len(world.ids()) == 5000
        world.clock.move(1)
    assert world.cloud.calls == ["list volumes"] * 5
    world.clock.move(2)
    world.ids()
    assert world.cloud.calls == ["list volumes"] * 10


def test_what_was_seen_singly_shows_in_the_list_at_once() -> None:
    world = Quiet(10)
    assert len(world.ids()) == 10
    world.cloud.put(_volume(77))
    world.see(_id(77))
    assert "id-77" in world.ids()
    world.cloud.delete(VolumeId("id-3"))
    world.clock.move(5)
    world.see(_id(3))
    assert "id-3" not in world.ids()
    assert world.cloud.calls.count("list volumes") == 1


def test_a_list_made_for_those_who_wait_is_the_list_of_the_minute() -> None:
    world = Quiet(10)
    world.see(*(_id(number) for number in range(10)))
    assert len(world.ids()) == 10
    assert world.cloud.calls == ["list volumes"]


def test_a_list_that_fails_is_told_and_not_kept() -> None:
    world = Quiet(10)
    down = errors.Unavailable("no answer", operation="list volumes")
    world.cloud.faults.refusals.append(down)
    with pytest.raises(errors.Unavailable):
        world.ids()
    assert len(world.ids()) == 10


def test_what_can_not_be_read_is_unknown_and_forgets_nothing() -> None:
    world = Quiet(10)
    world.ids()
    down = errors.Unavailable("no answer", operation="get volume")
    world.cloud.faults.refusals.append(down)
    (observed,) = world.see(_id(0))
    assert isinstance(observed, Unknown)
    assert "id-0" in world.ids()


def test_one_read_that_hangs_does_not_stop_the_others(
    reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four healthy calls of 5 s are answered while one read of another hangs."""
    monkeypatch.setattr(shared_reads, "HUNG_S", 60.0)
    _, hung = reads.ask(_id(0))
    assert reads.cloud.began.acquire(timeout=10)
    began = time.monotonic()
    others = [reads.ask(_id(number), patience_s=5.0)[1] for number in range(1, 5)]
    reads.until(5)
    # All stand in line before the time of the read that hangs is up.
    monkeypatch.setattr(shared_reads, "HUNG_S", 0.5)
    reads.reader.wake("id-1")
    assert reads.cloud.began.acquire(timeout=10)
    waited_s = time.monotonic() - began
    reads.let_go()  # whichever of the two: both show the others' volumes, or theirs
    reads.let_go()
    for number, other in enumerate(others, 1):
        (observed,) = other.result(10)
        assert isinstance(observed, tuple)
        assert observed[0].id == f"id-{number}"
    hung.result(10)
    reads.close()
    assert waited_s >= shared_reads.HUNG_S - 0.1
    assert reads.cloud.sizes == [1, 4]


def test_no_more_than_three_reads_run_at_the_same_time(
    reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_reads, "HUNG_S", 0.1)
    asked = []
    for number in range(5):
        asked.append(reads.ask(_id(number), patience_s=20)[1])
        if number < shared_reads.MAX_PARALLEL:
            assert reads.cloud.began.acquire(timeout=10)
    assert not reads.cloud.began.acquire(timeout=shared_reads.HUNG_S + 0.5)
    reads.let_go(5)
    for item in asked:
        item.result(10)
    reads.close()


def test_a_read_has_no_more_time_than_its_leader(reads: Reads) -> None:
    reads.ask(_id(0), patience_s=3.0)
    assert reads.cloud.began.acquire(timeout=10)
    assert 0 < reads.cloud.allowed[0] <= 3.0
    reads.let_go()
    reads.close()
