"""Tables of settings of Services, at creation and at change, each read back.

A row says what to ask, and what must then be seen in the cloud past our own rooms.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import openstack.connection

from tests.harness.openstack import balancer_watch, balancers
from tests.harness.services import services

INTERNAL = {"service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}
"""No floating IP, where a case does not read it."""
POLL_S = 0.7


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """A Service, and what there is in the cloud. names: of what the table is about."""

    service: Mapping[str, Any]
    view: balancers.BalancerView
    names: Mapping[str, str]

    @property
    def name(self) -> str:
        """The Service's name."""
        return str(self.service["metadata"]["name"])

    @property
    def id(self) -> str:
        """The load balancer that the Service leads to; empty without one."""
        return self.annotation(services.LOAD_BALANCER_ID)

    def annotation(self, key: str) -> str:
        """Return an annotation; empty without it."""
        return str((self.service["metadata"].get("annotations") or {}).get(key, ""))

    @property
    def balancer(self) -> balancers.Json:
        """The load balancer itself; empty without one."""
        return self.view.balancers.get(self.id, {})

    def part(self, kind: str) -> balancers.Json:
        """Return listener, pool or monitor of port 80; empty without one."""
        match kind:
            case "listener":
                return self.view.listener(self.id, 80)
            case "pool":
                return self.view.pool(self.id, 80)
            case "monitor":
                return self.view.monitor(self.id, 80)
        return self.balancer

    @property
    def members(self) -> list[balancers.Json]:
        """The members of port 80."""
        return self.view.members(self.id, 80)

    @property
    def address(self) -> str:
        """The floating IP on the VIP; empty without one."""
        return str(self.view.floating_ip(self.id).get("floating_ip_address", ""))

    @property
    def ingress(self) -> list[str]:
        """The status: hostnames, or addresses with their mode."""
        rows = services.ingress(dict(self.service))
        return [row.get("hostname") or f"{row['ip']} {row['ipMode']}" for row in rows]


Probe = Callable[[Observed], object]


def of(kind: str, field: str) -> Probe:
    """Read a field of the balancer, or of the listener, pool, monitor of port 80."""
    return lambda observed: observed.part(kind).get(field)


def members(field: str) -> Probe:
    """Read a field of the members of port 80: its values, each once."""
    return lambda observed: sorted({str(member[field]) for member in observed.members})


