"""Reads the engine for machines: one list for all that have the tag of the cluster.

The exceptions are searches for names and IDs that the list does not show, direct reads
before something counts as absent, and what a creation requires. A list that began at
most LIST_S ago, and after the last write for each machine, is used again: 200 that
wait at one time need no more lists than one.
"""

import dataclasses
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.machines import Observation, Observed, Ref, Target
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import mass_absence
from lib.cloud.zvirt import api_paths, client, home, searching
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import lists, translate
from lib.cloud.zvirt.machines import (
    desired_vm,
    engine_vm,
    vm_tags,
)
from lib.cloud.zvirt.machines.desired_vm import DesiredVm
from lib.cloud.zvirt.machines.engine_vm import (
    EngineVm,
    VmIdentity,
    VmPrerequisites,
)

LIST_S = 2.0
KEEP_S = 30.0
"""For which templates, profiles, domains and names of tags are kept."""
TIMEOUT_S = 60.0
"""Of all reads of one observation."""
FOLLOW = ("nics", "reported_devices", "tags", "disk_attachments.disk")
_REMEDY = "check the engine; delete the Machine of a VM that was deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class _Shared:
    """What one observation reads for all machines. by_name: in any data center."""

    items: tuple[Item, ...]
    by_uid: Mapping[str, tuple[Item, ...]]
    by_id: Mapping[str, Item]
    by_name: Mapping[str, tuple[Item, ...]]


def identity(target: Target) -> VmIdentity:
    """Return how the VM of a target is recognized."""
    native = target.ref.native
    if not isinstance(native, VmIdentity):
        raise TypeError("the target is of another provider package")
    return native


