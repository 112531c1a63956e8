"""A volume is as small as the request allows, and never outside of its range."""

import hypothesis
import pytest
from hypothesis import strategies as st

from lib.cloud.volumes import Sizing
from lib.csi import sizes
from lib.csi.spec import csi_pb2 as pb
from lib.volumes.csi_codes import Code, RefusedCall

GIB = 2**30
SIZING = Sizing(GIB, 2 * GIB, GIB, 100 * GIB)
FINE = Sizing(1, 2**20, 2**20)


def _fit(required: int, limit: int, sizing: Sizing = SIZING) -> int:
    expected = pb.CapacityRange(required_bytes=required, limit_bytes=limit)
    return sizes.fit(expected, sizing)


@pytest.mark.parametrize(
    ("required", "limit", "size"),
    [
        (0, 0, 2 * GIB),
        (0, 3 * GIB, 2 * GIB),
        (0, GIB, GIB),
        (0, 2 * GIB - 1, GIB),
        (1, 0, GIB),
        (GIB, 0, GIB),
        (GIB + 1, 0, 2 * GIB),
        (GIB, GIB, GIB),
        (10 * GIB, 11 * GIB, 10 * GIB),
        (100 * GIB, 0, 100 * GIB),
    ],
)
def test_sizes_are_rounded_up(required: int, limit: int, size: int) -> None:
    assert _fit(required, limit) == size


def test_a_cloud_of_bytes_rounds_nothing() -> None:
    assert _fit(2**20 + 1, 0, FINE) == 2**20 + 1
    assert _fit(1, 0, FINE) == 2**20


@hypothesis.given(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40))
def test_a_size_is_in_its_range_or_refused(required: int, limit: int) -> None:
    try:
        size = _fit(required, limit)
    except RefusedCall as refused:
        is_negative = required < 0 or limit < 0
        code = Code.INVALID_ARGUMENT if is_negative else Code.OUT_OF_RANGE
        assert refused.code is code  # noqa: PT017 -- which one depends on the range
        return
    assert size >= required
    assert limit == 0 or size <= limit
    assert size % GIB == 0
    assert required == 0 or size - max(required, GIB) < GIB