@dataclasses.dataclass
class Ground:
    """Where a table is served. names: ids by the name that rows have in braces.

    states: of the load balancers; they cost less than reading everything.
    """

    services: services.Services
    connection: openstack.connection.Connection
    names: dict[str, str]
    states: balancer_watch.States

    def fill(self, value: Any) -> Any:
        """Put ids in the place of names in braces, at any depth."""
        match value:
            case str():
                return value.format_map(self.names) if "{" in value else value
            case dict():
                return {key: self.fill(element) for key, element in value.items()}
            case list() | tuple():
                return type(value)(self.fill(element) for element in value)
        return value

    def request(
        self, request: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return annotations, and the fields of spec that stand under "spec"."""
        filled = dict(self.fill(dict(request)))
        spec = dict(filled.pop("spec", {}))
        return filled, spec


@dataclasses.dataclass(frozen=True)
class Row:
    """One wish, as created and as changed, and what is to be seen each time.

    Texts may name things of the ground in braces. service: its name; rows that do not
    meddle with each other may have one together. created, changed: annotations and
    fields of spec. event: reason of the Event that the change leads to. do: something
    that a user does elsewhere when the change is made; given the Service's name.
    """

    title: str
    service: str
    probe: Probe
    created: Mapping[str, Any]
    shows: object
    changed: Mapping[str, Any]
    then: object
    event: str = ""
    do: Callable[[Ground, str], None] | None = None


def annotated(
    key: str,
    probe: Probe,
    *values: Any,
    also: Mapping[str, Any] = INTERNAL,
    event: str = "",
    service: str = "",
) -> Row:
    """Create a row of an annotation.

    values: at creation, what is shown then, at the change, what is shown then. also:
    what else is asked for at creation.
    """
    created, shows, changed, then = values
    name = service or key.rpartition("/")[2]
    return Row(
        key, name, probe, {**also, key: created}, shows, {key: changed}, then, event
    )


def field(
    title: str,
    probe: Probe,
    *values: Any,
    also: Mapping[str, Any] = INTERNAL,
    event: str = "",
    service: str = "",
) -> Row:
    """Create a row of fields of spec; the rest as with `annotated`."""
    created, shows, changed, then = values
    name = service or "spec-" + title.lower().replace(", ", "-").replace(" ", "-")
    whole = {**also, "spec": created}
    return Row(title, name, probe, whole, shows, {"spec": changed}, then, event)


def _created(row: Row) -> Mapping[str, Any]:
    return row.created


def _changed(row: Row) -> Mapping[str, Any]:
    return row.changed


@dataclasses.dataclass
class Result:
    """What a row showed, in words; "ok" when it was right. seconds: till then."""

    created: str = "MISSING"
    changed: str = "MISSING"
    seconds: list[float] = dataclasses.field(default_factory=list)


class Table:
    """Rows, and what they showed."""

    def __init__(self, ground: Ground, rows: Sequence[Row]) -> None:
        self.ground = ground
        self.rows = rows
        self.results = {row.title: Result() for row in rows}

    def serve(self, at_once: int, timeout_s: float) -> None:
        """Make and change all Services, some at once; Octavia is slow with many.

        timeout_s: for each look at those.
        """
        names = list(dict.fromkeys(row.service for row in self.rows))
        for at in range(0, len(names), at_once):
            some = set(names[at : at + at_once])
            rows = [row for row in self.rows if row.service in some]
            self._create(rows, timeout_s)
            self._change(rows, timeout_s)
            self.ground.services.delete(some)

    def _create(self, rows: Sequence[Row], timeout_s: float) -> None:
        for name, (values, spec) in self._requests(rows, _created).items():
            self.ground.services.make(name, values, **spec)
        self._wait(rows, "created", timeout_s)

    def _change(self, rows: Sequence[Row], timeout_s: float) -> None:
        for row in rows:
            if row.do is not None:
                row.do(self.ground, row.service)
        for name, (values, spec) in self._requests(rows, _changed).items():
            self.ground.services.change(name, values, **spec)
        self._wait(rows, "changed", timeout_s)

    def wrong(self) -> list[str]:
        """Return the rows that did not show what they must, at either time."""
        return [
            title
            for title, result in self.results.items()
            if (result.created, result.changed) != ("ok", "ok")
        ]

    def lines(self) -> list[str]:
        """Return the table as text."""
        rows = [f"{'request':62} {'created':>12} {'changed':>12}"]
        for row in self.rows:
            result = self.results[row.title]
            first, second = ([f"{s:.0f} s" for s in result.seconds] + ["", ""])[:2]
            created, changed = f"{result.created} {first}", f"{result.changed} {second}"
            event = f"  Event {row.event}" if row.event else ""
            rows.append(f"{row.title:62} {created:>12} {changed:>12}{event}")
        return rows

    def _requests(
        self, rows: Sequence[Row], which: Callable[[Row], Mapping[str, Any]]
    ) -> Mapping[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Return annotations and spec by Service: those of all its rows together."""
        requests: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for row in rows:
            values, spec = requests.setdefault(row.service, ({}, {}))
            more, fields = self.ground.request(which(row))
            spec |= fields
            values |= more
        return requests

    def _wait(self, rows: Sequence[Row], when: str, timeout_s: float) -> None:
        began = time.monotonic()
        pending = list(rows)
        is_over = False
        while pending and not is_over:
            time.sleep(POLL_S)
            is_over = time.monotonic() > began + timeout_s
            if self.ground.states.pending() and not is_over:
                continue
            view = balancers.look(self.ground.connection)
            existing, events = self.ground.services.all(), self.ground.services.events()
            for row in tuple(pending):
                observed = Observed(existing[row.service], view, self.ground.names)
                reasons = {event.reason for event in events.get(row.service, ())}
                text = self._judge(row, observed, when, reasons)
                result = self.results[row.title]
                setattr(result, when, text)
                if text == "ok":
                    result.seconds.append(time.monotonic() - began)
                    pending.remove(row)

    def _judge(self, row: Row, observed: Observed, when: str, reasons: set[str]) -> str:
        """Return "ok", or what is shown and reported, and what should be."""
        shown = row.probe(observed)
        expected = self.ground.fill(row.shows if when == "created" else row.then)
        text = "ok" if shown == expected else f"shows {shown!r}, wanted {expected!r}"
        if when == "changed" and row.event and row.event not in reasons:
            text += f"; no Event {row.event}, only {sorted(reasons)}"
        return text
