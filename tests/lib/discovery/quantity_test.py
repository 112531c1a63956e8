"""Amounts come out as Kubernetes itself would write them."""

import pytest

from lib.discovery import quantity


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (0, "0"),
        (1, "1Mi"),
        (512, "512Mi"),
        (1024, "1Gi"),
        (1536, "1536Mi"),
        (8192, "8Gi"),
        (1024 * 1024, "1Ti"),
        (3 * 1024**4, "3Ei"),
        (2048 * 1024**4, "2048Ei"),
    ],
)
def test_mebibytes(mib: int, text: str) -> None:
    assert quantity.of_mib(mib) == text


@pytest.mark.parametrize(
    ("gib", "text"),
    [(0, "0"), (1, "1Gi"), (40, "40Gi"), (1024, "1Ti"), (1500, "1500Gi")],
)
def test_gibibytes(gib: int, text: str) -> None:
    assert quantity.of_gib(gib) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (4, "4"), (1000, "1k"), (1500, "1500"), (10**6, "1M")]
)
def test_counts(count: int, text: str) -> None:
    assert quantity.of_units(count) == text
