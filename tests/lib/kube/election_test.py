import datetime
import random
import threading
import time
import typing
from collections.abc import Callable

import msgspec
import pytest

from lib.kube import client, election, errors, guarded, lease, resources
from lib.kube.fake import api, calls

if typing.TYPE_CHECKING:
    from tests.lib import conftest as shared
    from tests.lib.kube import conftest

NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=datetime.UTC)
PATIENCE_S = 180.0
"""For what another thread does, on a machine that is busy."""
Stand = Callable[..., election.Election]


@pytest.fixture()
def stand(fake: api.FakeApi, clock: "shared.FakeClock") -> Stand:
    """Return a function that makes a candidate; one clock for all by default."""

    def make(identity: str, **more: object) -> election.Election:
        more = {"api": fake, "clock": clock, "now": lambda: NOON, **more}
        kube_api = typing.cast(client.Api, more.pop("api"))
        return election.Election(
            kube_api,
            namespace="kube-system",
            name="ccm",
            identity=identity,
            **more,  # type: ignore[arg-type] # named by each test
        )

    return make


def may_act(candidate: election.Election) -> bool:
    """Report whether a write would be permitted now."""
    try:
        with candidate.acting("a write") as left_s:
            return left_s > 0
    except errors.NotLeader:
        return False


def spec(fake: api.FakeApi) -> dict[str, object]:
    (lease,) = fake.all(resources.LEASES)
    return typing.cast(dict[str, object], lease["spec"])


def test_the_first_one_wins_a_lease_as_client_go_writes_it(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """A new Lease has the reference's fields; we may act until renew_s from now."""
    first = stand("host_1")
    assert not may_act(first)
    assert first.attempt()
    assert spec(fake) == {
        "holderIdentity": "host_1",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T12:00:00.123456Z",
        "renewTime": "2026-01-02T12:00:00.123456Z",
        "leaseTransitions": 0,
    }
    assert first.act_until() == clock() + 10
    clock.pass_by(9.9)
    assert may_act(first)
    clock.pass_by(0.1)
    assert not may_act(first)


def test_a_lease_that_ended_is_told_of_until_the_process_ends(
    stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Not before our own term, nor during it; from the end of the lease on."""
    first = stand("host_1")
    assert first.overdue_s() == 0
    first.attempt()
    clock.pass_by(15)
    assert first.overdue_s() == 0
    clock.pass_by(21)
    assert first.overdue_s() == 21


def test_a_renewal_keeps_what_it_does_not_know(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Labels, further fields of spec, acquireTime and transitions stay."""
    first = stand("host_1")
    first.attempt()
    path = resources.LEASES.path("kube-system", "ccm")
    extra = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"strategy": "Oldest"},
    }
    fake.request(
        "PATCH",
        path,
        body=msgspec.json.encode(extra),
        content_type=client.MERGE_PATCH,
        timeout_s=1,
    )
    clock.pass_by(2)
    assert first.attempt()
    assert spec(fake)["strategy"] == "Oldest"
    assert spec(fake)["leaseTransitions"] == 0
    assert fake.calls[-1].verb == "update"
    assert b'"a":"b"' in fake.read(resources.LEASES, "ccm", "kube-system", timeout_s=1)


