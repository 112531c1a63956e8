"""How VirtualDisks move, with their real claims and volumes. Pure."""

import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence

from lib.kube import resources
from lib.lab.dvp import quantities, writes
from lib.lab.dvp.kinds import (
    ATTACHMENTS,
    CLUSTER_IMAGES,
    DISKS,
    GROUP,
    IMAGES,
    MACHINES,
    Item,
    Json,
    World,
)
from lib.lab.dvp.writes import CreateObject, DeleteObject, Finding, Step

CLEANUP = f"{GROUP}/vd-cleanup"
PROTECTION = f"{GROUP}/vd-protection"
_WAIT = "WaitForFirstConsumer"
_SOURCES = {kind.kind: kind for kind in (IMAGES, CLUSTER_IMAGES)}
_IMAGE_BYTES = 2**26
_SCHEDULED = ("Starting", "Running", "Migrating")
_FAILED = (
    *("ProvisioningNotStarted", "ProvisioningFailed"),
    *("ProvisioningFailedTerminally", "ImagePullFailed"),
)
"""Reasons with phase Failed, see `_failing`."""
_FINAL = ("ProvisioningFailedTerminally", "StorageClassProvisionerMismatch")
"""Reasons that the platform does not leave again: the phase is computed again at each
reconciliation. Source: deckhouse/virtualization pkg/controller/vd/internal/source."""
_BLOCK_BYTES = 2**20
"""Source: disk_service.go, DefaultAlignBlockSize: images are aligned up to it."""


def serial(uid: str) -> str:
    """Return the serial under which a guest sees a disk, by the UID of its object.

    Source: virtualization, names of disks in the guest.
    """
    return hashlib.md5(uid.encode(), usedforsecurity=False).hexdigest()


def decide(world: World, now: datetime.datetime) -> Iterator[Step]:
    """Yield what happens to each VirtualDisk."""
    users, consumers = _users(world), _consumers(world)
    for disk in world.of(DISKS).values():
        key = disk.metadata.key
        if disk.is_ending:
            yield from _end(disk, users.get(key, {}))
        else:
            step = _phase(world, disk, consumers.get(key, False), now)
            if step is not None:
                yield step
        yield from _use(disk, users.get(key, {}), now)


def _users(world: World) -> Mapping[str, Mapping[str, bool]]:
    """Return by the key of a disk the VMs that have it, and whether they run."""
    users: dict[str, dict[str, bool]] = {}
    for vm in world.of(MACHINES).values():
        rows = [*vm.spec.get("blockDeviceRefs", ())]
        rows += vm.status.get("blockDeviceRefs", ())
        for row in rows:
            if row["kind"] == DISKS.kind:
                key = f"{vm.namespace}/{row['name']}"
                users.setdefault(key, {})[vm.name] = vm.phase in _SCHEDULED
    return users


def _consumers(world: World) -> Mapping[str, bool]:
    """Return by the key of a disk whether a scheduled VM or attachment uses it."""
    consumers: dict[str, bool] = {}
    for vm in world.of(MACHINES).values():
        for row in vm.spec.get("blockDeviceRefs", ()):
            if row["kind"] == DISKS.kind and vm.phase in _SCHEDULED:
                consumers[f"{vm.namespace}/{row['name']}"] = True
    for item in world.of(ATTACHMENTS).values():
        row = item.spec["blockDeviceRef"]
        name = item.spec["virtualMachineName"]
        user = world.get(MACHINES, item.namespace, name)
        is_scheduled = user is not None and user.phase in _SCHEDULED
        if is_scheduled and row["kind"] == DISKS.kind and not item.is_ending:
            consumers[f"{item.namespace}/{row['name']}"] = True
    return consumers


def class_of(disk: Item) -> str:
    """Return the storage class that a disk asks for; empty: the default one."""
    claim = disk.spec.get("persistentVolumeClaim") or {}
    return str(claim.get("storageClassName") or "")


def size_of(disk: Item) -> int:
    """Return the bytes that a disk asks for; those of an image without a size."""
    size = (disk.spec.get("persistentVolumeClaim") or {}).get("size")
    return _IMAGE_BYTES if size is None else quantities.parse(size)


