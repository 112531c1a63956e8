"""Status of the OpenStackDeployment and its OpenStackDeploymentStatus. Pure."""

import dataclasses
import datetime
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lib.osdpl.api import annotations, model
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import bundles, upgrade
from lib.osdpl.reconcile.snapshot import Refused, Snapshot
from lib.osdpl.reconcile.states import ReleaseState, Why
from lib.osdpl.rules import openstack

ACCEPTED = "Accepted"
APPLIED = "Applied"
FIELDS_IGNORED = "FieldsIgnored"
UPGRADING = "Upgrading"
NOT_ACCEPTED = "NotAccepted"
MESSAGE_MAX = 4000
DELETION_BEGUN = "the OpenStackDeployment is being deleted"
"""Message of a deletion that was not refused; it is not refused later."""


class Phase(enum.StrEnum):
    """State of a service, and of the whole.

    Source: the reference's OpenStackDeploymentStatus.
    """

    APPLYING = "APPLYING"
    APPLIED = "APPLIED"
    DELETING = "DELETING"
    WAITING = "WAITING"
    FAILED = "FAILED"
    REFUSED = "REFUSED"
    """It cannot be rendered. An addition to the reference."""


_REASONS = {
    Phase.APPLYING: "Applying",
    Phase.APPLIED: "Applied",
    Phase.DELETING: "Deleting",
    Phase.WAITING: "Waiting",
    Phase.FAILED: "Failed",
    Phase.REFUSED: "Refused",
}


WORST = (
    *(Phase.FAILED, Phase.DELETING, Phase.APPLYING, Phase.WAITING),
    Phase.REFUSED,
)
_PHASES: Mapping[Why, Phase] = {
    Why.FAILED: Phase.FAILED,
    Why.INVALID: Phase.FAILED,
    Why.DELETING: Phase.DELETING,
    Why.RUNNING: Phase.APPLYING,
    Why.DUE: Phase.APPLYING,
    Why.WAITING: Phase.WAITING,
    Why.DONE: Phase.APPLIED,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the OpenStackDeployment."""

    type: str
    is_true: bool
    reason: str
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceState:
    """A service: its state, and why it is not applied."""

    phase: Phase
    cause: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an upgrade to another OpenStack version.

    versions: by service, the version of its oldest release. step: None: no upgrade.
    """

    versions: Mapping[str, str]
    step: upgrade.UpgradeStep | None


def refused(reason: Refused, message: str) -> tuple[Condition, ...]:
    """Return the conditions of an OpenStackDeployment that is not served."""
    words = f"nothing is changed: {reason.value}"
    return (
        Condition(ACCEPTED, False, reason.value, message[:MESSAGE_MAX]),
        Condition(APPLIED, False, NOT_ACCEPTED, words),
    )


def of_service(states: Iterable[ReleaseState]) -> ServiceState:
    """Return the state of a service: that of its releases which are worst."""
    releases = [(release.name, release.progress) for release in states]
    phases = {_PHASES[progress.why] for _, progress in releases}
    phase = next((phase for phase in WORST if phase in phases), Phase.APPLIED)
    rows = [row for row in releases if _PHASES[row[1].why] is phase]
    if phase is Phase.FAILED:
        return ServiceState(phase, rows[0][1].message or "the last run failed")
    if phase is not Phase.WAITING:
        return ServiceState(phase)
    names = ", ".join(name for name, _ in rows)
    return ServiceState(phase, f"{names}: waiting for {rows[0][1].message}")


def of_refusal(refusal: model.Refusal) -> ServiceState:
    """Return the state of a service that cannot be rendered."""
    problems = "; ".join(map(str, refusal.problems))
    is_waiting = refusal.reason is model.Reason.REQUIRES_CEPH
    phase = Phase.WAITING if is_waiting else Phase.REFUSED
    return ServiceState(phase, f"{refusal.reason.value}: {problems}"[:MESSAGE_MAX])


def whole(services: Mapping[str, ServiceState]) -> Phase:
    """Return the state of the deployment: the worst state of its services."""
    phases = {service.phase for service in services.values()}
    return next((phase for phase in WORST if phase in phases), Phase.APPLIED)


def of_services(
    services: Mapping[str, ServiceState],
    ignored: Sequence[str] = (),
    defaults: Sequence[str] = (),
) -> tuple[Condition, ...]:
    """Return the conditions of an OpenStackDeployment that is served.

    ignored: texts about the fields of the spec that have no effect. defaults: about
    defaults of the reference that are not applied.
    """
    phase = whole(services)
    return (
        accepted(ignored, defaults),
        Condition(
            APPLIED,
            phase is Phase.APPLIED,
            _REASONS[phase],
            _causes(services, phase)[:MESSAGE_MAX],
        ),
    )


def _causes(services: Mapping[str, ServiceState], phase: Phase) -> str:
    """Return why services are in the phase of the whole.

    Services in another phase are omitted: waiting for an earlier service needs no
    report, and each change of the message is an Event.
    """
    by_cause: dict[str, list[str]] = {}
    for name, service in sorted(services.items()):
        if service.cause and service.phase is phase:
            by_cause.setdefault(service.cause, []).append(name)
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in by_cause.items())


