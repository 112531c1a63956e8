"""What Cinder and Nova say when they refuse, word by word, and what it means."""

import json
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.model import InstanceId, Unknown
from lib.cloud.openstack.volumes import cloud
from lib.cloud.volumes import ById, VolumeChange, VolumeId, VolumeSpec

GIB = 2**30
SERVER = InstanceId("5e000000-0000-0000-0000-000000000001")
OTHER = InstanceId("5e000000-0000-0000-0000-000000000002")
WANTED = VolumeSpec("pvc-9", GIB, "kube")


class StandIn(Protocol):
    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...


class Cinder(Protocol):
    def put(self, number: int, **parts: object) -> str: ...


MakeVolumes = Callable[..., cloud.OpenStackVolumes]

UNKNOWN = "Invalid input received: something new"
REFUSALS = [
    # Operation, status, what the service says, what it means.
    (
        "create",
        413,
        "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed"
        " gigabytes quota. Requested 9G, quota is 1G and 1G has been consumed.",
        errors.QuotaExceeded,
    ),
    (
        "create",
        413,
        "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota"
        " 'volumes'.",
        errors.QuotaExceeded,
    ),
    (
        "create",
        413,
        "VolumeSizeExceedsLimit: Requested volume size 9G is larger than maximum"
        " allowed limit 1G.",
        errors.OutOfRange,
    ),
    (
        "create",
        400,
        "Invalid input received: Specified volume size of '1' is less than the minimum"
        " required size of '5' for volume type 'fast'.",
        errors.OutOfRange,
    ),
    (
        "create",
        400,
        "Invalid input received: Volume size '1'GB cannot be smaller than original"
        " volume size  2GB. They must be >= original volume size.",
        errors.OutOfRange,
    ),
    ("create", 400, UNKNOWN, errors.InvalidRequest),
    ("create", 503, "down", errors.Unavailable),
    (
        "resize",
        400,
        "Invalid volume: Volume c status must be '{'status': 'available'}' to extend,"
        " currently extending.",
        errors.Busy,
    ),
    (
        "resize",
        400,
        "Invalid input received: New size for extend must be greater than current"
        " size. (current: 2, extended: 2).",
        None,
    ),
    ("resize", 413, "Requested volume exceeds allowed quota", errors.QuotaExceeded),
    ("resize", 404, "Volume c could not be found.", errors.NotFound),
    (
        "attach",
        400,
        f"Invalid volume: volume c is already attached to instances: {SERVER}",
        None,
    ),
    (
        "attach",
        400,
        f"Invalid volume: volume c is already attached to instances: {OTHER}",
        errors.AttachedElsewhere,
    ),
    (
        "attach",
        400,
        "Invalid input received: Invalid volume: Volume c status must be available or"
        " downloading to reserve, but the current status is in-use. (HTTP 400)",
        errors.AttachedElsewhere,
    ),
    (
        "attach",
        400,
        "Invalid input received: Invalid volume: Volume c status must be available or"
        " downloading to reserve, but the current status is creating. (HTTP 400)",
        errors.Busy,
    ),
    (
        "attach",
        403,
        "The maximum allowed number of disk devices (26) to attach to a single"
        " instance has been exceeded.",
        errors.LimitReached,
    ),
    ("attach", 403, "Policy doesn't allow it.", errors.Forbidden),
    (
        "attach",
        409,
        "Cannot 'attach_volume' instance x while it is in vm_state building",
        errors.Busy,
    ),
    ("attach", 409, "Instance x is locked", errors.Busy),
    (
        "attach",
        400,
        "Invalid volume: Instance x and volume c are not in the same"
        " availability_zone. Instance is in az1. Volume is in nova",
        errors.InvalidRequest,
    ),
    (
        "detach",
        400,
        "Invalid volume: Invalid input received: Invalid volume: Unable to detach"
        " volume. Volume status must be 'in-use' and attach_status must be 'attached'"
        " to detach. (HTTP 400)",
        errors.Busy,
    ),
    ("detach", 409, "Instance x is locked", errors.Busy),
    (
        "retype",
        400,
        "Invalid volume: Retype needs volume to be in available or in-use state",
        errors.Busy,
    ),
    (
        "retype",
        400,
        "Invalid input received: Invalid volume_type passed, retypes affecting"
        " multiattach are only allowed on available volumes",
        errors.InvalidRequest,
    ),
    ("retype", 413, "Requested volume exceeds allowed quota", errors.QuotaExceeded),
    ("delete", 403, "Policy doesn't allow it.", errors.Forbidden),
]


@pytest.mark.parametrize(("operation", "status", "message", "kind"), REFUSALS)
def test_each_refusal_has_its_meaning(  # - a table's columns
    stand_in: StandIn,
    cinder: Cinder,
    make_volumes: MakeVolumes,
    operation: str,
    status: int,
    message: str,
    kind: type[errors.CloudError] | None,
) -> None:
    """Cinder says 400 to nearly everything; the words tell what it is about."""
    volumes = make_volumes()
    own = ById(VolumeId(cinder.put(1)))
    observation = volumes.observe([own]).by_ref[own]
    assert not isinstance(observation, Unknown)
    volume = observation[0]
    body = json.dumps({"refusal": {"message": message}, "itemNotFound": {}}).encode()
    attachments = f"servers/{SERVER}/os-volume_attachments"
    table: dict[str, tuple[str, Callable[[], object]]] = {
        "create": ("volumes", lambda: volumes.create(WANTED)),
        "delete": (f"volumes/{volume.id}", lambda: volumes.delete(volume.id)),
        "resize": (
            f"volumes/{volume.id}/action",
            lambda: volumes.resize(volume, 2 * GIB),
        ),
        "retype": (
            f"volumes/{volume.id}/action",
            lambda: volumes.retype(volume, VolumeChange("slow")),
        ),
        "attach": (attachments, lambda: volumes.attach(volume, SERVER)),
        "detach": (
            f"{attachments}/{volume.id}",
            lambda: volumes.detach(volume, SERVER),
        ),
    }
    path, run = table[operation]
    stand_in.fail(path, status, body)
    if kind is None:
        run()
        return
    with pytest.raises(errors.CloudError) as raised:
        run()
    assert type(raised.value) is kind
    # A refusal that no rule knows is reported in the words of the cloud.
    assert (message in str(raised.value)) is (message == UNKNOWN)