def _phase(
    world: World, disk: Item, is_consumed: bool, now: datetime.datetime
) -> Step | None:
    is_claimed = world.get(resources.CLAIMS, disk.namespace, claim_name(disk))
    can_recover = disk.phase == "Failed" and not _is_final(disk)
    if disk.phase in ("", "Pending") or (can_recover and is_claimed is None):
        return _claim(world, disk, now) if disk.phase else _accept(disk, now)
    if disk.phase == _WAIT and is_consumed:
        row = Finding("Ready", False, "Provisioning")
        return _step("disk-consumed", disk, "Provisioning", row, now)
    claim = is_claimed
    if claim is None:
        return None
    if disk.phase == "Ready":
        return _expand(disk, claim, now) or _move(world, disk, now)
    act = {"Provisioning": _provision, "Resizing": _expanded, "Migrating": _moved}
    phase = "Provisioning" if can_recover else disk.phase
    return act[phase](disk, claim, now) if phase in act else None


def _is_final(disk: Item) -> bool:
    rows = disk.status.get("conditions", ())
    return any(row["type"] == "Ready" and row["reason"] in _FINAL for row in rows)


def _step(
    transition: str,
    disk: Item,
    phase: str,
    row: Finding,
    now: datetime.datetime,
    fields: Mapping[str, object] | None = None,
) -> Step:
    rows = writes.conditions(disk, now, row)
    whole = {"phase": phase, "conditions": rows, **(fields or {})}
    return Step(transition, disk, [writes.status(DISKS, disk, whole)])


def _accept(disk: Item, now: datetime.datetime) -> Step:
    row = Finding("Ready", False, "ProvisioningNotStarted")
    rows = writes.conditions(disk, now, row)
    fields = {"phase": "Pending", "conditions": rows}
    calls = [
        writes.finalizers(DISKS, disk, with_=CLEANUP),
        writes.status(DISKS, disk, fields),
    ]
    return Step("disk-accepted", disk, calls)


def _default_class(world: World) -> str:
    key = "storageclass.kubernetes.io/is-default-class"
    return next(
        (
            item.name
            for item in world.of(resources.STORAGE_CLASSES).values()
            if item.metadata.annotations.get(key) == "true"
        ),
        "",
    )


def _refusal(world: World, disk: Item) -> Finding | None:
    """Return why a disk cannot be provisioned yet; None when it can."""
    name = class_of(disk) or _default_class(world)
    if world.get(resources.STORAGE_CLASSES, "", name) is None:
        text = f"StorageClass {name!r} is missing"
        return Finding("Ready", False, "StorageClassIsNotReady", text)
    source = disk.spec.get("dataSource") or {}
    if source.get("type") == "Upload":
        return Finding("Ready", False, "WaitForUserUpload", "upload the data")
    reference = source.get("objectRef")
    kind = _SOURCES.get(reference["kind"]) if reference else None
    if reference is None or kind is None:
        return None
    image = world.get(kind, disk.namespace, reference["name"])
    what = f"{kind.kind} {reference['name']}"
    if image is None:
        return Finding("Ready", False, "DatasourceIsNotFound", f"{what} is missing")
    if image.phase != "Ready":
        text = f"{what} is {image.phase or 'new'}"
        return Finding("Ready", False, "DatasourceIsNotReady", text)
    return _room(disk, image)


