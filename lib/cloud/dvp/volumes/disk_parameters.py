"""What a StorageClass requests, read into a spec: pure."""

from typing import Annotated

from lib.cloud.dvp.volumes import disk_names
from lib.cloud.volumes import (
    Problems,
    Sizing,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
)
from lib.process.documented import Documented

STORAGE_CLASS: Annotated[
    str,
    Documented(
        "StorageClass of the parent cluster in which the disk is created.",
        kind="name of a StorageClass of the parent cluster",
        default="none; required",
    ),
] = "dvpStorageClass"
"""Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-csi-driver."""
_CLASS_NAME = (
    "the name of a StorageClass of the parent cluster, a DNS subdomain in lower case"
)
_CLASS_NAME_MAX = 253
GIB = 2**30
SIZING = Sizing(1, GIB, 1)
"""Any number of bytes, as in the reference; the parent's storage rounds it up."""


def parse(request: VolumeRequest) -> VolumeSpec | Problems:
    """Return the spec of a volume, or every problem of the request."""
    problems = [
        VolumeProblem(f"parameter {key}", value, f"absent: only {STORAGE_CLASS} exists")
        for key, value in request.parameters.items()
        if key != STORAGE_CLASS
    ]
    problems += [
        VolumeProblem(f"mutable parameter {key}", value, "absent: none exists")
        for key, value in request.changes.items()
    ]
    storage_class = request.parameters.get(STORAGE_CLASS, "")
    if not _is_class_name(storage_class):
        field = f"parameter {STORAGE_CLASS}"
        problems.append(VolumeProblem(field, storage_class, _CLASS_NAME))
    if request.is_shared:
        field = "volume_capabilities.access_mode"
        allowed = "a mode of a single node: a disk is attached to one VM"
        problems.append(VolumeProblem(field, "multiple nodes", allowed))
    if request.source is not None:
        field, allowed = "volume_content_source", "absent: disks are created blank"
        problems.append(VolumeProblem(field, request.source, allowed))
    if problems:
        return tuple(problems)
    return VolumeSpec(
        request.name, request.size_bytes, request.cluster, type=storage_class
    )


def _is_class_name(text: str) -> bool:
    is_short = 0 < len(text) <= _CLASS_NAME_MAX
    return is_short and all(disk_names.is_label(part) for part in text.split("."))
