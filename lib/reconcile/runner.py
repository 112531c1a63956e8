"""The loop: takes keys, observes them together, decides and acts on each.

Rules: this is the one place that catches everything. An error is logged here, once;
lower layers raise. A key stays claimed until its own act has ended, and whatever
happens to it, it is either well, due again, or of no concern.

    queue -> loop thread: take a batch, observe it, decide on each key
               |-- all is read, quick actions -----------> quick lane: act
               |-- all is read, an action that is slow --> slow lane: act
               `-- more to read --> reading lane: read, decide --> quick or slow lane

The loop takes the next batch once a worker of the quick lane is idle, so that no
snapshot grows old in front of a busy pool. Keys in the slow lane, and keys that are
read, wait only for each other. The queue never hands out a key that is claimed: no two
lanes work on one key, and what is added to it in the meantime is delivered afterwards.
"""

import concurrent.futures
import dataclasses
import datetime
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol

import structlog

from lib.process import repeats
from lib.process.clock import utc_now
from lib.reconcile import carrying
from lib.reconcile import failure as failures
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import outcome as outcomes
from lib.reconcile import queue as queues
from lib.reconcile.carrying import Action, Snapshot

Result = reconcile_metrics.Result

TURN_S = 1.0
"""An idle loop turns this often, so that its heart beats."""
HELD_S = 0.2
"""Requeue delay while the watch lags behind our own write."""
LAST_ACTS_S = 5.0
"""Acts in flight may take this long once the loop is to stop."""
READS = 4
"""Reads that may run in parallel; see `Runner.run`."""
SHARE_S = 10.0
"""A key waits this long for reads in progress, to share the next one with others."""
MANY = 50
SHARE_MANY_S = 1.0
"""The same while a read of more than MANY keys is in progress, which takes long."""


class Flow(carrying.Steps[Snapshot, Action], Protocol[Snapshot, Action]):
    """A flow whose keys come from a queue.

    Every method may be called from several threads in parallel, never for one key.
    """

    def observe(self, claims: Sequence[queues.Claim]) -> Mapping[str, Snapshot]:
        """Read all that is needed for these keys; one snapshot per key.

        An omitted key needs nothing, and is done. May raise: then every key fails.
        """
        ...

    def held_s(self, snapshot: Snapshot) -> float:
        """Return in how many seconds a key is due again that cannot be decided upon.

        As long as the watch has not shown our own last write. 0: it is not held.
        """
        del snapshot
        return 0.0

    def is_slow(self, action: Action) -> bool:
        """Report whether an action may take many seconds; see `Runner.run`."""
        del action
        return False

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[outcomes.Requeue]:
        """Return further requeues after the actions.

        In addition to the outcome, or failure, for the topics it was due for.
        Called once, after `ended`, also in a dry run.
        """
        del snapshot, error
        return ()


def decide(
    flow: Flow[Snapshot, Action], snapshot: Snapshot, now: datetime.datetime
) -> outcomes.Outcome[Action]:
    """Return what a flow decides, or when a key that is held is due again."""
    held_s = flow.held_s(snapshot)
    if held_s > 0:
        return outcomes.Outcome(requeue_after_s=held_s)
    return flow.decide(snapshot, now)


