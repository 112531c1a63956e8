"""What the webhooks of disks, attachments, images and addresses refuse. Pure."""

import ipaddress

from lib.kube import resources
from lib.lab.dvp import quantities
from lib.lab.dvp.admission import AdmissionRule, Review, at
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    DISKS,
    IMAGES,
    MACHINES,
)
from lib.lab.dvp.machine_admission import DEVICES_MAX

_CLAIM = "persistentVolumeClaim"
_EARLY = ("Pending", "Provisioning", "WaitForFirstConsumer")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_DEPRECATED = "local-path-provisioner"


def _disk_name(review: Review) -> str:
    dotted = "." in review.name
    return "the name of a VirtualDisk must not contain a dot" if dotted else ""


def _disk_size(review: Review) -> str:
    size = at(review.spec, _CLAIM, "size")
    if size is not None and quantities.parse(size) == 0:
        return f"spec.{_CLAIM}.size must be greater than zero"
    if size is None and review.spec.get("dataSource") is None:
        return f"a disk without dataSource needs {_CLAIM}.size"
    return ""


def _disk_growth(review: Review) -> str:
    if review.is_same(_CLAIM, "size"):
        return ""
    if review.phase == "Migrating":
        return f"spec.{_CLAIM}.size cannot change while the disk migrates"
    if not review.is_ready and review.phase in _EARLY:
        return ""
    size, before = (at(spec, _CLAIM, "size") for spec in (review.spec, review.old_spec))
    if size is None:
        return f"spec.{_CLAIM}.size cannot be omitted once it is set"
    if quantities.parse(size) < quantities.parse(before or 0):
        return f"spec.{_CLAIM}.size can only grow once the disk is provisioned"
    return ""


def _disk_frozen(review: Review) -> str:
    if review.is_ready or review.phase in ("Ready", "Migrating", "PVCLost"):
        is_changed = not review.is_same("dataSource")
        return "spec.dataSource cannot change once it is Ready" if is_changed else ""
    if review.phase == "Terminating" and review.spec != review.old_spec:
        return "the spec of a disk that is being deleted cannot be changed"
    return ""


def _class(review: Review, name: object) -> str:
    """Judge a storage class by its name."""
    item = review.others.get(resources.STORAGE_CLASSES, "", str(name))
    if item is None:
        return f'storage class "{name}" not found'
    if item.metadata.labels.get("module") == _DEPRECATED:
        return f'the provisioner of the "{name}" storage class is deprecated'
    return ""


def _disk_class(review: Review) -> str:
    name = at(review.spec, _CLAIM, "storageClassName")
    if review.old is not None and review.spec == review.old_spec:
        return ""
    if review.old is None or review.phase == "Pending":
        return _class(review, name) if name else ""
    if review.is_same(_CLAIM, "storageClassName") or name is None:
        return ""
    status = review.new.get("status") or {}
    user = next(
        (
            row["name"]
            for row in status.get("attachedToVirtualMachines") or ()
            if row.get("mounted")
        ),
        "",
    )
    vm = review.others.get(MACHINES, review.namespace, user) if user else None
    if vm is None or vm.phase not in ("Running", "Migrating"):
        return "storage class cannot change unless a running VM has the disk"
    return _class(review, name)


def _image_class(review: Review) -> str:
    """Judge the provisioner of a disk against that of an image in a volume."""
    reference = at(review.spec, "dataSource", "objectRef")
    if not isinstance(reference, dict) or reference["kind"] != IMAGES.kind:
        return ""
    if review.old is not None and (review.is_same("dataSource") or review.is_ready):
        return ""
    image = review.others.get(IMAGES, review.namespace, reference["name"])
    storage = image.spec.get("storage") if image else None
    if image is None or image.phase != "Ready" or storage == "ContainerRegistry":
        return ""
    own = at(review.spec, _CLAIM, "storageClassName") or _default(review)
    pair = [
        review.others.get(resources.STORAGE_CLASSES, "", str(name))
        for name in (own, image.status.get("storageClassName"))
    ]
    provisioners = {item.provisioner for item in pair if item is not None}
    if None not in pair and len(provisioners) == 1:
        return ""
    return (
        "virtual disk storage class provisioner does not match virtual image storage"
        " class provisioner"
    )