class VmReader:
    """Observes machines. Thread-safe. clock: the one of the client."""

    def __init__(
        self,
        access: client.EngineClient,
        place: home.EngineHome,
        clock: Callable[[], float],
    ) -> None:
        self._access = access
        self._home = place
        self._clock = clock
        self._lock = threading.Lock()
        self._wrote: dict[str, float] = {}
        self._clusters: dict[str, str] = {}
        self._cluster_id = ""
        self._mass = mass_absence.MassAbsence("VMs", _REMEDY, clock)

    def note_change(self, *keys: str) -> None:
        """Note that a VM was written, or has changed. keys: its name, and its ID."""
        # A list that began at the same instant may not show it.
        now = math.nextafter(self._clock(), math.inf)
        with self._lock:
            self._wrote.update((key, now) for key in keys if key)

    def early_s(self, key: str) -> float:
        """Return in how many seconds a shared list can show the last write; 0: now."""
        with self._lock:
            wrote = self._wrote.get(key, -math.inf)
        return max(0.0, wrote + LIST_S - self._clock())

    def _expire(self) -> None:
        """Drop what is kept of writes that every list shows by now."""
        since = self._clock() - KEEP_S
        with self._lock:
            self._wrote = {k: at for k, at in self._wrote.items() if at >= since}

    def observe(self, targets: Collection[Target]) -> Mapping[Ref, Observation]:
        """See the protocol."""
        if not targets:
            return {}
        try:
            shared = self._read(targets)
        except errors.CloudError as error:
            return {target.ref: Unknown(error) for target in targets}
        return {target.ref: self._one(target, shared) for target in targets}

    def _one(self, target: Target, shared: _Shared) -> Observation:
        try:
            native = self._native(target, shared)
        except errors.CloudError as error:
            return Unknown(error)
        id_ = "" if native.vm is None else native.vm.id
        return Seen(Observed(not native.is_empty, id_, native))

    # ------------------------------------------------------------ lists

    def _read(self, targets: Collection[Target]) -> _Shared:
        """Read the VMs of the cluster, and those that its list does not show.

        Raises:
            CloudError: they are not known.
        """
        machines = [identity(target) for target in targets]
        not_before = self._not_before(machine.name for machine in machines)
        self._expire()
        self._cluster_id = machines[0].cluster_id
        items = self.listed(self._cluster_id, not_before)
        first = _shared(items, machines[0].cluster_id)
        unseen = [m for m in machines if _chosen(m, first) is None]
        if not unseen:
            return first
        ids = {m.vm_id for m in unseen if m.vm_id}
        names = {m.name for m in unseen if not m.vm_id}
        more = self._searched(ids, names, not_before)
        self._note(more)
        whole = {item.id: item for item in (*items, *more)}
        return _shared(tuple(whole.values()), machines[0].cluster_id)

    def _not_before(self, names: Iterable[str]) -> float:
        with self._lock:
            wrote = [self._wrote[name] for name in names if name in self._wrote]
        return max((self._clock() - LIST_S, *wrote))

    def listed(self, cluster_id: str, not_before: float) -> tuple[Item, ...]:
        """Return the VMs with a tag of the cluster, of this project or the reference.

        Raises:
            CloudError: they are not known.
        """
        tag = api_paths.quoted(f"cluster-{cluster_id}")
        items = self._access.list_all(
            lists.VMS,
            f"{vm_tags.search(cluster_id)} or tag={tag}",
            FOLLOW,
            not_before=not_before,
            timeout_s=TIMEOUT_S,
        )
        self._note(items)
        return items

    def by_ids(self, ids: Collection[str]) -> Mapping[str, Item]:
        """Return VMs by their IDs, as a list of at most LIST_S ago shows them.

        Raises:
            CloudError: they are not known.
        """
        since = self._clock() - LIST_S
        listed = self.listed(self._cluster_id, since) if self._cluster_id else ()
        vms = {item.id: item for item in listed if item.id in ids}
        more = self._searched(set(ids) - vms.keys(), (), since)
        vms.update((item.id, item) for item in more)
        return vms

    def _searched(
        self, ids: Collection[str], names: Collection[str], not_before: float
    ) -> tuple[Item, ...]:
        return tuple(
            item
            for text in lists.searches(ids, names)
            for item in searching.find(
                self._access, lists.VMS, text, FOLLOW, not_before, TIMEOUT_S
            )
        )

    def _note(self, items: Iterable[Item]) -> None:
        listed = tuple(items)
        clusters = {item.id: translate.cluster_id(item) for item in listed}
        with self._lock:
            self._clusters.update(clusters)
        self._mass.observed(clusters)

    # ------------------------------------------------------------ one machine

    def _native(self, target: Target, shared: _Shared) -> EngineVm:
        machine, desired = identity(target), desired_vm.of(target.spec)
        vm = _chosen(machine, shared)
        if vm is None and machine.vm_id:
            vm = self._confirmed(target, machine)
        native = EngineVm(machine, vm)
        if vm is None:
            native = self._without_vm(native, desired, shared)
        elif desired is not None:
            native = dataclasses.replace(native, tags=self._tags())
        return native

    def _confirmed(self, target: Target, machine: VmIdentity) -> Item | None:
        """Read a VM by its recorded ID that no list shows.

        Raises:
            CloudError: its absence is not reliable.
        """
        vm = self._direct(lists.VMS, machine.vm_id)
        if vm is None and target.spec is not None:
            self._mass.check((machine.vm_id,), "find the VM")
        return vm

    def _direct(self, path: str, id_: str) -> Item | None:
        """Read an object; that it is absent counts in this engine alone.

        Raises:
            CloudError: it is not known.
        """
        with self._lock:
            clusters = self._clusters
            cluster = clusters.get(id_) or next(filter(None, clusters.values()), "")
        item = self._access.get(
            f"{path}/{id_}",
            FOLLOW if path == lists.VMS else (),
            TIMEOUT_S,
            witness=f"{lists.CLUSTERS}/{cluster}" if cluster else "",
        )
        if item is None:
            self._home.check_absence("confirm absence")
        else:
            self._home.guard.observed()
        return item

    def _without_vm(
        self, native: EngineVm, desired: DesiredVm | None, shared: _Shared
    ) -> EngineVm:
        """Add what is needed where no VM is known to be that of the machine."""
        machine = native.machine
        named = None if machine.vm_id else self._named(machine, desired, shared)
        if named is not None:
            is_adoptable = self._is_adoptable(machine, named)
            native = dataclasses.replace(native, named=named, is_adoptable=is_adoptable)
            if is_adoptable and desired is None:
                return dataclasses.replace(native, vm=named)
        if desired is None and machine.boot_disk:
            left = self._direct("disks", machine.boot_disk)
            is_own = left is not None and engine_vm.is_tagged(
                machine, left.entity.description
            )
            return dataclasses.replace(native, left=left if is_own else None)
        is_new = desired is not None and not desired.is_recorded and named is None
        if desired is not None and is_new and desired.bootstrap is not None:
            needed = self.prerequisites(desired)
            native = dataclasses.replace(native, prerequisites=needed)
        return native

    def _named(
        self, machine: VmIdentity, desired: DesiredVm | None, shared: _Shared
    ) -> Item | None:
        """Return a VM of the name in the data center of the machine."""
        rows = shared.by_name.get(machine.name, ())
        if not rows or desired is None or not desired.cluster:
            return rows[0] if rows else None
        center = self._center(desired.cluster)
        here = [vm for vm in rows if self._center(translate.cluster_id(vm)) == center]
        return here[0] if here else None

    def _center(self, cluster: str) -> str:
        """Return the ID of the data center of an engine cluster; empty: not shown."""
        rows = self._kept(lists.CLUSTERS, ("data_center",))
        row = next((row for row in rows if row.id == cluster), None)
        center = None if row is None else row.entity.data_center
        return "" if center is None else str(center.id)

    def _is_adoptable(self, machine: VmIdentity, vm: Item) -> bool:
        """Report whether the reference has created a VM for this machine.

        By the tag of the cluster, the template, and no other owner.
        """
        is_free = vm_tags.is_free(vm.entity.description)
        if not is_free or machine.tag not in engine_vm.tag_names(vm):
            return False
        used = translate.template_id(vm)
        return any(item.id == used for item in self._templates(machine.template))

    # ------------------------------------------------------------ what is needed

    def _kept(self, path: str, follow: tuple[str, ...] = ()) -> tuple[Item, ...]:
        since = self._clock() - KEEP_S
        return self._access.list_all(
            path, follow=follow, not_before=since, timeout_s=TIMEOUT_S
        )

    def _tags(self) -> frozenset[str]:
        """Return the names of all tags."""
        since = self._clock() - LIST_S
        rows = self._access.list("tags", not_before=since, timeout_s=TIMEOUT_S)
        return frozenset(str(row.entity.name) for row in rows)

    def _templates(self, name: str) -> tuple[Item, ...]:
        rows = self._access.list_all(
            "templates",
            f"name={api_paths.quoted(name)}",
            ("disk_attachments.disk",),
            not_before=self._clock() - KEEP_S,
            timeout_s=TIMEOUT_S,
        )
        return tuple(row for row in rows if row.entity.name == name)

    def prerequisites(self, desired: DesiredVm) -> VmPrerequisites:
        """Read what a creation requires; many share the reads of KEEP_S.

        Raises:
            CloudError: it is not known.
        """
        clusters = self._kept(lists.CLUSTERS, ("data_center",))
        cluster = next((row for row in clusters if row.id == desired.cluster), None)
        if cluster is None:
            return VmPrerequisites()
        center = self._center(desired.cluster)
        templates = [
            row
            for row in self._templates(desired.template)
            if self._is_here(row, center)
        ]
        profiles = self._kept("vnicprofiles", ("network",))
        here = {row.id: row for row in profiles if _center_of_profile(row) == center}
        domains = self._domains(center) if desired.domain else {}
        offered = {
            "spec.template": () if templates else self._offered(),
            "spec.vnicProfileID": tuple(
                sorted(f"{row.id} ({row.entity.name})" for row in here.values())
            ),
            "spec.storageDomainID": tuple(sorted(domains)),
        }
        return VmPrerequisites(cluster, tuple(templates), here, domains, offered)

    def _is_here(self, template: Item, center: str) -> bool:
        """Report whether a template can be used; one without cluster can anywhere."""
        cluster = translate.cluster_id(template)
        return not cluster or self._center(cluster) == center

    def _offered(self) -> tuple[str, ...]:
        names = {str(row.entity.name) for row in self._kept("templates")}
        return tuple(sorted(names - {"Blank"}))

    def _domains(self, center: str) -> Mapping[str, str]:
        """Return the status of the storage domains of a data center, by ID."""
        path = f"datacenters/{center}/storagedomains"
        since = self._clock() - KEEP_S
        rows = self._access.list(path, not_before=since, timeout_s=TIMEOUT_S)
        return {row.id: row.status for row in rows}

    def cluster(self, id_: str) -> Item | None:
        """Read an engine cluster directly.

        Raises:
            CloudError: it is not known.
        """
        return self._access.get(f"{lists.CLUSTERS}/{id_}", timeout_s=TIMEOUT_S)

    def boot_disks(self, cluster_id: str) -> Iterator[Item]:
        """Yield the disks with the tag of a machine of the cluster.

        Raises:
            CloudError: they are not known.
        """
        search = vm_tags.search(cluster_id)
        for disk in searching.find(self._access, "disks", search, timeout_s=TIMEOUT_S):
            if vm_tags.uid_of(disk.entity.description, cluster_id):
                yield disk


def _center_of_profile(profile: Item) -> str:
    network = profile.entity.network
    center = None if network is None else network.data_center
    return "" if center is None else str(center.id)


def _shared(items: tuple[Item, ...], cluster_id: str) -> _Shared:
    by_uid: dict[str, tuple[Item, ...]] = {}
    by_name: dict[str, tuple[Item, ...]] = {}
    for item in items:
        uid = vm_tags.uid_of(item.entity.description, cluster_id)
        if uid:
            by_uid[uid] = (*by_uid.get(uid, ()), item)
        name = str(item.entity.name or "")
        by_name[name] = (*by_name.get(name, ()), item)
    return _Shared(items, by_uid, {item.id: item for item in items}, by_name)


def _chosen(machine: VmIdentity, shared: _Shared) -> Item | None:
    """Return the VM of a machine: the recorded one, or that with its tag.

    An administrator who clones a VM copies its tag: a recorded ID precedes it, then the
    name.
    """
    if machine.vm_id:
        return shared.by_id.get(machine.vm_id)
    rows = shared.by_uid.get(machine.uid, ())
    named = [row for row in rows if row.entity.name == machine.name]
    chosen = named or (rows if len(rows) == 1 else ())
    return chosen[0] if chosen else None