def _room(disk: Item, image: Item) -> Finding | None:
    """Return why an image does not fit a disk: it is aligned up to a block."""
    needed = quantities.parse((image.status.get("size") or {})["unpackedBytes"])
    needed = -(-needed // _BLOCK_BYTES) * _BLOCK_BYTES
    size = (disk.spec.get("persistentVolumeClaim") or {}).get("size")
    if size is None or quantities.parse(size) >= needed:
        return None
    text = f"The specified pvc size is insufficient: {size} < {needed}."
    return Finding("Ready", False, "ProvisioningFailed", text)


def _claim(world: World, disk: Item, now: datetime.datetime) -> Step | None:
    refusal = _refusal(world, disk)
    if refusal is not None:
        if writes.holds(disk, refusal):
            return None
        is_upload = refusal.reason == "WaitForUserUpload"
        phase = refusal.reason if is_upload else _phase_of(refusal.reason)
        return _step("disk-refused", disk, phase, refusal, now)
    name = class_of(disk) or _default_class(world)
    storage = world.get(resources.STORAGE_CLASSES, "", name)
    waits = storage is not None and storage.binding == _WAIT
    reason = "WaitingForFirstConsumer" if waits else "Provisioning"
    phase = _WAIT if waits else "Provisioning"
    rows = writes.conditions(
        disk,
        now,
        Finding("Ready", False, reason),
        Finding("StorageClassReady", True, "StorageClassReady"),
        Finding("DatasourceReady", True, "DatasourceReady"),
    )
    fields = {"phase": phase, "conditions": rows, "storageClassName": name}
    calls: list[writes.Call] = [
        _new_claim(disk, name),
        writes.status(DISKS, disk, fields),
    ]

    def refuse(answer: str, message: str) -> writes.Call:
        del answer
        row = Finding("Ready", False, "QuotaExceeded", message)
        changed = {"phase": "Pending", "conditions": writes.conditions(disk, now, row)}
        return writes.status(DISKS, disk, changed)

    return Step("disk-claimed", disk, calls, refuse, _failing(disk, now))


def _failing(disk: Item, now: datetime.datetime) -> writes.Outcome:
    def fail(reason: str, message: str) -> writes.Call:
        row = Finding("Ready", False, reason, message)
        phase = _phase_of(reason)
        if reason == "QuotaExceeded" and disk.phase != "Pending":
            phase = "Failed"  # of the Pod of the importer; of the claim: Pending
        changed = {"phase": phase, "conditions": writes.conditions(disk, now, row)}
        return writes.status(DISKS, disk, changed)

    return fail


def _phase_of(reason: str) -> str:
    """Return the phase of a disk that is not provisioned for a reason."""
    if reason == "PVCLost":
        return reason
    return "Failed" if reason in _FAILED else "Pending"


def claim_name(disk: Item) -> str:
    """Return the name of a disk's claim."""
    return f"vd-{disk.name[:200]}-{disk.uid}"


def volume_name(disk: Item) -> str:
    """Return the name of the volume behind a disk's claim."""
    return f"pv-{disk.uid}"


def _new_claim(disk: Item, storage_class: str) -> CreateObject:
    size = quantities.write(size_of(disk))
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(disk)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }
    return CreateObject(resources.CLAIMS, disk.namespace, body)


def _provision(disk: Item, claim: Item, now: datetime.datetime) -> Step:
    fail = _failing(disk, now)
    if claim.phase != "Bound":
        return Step("disk-volume", disk, [_new_volume(disk, claim)], failed=fail)
    capacity = claim.status.get("capacity", {}).get("storage", "")
    rows = writes.conditions(disk, now, Finding("Ready", True, "Ready"))
    fields = {
        "phase": "Ready",
        "capacity": capacity,
        "progress": "100%",
        "target": {"persistentVolumeClaimName": claim.name},
        "conditions": rows,
    }
    return Step("disk-ready", disk, [writes.status(DISKS, disk, fields)], failed=fail)


def _new_volume(disk: Item, claim: Item) -> CreateObject:
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name(disk)},
        "spec": {
            "capacity": claim.spec["resources"]["requests"],
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": claim.spec.get("storageClassName", ""),
            "claimRef": reference,
            "hostPath": {"path": f"/nonexistent/{disk.uid}"},
        },
    }
    return CreateObject(resources.PERSISTENT_VOLUMES, "", body)