class SlowReading(Protocol[Snapshot]):
    """What else some snapshots need, and what takes longer to read than the first."""

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether a snapshot has to be completed before anything is decided."""
        ...

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Complete snapshots, by key. May raise: then every key fails."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class RunnerSettings:
    """How a runner works.

    workers: keys acted on in parallel, and as many with slow actions. batch_max,
    batch_s: keys observed together, and the seconds to wait for them after the first.
    dry_run: log actions, carry out none but notes; an action's field that holds a
    secret has repr=False for that reason. After an action that was not carried out a
    requeue is ignored: nothing has changed, and periodic passes bring the key back. A
    failure is retried as ever.
    """

    workers: int = 1
    batch_max: int = 1
    batch_s: float = 0.0
    dry_run: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Clocks:
    """The clock of a runner, and its heartbeat.

    now: time of day, for decide. monotonic: seconds, for durations. beat: called each
    time the loop turns, at least every second while it is well, and after each action.
    """

    now: Callable[[], datetime.datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    beat: Callable[[], None] = carrying.nothing


@dataclasses.dataclass(frozen=True, slots=True)
class _Decided(Generic[Snapshot, Action]):
    """What a pass will do. began: when it was decided, monotonic. error: of decide."""

    claim: queues.Claim
    snapshot: Snapshot
    began: float
    outcome: outcomes.Outcome[Action]
    error: Exception | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """One read in progress. keys: their number. began: monotonic."""

    keys: int
    began: float


@dataclasses.dataclass(frozen=True, slots=True)
class _Lanes:
    """Thread pools. reading: see `SlowReading`. stop: no more then."""

    quick: concurrent.futures.ThreadPoolExecutor
    slow: concurrent.futures.ThreadPoolExecutor
    reading: concurrent.futures.ThreadPoolExecutor
    stop: threading.Event


class Runner(Generic[Snapshot, Action]):
    """Runs one flow over one queue."""

    def __init__(  # noqa: PLR0913 # the parts of a loop
        self,
        flow: Flow[Snapshot, Action],
        queue: queues.Queue,
        metrics: reconcile_metrics.ReconcileMetrics,
        settings: RunnerSettings | None = None,
        clocks: Clocks | None = None,
        reading: SlowReading[Snapshot] | None = None,
    ) -> None:
        """reading: of what should keep no other key from being observed."""
        self._flow = flow
        self._reading = reading
        self._queue = queue
        self._metrics = metrics
        self._settings = settings or RunnerSettings()
        self._clocks = clocks or Clocks()
        self._log = structlog.stdlib.get_logger(controller=flow.name)
        self._repeats = repeats.Repeats(clock=self._clocks.monotonic)
        self._in_flight: set[concurrent.futures.Future[None]] = set()
        self._slow: set[concurrent.futures.Future[None]] = set()
        self._unread: dict[queues.Claim, Snapshot] = {}
        self._reads: list[_Read] = []  # in progress
        self._landed = threading.Condition()
        self._given_up = threading.Event()
        self._broken: BaseException | None = None
        self._carrier = carrying.Carrier(
            flow, self._settings.dry_run, self._clocks.beat, self._given_up.is_set
        )
        metrics.watch(flow.name, queue)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then begin no more keys and let acts end.

        A new batch is observed once a worker is idle, so a snapshot never waits long.
        Keys with a slow action wait only for each other, and so do keys that have more
        to be read: all of those that have come up during such a read share the next,
        which does not wait for a long one: up to READS run in parallel. Acts that have
        not ended LAST_ACTS_S after the stop are abandoned: none of their further
        actions is begun.
        """
        lanes = _Lanes(
            self._pool(self._settings.workers),
            self._pool(self._settings.workers),
            self._pool(READS),
            stop,
        )
        try:
            while not stop.is_set():
                if self._broken is not None:
                    raise self._broken
                if self._has_idle_worker():
                    self._clocks.beat()
                    self._turn(lanes)
        finally:
            self._queue.shut_down()
            for pool in (lanes.quick, lanes.slow, lanes.reading):
                pool.shutdown(wait=False, cancel_futures=True)
            with self._landed:
                begun = self._in_flight | self._slow
                left = tuple(f for f in begun if not f.cancelled())
            concurrent.futures.wait(left, timeout=LAST_ACTS_S)
            self._given_up.set()

    def reads_within(self, seconds: float) -> Callable[[], str | None]:
        """Create a check of liveness that fails while a read takes longer than this.

        Its keys stay claimed as long, and READS such reads stop all others; the loop
        turns all the same.
        """

        def check() -> str | None:
            with self._landed:
                began = min((read.began for read in self._reads), default=None)
            if began is None or self._clocks.monotonic() - began <= seconds:
                return None
            age_s = self._clocks.monotonic() - began
            return f"a read has not ended for {age_s:.0f} s"

        return check

    def _pool(self, size: int) -> concurrent.futures.ThreadPoolExecutor:
        """Return threads; they start when they are needed."""
        return concurrent.futures.ThreadPoolExecutor(
            size, thread_name_prefix=self._flow.name
        )

    def _has_idle_worker(self) -> bool:
        """Wait up to a turn for it; without one the heart must not beat."""
        with self._landed:
            return self._landed.wait_for(
                lambda: len(self._in_flight) < self._settings.workers, TURN_S
            )

    def _turn(self, lanes: _Lanes) -> None:
        settings = self._settings
        claims = self._queue.take(
            settings.batch_max, settings.batch_s, lanes.stop, TURN_S
        )
        if not claims:
            return
        snapshots = self._observe(claims)
        if snapshots is None:
            return  # it has failed: all keys are due again after their backoff
        unread: dict[queues.Claim, Snapshot] = {}
        for claim in claims:
            if claim.key not in snapshots:
                self._absent(claim)
            elif self._reading and self._reading.needs_read(snapshots[claim.key]):
                unread[claim] = snapshots[claim.key]
            else:
                self._send(claim, snapshots[claim.key], lanes)
        if unread:
            # A read takes all keys that wait when it begins. One that is submitted here
            # and finds none left ends without a request.
            with self._landed:
                self._unread |= unread
            future = lanes.reading.submit(self._read, lanes)
            future.add_done_callback(self._note_broken_read)

    def _note_broken_read(self, future: concurrent.futures.Future[None]) -> None:
        """Keep an error that `_read` does not expect: the loop ends with it."""
        if not future.cancelled() and (error := future.exception()) is not None:
            self._broken = error

    def _absent(self, claim: queues.Claim) -> None:
        self._metrics.ended(self._flow.name, Result.ABSENT)
        self._queue.forget(claim.key)
        self._queue.done(claim.key)

    def _read(self, lanes: _Lanes) -> None:
        """Read for all keys that wait for it; when that fails, every one backs off."""
        taken, read = self._take_unread(lanes.stop)
        if not taken or self._reading is None:
            return
        try:
            snapshots = self._read_all(taken, self._reading)
        finally:
            with self._landed:
                self._reads.remove(read)
                self._landed.notify_all()
        if snapshots is None:
            return
        for claim in taken:
            self._send(claim, snapshots[claim.key], lanes)

    def _take_unread(
        self, stop: threading.Event
    ) -> tuple[dict[queues.Claim, Snapshot], _Read]:
        """Take what waits to be read, once no read is in progress or the wait ended."""
        with self._landed:
            is_long = any(read.keys > MANY for read in self._reads)
            self._landed.wait_for(
                lambda: not (self._reads and self._unread),
                SHARE_MANY_S if is_long else SHARE_S,
            )
            read = _Read(len(self._unread), self._clocks.monotonic())
            if stop.is_set() or not self._unread:
                return {}, read
            taken, self._unread = self._unread, {}
            self._reads.append(read)
            return taken, read

    def _read_all(
        self, taken: Mapping[queues.Claim, Snapshot], reading: SlowReading[Snapshot]
    ) -> Mapping[str, Snapshot] | None:
        with structlog.contextvars.bound_contextvars(controller=self._flow.name):
            try:
                return reading.read({c.key: snapshot for c, snapshot in taken.items()})
            except Exception as error:
                self._fail(tuple(taken), error, "read")
                for claim in taken:
                    self._queue.done(claim.key)
                return None

    def _send(self, claim: queues.Claim, snapshot: Snapshot, lanes: _Lanes) -> None:
        """Decide, and have a worker act."""
        decided = self._decide(claim, snapshot)
        is_slow = any(map(self._flow.is_slow, decided.outcome.actions))
        pool = lanes.slow if is_slow else lanes.quick
        begun = self._slow if is_slow else self._in_flight
        with self._landed:
            if lanes.stop.is_set():
                return
            future = pool.submit(self._begin, decided, lanes.stop)
            begun.add(future)
        future.add_done_callback(self._land)

    def _land(self, future: concurrent.futures.Future[None]) -> None:
        with self._landed:
            self._in_flight.discard(future)
            self._slow.discard(future)
            self._landed.notify_all()

    def _observe(self, claims: Sequence[queues.Claim]) -> Mapping[str, Snapshot] | None:
        """Read for the whole batch; when that fails, every key of it backs off."""
        with structlog.contextvars.bound_contextvars(controller=self._flow.name):
            try:
                return self._flow.observe(claims)
            except Exception as error:
                self._fail(claims, error, "observe")
                for claim in claims:
                    self._queue.done(claim.key)
                return None

    def _decide(
        self, claim: queues.Claim, snapshot: Snapshot
    ) -> _Decided[Snapshot, Action]:
        began = self._clocks.monotonic()
        try:
            outcome = decide(self._flow, snapshot, self._clocks.now())
        except Exception as error:
            return _Decided(claim, snapshot, began, outcomes.Outcome(), error)
        return _Decided(claim, snapshot, began, outcome)

    def _begin(
        self, decided: _Decided[Snapshot, Action], stop: threading.Event
    ) -> None:
        """Pass a key in a worker, unless the loop was stopped while it waited there."""
        if stop.is_set():
            self._queue.done(decided.claim.key)
        else:
            self._pass(decided)

    def _pass(self, decided: _Decided[Snapshot, Action]) -> None:
        """Act for one key."""
        claim = decided.claim
        result = Result.UNEXPECTED_ERROR
        bound = structlog.contextvars.bound_contextvars(
            controller=self._flow.name, key=claim.key
        )
        with bound:
            try:
                error = self._carry_out(decided)
                if error is None:
                    result = self._succeed(claim, self._requeue_after_s(decided))
                else:
                    result = self._fail((claim,), error, "pass")
            finally:
                self._queue.done(claim.key)
                took = self._clocks.monotonic() - decided.began
                self._metrics.passed(self._flow.name, result, took)

    def _carry_out(self, decided: _Decided[Snapshot, Action]) -> Exception | None:
        """Carry all actions out; return the error with which that, or decide, ended."""
        key = decided.claim.key
        snapshot, error = self._carrier.carry_out(
            key, decided.snapshot, decided.outcome
        )
        error = decided.error or error
        try:
            self._flow.ended(snapshot, error)
            for requeue in self._flow.requeues(snapshot, error):
                self._queue.add_all(key, requeue.topics, requeue.after_s)
        except Exception as raised:
            error = raised
        return error

    def _requeue_after_s(self, decided: _Decided[Snapshot, Action]) -> float | None:
        """Return when the key is due again; see `RunnerSettings.dry_run`."""
        if self._carrier.is_skipped(decided.outcome.actions):
            return None
        return decided.outcome.requeue_after_s

    def _succeed(self, claim: queues.Claim, requeue_after_s: float | None) -> Result:
        self._queue.forget(claim.key)
        if requeue_after_s is None:
            return Result.SUCCESS
        self._queue.add_all(claim.key, claim.topics, requeue_after_s)
        return Result.REQUEUE

    def _fail(
        self, claims: Sequence[queues.Claim], error: Exception, step: str
    ) -> Result:
        """Put the keys back and log it, once for all of them; they stay claimed."""
        failure, error = self._explain(error)
        result = Result.UNEXPECTED_ERROR if failure is None else Result.FAILURE
        waits = [self._requeue(claim, failure) for claim in claims]
        for _ in claims:
            self._metrics.retried(self._flow.name)
            if step != "pass":
                self._metrics.ended(self._flow.name, result)
        log = self._log.bind(
            key=claims[0].key, keys=len(claims), step=step, next_try_s=min(waits)
        )
        if failure is None:
            log.error("unexpected error in reconcile", exc_info=error)
        else:
            self._report(log, failure)
        return result

    def _report(
        self, log: structlog.stdlib.BoundLogger, failure: failures.Failure
    ) -> None:
        """Log a failure: the same one once a minute, with a count."""
        count = None if failure.is_routine else self._repeats.count(failure.summary)
        if count is None:
            log.debug("reconcile failed", error=failure.summary)
        else:
            log.warning("reconcile failed", error=failure.summary, count=count)

    def _requeue(self, claim: queues.Claim, failure: failures.Failure | None) -> float:
        """Put a key back into the queue; return its wait in seconds."""
        if failure is None:
            return self._queue.retry(claim.key, claim.topics)
        if failure.requeue_after_s is not None:
            self._queue.add_all(claim.key, claim.topics, failure.requeue_after_s)
            return failure.requeue_after_s
        return self._queue.retry(
            claim.key,
            claim.topics,
            failure.retry_after_s,
            is_routine=failure.is_routine,
        )

    def _explain(self, error: Exception) -> tuple[failures.Failure | None, Exception]:
        try:
            return self._flow.failure(error), error
        except Exception as worse:
            return None, worse
