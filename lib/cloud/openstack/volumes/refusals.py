"""What refusals of Cinder and Nova mean, by their words; one table per write.

The comparison itself is the client's. Cinder says 400 to nearly everything.
"""

from collections.abc import Sequence

from lib.cloud import errors
from lib.cloud.openstack.http.client import Refusal

_OVER_QUOTA = (
    Refusal(
        413,
        "larger than maximum allowed limit",
        errors.OutOfRange,
        "the size is above the project's limit for one volume (per_volume_gigabytes)",
    ),
    Refusal(
        413,
        "exceeds allowed",
        errors.QuotaExceeded,
        "the project's quota of gigabytes is used up",
    ),
    Refusal(
        413,
        "maximum number of volumes",
        errors.QuotaExceeded,
        "the project's quota of volumes is used up",
    ),
)
_TYPE_SIZES = (
    Refusal(
        400,
        "than the minimum required size",
        errors.OutOfRange,
        "the size is below what the volume type allows (provision:min_vol_size)",
    ),
    Refusal(
        400,
        "than the maximum allowable size",
        errors.OutOfRange,
        "the size is above what the volume type allows (provision:max_vol_size)",
    ),
)
CREATE: Sequence[Refusal] = (
    *_OVER_QUOTA,
    *_TYPE_SIZES,
    Refusal(
        400,
        "smaller than original volume size",
        errors.OutOfRange,
        "the size is below that of the source volume",
    ),
    Refusal(
        400,
        "same availability zone as the source",
        errors.InvalidRequest,
        "the zone differs from that of the source volume: must be the same",
    ),
    Refusal(
        400,
        "only supported in these availability zones",
        errors.Unplaceable,
        "the volume type does not exist in this zone",
    ),
    Refusal(
        400,
        "source volume's status must be",
        errors.Busy,
        "the source volume can't be copied now",
    ),
)
"""Source: cinder/exception.py, cinder/volume/volume_types.py
(provision_filter_on_size), cinder/volume/flows/api/create_volume.py."""

_BUSY_VOLUME = "the volume's status does not allow it now"
RESIZE: Sequence[Refusal] = (
    *_OVER_QUOTA,
    *_TYPE_SIZES,
    Refusal(
        400,
        "new size for extend must be greater",
        errors.AlreadyExists,
        "the volume has that size",
    ),
    Refusal(400, "status must be", errors.Busy, _BUSY_VOLUME),
)
"""Source: cinder/volume/api.py (_extend)."""

RETYPE: Sequence[Refusal] = (
    *_OVER_QUOTA,
    *_TYPE_SIZES,
    Refusal(
        400,
        "invalid volume_type passed",
        errors.InvalidRequest,
        "there is no way to this volume type from that of the volume",
    ),
    Refusal(400, "retype needs volume to be", errors.Busy, _BUSY_VOLUME),
)
"""Source: cinder/volume/api.py (retype)."""

_ELSEWHERE = "the volume is attached to another server"
_NOT_NOW = "the server's state does not allow it now"
_LOCKED = (
    Refusal(409, "is locked", errors.Busy, "the server is locked; unlock it first"),
)


def attach(volume_id: str, server_id: str) -> Sequence[Refusal]:
    """Return the table of an attach; AlreadyExists: it is, or soon will be, attached.

    Source: nova/compute/api.py (attach_volume), nova/exception.py,
    cinder/volume/api.py (_attachment_reserve).
    """
    own_text = f"already attached to instances: {server_id}"
    return (
        *_absent(volume_id, server_id),
        Refusal(400, own_text, errors.AlreadyExists, "it is attached"),
        Refusal(
            400, "already attached to instances", errors.AttachedElsewhere, _ELSEWHERE
        ),
        Refusal(400, "already attached", errors.AlreadyExists, "it is attached"),
        Refusal(
            400, "the current status is in-use", errors.AttachedElsewhere, _ELSEWHERE
        ),
        Refusal(400, "status must be", errors.Busy, _BUSY_VOLUME),
        Refusal(
            400,
            "not in the same availability_zone",
            errors.InvalidRequest,
            "server and volume are in different zones; this cloud wants them in one",
        ),
        Refusal(
            403,
            "maximum allowed number of disk devices",
            errors.LimitReached,
            "the server takes no more volumes",
        ),
        *_LOCKED,
        Refusal(409, "cannot 'attach_volume'", errors.Busy, _NOT_NOW),
    )


def detach(volume_id: str, server_id: str) -> Sequence[Refusal]:
    """Return the table of a detach; NotFound of the server: no such attachment.

    Source: nova/api/openstack/compute/volume_attachments.py, cinder/volume/api.py
    (begin_detaching).
    """
    return (
        *_absent(volume_id, server_id),
        Refusal(404, "is not attached", errors.NotFound, "no attachment", server_id),
        Refusal(400, "unable to detach volume", errors.Busy, _BUSY_VOLUME),
        *_LOCKED,
        Refusal(409, "cannot 'detach_volume'", errors.Busy, _NOT_NOW),
    )


def _absent(volume_id: str, server_id: str) -> Sequence[Refusal]:
    """Return which of the two a 404 is about."""
    return (
        Refusal(
            404, f"instance {server_id} could", errors.NotFound, "no server", server_id
        ),
        Refusal(
            404, f"volume {volume_id} could", errors.NotFound, "no volume", volume_id
        ),
    )
