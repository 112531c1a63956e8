"""The plan that deletes a machine: attachments, then VM, disks and Secret. Pure.

Volumes of Pods are hot-plugged: they are detached before the VM is deleted, and stay.

Source: deckhouse modules/030-cloud-provider-dvp, images/capdvp-controller-manager
(order, annotations of what could not be deleted).
"""

import datetime
import itertools
from collections.abc import Iterator

from lib.cloud.dvp import kinds
from lib.cloud.dvp.kinds import DiskAttachmentRequest
from lib.cloud.dvp.machines import (
    machine_names,
    machine_ownership,
    machine_writes,
)
from lib.cloud.dvp.machines.machine_writes import AnyKind, MachineWrite
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.machines import ConditionState, Plan, Reason, Results, Target
from lib.cloud.steps import Step, Verb
from lib.kube import objects

DETACH_S = 60.0
"""So long a VM is not deleted because of an attachment that does not end, or whose
deletion the parent refuses."""
POLL_S = 10.0
"""When to observe again; no request is sent, and the watch reports a change before."""
_WHY = "its machine is deleted"

Part = tuple[AnyKind, objects.ObjectMeta]
Labels = tuple[tuple[str, str], ...]


def plan(target: Target, native: ParentMachine, now: datetime.datetime) -> Plan:
    """Return what deletes all that is owned, or may be adopted."""
    parts = tuple(_parts(target, native))
    if not parts:
        return Plan(settled=True)
    attachments = native.attachments if _has_vm(parts) else ()
    steps = tuple(_steps(native, parts, attachments, now))
    return Plan(
        steps,
        retry_after_s=None if steps else POLL_S,
        results=Results(ConditionState(False, Reason.DELETING)),
        leftovers=tuple(
            f"{kind.resource.kind} {about.name}"
            for kind, about in (*_of_attachments(attachments), *parts)
        ),
        abandoned=tuple(_abandoned(parts, now)),
        asked_at=_asked_at(parts),
    )


def _asked_at(parts: tuple[Part, ...]) -> datetime.datetime | None:
    """Return when the parent accepted the first deletion; None: not yet of all parts.

    Attachments are no parts: without its VM none of them is left.
    """
    times = [about.deletion_timestamp for _, about in parts]
    accepted = [time for time in times if time is not None]
    return min(accepted) if len(accepted) == len(times) else None


def _parts(target: Target, native: ParentMachine) -> Iterator[Part]:
    """Yield what is to be deleted: nothing that another owns."""
    for kind, about in machine_writes.objects(native):
        is_meant = target.only is None or about.uid in target.only
        if is_meant and not machine_ownership.other_owner(native.machine, about):
            yield kind, about


def _has_vm(parts: tuple[Part, ...]) -> bool:
    return any(kind is kinds.VIRTUAL_MACHINES for kind, _ in parts)


def _of_attachments(attachments: tuple[DiskAttachmentRequest, ...]) -> Iterator[Part]:
    for attachment in attachments:
        yield kinds.DISK_ATTACHMENTS, attachment.metadata


def _steps(
    native: ParentMachine,
    parts: tuple[Part, ...],
    attachments: tuple[DiskAttachmentRequest, ...],
    now: datetime.datetime,
) -> Iterator[Step]:
    rows = tuple(_of_attachments(attachments))
    yield from _deletions(native, rows)
    if not any(_is_awaited(native, about, now) for _, about in rows):
        yield from _deletions(native, parts)


def _is_awaited(
    native: ParentMachine, about: objects.ObjectMeta, now: datetime.datetime
) -> bool:
    if native.refused_s.get(about.name, 0.0) >= DETACH_S:
        return False
    since = about.deletion_timestamp
    return since is None or (now - since).total_seconds() < DETACH_S


def _deletions(native: ParentMachine, parts: tuple[Part, ...]) -> Iterator[Step]:
    """Yield the deletion of what is not being deleted, one step for each kind.

    Objects that lack the labels of the machine are deleted one by one.
    """
    left = [part for part in parts if part[1].deletion_timestamp is None]
    for kind, rows in itertools.groupby(left, key=lambda part: part[0]):
        listed = [about for _, about in rows]
        labels = _labels(native, kind)
        together = [about for about in listed if _has(about, labels)]
        if len(together) > 1:
            names = ", ".join(about.name for about in together)
            yield _deletion(MachineWrite(kind, names, labels=labels))
            listed = [about for about in listed if about not in together]
        for about in listed:
            yield _deletion(MachineWrite(kind, about.name, about.uid))


def _deletion(write: MachineWrite) -> Step:
    return machine_writes.step(Verb.DELETE, write, _WHY)


def _labels(native: ParentMachine, kind: AnyKind) -> Labels:
    """Return labels that select all objects of a kind, and no others; empty: none do.

    Those of disks contain the UID of the machine object: no volume of a Pod, and no
    disk of another machine, has them.
    """
    machine = native.machine
    if not machine.uid or kind.resource.plural not in native.selectable:
        return ()
    if kind is kinds.DISK_ATTACHMENTS:
        return tuple(machine_ownership.attachment_labels(machine).items())
    return tuple(machine_ownership.labels(machine).items())


def _has(about: objects.ObjectMeta, labels: Labels) -> bool:
    return bool(labels) and set(labels) <= about.labels.items()


def _abandoned(
    parts: tuple[Part, ...], now: datetime.datetime
) -> Iterator[tuple[str, str]]:
    """Yield the annotations of the reference for what could not be deleted."""
    for kind, about in parts:
        if kind is kinds.VIRTUAL_MACHINES:
            yield machine_names.ORPHANED_VM, about.name
            yield machine_names.ORPHANED_AT, now.strftime("%Y-%m-%dT%H:%M:%SZ")
        elif kind is kinds.VIRTUAL_DISKS:
            yield machine_names.orphaned_disk(about.name), about.name


def is_done(target: Target, native: ParentMachine) -> bool:
    """Report whether nothing that is to be deleted is known to exist."""
    return target.spec is None and not any(_parts(target, native))
