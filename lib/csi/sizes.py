"""The size of a volume for a requested capacity range."""

from lib.cloud.volumes import Sizing
from lib.csi.spec import csi_pb2
from lib.volumes.csi_codes import Code, RefusedCall, invalid


def fit(capacity: csi_pb2.CapacityRange, sizing: Sizing) -> int:
    """Return the smallest size in bytes that the cloud and the range allow.

    Raises:
        RefusedCall: INVALID_ARGUMENT for an invalid range, OUT_OF_RANGE for a range
            without a size that the cloud supports.

    Source: CSI specification 1.12.0, CapacityRange.
    """
    required, limit = capacity.required_bytes, capacity.limit_bytes
    for field, value in (("required_bytes", required), ("limit_bytes", limit)):
        if value < 0:
            text = invalid(f"capacity_range.{field}", value, "0 or more")
            raise RefusedCall(Code.INVALID_ARGUMENT, text)
    if limit and limit < required:
        raise _out_of_range(
            "limit_bytes", limit, f"0 or at least required_bytes, {required}"
        )
    desired = required or sizing.default_bytes
    if not required and limit:
        desired = min(desired, limit // sizing.step_bytes * sizing.step_bytes)
    steps = -(-max(desired, sizing.least_bytes) // sizing.step_bytes)
    size = steps * sizing.step_bytes
    if limit and size > limit:
        step = f"the next size above {required} (multiples of {sizing.step_bytes})"
        raise _out_of_range("limit_bytes", limit, f"at least {size}, {step}")
    if sizing.most_bytes is not None and size > sizing.most_bytes:
        raise _out_of_range("required_bytes", required, f"at most {sizing.most_bytes}")
    return size


def _out_of_range(field: str, value: int, required: str) -> RefusedCall:
    text = invalid(f"capacity_range.{field}", value, required)
    return RefusedCall(Code.OUT_OF_RANGE, text)