def _default(review: Review) -> str:
    items = review.others.within(resources.STORAGE_CLASSES, "")
    marked = (i.name for i in items if i.metadata.annotations.get(_DEFAULT) == "true")
    return next(marked, "")


def _unchanged(review: Review) -> str:
    is_same = review.spec == review.old_spec
    return "" if is_same else f"the spec of a {review.kind.kind} cannot be changed"


def _image_frozen(review: Review) -> str:
    is_ready = review.is_ready or review.phase in ("Ready", "ImageLost", "PVCLost")
    is_moved = not review.is_same("dataSource") or not review.is_same(
        _CLAIM, "storageClassName"
    )
    if is_ready and is_moved:
        return "spec.dataSource cannot change once it is Ready"
    return _unchanged(review) if review.phase == "Terminating" else ""


def _attached_elsewhere(review: Review) -> str:
    device = review.spec["blockDeviceRef"]
    if device["kind"] != DISKS.kind:
        return ""
    for item in review.others.within(ATTACHMENTS, review.namespace):
        is_same = item.spec.get("blockDeviceRef") == device
        # One that is older holds the device, unless it has failed.
        if is_same and item.name != review.name and item.phase != "Failed":
            return (
                f"another VirtualMachineBlockDeviceAttachment {item.name} already"
                f" exists with the same block device {device['name']}"
            )
    return ""


def _device_count(review: Review) -> str:
    name = review.spec["virtualMachineName"]
    vm = review.others.get(MACHINES, review.namespace, name)
    count = len(vm.spec.get("blockDeviceRefs") or ()) if vm else 0
    count += sum(
        1
        for item in review.others.within(ATTACHMENTS, review.namespace)
        if item.spec.get("virtualMachineName") == name and item.name != review.name
    )
    return "" if count < DEVICES_MAX else f"{name} has {DEVICES_MAX} block devices"


def _address(review: Review) -> str:
    static, kind = review.spec.get("staticIP"), review.spec["type"]
    if (kind == "Static") != bool(static):
        return "staticIP is set if, and only if, type is Static"
    try:
        ipaddress.IPv4Address(static or "0.0.0.0")  # noqa: S104 # no address at all
    except ValueError:
        return f"staticIP {static} is no IPv4 address"
    return ""


_VD = "pkg/controller/vd/internal/validator/"
_VMBDA = "pkg/controller/vmbda/internal/validators/"
RULES = (
    AdmissionRule(
        "disk-size", DISKS, _disk_size, f"{_VD}pvc_size_validator.go", on_update=False
    ),
    AdmissionRule(
        "disk-growth",
        DISKS,
        _disk_growth,
        f"{_VD}pvc_size_validator.go",
        on_create=False,
    ),
    AdmissionRule(
        "disk-frozen",
        DISKS,
        _disk_frozen,
        f"{_VD}spec_changes_validator.go",
        on_create=False,
    ),
    AdmissionRule(
        "disk-name", DISKS, _disk_name, f"{_VD}name_validator.go", on_update=False
    ),
    AdmissionRule("disk-class", DISKS, _disk_class, f"{_VD}storage_class_validator.go"),
    AdmissionRule(
        "disk-image-class",
        DISKS,
        _image_class,
        f"{_VD}vi_pvc_storage_class_provisioner_compatibility_validator.go",
    ),
    AdmissionRule(
        "image-frozen",
        IMAGES,
        _image_frozen,
        "pkg/controller/vi/vi_webhook.go",
        on_create=False,
    ),
    AdmissionRule(
        "attachment-unchanged",
        ATTACHMENTS,
        _unchanged,
        f"{_VMBDA}spec_mutate_validator.go",
        on_create=False,
    ),
    AdmissionRule(
        "attachment-conflict",
        ATTACHMENTS,
        _attached_elsewhere,
        f"{_VMBDA}attachment_conflict_validator.go",
        on_update=False,
    ),
    AdmissionRule(
        "attachment-count",
        ATTACHMENTS,
        _device_count,
        f"{_VMBDA}vm_connect_limiter_validator.go",
        on_update=False,
    ),
    AdmissionRule(
        "address-fields", ADDRESSES, _address, "pkg/controller/vmip/vmip_webhook.go"
    ),
)
"""Not here: an image that is larger than its disk, and an ISO image as its source: the
platform only warns of them when the disk is created."""
