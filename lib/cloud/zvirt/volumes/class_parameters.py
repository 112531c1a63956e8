"""What a StorageClass requests, read into a spec: pure."""

import dataclasses
from typing import Annotated

from lib.cloud.volumes import (
    Problems,
    Sizing,
    VolumeProblem,
    VolumeRequest,
    VolumeSpec,
)
from lib.process.documented import Documented

DOMAIN: Annotated[
    str,
    Documented(
        "Storage domain in which the disk is created.",
        kind="name or ID of a storage domain for data",
        default="none; required",
    ),
] = "storageDomainName"
"""Source: openshift/ovirt-csi-driver, parameters of a StorageClass."""
THIN: Annotated[
    str,
    Documented(
        "Whether the disk takes space only as it is written.",
        kind="`true` or `false`",
        default="true",
    ),
] = "thinProvisioning"
_KEYS = (DOMAIN, THIN)
_VALUES = {"true": True, "false": False}
MIB, GIB = 2**20, 2**30
SIZING = Sizing(1, GIB, MIB)
"""Any number of bytes from 1 MiB on, as in the reference."""


@dataclasses.dataclass(frozen=True, slots=True)
class DiskChoice:
    """What a StorageClass chooses beside the domain, which is the spec's type."""

    is_thin: bool = True


def parse(request: VolumeRequest) -> VolumeSpec | Problems:
    """Return the spec of a volume, or every problem of the request."""
    problems = [*_parameter_problems(request), *_other_problems(request)]
    if problems:
        return tuple(problems)
    choice = DiskChoice(_VALUES[request.parameters.get(THIN, "true")])
    return VolumeSpec(
        request.name,
        request.size_bytes,
        request.cluster,
        type=request.parameters.get(DOMAIN, ""),
        provider=choice,
    )


def _parameter_problems(request: VolumeRequest) -> list[VolumeProblem]:
    problems = [
        VolumeProblem(f"parameter {key}", value, f"one of {', '.join(_KEYS)}")
        for key, value in request.parameters.items()
        if key not in _KEYS
    ]
    domain = request.parameters.get(DOMAIN, "")
    # A request for a capacity has no name, and may have no parameters.
    if not domain and (request.name or DOMAIN in request.parameters):
        allowed = "the name or ID of a storage domain for data"
        problems.append(VolumeProblem(f"parameter {DOMAIN}", domain, allowed))
    thin = request.parameters.get(THIN, "true")
    if thin not in _VALUES:
        problems.append(VolumeProblem(f"parameter {THIN}", thin, '"true" or "false"'))
    return problems


def _other_problems(request: VolumeRequest) -> list[VolumeProblem]:
    problems = [
        VolumeProblem(f"mutable parameter {key}", value, "absent: none exists")
        for key, value in request.changes.items()
    ]
    if request.is_shared:
        field = "volume_capabilities.access_mode"
        allowed = "a mode of a single node: a disk is attached to one VM"
        problems.append(VolumeProblem(field, "multiple nodes", allowed))
    if request.source is not None:
        field, allowed = "volume_content_source", "absent: disks are created blank"
        problems.append(VolumeProblem(field, request.source, allowed))
    return problems
