"""Leader election: one of several processes acts, by a Lease.

Rules: only this process's clock is trusted. We may act until renew_s after the start
of our last successful renewal; others wait lease_s from the last change they saw, which
is later. Once lost, an election is never won again: the process ends.
"""

import contextlib
import datetime
import random
import threading
import time
from collections.abc import Callable, Iterator

import msgspec
import structlog

from lib.kube import client, errors, interrupt, lease, resources
from lib.process import decoding, repeats
from lib.process.clock import utc_now

CONNECT_TIMEOUT_S = 5.0
LAST_WRITES_S = 5.0
"""Writes in flight may take this long before a release is given up."""
SHORTEST_WAIT_S = 0.05
NEVER = float("-inf")


class Election:
    """One candidate.

    identity: unlike that of any other process there ever was, hostname_uuid. lease_s,
    renew_s, retry_s: seconds after which others may take over, the holder gives up,
    and it tries again. clock: monotonic seconds. now: time of day, only written.
    on_slow_path: called when a renewal has to read the Lease first.
    """

    def __init__(  # noqa: PLR0913 # keyword only, with the reference's defaults
        self,
        api: client.Api,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_s: float = 15.0,
        renew_s: float = 10.0,
        retry_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime.datetime] = utc_now,
        rng: Callable[[], float] = random.random,
        on_slow_path: Callable[[], None] = lambda: None,
    ) -> None:
        if not lease_s > renew_s > retry_s > 0:
            raise ValueError("an election needs lease_s > renew_s > retry_s > 0")
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._lease_s, self._renew_s, self._retry_s = lease_s, renew_s, retry_s
        self._clock = clock
        self._now = now
        self._rng = rng
        self._on_slow_path = on_slow_path
        self._log = structlog.stdlib.get_logger().bind(lease=f"{namespace}/{name}")
        self._seen: lease.Lease | None = None
        self._seen_at = NEVER
        self._repeats = repeats.Repeats()
        self._reported_holder = ""
        self._is_deleted = False  # the Lease, since `_seen` was read
        self._must_look = True
        # Guards what follows; notified when a write has ended.
        self._changed = threading.Condition()
        self._act_until = NEVER
        self._held_until = NEVER
        self._taken_over_at = NEVER
        self._is_over = False
        self._in_flight = 0
        self._describe_work: Callable[[], str] = str

    def show(self, work: Callable[[], str]) -> None:
        """Have each renewal show what this process is doing; see lib/kube/lease.py.

        work: returns it in one line; empty: nothing.
        """
        self._describe_work = work

    def act_until(self) -> float:
        """Return the time of `clock` until which we may act; -inf when we may not."""
        return self._act_until

    def unsettled_s(self, settle_s: float) -> float:
        """Return how long requests of the previous leader may still take effect.

        More than 0 only after a takeover from a leader that did not release the
        Lease. settle_s: the time that such a request may take, from the takeover on.
        """
        return max(0.0, self._taken_over_at + settle_s - self._clock())

    def overdue_s(self) -> float:
        """Return the seconds since a Lease of ours has expired; 0 while it has not.

        More than 0 only when the process did not end as it should have.
        """
        until = self._held_until
        return 0.0 if until == NEVER else max(0.0, self._clock() - until)

    @contextlib.contextmanager
    def acting(self, operation: str) -> Iterator[float]:
        """Yield the seconds left for a write, which ends with the block.

        A release waits for it.

        Raises:
            NotLeader: there are none.
        """
        with self._changed:
            left_s = self._act_until - self._clock()
            if left_s <= 0:
                raise errors.NotLeader("not the leader", operation=operation)
            self._in_flight += 1
        try:
            yield left_s
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def run(
        self,
        on_started: Callable[[], None],
        on_lost: Callable[[], None],
        stop: threading.Event,
    ) -> None:
        """Stand for election, then hold the lease until it is lost or `stop` is set.

        on_started: called once we may act; must return immediately. on_lost: called
        once, at act_until at the latest, maybe from another thread; it must end the
        process. stop: set it when nothing of ours acts any more; the lease is then
        released, and on_lost is not called.
        """
        with interrupt.interrupting(stop) as watcher:
            while not stop.is_set() and not self._try():
                self._follow(watcher, stop)
        if self._act_until == NEVER:
            return
        self._lead(on_started, on_lost, stop)
        if stop.is_set():
            self._release()

    def _lead(
        self,
        on_started: Callable[[], None],
        on_lost: Callable[[], None],
        stop: threading.Event,
    ) -> None:
        self._log.info("became leader", identity=self._identity)
        ended = threading.Event()
        guard = threading.Thread(
            target=self._watch_over, args=(on_lost, ended), daemon=True, name="election"
        )
        guard.start()
        try:
            on_started()
            while not self._is_over and not stop.wait(self._retry_s):
                if not self._try() and self._is_taken():
                    self._lose(on_lost)
        finally:
            ended.set()

    def attempt(self) -> bool:
        """Try once to take or renew the lease; True when that has succeeded.

        Raises:
            KubeError: the Lease cannot be read.
        """
        try:
            return self._attempt()
        except (errors.Conflict, errors.AlreadyExists, errors.NotFound):
            # Changed, made or deleted by somebody else meanwhile.
            self._must_look = True
            return self._attempt()

    def _attempt(self) -> bool:
        if self._must_look or not self._is_ours():
            if self._act_until != NEVER:
                self._on_slow_path()
            self._look()
        has_lost = self._act_until != NEVER and self._is_taken()
        if has_lost or not self._is_free():
            return False
        began = self._clock()
        record = self._seen.record if self._seen else None
        if record and record.holder_identity not in ("", self._identity):
            # Before the write: its answer may be lost.
            self._taken_over_at = began
        self._write(lease.renewed(record, self._identity, self._lease_s, self._now()))
        return self._extend(began)

    def _try(self) -> bool:
        try:
            return self.attempt()
        except errors.KubeError as error:
            self._must_look = True
            self._report(error)
            return False
        except msgspec.MsgspecError as error:
            self._must_look = True
            self._log.error("unexpected Lease content", exc_info=error)
            return False

    def _report(self, error: errors.KubeError) -> None:
        """Log why the Lease was not read or written: once a minute with a count."""
        count = self._repeats.count(error.message)
        if count is not None:
            text = f"{error.message}; retry in {self._retry_s:.1f}s"
            self._log.warning("Lease request failed", error=text, count=count)

    def _report_holder(self) -> None:
        """Log the process that holds the Lease, once for each."""
        holder = self._seen.record.holder_identity if self._seen else ""
        if holder != self._reported_holder:
            self._reported_holder = holder
            self._log.info("waiting for Lease held by another process", holder=holder)

    def _timeout_s(self) -> float:
        """Leave time for a second try within what is left to us."""
        left_s = self._act_until - self._clock()
        return min(left_s, self._renew_s / 2) if left_s > 0 else self._renew_s / 2

    def _look(self) -> None:
        try:
            body = self._api.read(
                resources.LEASES,
                self._name,
                self._namespace,
                timeout_s=self._timeout_s(),
            )
        except errors.NotFound:
            self._note_deletion()
        else:
            self._observe(body)
        self._must_look = False

    def _note_deletion(self) -> None:
        """Keep the last record of a deleted Lease: its holder may still act.

        A leader whose Lease is gone has lost it, since nothing keeps others from
        creating it; all others wait as after a holder that crashed.
        """
        self._is_deleted = self._seen is not None

    def _observe(self, body: bytes) -> None:
        """Take note of the lease, and of the time if its record is another."""
        parsed = lease.parse(body)
        if self._seen is None or self._seen.record != parsed.record:
            self._seen_at = self._clock()
        self._seen, self._is_deleted = parsed, False

    def _is_ours(self) -> bool:
        last_seen = self._seen
        return (
            last_seen is not None and last_seen.record.holder_identity == self._identity
        )

    def _is_taken(self) -> bool:
        if self._must_look or self._seen is None:
            return False
        return self._is_deleted or not self._is_ours()

    def _free_in_s(self) -> float:
        """Return the seconds until we may take the lease; 0 or less: now."""
        if self._seen is None or self._is_ours():
            return 0.0
        record = self._seen.record
        if not record.holder_identity:
            return 0.0
        # Its holder may have been promised more time than we would be.
        lease_s = max(self._lease_s, float(record.lease_duration_seconds))
        return self._seen_at + lease_s - self._clock()

    def _is_free(self) -> bool:
        return self._free_in_s() <= 0

    def _write(self, record: lease.LeaseRecord) -> None:
        """Write the lease upon what we have seen of it."""
        present = None if self._is_deleted else self._seen
        work = self._work() if record.holder_identity else ""
        body = lease.body(present, record, self._namespace, self._name, work)
        if present is None:
            answer = self._api.create(
                resources.LEASES, body, self._namespace, timeout_s=self._timeout_s()
            )
        else:
            answer = self._api.request(
                "PUT",
                resources.LEASES.path(self._namespace, self._name),
                body=body,
                timeout_s=self._timeout_s(),
            )
        self._observe(answer)

    def _work(self) -> str:
        """Describe the work in progress; that it fails must not cost the Lease."""
        try:
            return self._describe_work()
        except Exception as error:
            self._log.error("cannot describe the work in progress", exc_info=error)
            return ""

    def _extend(self, began: float) -> bool:
        """Go on acting, unless the answer came too late for that."""
        until = began + self._renew_s
        with self._changed:
            had_time = self._act_until == NEVER or self._clock() < self._act_until
            if self._is_over or not had_time or self._clock() >= until:
                return False
            self._act_until = until
            self._held_until = began + self._lease_s
            return True

    def _watch_over(self, on_lost: Callable[[], None], ended: threading.Event) -> None:
        """Notice the end of our time even while a renewal hangs."""
        while (left_s := self._act_until - self._clock()) > 0:
            if ended.wait(left_s):
                return
        self._lose(on_lost)

    def _lose(self, on_lost: Callable[[], None]) -> None:
        with self._changed:
            if self._is_over:
                return
            self._is_over = True
            self._act_until = NEVER
        self._log.error("lost leadership", identity=self._identity)
        on_lost()

    def _release(self) -> None:
        """Release the Lease, once no write of ours is in flight."""
        with self._changed:
            was_over, self._is_over = self._is_over, True
            until, self._act_until = self._act_until, NEVER
            self._held_until = NEVER
            if was_over or self._clock() >= until:
                return
            idle = self._changed.wait_for(lambda: not self._in_flight, LAST_WRITES_S)
        if not idle or self._seen is None:
            self._log.warning("Lease not released: a write is in progress")
            return
        try:
            self._write(lease.released(self._seen.record, self._now()))
            self._log.info("Lease released", identity=self._identity)
        except errors.KubeError as error:
            self._log.warning("cannot release the Lease", error=str(error))

    def _follow(self, watcher: interrupt.Interrupt, stop: threading.Event) -> None:
        """Wait until the Lease may be free, or should be read again."""
        if self._seen is not None and not self._must_look and not self._is_free():
            self._report_holder()
            with contextlib.suppress(errors.KubeError, msgspec.MsgspecError):
                self._watch(watcher, self._seen.version, self._free_in_s())
            self._must_look = True
            if self._is_free():
                return
        # The last try failed, or the watch did, or it is not allowed to us.
        pause_s = self._retry_s * (1 + 0.2 * self._rng())
        if not self._is_free():
            pause_s = min(pause_s, max(self._free_in_s(), SHORTEST_WAIT_S))
        stop.wait(pause_s)

    def _watch(
        self, watcher: interrupt.Interrupt, version: str, silence_s: float
    ) -> None:
        """Watch the lease until it is free, or nothing was heard for `silence_s`."""
        opened = self._api.stream(
            resources.LEASES.path(self._namespace),
            {
                "watch": "1",
                "fieldSelector": f"metadata.name={self._name}",
                "resourceVersion": version,
            },
            connect_timeout_s=CONNECT_TIMEOUT_S,
            read_timeout_s=max(silence_s, SHORTEST_WAIT_S),
        )
        with opened as lines, watcher.during(lines):
            for line in lines:
                event = decoding.decode(line, _Event)
                if event.type == "DELETED":
                    self._note_deletion()
                elif event.type == "ERROR":
                    return
                elif event.type in ("ADDED", "MODIFIED"):
                    self._observe(bytes(event.object))
                if self._is_free():
                    return


class _Event(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw
