"""State of the simulated engine: objects, transitions that are due, jobs, events.

Rules: transitions happen in the order of their times, before the next request is
carried out; nothing runs in the background. One thread at a time (`Engine.lock`).
"""

import collections
import datetime
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from ovirtsdk4 import types

from lib.lab.zvirt import kinds, xml_documents
from lib.lab.zvirt.records import EngineRecord, Entity, Records
from lib.lab.zvirt.settings import EngineSettings
from lib.lab.zvirt.transitions import RULES, EngineRule

_PENDING = "pending"
_REASON = "Operation Failed"
_EVENTS_KEPT = 2000
_JOBS_KEPT = 500


class Refused(Exception):
    """A request is refused. rule: its key; reason: empty for a body without fault."""

    def __init__(self, rule: str, reason: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.status = RULES[rule].status
        self.reason = reason
        self.detail = detail


Timed = Callable[["Engine", EngineRecord, Mapping[str, Any], bool], None]
"""A transition: engine, its object, its arguments, and whether it fails."""


class Engine:
    """One engine. clock: seconds since 1970; `advance` moves it for this engine.

    timed: transitions by rule. exercised: how often each rule was applied.
    """

    def __init__(
        self,
        records: Records,
        timed: Mapping[str, Timed],
        settings: EngineSettings | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.records = records
        self.settings = settings or EngineSettings()
        self.exercised: collections.Counter[str] = collections.Counter()
        self.lock = threading.RLock()
        self.moved = threading.Condition(self.lock)
        """Notified when the clock was moved or a request was carried out."""
        self.new_id = new_id
        self._timed = timed
        self._clock = clock
        self._offset_s = 0.0
        self._at: float | None = None
        self._events: int | None = None

    # Rules.

    def rule(self, key: str) -> EngineRule:
        """Note that a rule is applied, and return it."""
        self.exercised[key] += 1
        return RULES[key]

    def refuse(self, key: str, reason: str = _REASON, **fields: object) -> NoReturn:
        """Refuse a request by a rule.

        Raises:
            Refused: always.
        """
        text = self.rule(key).text.format(**fields)
        raise Refused(key, reason, f"[{text}]" if reason == _REASON else text)

    # Time.

    @property
    def now(self) -> float:
        """Seconds since 1970; within a transition, the time at which it was due."""
        return self._at if self._at is not None else self._clock() + self._offset_s

    @property
    def time(self) -> datetime.datetime:
        """The same as a time of the API."""
        return datetime.datetime.fromtimestamp(round(self.now, 3), datetime.UTC)

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Read the time of another clock from now on."""
        self._clock = clock

    def advance(self, seconds: float) -> None:
        """Move the clock, and carry out what is due then."""
        with self.lock:
            self._offset_s += seconds
            self.run_due()
            self.moved.notify_all()

    def later(
        self, rule: str, record: EngineRecord, times: float = 1.0, **args: object
    ) -> None:
        """Have a transition of an object happen after its delay, times `times`."""
        at = self.now + self.settings.delay_s(rule) * times
        extra = {
            "rule": rule,
            "at": at,
            "kind": record.kind,
            "key": record.key,
            "args": args,
        }
        self.records.put(EngineRecord(_PENDING, self.new_id(), None, extra))

    def cancel(self, record: EngineRecord, *rules: str) -> None:
        """Forget transitions of an object."""
        for pending in self.records.all(_PENDING):
            extra = pending.extra
            is_same = (extra["kind"], extra["key"]) == (record.kind, record.key)
            if is_same and extra["rule"] in rules:
                self.records.remove(pending)

    def next_due(self) -> float | None:
        """Return when the next transition is due; None: none is pending."""
        return min((row.extra["at"] for row in self._possible()), default=None)

    def run_due(self) -> None:
        """Carry out every transition that is due."""
        while True:
            due = [row for row in self._possible() if row.extra["at"] <= self.now]
            if not due:
                break
            self._carry_out(min(due, key=lambda row: float(row.extra["at"])))
        self.records.commit()

    def _possible(self) -> Iterator[EngineRecord]:
        for row in self.records.all(_PENDING):
            target = self.records.get(row.extra["kind"], row.extra["key"])
            name = "" if target is None else name_of(target)
            if not self.settings.is_held(row.extra["rule"], name):
                yield row

    def _carry_out(self, pending: EngineRecord) -> None:
        extra = pending.extra
        self.records.remove(pending)
        record = self.records.get(extra["kind"], extra["key"])
        if record is None:
            return
        self._at = extra["at"]
        try:
            self.rule(extra["rule"])
            fails = self.settings.fails(extra["rule"], name_of(record))
            self._timed[extra["rule"]](self, record, extra["args"], fails)
        finally:
            self._at = None

    # Objects.

    def add(
        self,
        kind: str,
        entity: Entity,
        *,
        parent: str = "",
        parent_kind: str = "",
        **extra: object,
    ) -> EngineRecord:
        """Store a new object. parent: ID of what it is in."""
        if entity.id is None:
            entity.id = self.new_id()
        xml_documents.refer(entity, parent, parent_kind)
        key = f"{parent}/{entity.id}" if parent else entity.id
        return self.records.put(EngineRecord(kind, key, entity, extra))

    def change(self, record: EngineRecord, **members: object) -> EngineRecord:
        """Set members of an object, which replace those that it has."""
        self.records.change(record)
        for name, value in members.items():
            setattr(record.entity, name, value)
        xml_documents.refer_members(record.entity)
        return record

    def find(self, kind: str, key: str, parent: str = "") -> EngineRecord:
        """Return the object that a path names.

        Raises:
            Refused: the ID is malformed, or there is no such object.
        """
        self.check_id(key)
        record = self.records.get(kind, f"{parent}/{key}" if parent else key)
        if record is None or self.is_hidden(record):
            self.refuse("call-absent", "")
        return record

    def check_id(self, text: str) -> None:
        """Check that a text is a UUID.

        Raises:
            Refused: it is not.
        """
        try:
            uuid.UUID(text)
        except ValueError:
            self.refuse("call-malformed-id", "Operation failed", id=text)

    def is_hidden(self, record: EngineRecord) -> bool:
        """Report whether the user has no permission to see an object."""
        is_hidden = self.settings.has("hide", name_of(record))
        if is_hidden:
            self.rule("call-hidden")
        return is_hidden

    def referred(self, kind: str, reference: Entity) -> EngineRecord:
        """Return the object that a reference names, by ID or by name.

        Raises:
            Refused: none exists.
        """
        if reference.id is not None:
            self.check_id(reference.id)
            record = self.records.get(kind, reference.id)
        else:
            rows = self.records.all(kind)
            record = next(
                (row for row in rows if row.entity.name == reference.name), None
            )
        if record is None or self.is_hidden(record):
            name = reference.id or reference.name
            self.refuse("call-reference", name=f"{kinds.KINDS[kind].title}: {name}")
        return record

    def within(self, kind: str, parent: str) -> Iterator[EngineRecord]:
        """Return the objects of a kind in another object."""
        return self.records.within(kind, parent)

    # Jobs and locks.

    def begin_job(
        self, title: str, correlation_id: str, locks: Collection[str] = ()
    ) -> EngineRecord:
        """Start a job. locks: names that no other job may hold."""
        job = types.Job(
            description=title,
            status=types.JobStatus.STARTED,
            start_time=self.time,
            last_updated=self.time,
            auto_cleared=True,
            external=False,
        )
        return self.add("job", job, correlation_id=correlation_id, locks=sorted(locks))

    def end_job(self, key: str, failed: bool = False) -> None:
        """End a job, and release its locks; fine when it has ended."""
        record = self.records.get("job", key)
        if record is None or record.entity.status != types.JobStatus.STARTED:
            return
        status = types.JobStatus.FAILED if failed else types.JobStatus.FINISHED
        self.change(record, status=status, end_time=self.time, last_updated=self.time)
        record.extra["locks"] = []
        jobs = tuple(self.records.all("job"))
        if len(jobs) > _JOBS_KEPT and jobs[0].key != key:
            self.records.remove(jobs[0])

    def begin_operation(
        self, title: str, correlation_id: str, locks: Collection[str], kind: str
    ) -> str:
        """Hold locks for as long as a request takes; return its job.

        Empty where requests take no time. title: such as "attach". kind: what the
        refusal calls the object.

        Raises:
            Refused: another request holds one of the locks.
        """
        if self.is_locked(*locks):
            self.refuse("operation-locked", action=title, type=kind)
        if self.settings.delay_s("operation-ended") <= 0:
            return ""
        job = self.begin_job(f"{title} {kind}", correlation_id, locks)
        self.later("operation-ended", job, job=job.key)
        return job.key

    def is_locked(self, *names: str) -> bool:
        """Report whether a job holds one of some locks."""
        return any(
            name in row.extra["locks"]
            for row in self.records.all("job")
            for name in names
        )

    def is_running(self, job: str) -> bool:
        """Report whether a job has not ended."""
        record = self.records.get("job", job)
        return record is not None and record.entity.status == types.JobStatus.STARTED

    # Events.

    def note(  # noqa: PLR0913 # facts of one event, by keyword
        self,
        code: int,
        text: str,
        *,
        correlation_id: str = "",
        severity: types.LogSeverity = types.LogSeverity.NORMAL,
        vm: str = "",
        user: str = "",
    ) -> EngineRecord:
        """Record an event, as the audit log has it."""
        self._events = index = self._last_event() + 1
        event = types.Event(
            id=str(index),
            index=index,
            code=code,
            severity=severity,
            description=text,
            correlation_id=correlation_id or None,
            time=self.time,
            origin="oVirt",
            vm=types.Vm(id=vm) if vm else None,
            user=types.User(name=user) if user else None,
        )
        stale = self.records.get("event", str(index - _EVENTS_KEPT))
        if stale is not None:
            self.records.remove(stale)
        return self.add("event", event)

    def _last_event(self) -> int:
        if self._events is None:
            rows = self.records.all("event")
            self._events = max((row.entity.index for row in rows), default=0)
        return self._events


def name_of(record: EngineRecord) -> str:
    """Return the name of an object, that of a disk's VM excepted; may be empty."""
    entity = record.entity
    name = getattr(entity, "name", None) or getattr(entity, "alias", None)
    return str(name or "")
