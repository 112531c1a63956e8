"""What size a volume gets for the range that a caller wants."""

from lib.cloud.volumes import Sizing
from lib.csi.spec import csi_pb2
from lib.volumes.csi_codes import Code, RefusedCall


def fit(wanted: csi_pb2.CapacityRange, sizing: Sizing) -> int:
    """Return the least size in bytes that the cloud makes and the range allows.

    Raises:
        Refused: INVALID_ARGUMENT for a range that is none, OUT_OF_RANGE for one in
            which the cloud makes no volume.

    Source: CSI specification 1.12.0, CapacityRange.
    """
    required, limit = wanted.required_bytes, wanted.limit_bytes
    for field, value in (("required_bytes", required), ("limit_bytes", limit)):
        if value < 0:
            text = f"capacity_range.{field} is {value}; want 0 or more"
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
    if limit and limit < required:
        text = (
            f"capacity_range.limit_bytes is {limit}; want 0 or at least required_bytes,"
            f" which is {required}"
        )
        raise RefusedCall(Code.OUT_OF_RANGE, text)
    asked = required or sizing.default_bytes
    if not required and limit:
        asked = min(asked, limit // sizing.step_bytes * sizing.step_bytes)
    steps = -(-max(asked, sizing.least_bytes) // sizing.step_bytes)
    size = steps * sizing.step_bytes
    if limit and size > limit:
        text = (
            f"capacity_range.limit_bytes is {limit}; want at least {size}, the next"
            f" size above {required} (sizes are multiples of {sizing.step_bytes})"
        )
        raise RefusedCall(Code.OUT_OF_RANGE, text)
    if sizing.most_bytes is not None and size > sizing.most_bytes:
        text = (
            f"capacity_range.required_bytes is {required}; want at most"
            f" {sizing.most_bytes}"
        )
        raise RefusedCall(Code.OUT_OF_RANGE, text)
    return size
