"""Reads the parent for load balancers: from watched stores, without requests.

The exceptions: whether the parent serves ServiceWithHealthchecks is asked once at the
start, and before a load balancer is created, at most every five minutes. That nothing
is left of a deleted Service is confirmed by direct reads.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.kinds import ParentKind, ParentService, VirtualMachine
from lib.cloud.dvp.load_balancers import lb_names, observed_service
from lib.cloud.dvp.load_balancers.observed_service import LabelledVm, ParentObjects
from lib.cloud.dvp.parent import Parent
from lib.cloud.load_balancers import Observation, Observed, Ref, Target
from lib.cloud.model import Seen, Unknown

DISCOVERY_S = 300.0
"""Source: deckhouse modules/030-cloud-provider-dvp, cloud-controller-manager."""
KEPT_S = 300.0
"""How long a label that cannot be removed holds its deleted Service."""
CATCH_UP_S = 1.0
"""How long a read waits for the watch to show our own last write."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Shared:
    """What one observation reads for all Services.

    labelled: VMs by each label of load balancers they have. deadline: until when the
    watches are waited for, by the clock.
    """

    services: Mapping[str, ParentService]
    checked: Mapping[str, ParentService] | errors.CloudError
    created_by_checked: Mapping[str, ParentService]
    vms: Mapping[str, tuple[LabelledVm, ...]]
    labelled: Mapping[str, tuple[LabelledVm, ...]]
    deadline: float


