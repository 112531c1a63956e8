"""The status of a machine object: all fields of our field manager, compared: pure.

What is recorded stays until something else is observed; `provisioned` stays for ever.

Source: kubernetes-sigs/cluster-api docs/book, contract of InfraMachine; Kubernetes API
conventions, conditions.
"""

import dataclasses
import datetime
from collections.abc import Collection, Mapping
from typing import Protocol

from lib.cloud.machines import ConditionState, Reason, Results
from lib.kube import objects
from lib.machines.kinds import Kinds, MachineObject, Path, at, merged, nested
from lib.machines.model import WriteMachineStatus

READY = "Ready"
PAUSED = "Paused"
DELETING = "Deleting"
PROVISIONED = ("initialization", "provisioned")
FAILURE = ("failureReason", "failureMessage")
MESSAGE_MAX = 1024
"""Characters of a message."""
_STATUS = {True: "True", False: "False", None: "Unknown"}


class HasStatus(Protocol):
    """A machine object, or the object of its cluster."""

    @property
    def metadata(self) -> objects.ObjectMeta:
        """The object's metadata."""
        ...

    @property
    def status(self) -> Mapping[str, object]:
        """The object's status."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """What a status is to show.

    state: of the instance; None: as recorded. results: None: as recorded. deleting:
    message of that condition; None: it is not being deleted.
    """

    state: ConditionState | None
    results: Results | None = None
    is_paused: bool = False
    has_node: bool = False
    deleting: str | None = None


def is_provisioned(shown: HasStatus, mirrors: Collection[Path]) -> bool:
    """Report whether any field shows it, of this contract or an older one."""
    return any(at(shown.status, path) is True for path in (PROVISIONED, *mirrors))


def provisioned(mirrors: Collection[Path]) -> dict[str, object]:
    """Return the fields that show it. mirrors: those of older contracts."""
    document: dict[str, object] = {}
    for path in (PROVISIONED, *mirrors):
        document = merged(document, nested(path, True))
    return document


def change(
    machine: MachineObject,
    kinds: Kinds,
    shown: Shown,
    own_types: Collection[str],
    now: datetime.datetime,
) -> WriteMachineStatus | None:
    """Return the write that makes the status show this; None: it does.

    own_types: types of the provider's conditions. now: UTC.
    """
    document = {
        **_provisioned(machine, kinds, shown.results),
        **_observed(machine, shown.results),
        **_failure(machine, shown),
        "conditions": _conditions(machine, kinds, shown, own_types, now),
    }
    removed = tuple(
        field
        for field in FAILURE
        if field not in document and machine.status.get(field) is not None
    )
    if not removed and holds(machine, document):
        return None
    return WriteMachineStatus(document, removed)


def _provisioned(
    machine: MachineObject, kinds: Kinds, results: Results | None
) -> Mapping[str, object]:
    """Return the fields that show it; without them until it is true."""
    is_true = results is not None and results.is_provisioned
    if not (is_true or is_provisioned(machine, kinds.mirrors)):
        return {}
    return provisioned(kinds.mirrors)


def _observed(machine: MachineObject, results: Results | None) -> Mapping[str, object]:
    addresses: object = machine.status.get("addresses")
    domain: object = machine.status.get("failureDomain")
    if results is not None and results.addresses:
        addresses = [
            {"type": str(address.type), "address": address.address}
            for address in results.addresses
        ]
    if results is not None and results.failure_domain:
        domain = results.failure_domain
    fields = {"addresses": addresses, "failureDomain": domain}
    return {name: value for name, value in fields.items() if value}


def _failure(machine: MachineObject, shown: Shown) -> Mapping[str, object]:
    """Return the fields of the older contract for a failure that a retry cannot help.

    Not once a Node has joined: the instance may come back with it.
    """
    if shown.results is None:
        recorded = {name: machine.status.get(name) for name in FAILURE}
        return {name: value for name, value in recorded.items() if value is not None}
    failure = shown.results.failure
    if failure is None or shown.has_node:
        return {}
    return {"failureReason": str(failure.reason), "failureMessage": failure.message}


def recorded_conditions(shown: HasStatus) -> Mapping[str, Mapping[str, object]]:
    """Return the conditions that an object has, by type."""
    listed = shown.status.get("conditions")
    rows = listed if isinstance(listed, list) else []
    return {str(row.get("type")): row for row in rows if isinstance(row, Mapping)}


def _conditions(
    machine: MachineObject,
    kinds: Kinds,
    shown: Shown,
    own_types: Collection[str],
    now: datetime.datetime,
) -> list[Mapping[str, object]]:
    states: dict[str, ConditionState | None] = {
        READY: shown.state,
        kinds.condition: shown.state,
        PAUSED: paused(shown.is_paused),
        **dict.fromkeys(own_types),
    }
    if shown.results is not None:
        states |= dict(shown.results.conditions)
    if shown.deleting is not None:
        states[DELETING] = ConditionState(True, Reason.DELETING, shown.deleting)
    return conditions(machine, states, now)


def paused(is_paused: bool) -> ConditionState:
    """Return the condition that shows whether an object is paused."""
    return ConditionState(is_paused, Reason.PAUSED if is_paused else Reason.NOT_PAUSED)


def conditions(
    shown: HasStatus,
    states: Mapping[str, ConditionState | None],
    now: datetime.datetime,
) -> list[Mapping[str, object]]:
    """Return conditions by type, without observedGeneration; None: as recorded."""
    recorded = recorded_conditions(shown)
    rows = [
        _condition(type_, state, recorded.get(type_), now)
        for type_, state in states.items()
    ]
    return [row for row in rows if row is not None]


def _condition(
    type_: str,
    state: ConditionState | None,
    recorded: Mapping[str, object] | None,
    now: datetime.datetime,
) -> Mapping[str, object] | None:
    """Return a condition, without its observedGeneration; None if there is none."""
    if state is None:
        if recorded is None:
            return None
        return {k: v for k, v in recorded.items() if k != "observedGeneration"}
    status = _STATUS[state.is_true]
    since: object = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if recorded is not None and recorded.get("status") == status:
        since = recorded.get("lastTransitionTime") or since
    return {
        "type": type_,
        "status": status,
        "reason": str(state.reason),
        "message": state.message[:MESSAGE_MAX],
        "lastTransitionTime": since,
    }


def holds(shown: HasStatus, document: Mapping[str, object]) -> bool:
    """Report whether the object shows all of a document, for its own generation."""
    recorded = recorded_conditions(shown)
    rows = document["conditions"]
    for row in rows if isinstance(rows, list) else []:
        before = dict(recorded.get(str(row["type"]), {}))
        if before.pop("observedGeneration", 0) != shown.metadata.generation:
            return False
        if {"message": "", **before} != row:
            return False
    return all(
        is_within(value, shown.status.get(name))
        for name, value in document.items()
        if name != "conditions"
    )


def is_within(value: object, recorded: object) -> bool:
    """Report whether a document has all fields of another, with the same values."""
    if isinstance(value, Mapping) and isinstance(recorded, Mapping):
        return all(is_within(part, recorded.get(k)) for k, part in value.items())
    return value == recorded


def with_generation(
    document: Mapping[str, object], generation: int
) -> dict[str, object]:
    """Return a document whose conditions, if any, were observed for a generation."""
    if "conditions" not in document:
        return dict(document)
    rows = document["conditions"]
    listed = rows if isinstance(rows, list) else []
    conditions = [{**row, "observedGeneration": generation} for row in listed]
    return {**document, "conditions": conditions}