def test_a_renewal_shows_the_work_in_progress(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """As an annotation, beside those of others; absent while there is nothing."""

    def annotations() -> object:
        (stored,) = fake.all(resources.LEASES)
        about = typing.cast(dict[str, object], stored["metadata"])
        return about.get("annotations", {})

    first, work = stand("host_1"), ["load balancers: 2 writes"]
    first.show(lambda: work[0])
    assert first.attempt()
    (stored,) = fake.all(resources.LEASES)
    about = typing.cast(dict[str, object], stored["metadata"])
    assert annotations() == {lease.WORK_ANNOTATION: work[0]}
    more = {lease.WORK_ANNOTATION: work[0], "other": "1"}
    fake.put(resources.LEASES, {**stored, "metadata": {**about, "annotations": more}})
    for text, shown in (
        ("3 writes", {lease.WORK_ANNOTATION: "3 writes", "other": "1"}),
        ("", {"other": "1"}),
    ):
        work[0] = text
        clock.pass_by(2)
        assert first.attempt()
        assert annotations() == shown
    work.clear()  # the description fails
    clock.pass_by(2)
    assert first.attempt()


def test_nobody_takes_a_lease_that_is_renewed(
    stand: Stand, clock: "shared.FakeClock"
) -> None:
    """However long it lasts, one holder that renews is never disturbed."""
    first = stand("host_1", now=lambda: NOON + datetime.timedelta(seconds=clock()))
    second = stand("host_2")
    assert first.attempt()
    for _ in range(50):
        clock.pass_by(2)
        assert first.attempt()
        assert not second.attempt()


def test_a_lease_is_taken_over_only_after_its_time(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """lease_s without change on our own clock, whatever the times in it say."""
    first, second = stand("host_1"), stand("host_2")
    first.attempt()
    clock.pass_by(100)
    assert not second.attempt(), "seen just now, so its age is not known"
    clock.pass_by(14.9)
    assert not second.attempt()
    clock.pass_by(0.2)
    assert second.attempt()
    assert spec(fake)["holderIdentity"] == "host_2"
    assert spec(fake)["leaseTransitions"] == 1
    assert not may_act(first)


def test_a_longer_promise_of_another_is_kept(
    stand: Stand, clock: "shared.FakeClock"
) -> None:
    """The holder's own duration counts when it is longer than ours."""
    first = stand("host_1", lease_s=60, renew_s=40)
    second = stand("host_2")
    first.attempt()
    second.attempt()
    clock.pass_by(30)
    assert not second.attempt()
    clock.pass_by(31)
    assert second.attempt()


def test_a_renewal_counts_from_its_start(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Time spent on the way is not ours."""
    first = stand("host_1")
    fake.after_call = lambda call: clock.pass_by(3)
    began = clock()
    assert first.attempt()
    assert (first.act_until(), clock()) == (began + 10, began + 3)


def test_an_answer_that_comes_too_late_gives_no_time(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Once act_until has passed, even a successful renewal does not bring it back."""
    first = stand("host_1")
    first.attempt()
    until = first.act_until()
    fake.after_call = lambda call: clock.pass_by(11)
    assert not first.attempt()
    assert not may_act(first)
    fake.after_call = None
    assert not first.attempt()
    assert first.act_until() == until


def test_calls_for_the_lease_end_with_our_time(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """A renewal is allowed half of renew_s, and never more than is left."""
    first = stand("host_1")
    first.attempt()
    first.attempt()
    assert fake.calls[-1].timeout_s == 5
    clock.pass_by(8)
    first.attempt()
    assert fake.calls[-1].timeout_s == 2


def test_a_takeover_whose_answer_was_lost_is_found_again(
    fake: api.FakeApi, stand: Stand
) -> None:
    """What we wrote without knowing is ours at the next look."""
    first = stand("host_1")
    lost = errors.Unavailable("no answer in time", operation="POST")
    fake.faults.append(calls.Fault(lost, verb="create", after=True))
    with pytest.raises(errors.Unavailable):
        first.attempt()
    assert not may_act(first)
    assert first.attempt()


def test_a_lost_renewal_is_no_conflict_with_ourselves(
    fake: api.FakeApi, stand: Stand
) -> None:
    """The version we did not hear of is read, and the lease renewed upon it."""
    first = stand("host_1")
    first.attempt()
    lost = errors.Unavailable("no answer in time", operation="PUT")
    fake.faults.append(calls.Fault(lost, verb="update", after=True))
    with pytest.raises(errors.Unavailable):
        first.attempt()
    assert first.attempt()


def test_a_deleted_lease_is_lost(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Nothing keeps another from creating it: the leader must not go on."""
    first = stand("host_1")
    first.attempt()
    fake.remove(resources.LEASES, "ccm", "kube-system")
    clock.pass_by(2)
    assert not first.attempt()
    assert not fake.all(resources.LEASES), "it does not create the Lease either"


def test_a_deleted_lease_is_taken_over_like_that_of_a_crashed_holder(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """Its last holder may act until its term ends."""
    first, second = stand("host_1"), stand("host_2")
    first.attempt()
    assert not second.attempt()
    fake.remove(resources.LEASES, "ccm", "kube-system")
    for pause_s in (2, 12.9):
        clock.pass_by(pause_s)
        assert not second.attempt()
    clock.pass_by(0.2)
    assert second.attempt()
    assert not may_act(first)
    assert spec(fake)["holderIdentity"] == "host_2"
    assert second.unsettled_s(10.0) == pytest.approx(10.0)


def test_a_lease_that_was_deleted_after_its_release_is_free(
    fake: api.FakeApi, stand: Stand
) -> None:
    first, second = stand("host_1"), stand("host_2")
    first.attempt()
    body = msgspec.json.encode({"spec": {"holderIdentity": ""}})
    fake.patch(resources.LEASES, "ccm", body, "kube-system", timeout_s=1)
    second._look()
    fake.remove(resources.LEASES, "ccm", "kube-system")
    assert second.attempt()
    assert second.unsettled_s(10.0) == 0


def test_a_lease_that_was_another_s_is_not_won_back(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """A holder that finds another name there, or a release of it, has lost."""
    first = stand("host_1")
    first.attempt()
    for holder in ("intruder", ""):
        body = msgspec.json.encode({"spec": {"holderIdentity": holder}})
        fake.patch(resources.LEASES, "ccm", body, "kube-system", timeout_s=1)
        clock.pass_by(1)
        assert not first.attempt()
        assert spec(fake)["holderIdentity"] == holder


def test_a_renewal_that_must_read_first_is_told(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """The usual renewal is one write; after a conflict it takes the slow path."""
    slow: list[float] = []
    first = stand("host_1", on_slow_path=lambda: slow.append(clock()))
    for _ in range(3):
        assert first.attempt()
        clock.pass_by(2)
    assert slow == [], "neither the first one, nor the usual ones"
    fake.faults.append(
        calls.Fault(errors.Conflict("changed", operation="PUT"), "update")
    )
    assert first.attempt()
    assert slow == [clock()]


@pytest.mark.parametrize(
    ("holder", "wait_s"),
    [
        pytest.param(None, 0.0, id="there was no lease"),
        pytest.param("", 0.0, id="it was released"),
        pytest.param("host_1", 10.0, id="its holder vanished"),
        pytest.param("host_2", 0.0, id="it was ours, the answer was lost"),
    ],
)
def test_only_after_an_unclean_takeover_a_create_has_to_wait(
    fake: api.FakeApi,
    stand: Stand,
    clock: "shared.FakeClock",
    holder: str | None,
    wait_s: float,
) -> None:
    """What a holder without a release began to make may still appear for a while."""
    if holder is not None:
        body = {"holderIdentity": holder, "leaseDurationSeconds": 15}
        metadata = {"name": "ccm", "namespace": "kube-system"}
        fake.put(resources.LEASES, {"metadata": metadata, "spec": body})
    second = stand("host_2")
    if not second.attempt():
        clock.pass_by(16)
        assert second.attempt()
    assert second.unsettled_s(10.0) == wait_s
    for _ in range(2):
        clock.pass_by(5)
        assert second.attempt(), "renewals change nothing about it"
    assert second.unsettled_s(10.0) == 0


def test_a_takeover_whose_answer_was_lost_still_waits(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """The next try finds the lease ours, and must not take that for peace."""
    stand("host_1").attempt()
    second = stand("host_2")
    second.attempt()
    clock.pass_by(16)
    lost = errors.Unavailable("no answer", operation="PUT")
    fake.faults.append(calls.Fault(lost, verb="update", after=True))
    with pytest.raises(errors.Unavailable):
        second.attempt()
    clock.pass_by(1)
    assert second.attempt()
    assert second.unsettled_s(10.0) == 9


@pytest.mark.parametrize("seed", range(20))
def test_two_never_hold_at_once(
    fake: api.FakeApi, clock: "shared.FakeClock", seed: int
) -> None:
    """With calls that fail, lose answers and take long, at most one may act."""
    chance = random.Random(seed)  # noqa: S311 # a walk
    now = [NOON]

    def wall() -> datetime.datetime:
        now[0] += datetime.timedelta(microseconds=1)
        return now[0]

    makers = {"namespace": "x", "name": "l", "clock": clock, "now": wall}
    both = [
        election.Election(fake, identity=f"host_{n}", **makers)  # type: ignore[arg-type]
        for n in range(2)
    ]
    actors: list[int] = []

    def look() -> None:
        may = [n for n in range(2) if may_act(both[n])]
        assert len(may) <= 1
        actors.extend(may)

    def slow(call: calls.Call) -> None:
        del call
        clock.pass_by(chance.choice((0, 0, 0.5, 4)))
        look()

    fake.before_call = fake.after_call = slow
    for _ in range(400):
        clock.pass_by(chance.choice((0.1, 2, 2, 9)))
        if chance.random() < 0.2:
            error = errors.Unavailable("no", operation="x")
            fake.faults.append(calls.Fault(error, after=chance.random() < 0.5))
        candidate = chance.choice(both)
        try:
            candidate.attempt()
        except errors.KubeError:
            candidate._must_look = True
        look()
        for n, rival in enumerate(both):
            if rival.act_until() != election.NEVER and not may_act(rival):
                # It has lost: its process ends, and another one begins.
                identity = f"host_{n}_{chance.random()}"
                both[n] = election.Election(fake, identity=identity, **makers)  # type: ignore[arg-type]
    assert len(set(actors)) == 2, "both had their turn"


# Guarded


def test_only_the_leader_writes(
    fake: api.FakeApi, stand: Stand, clock: "shared.FakeClock"
) -> None:
    """A write is refused unsent before we lead and after our time; a read is not."""
    first = stand("host_1")
    guarded_api = guarded.Guarded(fake, first.acting)
    body = msgspec.json.encode({"metadata": {"name": "n"}})
    writes: list[Callable[[], object]] = [
        lambda: guarded_api.create(resources.NODES, body, timeout_s=30),
        lambda: guarded_api.patch(resources.NODES, "n", b'{"spec":{}}', timeout_s=30),
        lambda: guarded_api.delete(resources.NODES, "n", timeout_s=30),
        lambda: guarded_api.request("POST", "/api/v1/nodes", body=body, timeout_s=30),
    ]

    def refused() -> None:
        before = len(fake.calls)
        for write in writes:
            with pytest.raises(errors.NotLeader):
                write()
        assert len(fake.calls) == before
        guarded_api.list_page(resources.NODES, query={}, timeout_s=30)

    refused()
    first.attempt()
    clock.pass_by(4)
    for write in writes:
        write()
    assert [call.timeout_s for call in fake.calls[-4:]] == [6.0] * 4
    clock.pass_by(6)
    refused()


# run, in real time


@pytest.fixture()
def quick(
    server: "conftest.StandIn", connect: Callable[..., client.KubeClient]
) -> Stand:
    """Return a function that makes a candidate over HTTP whose times are short."""

    def make(identity: str, **more: object) -> election.Election:
        times: dict[str, object] = {"lease_s": 3.0, "renew_s": 1.0, "retry_s": 0.1}
        return election.Election(
            connect(server.url),
            namespace="x",
            name="l",
            identity=identity,
            rng=lambda: 0.0,
            **{**times, **more},  # type: ignore[arg-type] # named by each test
        )

    return make


class Term:
    """One candidate that runs, and what became of it."""

    def __init__(self, candidate: election.Election) -> None:
        self.candidate = candidate
        self.started = threading.Event()
        self.lost: list[float] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.candidate.run(
            self.started.set, lambda: self.lost.append(time.monotonic()), self.stop
        )

    def end(self) -> None:
        self.stop.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@pytest.fixture()
def begin() -> typing.Iterator[Callable[[election.Election], Term]]:
    """Yield a function that runs a candidate until the test ends."""
    terms: list[Term] = []

    def start(candidate: election.Election) -> Term:
        terms.append(Term(candidate))
        return terms[-1]

    yield start
    for term in terms:
        term.end()


Begin = Callable[[election.Election], Term]


def test_a_leader_goes_on_and_releases_when_told(
    server: "conftest.StandIn",
    quick: Stand,
    begin: Begin,
    clock: "shared.FakeClock",
    eventually: "shared.Eventually",
) -> None:
    """It renews past renew_s, and releases the lease when it stops."""
    term = begin(quick("host_1", clock=clock))
    assert term.started.wait(PATIENCE_S)
    first_end = term.candidate.act_until()
    while clock() <= first_end:
        clock.pass_by(0.5)
        eventually(lambda: term.candidate.act_until() >= clock() + 1.0)
    assert may_act(term.candidate)
    term.end()
    assert term.lost == []
    assert not may_act(term.candidate)
    assert spec(server.fake)["holderIdentity"] == ""
    assert spec(server.fake)["leaseDurationSeconds"] == 1


def test_a_release_lets_the_next_one_in_at_once(
    server: "conftest.StandIn",
    quick: Stand,
    begin: Begin,
    eventually: "shared.Eventually",
) -> None:
    """A follower wakes up by its watch, long before its next read."""
    times = {"lease_s": 60.0, "renew_s": 40.0, "retry_s": 0.1}
    first = begin(quick("host_1", **times))
    assert first.started.wait(PATIENCE_S)
    second = begin(
        quick("host_2", lease_s=7200.0, renew_s=3600.0, retry_s=2 * PATIENCE_S)
    )
    eventually(lambda: any("watch=1" in request.path for request in server.requests))
    first.end()
    assert second.started.wait(PATIENCE_S)
    assert spec(server.fake)["leaseTransitions"] == 1


def test_a_dead_leader_is_followed_after_its_lease(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """Without a release the follower waits lease_s from the last change.

    That it waits no longer is tested above, with a clock of the test.
    """
    dead = quick("host_1", lease_s=0.5, renew_s=0.4)
    assert dead.attempt()
    began = time.monotonic()
    second = begin(quick("host_2", lease_s=0.5, renew_s=0.4))
    assert second.started.wait(PATIENCE_S)
    # 0.5 s are written as a whole one.
    assert time.monotonic() - began > 0.9


def test_a_follower_that_may_not_watch_still_follows(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """Where permissions allow get and update only, it reads every retry_s."""
    first = begin(quick("host_1"))
    assert first.started.wait(PATIENCE_S)
    refusal = errors.Forbidden("no", operation="watch", status=403)
    server.fake.faults += [calls.Fault(refusal, verb="watch")] * 1000
    second = begin(quick("host_2"))
    time.sleep(0.3)
    assert not second.started.is_set()
    first.end()
    assert second.started.wait(PATIENCE_S)


def test_a_leader_cut_off_is_told_in_time(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """When renewals get no answer, on_lost comes once, at act_until; run ends."""
    term = begin(quick("host_1", renew_s=0.5))
    assert term.started.wait(PATIENCE_S)
    server.script.extend([lambda handler: handler.stall()] * 100)
    term.thread.join(PATIENCE_S)
    assert not term.thread.is_alive()
    assert len(term.lost) == 1
    assert not may_act(term.candidate)


def test_a_renewal_that_hangs_does_not_delay_the_news(
    fake: api.FakeApi,
    clock: "shared.FakeClock",
    begin: Begin,
    eventually: "shared.Eventually",
) -> None:
    """on_lost comes at act_until, not earlier, and while the renewal still hangs."""
    hangs, released = threading.Event(), threading.Event()
    candidate = election.Election(
        fake,
        namespace="x",
        name="l",
        identity="a",
        lease_s=1,
        renew_s=0.5,
        retry_s=0.1,
        clock=clock,
    )

    def hang(call: calls.Call) -> None:
        if call.verb == "update":
            hangs.set()
            released.wait(PATIENCE_S)

    fake.before_call = hang
    term = begin(candidate)
    assert hangs.wait(PATIENCE_S)
    clock.pass_by(candidate.act_until() - clock() - 0.01)
    assert may_act(candidate)
    assert term.lost == []
    clock.pass_by(0.01)
    eventually(lambda: bool(term.lost))
    assert not released.is_set(), "the renewal has not ended"
    assert not may_act(candidate)
    released.set()
    term.thread.join(PATIENCE_S)
    assert not term.thread.is_alive()
    assert not may_act(candidate), "its late success changes nothing"
    assert len(term.lost) == 1


def test_a_stolen_lease_ends_the_term(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """Another holder in the lease means the end, at the next renewal."""
    term = begin(quick("host_1", renew_s=2.5))
    assert term.started.wait(PATIENCE_S)
    body = msgspec.json.encode({"spec": {"holderIdentity": "thief"}})
    server.fake.patch(resources.LEASES, "l", body, "x", timeout_s=1)
    term.thread.join(PATIENCE_S)
    assert not term.thread.is_alive()
    assert len(term.lost) == 1
    assert spec(server.fake)["holderIdentity"] == "thief"


def test_a_deleted_lease_ends_the_term_before_another_leads(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """Two candidates with watches: the terms never overlap."""
    first = begin(quick("host_1", lease_s=1, renew_s=0.8))
    assert first.started.wait(PATIENCE_S)
    candidate = quick("host_2", lease_s=1, renew_s=0.8)
    assert not candidate.attempt(), "it has read the Lease"
    second = begin(candidate)
    server.fake.remove(resources.LEASES, "l", "x")
    assert second.started.wait(PATIENCE_S)
    assert len(first.lost) == 1
    assert not may_act(first.candidate)
    assert second.candidate.unsettled_s(10.0) > 5


def test_a_release_waits_for_writes_in_flight(
    server: "conftest.StandIn", quick: Stand, begin: Begin
) -> None:
    """During a write, no other candidate becomes the leader."""
    term = begin(quick("host_1", lease_s=60, renew_s=40))
    assert term.started.wait(PATIENCE_S)
    with term.candidate.acting("slow write"):
        term.stop.set()
        time.sleep(0.3)
        assert spec(server.fake)["holderIdentity"] == "host_1"
        with pytest.raises(errors.NotLeader), term.candidate.acting("another"):
            pass
    term.end()
    assert spec(server.fake)["holderIdentity"] == ""


def test_a_candidate_stops_before_its_watch_ends(
    server: "conftest.StandIn",
    quick: Stand,
    begin: Begin,
    eventually: "shared.Eventually",
) -> None:
    """A follower whose watch would last for an hour ends, and was never a leader."""
    times = {"lease_s": 3600.0, "renew_s": 1800.0}
    first = begin(quick("host_1", **times))
    assert first.started.wait(PATIENCE_S)
    second = begin(quick("host_2", **times))
    eventually(lambda: any("watch=1" in request.path for request in server.requests))
    second.end()
    assert not second.started.is_set()
    assert second.lost == []


def test_a_refused_candidate_does_not_hurry(
    fake: api.FakeApi, begin: Begin, eventually: "shared.Eventually"
) -> None:
    """Without the right to write, it tries every retry_s and no faster."""
    refusal = errors.Forbidden("no", operation="create", status=403)
    fake.faults += [calls.Fault(refusal, verb="create")] * 1000
    began = time.monotonic()
    begin(election.Election(fake, namespace="x", name="l", identity="a", retry_s=0.1))
    eventually(lambda: len(fake.calls) >= 6)
    tries = 1 + (time.monotonic() - began) / 0.1
    assert len(fake.calls) <= 2 * tries, "a read and a create for each"