def upgrading(
    conditions: Sequence[Condition], step: upgrade.UpgradeStep
) -> tuple[Condition, ...]:
    """Return the conditions during an upgrade that has not failed."""
    words = f"OpenStack {step.before} to {step.after}: {step.service}"
    message = f"{words}: {step.waits}" if step.waits else words
    return tuple(
        (
            Condition(APPLIED, False, UPGRADING, message[:MESSAGE_MAX])
            if condition.type == APPLIED and condition.reason != _REASONS[Phase.FAILED]
            else condition
        )
        for condition in conditions
    )


def without_failure(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions of a failed whole while more failures may follow."""
    return tuple(
        (
            Condition(APPLIED, False, _REASONS[Phase.APPLYING])
            if condition.type == APPLIED and condition.reason == _REASONS[Phase.FAILED]
            else condition
        )
        for condition in conditions
    )


def has_failed(snapshot: Snapshot) -> bool:
    """Report whether the deployment has failed by its status."""
    rows = (snapshot.document.get("status") or {}).get("conditions") or ()
    return any(
        row["type"] == APPLIED and row.get("reason") == _REASONS[Phase.FAILED]
        for row in rows
    )


def unfinished_state(document: Document) -> str:
    """Return the state of an object that is not applied; empty: it is, or is unknown.

    By its conditions, for an object whose OpenStackDeploymentStatus was deleted.
    """
    rows = (document.get("status") or {}).get("conditions") or ()
    reasons = {row["type"]: row.get("reason") for row in rows}
    if _has_begun_deletion(rows):
        return ""
    if reasons.get(ACCEPTED) == Refused.DELETION_REFUSED:
        return Phase.FAILED.value
    if reasons.get(APPLIED) == UPGRADING:
        return Phase.APPLYING.value
    finished = (Phase.APPLIED, Phase.REFUSED)
    phases = (phase for phase in Phase if phase not in finished)
    matching = (phase for phase in phases if _REASONS[phase] == reasons.get(APPLIED))
    return next((phase.value for phase in matching), "")


def is_deletable(document: Document) -> bool:
    """Report whether an object is applied, or its deletion has begun."""
    rows = (document.get("status") or {}).get("conditions") or ()
    is_applied = any(
        row["type"] == APPLIED and row.get("status") == "True" for row in rows
    )
    return is_applied or _has_begun_deletion(rows)


def _has_begun_deletion(rows: Iterable[Document]) -> bool:
    return any(
        row["type"] == APPLIED and row.get("message") == DELETION_BEGUN for row in rows
    )


def deletion_held(message: str) -> tuple[Condition, ...]:
    """Return the conditions of a deletion that has begun and cannot end."""
    return (
        Condition(
            ACCEPTED, False, Refused.DELETION_REFUSED.value, message[:MESSAGE_MAX]
        ),
        Condition(APPLIED, False, _REASONS[Phase.DELETING], DELETION_BEGUN),
    )


def kept_by(finalizers: Sequence[str]) -> tuple[Condition, ...]:
    """Return the conditions of a deleted object that finalizers of others keep."""
    words = (
        "no release is installed any more; the object is kept by the finalizers of"
        f" other programs: {', '.join(finalizers)}"
    )
    deleted = Condition(APPLIED, False, _REASONS[Phase.DELETING], words)
    return (accepted(()), deleted)


def deleting(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions of a deletion that has not failed."""
    return tuple(
        (
            dataclasses.replace(condition, message=DELETION_BEGUN)
            if condition.reason == _REASONS[Phase.DELETING]
            else condition
        )
        for condition in conditions
    )


def accepted(ignored: Sequence[str], defaults: Sequence[str] = ()) -> Condition:
    """Return the condition of a valid spec; it names the fields without effect.

    defaults: of the reference that are not applied.
    """
    if not ignored:
        words = "; ".join(defaults)
        return Condition(ACCEPTED, True, "Accepted", words[:MESSAGE_MAX])
    words = "; ".join((f"fields without effect: {'; '.join(ignored)}", *defaults))
    return Condition(ACCEPTED, True, FIELDS_IGNORED, words[:MESSAGE_MAX])


def draft() -> tuple[Condition, ...]:
    """Return the conditions of a draft."""
    words = "spec.draft is true: nothing is changed until it is false"
    return (accepted(()), Condition(APPLIED, False, "Draft", words))


def paused(problems: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions of an OpenStackDeployment that is paused.

    problems: the conditions of a spec that is refused; empty: it is valid.
    """
    words = f"the annotation {annotations.PAUSED} is true: nothing is changed"
    valid = problems[0] if problems else accepted(())
    return (valid, Condition(APPLIED, False, "Paused", words))


def with_readiness(
    conditions: Sequence[Condition], ready: int, total: int
) -> tuple[Condition, ...]:
    """Return the conditions with the number of workloads that are Ready.

    Applied says that helm has ended, and not that anything runs.
    """
    words = f"{ready} of {total} workloads Ready"
    return tuple(
        (
            dataclasses.replace(condition, message=words)
            if condition.type == APPLIED and condition.is_true
            else condition
        )
        for condition in conditions
    )


def status(
    snapshot: Snapshot, conditions: Sequence[Condition], now: datetime.datetime
) -> dict[str, Any]:
    """Return the status of the OpenStackDeployment, as it is applied."""
    before = {
        row["type"]: row
        for row in (snapshot.document.get("status") or {}).get("conditions") or ()
    }
    generation = snapshot.document["metadata"].get("generation") or 0
    return {
        "conditions": [
            _condition(condition, before.get(condition.type), generation, now)
            for condition in conditions
        ]
    }


def _condition(
    condition: Condition,
    before: Document | None,
    generation: int,
    now: datetime.datetime,
) -> dict[str, Any]:
    value = "True" if condition.is_true else "False"
    since = timestamp(now)
    if before is not None and before.get("status") == value:
        since = before.get("lastTransitionTime") or since
    return {
        "type": condition.type,
        "status": value,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }


def events(
    snapshot: Snapshot, conditions: Sequence[Condition]
) -> tuple[tuple[str, str, str], ...]:
    """Return the Events of conditions that differ from those in the status.

    A refusal is one Event: that of Accepted. Applied only repeats it.
    """
    before = {
        row["type"]: (row.get("status"), row.get("reason"), row.get("message"))
        for row in (snapshot.document.get("status") or {}).get("conditions") or ()
    }
    rows = []
    for condition in conditions:
        value = "True" if condition.is_true else "False"
        known = before.get(condition.type)
        is_same = known == (value, condition.reason, condition.message)
        if condition.is_true and condition.type == APPLIED and known is not None:
            # The number of workloads that are Ready changes too often for an Event.
            is_same = known[:2] == (value, condition.reason)
        if is_same or condition.reason == NOT_ACCEPTED:
            continue
        is_bad = condition.reason == FIELDS_IGNORED or (
            not condition.is_true and condition.reason not in _ROUTINE
        )
        type = "Warning" if is_bad else "Normal"
        rows.append(
            (
                type,
                condition.reason,
                condition.message or f"{condition.type} is {value}",
            )
        )
    return tuple(rows)


_ROUTINE = ("Applying", "Deleting", "Waiting", "Draft", "Paused", UPGRADING)


def whole_status(
    snapshot: Snapshot,
    services: Mapping[str, ServiceState],
    progress: Progress,
    now: datetime.datetime,
) -> dict[str, Any]:
    """Return the OpenStackDeploymentStatus, as it is applied."""
    before = (snapshot.status or {}).get("status") or {}
    rendered = snapshot.desired.rendered
    shared = {
        "openstack_version": rendered.openstack_version if rendered else "",
        "fingerprint": rendered.fingerprint if rendered else "",
    }
    phase = whole(services)
    causes = [
        f"{name}: {service.cause}"
        for name, service in services.items()
        if service.cause
    ]
    own = _state(phase, "; ".join(causes), shared, before.get("osdpl"), now)
    done = sum(service.phase is Phase.APPLIED for service in services.values())
    own["lcm_progress"] = f"{done}/{len(services)}"
    deployment = snapshot.desired.deployment
    own["fields"] = openstack.hashes(deployment.spec) if deployment else {}
    if progress.step is not None:
        own["upgrade"] = _upgrade(progress.step)
    return {
        "apiVersion": bundles.API_VERSION,
        "kind": "OpenStackDeploymentStatus",
        "metadata": {
            "name": snapshot.name,
            "namespace": snapshot.namespace,
            "ownerReferences": [bundles.owner(snapshot)],
        },
        "status": {
            "osdpl": own,
            "services": {
                name: _state(
                    service.phase,
                    service.cause,
                    _shared(
                        shared,
                        progress,
                        name,
                        service.phase,
                        (before.get("services") or {}).get(name),
                    ),
                    (before.get("services") or {}).get(name),
                    now,
                )
                for name, service in sorted(services.items())
            },
        },
    }


def _shared(
    desired: Mapping[str, str],
    progress: Progress,
    service: str,
    phase: Phase,
    before: Document | None,
) -> dict[str, str]:
    """Return the OpenStack version and the fingerprint of a service.

    Those of a service that failed, or is refused, are the installed ones.
    """
    version = progress.versions.get(service)
    if phase in (Phase.FAILED, Phase.REFUSED):
        fingerprint = str((before or {}).get("fingerprint") or "")
        return {"openstack_version": version or "", "fingerprint": fingerprint}
    return {**desired, **({"openstack_version": version} if version else {})}


def _upgrade(step: upgrade.UpgradeStep) -> dict[str, str]:
    """Return where an upgrade is, as the OpenStackDeploymentStatus shows it."""
    return {
        "from": step.before,
        "to": step.after,
        "service": step.service,
        "progress": step.progress,
        "waiting_for": step.waits[:MESSAGE_MAX],
    }


def _state(
    phase: Phase,
    cause: str,
    shared: Mapping[str, str],
    before: Document | None,
    now: datetime.datetime,
) -> dict[str, Any]:
    since = timestamp(now)
    if before is not None and before.get("state") == phase.value:
        since = before.get("timestamp") or since
    described = {**shared, "state": phase.value, "timestamp": since}
    return described | ({"cause": cause[:MESSAGE_MAX]} if cause else {})


def timestamp(now: datetime.datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