def _expand(disk: Item, claim: Item, now: datetime.datetime) -> Step | None:
    capacity = disk.status.get("capacity") or "0"
    if size_of(disk) <= quantities.parse(capacity):
        return None
    if disk.spec.get("persistentVolumeClaim") is None:
        return None
    size = quantities.write(size_of(disk))
    request = {"spec": {"resources": {"requests": {"storage": size}}}}
    resizing = {"type": "Resizing", "status": "True"}
    rows = writes.conditions(disk, now, Finding("Resizing", True, "InProgress"))
    fields = {"phase": "Resizing", "conditions": rows}

    def refuse(answer: str, message: str) -> writes.Call:
        del answer
        row = Finding("Resizing", False, "NotAvailable", message)
        changed = {"conditions": writes.conditions(disk, now, row)}
        return writes.status(DISKS, disk, changed)

    kind = resources.CLAIMS
    calls = [
        writes.PatchObject(kind, claim, request),
        writes.PatchObject(
            kind, claim, {"status": {"conditions": [resizing]}}, "status"
        ),
        writes.status(DISKS, disk, fields),
    ]
    return Step("disk-expanding", disk, calls, refuse, refuse)


def _expanded(disk: Item, claim: Item, now: datetime.datetime) -> Step:
    size = claim.spec["resources"]["requests"]
    rows = [
        row
        for row in disk.status.get("conditions", ())
        if row.get("type") != "Resizing"
    ]
    done = {"status": {"capacity": size, "conditions": []}}
    fields = {"phase": "Ready", "capacity": size["storage"], "conditions": rows}
    calls = [
        writes.PatchObject(resources.CLAIMS, claim, done, "status"),
        writes.status(DISKS, disk, fields),
    ]
    return Step("disk-expanded", disk, calls)


def _move(world: World, disk: Item, now: datetime.datetime) -> Step | None:
    name = class_of(disk)
    if not name or name == disk.status.get("storageClassName"):
        return None
    if world.get(resources.STORAGE_CLASSES, "", name) is None:
        return None
    row = Finding("Migrating", True, "InProgress")
    return _step("disk-moving", disk, "Migrating", row, now)


def _moved(disk: Item, claim: Item, now: datetime.datetime) -> Step:
    del claim
    fields = {"storageClassName": class_of(disk)}
    row = Finding("Migrating", False, "Completed")
    return _step("disk-moved", disk, "Ready", row, now, fields)


def _use(
    disk: Item, users: Mapping[str, bool], now: datetime.datetime
) -> Iterator[Step]:
    """Yield how the list of VMs that have a disk follows them."""
    shown = {
        row["name"]: bool(row.get("mounted"))
        for row in disk.status.get("attachedToVirtualMachines", ())
    }
    if shown == users or not disk.phase:
        return
    added = {name: users[name] for name in users if shown.get(name) != users[name]}
    transition = "disk-used" if added else "disk-released"
    listed = {**shown, **added} if added else users
    rows = writes.conditions(
        disk,
        now,
        Finding(
            "InUse", bool(listed), "AttachedToVirtualMachine" if listed else "NotInUse"
        ),
    )
    attached = [{"name": n, "mounted": m} for n, m in sorted(listed.items())]
    fields = {"attachedToVirtualMachines": attached, "conditions": rows}
    calls: Sequence[writes.Call] = [writes.status(DISKS, disk, fields)]
    present = disk.metadata.finalizers
    if listed and PROTECTION not in present and not disk.is_ending:
        calls = [writes.finalizers(DISKS, disk, with_=PROTECTION), *calls]
    if not listed and PROTECTION in present:
        calls = [writes.finalizers(DISKS, disk, without=PROTECTION), *calls]
    yield Step(transition, disk, calls)


def _end(disk: Item, users: Mapping[str, bool]) -> Iterator[Step]:
    if disk.phase != "Terminating":
        yield Step(
            "disk-ending", disk, [writes.status(DISKS, disk, {"phase": "Terminating"})]
        )
    elif not users and not disk.status.get("attachedToVirtualMachines"):
        calls: list[writes.Call] = [
            DeleteObject(resources.CLAIMS, disk.namespace, claim_name(disk)),
            DeleteObject(resources.PERSISTENT_VOLUMES, "", volume_name(disk)),
        ]
        own = (CLEANUP, PROTECTION)
        kept = [name for name in disk.metadata.finalizers if name not in own]
        meta: Json = {"finalizers": kept}
        yield Step(
            "disk-gone",
            disk,
            [*calls, writes.PatchObject(DISKS, disk, {"metadata": meta})],
        )
