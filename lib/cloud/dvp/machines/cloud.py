"""The machines of one cluster in its parent: entry point of this package."""

import datetime
import math
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.machines import (
    desired_machine,
    machine_changes,
    machine_documents,
    machine_names,
    machine_plan,
    machine_reader,
    machine_writes,
)
from lib.cloud.dvp.machines.machine_reasons import (
    PARTS_READY,
    SPEC_APPLIED,
    DvpMachineReason,
)
from lib.cloud.dvp.machines.machine_writes import AnyKind, MachineWrite
from lib.cloud.dvp.parent import TIMEOUT_S, Parent
from lib.cloud.machines import (
    Facts,
    Observation,
    Observed,
    Owned,
    Plan,
    Problems,
    ReadBootstrap,
    Ref,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult, Verb
from lib.kube import objects

ENDING_POLL_S = 5.0
"""When to ask again for a VM that is being deleted; that costs no call."""
BOOTSTRAP_BYTES_MAX = 2**20
"""Source: k8s.io/api/core/v1, MaxSecretSize."""


class DvpMachines:
    """Implements `Machines`, and `lib.cloud.protocol.ChangeReports` of them."""

    bootstrap_bytes_max = BOOTSTRAP_BYTES_MAX
    conditions = (PARTS_READY, SPEC_APPLIED)

    def __init__(self, access: Parent, read_bootstrap: ReadBootstrap) -> None:
        """read_bootstrap: called in `apply` alone."""
        self._parent = access
        self._read_bootstrap = read_bootstrap
        self._changes = machine_changes.MachineChanges(access)
        self._reader = machine_reader.MachineReader(
            access, self._changes.need, access.clock
        )

    @property
    def reasons(self) -> tuple[DvpMachineReason, ...]:
        """See the protocol."""
        return tuple(DvpMachineReason)

    def refer(self, facts: Facts) -> Ref:
        """See the protocol; the native part is the recorded provider ID."""
        return Ref(
            facts.cluster_id,
            facts.namespace,
            facts.name,
            facts.uid,
            facts.provider_id or None,
        )

    def parse(self, facts: Facts) -> Spec | Problems:
        """See the protocol."""
        return desired_machine.parse(facts, self._parent.cluster_uuid)

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol."""
        for target in targets:
            self._changes.expect(target.ref)
        observations = self._reader.observe(targets)
        for target in targets:
            answer = observations[target.ref]
            is_gone = isinstance(answer, Seen) and not answer.value.is_there
            if target.spec is None and is_gone:
                self._changes.forget(target.ref)
        return observations

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        return machine_plan.plan(target, observed, now)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol."""
        write = machine_writes.of(step)
        if within_s <= 0:
            raise errors.Unavailable(
                "no time is left",
                operation=f"{step.verb} {write.kind.singular}",
                resource=write.name,
                was_rejected=True,
            )
        try:
            uid = self._send(write, min(TIMEOUT_S, within_s))
        except errors.AlreadyExists as error:
            self._reader.note_taken(write.kind, write.name)
            raise _busy("it exists, and is read again", error) from error
        except errors.NotFound:
            if step.verb is not Verb.DELETE:
                raise
            uid = ""
        except (errors.Forbidden, errors.InvalidRequest) as error:
            if not write.labels:
                self._note_refused(write)
                raise
            self._reader.note_selection_refused()
            text = "refused for all together; they are deleted one by one"
            raise _busy(text, error) from error
        if write.kind is not kinds.VIRTUAL_MACHINES:
            return StepResult()
        self._reader.note_deleted(write.name, is_deleted=step.verb is Verb.DELETE)
        return StepResult(uid)

    def _note_refused(self, write: MachineWrite) -> None:
        is_deletion = write.document is None
        if is_deletion and write.kind is kinds.DISK_ATTACHMENTS:
            self._reader.note_detach_refused(write.name)

    def _send(self, write: MachineWrite, timeout_s: float) -> str:
        """Send one request; return the UID of the object that it concerns."""
        parent, kind = self._parent, write.kind
        if write.labels:
            parent.delete_labelled(kind, dict(write.labels), timeout_s)
            return ""
        if write.document is None:
            parent.delete(kind, write.name, write.uid, timeout_s)
            return write.uid
        if write.uid:
            parent.patch(kind, write.name, write.document, timeout_s)
            return write.uid
        document = write.document
        if write.bootstrap is not None:
            data = self._read_bootstrap(write.bootstrap)
            document = machine_documents.with_data(document, data)
        about: objects.HasMetadata = parent.create(kind, document, timeout_s)
        return about.metadata.uid

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol; no request is sent."""
        if not asked:
            return {}
        try:
            return {plan.id: self._gate(plan.id) for plan in asked}
        except errors.CloudError as error:
            return {plan.id: Unknown(error) for plan in asked}

    def _gate(self, uid: str) -> Gate:
        """Open: the VM exists. Steps never wait for its state."""
        vm = self._reader.vm(uid)
        if vm is None or vm.metadata.uid != uid:
            return Gate(GateState.LOST)
        if vm.metadata.deletion_timestamp is not None:
            return Gate(GateState.CLOSED, ENDING_POLL_S)
        return Gate(GateState.OPEN)

    def owned(self, cluster_id: str) -> Iterator[Owned]:
        """See the protocol: VMs, disks of VMs, and Secrets with bootstrap data.

        VMs of other tools have the label of the cluster, too: without a reference.
        """
        listed: tuple[tuple[AnyKind, objects.HasMetadata], ...] = (
            *((kinds.VIRTUAL_MACHINES, vm) for vm in self._reader.vms()),
            *self._reader.parts(),
        )
        for kind, part in listed:
            if ownership.is_owned(part.metadata.labels, cluster_id):
                yield _owned(kind, part.metadata, cluster_id)

    def subscribe(self, fn: Callable[[str], None]) -> None:
        """See `lib.cloud.protocol.ChangeReports`: the UID of the machine object."""
        self._changes.subscribe(fn)


def _busy(text: str, error: errors.CloudError) -> errors.Busy:
    """Return the error of a request that another one replaces."""
    return errors.Busy(
        text, operation=error.operation, resource=error.resource, was_rejected=True
    )


def _owned(kind: AnyKind, about: objects.ObjectMeta, cluster_id: str) -> Owned:
    """Return an object with its machine, as far as labels or its name show it."""
    uid = about.labels.get(ownership.OWNER_UID, "")
    host = about.labels.get(ownership.HOSTNAME, "")
    key = about.annotations.get(machine_names.MACHINE_ANNOTATION, "")
    namespace, _, name = key.rpartition("/")
    is_machine = bool(uid) or (bool(host) and _is_part_of(host, kind, about.name))
    return Owned(
        kind.resource.kind,
        about.uid,
        about.name,
        uid,
        created=about.creation_timestamp,
        ref=Ref(cluster_id, namespace, name or host, uid) if is_machine else None,
        note="" if uid else "it has no label of a machine",
    )


def _is_part_of(host: str, kind: AnyKind, name: str) -> bool:
    """Report whether a name is one of a machine of the reference, by its host name."""
    if kind is kinds.VIRTUAL_MACHINES:
        return name == host
    if kind is kinds.SECRETS:
        return name == machine_names.secret(host)
    return machine_names.is_disk_of(host, name)
