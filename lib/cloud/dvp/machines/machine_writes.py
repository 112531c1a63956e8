"""The writes of a machine, each a step that can be printed. Pure."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from lib.cloud.dvp import kinds
from lib.cloud.dvp.kinds import ParentKind
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.explained import FieldChange
from lib.cloud.machines import Bootstrap
from lib.cloud.steps import Step, Verb
from lib.kube import objects as kube_objects

Json = dict[str, object]
AnyKind = ParentKind[Any]


@dataclasses.dataclass(frozen=True, slots=True)
class MachineWrite:
    """One write of an object. uid: of that object; empty: it is created.

    document: of a creation, or a merge patch; None: it is deleted. changes: for people.
    bootstrap: whose data is added to the document when it is sent. labels: of several
    objects that are deleted together; name then contains the names of all.
    """

    kind: AnyKind
    name: str
    uid: str = ""
    document: Json | None = None
    changes: tuple[FieldChange, ...] = ()
    bootstrap: Bootstrap | None = None
    labels: tuple[tuple[str, str], ...] = ()


def of(step: Step) -> MachineWrite:
    """Return the request of a step."""
    if not isinstance(step.native, MachineWrite):
        raise TypeError(f"not of this cloud: {step!r}")
    return step.native


def step(verb: Verb, write: MachineWrite, why: str) -> Step:
    """Return a step, which waits for no other one, nor for its success."""
    kind = write.kind.resource.kind + ("s" if write.labels else "")
    path = (f"{kind} {write.name} of the parent",)
    return Step(verb, path, why, write, is_gated=False, group=path[0])


def objects(
    native: ParentMachine,
) -> Iterator[tuple[AnyKind, kube_objects.ObjectMeta]]:
    """Yield kind and metadata of the VM, its disks and its Secret, as they exist."""
    if native.vm is not None:
        yield kinds.VIRTUAL_MACHINES, native.vm.metadata
    for name in sorted(native.disks):
        yield kinds.VIRTUAL_DISKS, native.disks[name].metadata
    if native.secret is not None:
        yield kinds.SECRETS, native.secret.metadata