class ParentReader:
    """Observes load balancers. Thread-safe.

    on_served: called with the second kind once the parent serves it. clock: monotonic
    seconds.
    """

    def __init__(
        self,
        parent: Parent,
        on_served: Callable[[ParentKind[ParentService]], None] = lambda kind: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parent = parent
        self._on_served = on_served
        self._clock = clock
        self._lock = threading.Lock()
        self._discovery_lock = threading.Lock()  # held during a request
        self._serves_checked = False
        self._asked_at = float("-inf")
        self._labelled_vms: set[str] = set()
        self._unkept: dict[str, dict[str, str]] = {}
        self._kept_labels: set[tuple[str, str]] = set()
        self._failing_labels: dict[tuple[str, str], float] = {}  # since when

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol."""
        if not targets:
            return {}
        try:
            shared = self._read()
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        return {target.ref: self._observation(target, shared) for target in targets}

    def note_labelled(self, vm: str) -> None:
        """Note that this process has sent a write of a VM's labels, by its name."""
        with self._lock:
            self._labelled_vms.add(vm)

    def note_label_kept(self, vm: str, key: str, *, is_final: bool) -> None:
        """Note that a label of a VM was not removed. vm: its name.

        is_final: the parent refused that, or the VM is gone. Other errors count after
        KEPT_S.
        """
        with self._lock:
            now_s = self._clock()
            since_s = self._failing_labels.setdefault((vm, key), now_s)
            if is_final or now_s - since_s >= KEPT_S:
                self._kept_labels.add((vm, key))

    def _kept_of(self, key: str, labelled: Collection[LabelledVm]) -> frozenset[str]:
        names = {vm.name for vm in labelled}
        with self._lock:
            gone = {
                failed
                for failed in self._failing_labels
                if failed[1] == key and failed[0] not in names
            }
            self._kept_labels -= gone
            for failed in gone:
                del self._failing_labels[failed]
            return frozenset(vm for vm, of in self._kept_labels if of == key)

    def note_unkept(self, name: str, what: str, fields: str) -> None:
        """Note fields that differ again in the answer to a patch; empty: none.

        name: of the load balancer. what: the object that was written for it.
        """
        with self._lock:
            noted = self._unkept.pop(name, {})
            noted.pop(what, None)
            if fields:
                noted[what] = fields
            if noted:
                self._unkept[name] = noted

    def _unkept_of(self, name: str) -> str:
        with self._lock:
            noted = sorted(self._unkept.get(name, {}).items())
        return "; ".join(f"{what}: {fields}" for what, fields in noted)

    def _read(self) -> _Shared:
        # First what costs no request: while a watch fails, nothing is asked.
        deadline = self.deadline()
        vms = self._machines(deadline)
        services = self._parent.items(kinds.SERVICES)
        self._discover(float("inf"))
        checked = self._checked()
        return _Shared(
            services,
            checked,
            {
                owner: service
                for service in services.values()
                if (owner := observed_service.checked_owner(service))
            },
            _by_host(vms),
            _by_label(vms),
            deadline,
        )

    def deadline(self) -> float:
        """Return until when one call for any number of Services waits for watches."""
        return self._clock() + CATCH_UP_S

    def _find(
        self, kind: ParentKind[ParentService], name: str, deadline: float
    ) -> ParentService | None:
        """Return an object from its store, which shows our own last write.

        Raises:
            CloudError: it is not known.
        """
        left_s = max(0.0, deadline - self._clock())
        self._parent.wait(kind, name, _exists, left_s)
        return self._parent.find(kind, name)

    def _machines(self, deadline: float) -> tuple[VirtualMachine, ...]:
        """Return the VMs of the cluster, with all writes of this process."""
        parent, kind = self._parent, kinds.VIRTUAL_MACHINES
        with self._lock:
            names = tuple(self._labelled_vms)
        for name in names:
            parent.wait(kind, name, _exists, max(0.0, deadline - self._clock()))
        late = {name for name in names if not parent.is_current(kind, name)}
        with self._lock:
            self._labelled_vms -= set(names) - late
        machines = dict(parent.items(kind))
        for name in late:
            machine = parent.get(kind, name)
            if machine is None:
                machines.pop(parent.key(kind, name), None)
            else:
                machines[parent.key(kind, name)] = machine
        return tuple(
            machine
            for machine in machines.values()
            if machine.metadata.deletion_timestamp is None
        )

    def _checked(self) -> Mapping[str, ParentService] | errors.CloudError:
        """Return all of the other kind; why they cannot be read is no error of all."""
        if not self._serves_checked:
            return {}
        try:
            return self._parent.items(kinds.HEALTHCHECKED_SERVICES)
        except errors.CloudError as error:
            return error

    def _discover(self, max_age_s: float) -> bool:
        """Report whether the second kind is served, asked that long ago at most.

        Raises:
            CloudError: it is not known.
        """
        with self._discovery_lock:
            if self._clock() - self._asked_at >= max_age_s:
                kind = kinds.HEALTHCHECKED_SERVICES
                # What is watched stays so: its objects would not be found any more.
                self._serves_checked |= self._parent.serves(kind)
                self._asked_at = self._clock()
                if self._serves_checked:
                    self._on_served(kind)
            return self._serves_checked

    def _observation(self, target: Target, shared: _Shared) -> Observation:
        """Read what there is for one Service; its error concerns no other."""
        try:
            native = self._native(target, shared)
            if target.spec is None and native.main is None and not native.removable:
                native = self._confirmed(target, native)
        except errors.CloudError as error:
            return Unknown(error)
        main = native.main
        name = main[1].metadata.name if main else ""
        return Seen(Observed(main is not None or bool(native.labelled), name, native))

    def _native(self, target: Target, shared: _Shared) -> ParentObjects:
        name = lb_names.object_name(target.ref.uid)
        key = lb_names.label_key(name)
        labelled = shared.labelled.get(key, ())
        service = self._find(kinds.SERVICES, name, shared.deadline)
        is_plain = service is not None and not observed_service.is_of_checked(service)
        if not is_plain and isinstance(shared.checked, errors.CloudError):
            raise shared.checked
        checked = None
        if self._serves_checked and not isinstance(shared.checked, errors.CloudError):
            kind = kinds.HEALTHCHECKED_SERVICES
            checked = self._find(kind, name, shared.deadline)
        is_new = target.spec is not None and service is None and checked is None
        return ParentObjects(
            self._parent.cluster_uuid,
            service,
            checked,
            shared.created_by_checked.get(name),
            self._discover(DISCOVERY_S) if is_new else self._serves_checked,
            shared.vms,
            labelled,
            self._kept_of(key, labelled),
            self._unkept_of(name),
        )

    def _confirmed(self, target: Target, native: ParentObjects) -> ParentObjects:
        """Read directly, before a Service is released, that nothing of it is left.

        A watch that is late would show the same.
        """
        name = lb_names.object_name(target.ref.uid)
        service = self._parent.get(kinds.SERVICES, name)
        checked = None
        if self._serves_checked:
            checked = self._parent.get(kinds.HEALTHCHECKED_SERVICES, name)
        key = lb_names.label_key(name)
        selector = f"{ownership.selector(self._parent.cluster_uuid)},{key}"
        vms = self._parent.list_labelled(kinds.VIRTUAL_MACHINES, selector)
        labelled = _by_label(vms).get(key, ())
        return dataclasses.replace(
            native, service=service, checked=checked, labelled=labelled
        )

    def named(self, name: str, deadline: float) -> tuple[ParentService, ...]:
        """Return the load balancers of a name. deadline: see `deadline`.

        Raises:
            CloudError: they are not known.
        """
        served = (kinds.SERVICES, kinds.HEALTHCHECKED_SERVICES)
        objects = (
            self._find(kind, name, deadline)
            for kind in served
            if kind is kinds.SERVICES or self._serves_checked
        )
        return tuple(
            service
            for service in objects
            if service is not None and not observed_service.is_of_checked(service)
        )

    def balancers(self) -> tuple[tuple[str, ParentService], ...]:
        """Return all objects of both kinds in the project, with the name of their kind.

        Services that the parent itself has created are omitted.

        Raises:
            CloudError: they are not known.
        """
        self._discover(float("inf"))
        checked = self._checked()
        if isinstance(checked, errors.CloudError):
            raise checked
        plain, second = kinds.SERVICES, kinds.HEALTHCHECKED_SERVICES
        objects = (
            *((second.resource.kind, service) for service in checked.values()),
            *(
                (plain.resource.kind, service)
                for service in self._parent.items(plain).values()
            ),
        )
        return tuple(
            (kind, service)
            for kind, service in objects
            if not observed_service.is_of_checked(service)
        )


def _exists(held: object) -> bool:
    """Accept any state: only our own last write is waited for."""
    del held
    return True


def _vm(machine: VirtualMachine) -> LabelledVm:
    about = machine.metadata
    return LabelledVm(about.name, about.uid, about.labels.get(ownership.HOSTNAME, ""))


def _by_host(
    machines: Iterable[VirtualMachine],
) -> Mapping[str, tuple[LabelledVm, ...]]:
    by_host: dict[str, tuple[LabelledVm, ...]] = {}
    for machine in machines:
        vm = _vm(machine)
        by_host[vm.host] = (*by_host.get(vm.host, ()), vm)
    return by_host


def _by_label(
    machines: Iterable[VirtualMachine],
) -> Mapping[str, tuple[LabelledVm, ...]]:
    """Return VMs by the labels of load balancers that they have."""
    by_label: dict[str, list[LabelledVm]] = {}
    for machine in machines:
        vm = _vm(machine)  # one for all of its labels: there may be hundreds
        for key, value in machine.metadata.labels.items():
            if key.startswith(lb_names.LABEL_PREFIX) and value == lb_names.LABEL_VALUE:
                by_label.setdefault(key, []).append(vm)
    return {key: tuple(vms) for key, vms in by_label.items()}
