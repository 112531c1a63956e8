"""The instances of one cluster in its parent: all reads are of the watched store.

Only `confirm_absent` sends requests.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping

import structlog

from lib.cloud import errors, protocol, provider_id
from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import translate
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceRef,
    Observation,
    Seen,
    Unknown,
)
from lib.cloud.support import absence_scope, instance_index, label_values

_VMS = kinds.VIRTUAL_MACHINES
_NAMELESS = Unknown(
    errors.Unsupported("the Node has no provider ID", operation="get virtualmachine")
)

Index = instance_index.InstanceIndex[Instance]
Vms = Mapping[str, kinds.VirtualMachine]


def of_parent(access: parent.Parent) -> protocol.Cloud:
    """Return the cloud with its instances, and nothing else."""
    instances = ParentInstances(access)
    return protocol.Cloud(
        provider_id.DVP, instances, instance_changes=VmChanges(access)
    )


class ParentInstances:
    """Implements `lib.cloud.protocol.Instances`.

    Keeps only what may be thrown away: the index of the last state of the store.
    """

    def __init__(self, access: parent.Parent) -> None:
        self._parent = access
        self._guard = absence_scope.Guard(access.location, "")
        self._indexed: tuple[Vms, Index] | None = None
        self._unknown_phases: set[str] = set()
        self._log = structlog.stdlib.get_logger()

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol; the store's watch works, or all are unknown."""
        del not_before
        not_managed = {
            ref: reason
            for ref in refs
            if (reason := provider_id.not_managed(ref, provider_id.DVP))
        }
        managed = [ref for ref in refs if ref not in not_managed]
        try:
            index = self._index(self._parent.items(_VMS)) if managed else None
        except errors.CloudError as error:
            return {**not_managed, **dict.fromkeys(managed, Unknown(error))}
        observed = {ref: index.find(ref) for ref in managed} if index else {}
        return {**not_managed, **self._at_home(observed)}

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        observed = self.observe([ref for ref in refs if ref.provider_id], 0.0)
        bare = {ref: _bare(observation) for ref, observation in observed.items()}
        return {**dict.fromkeys(refs, _NAMELESS), **bare}

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol; False for instances of another provider.

        A VM that lost its labels is not absent.
        """
        if provider_id.not_managed(ref, provider_id.DVP):
            return False
        if ref.provider_id:
            name = provider_id.parse(ref.provider_id).id
            is_there = self._parent.get(_VMS, name) is not None
        else:
            is_there = self._has_named(ref.node_name)
        if not is_there:
            self._guard.check("confirm absence")
        return not is_there

    def _has_named(self, node_name: str) -> bool:
        """Read directly whether a VM has this hostname, or this name.

        Those of another cluster are ignored: names repeat among clusters.
        """
        by_name = self._parent.get(_VMS, node_name)
        vms = [] if by_name is None else [by_name]
        if label_values.is_label_value(node_name):
            labelled = f"{ownership.HOSTNAME}={node_name}"
            vms += self._parent.list_labelled(_VMS, labelled)
        owners = ("", self._parent.cluster_uuid)
        labels = (vm.metadata.labels for vm in vms)
        return any(each.get(ownership.CLUSTER, "") in owners for each in labels)

    def _index(self, vms: Vms) -> Index:
        """Return the index of a state of the store, which never changes."""
        indexed = self._indexed
        if indexed is None or indexed[0] is not vms:
            self._log_phases(vms)
            instances = [translate.instance(vm) for vm in vms.values()]
            indexed = vms, instance_index.InstanceIndex(instances, "VM")
            self._indexed = indexed
        return indexed[1]

    def _log_phases(self, vms: Vms) -> None:
        """Log each phase that is not known, once, with a VM that has it."""
        for vm in vms.values():
            phase = vm.status.phase
            if phase and phase not in translate.PHASES.keys() | self._unknown_phases:
                self._unknown_phases.add(phase)
                known = ", ".join(sorted(translate.PHASES))
                self._log.warning(
                    "unknown phase of a VM",
                    key=vm.metadata.key,
                    status=phase,
                    reason=f"must be one of {known}",
                )

    def _at_home(
        self, observations: Mapping[InstanceRef, Observation[Instance]]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """Record where IDs are observed; absence anywhere else is unknown."""
        if any(ref.provider_id for ref, o in observations.items() if _is_seen(o)):
            self._guard.observed()
        try:
            self._guard.check("list virtualmachines")
        except errors.CloudError as error:
            return {
                ref: Unknown(error) if isinstance(observation, Absent) else observation
                for ref, observation in observations.items()
            }
        return observations


def _is_seen(observation: Observation[Instance]) -> bool:
    return isinstance(observation, Seen)


def _bare(observation: Observation[Instance]) -> Observation[Instance]:
    if not isinstance(observation, Seen):
        return observation
    bare = dataclasses.replace(observation.value, addresses=(), addresses_known=False)
    return Seen(bare)


class VmChanges:
    """Implements `lib.cloud.protocol.ChangeReports` for instances.

    Of all that changes in a VM only what an instance shows is reported: a VM that runs
    writes its status all the time.
    """

    def __init__(self, access: parent.Parent) -> None:
        self._parent = access

    def subscribe(self, fn: Callable[[InstanceRef], None]) -> None:
        """See the protocol."""

        def changed(
            key: str,
            old: kinds.VirtualMachine | None,
            new: kinds.VirtualMachine | None,
        ) -> None:
            del key
            before = translate.instance(old) if old is not None else None
            after = translate.instance(new) if new is not None else None
            if before == after:
                return
            for instance in {i.name: i for i in (before, after) if i}.values():
                fn(InstanceRef(instance.name, instance.provider_id))

        self._parent.on_change(_VMS, changed)
