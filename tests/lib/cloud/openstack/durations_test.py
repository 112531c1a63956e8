"""Durations are read as Go reads them."""

import pytest

from lib.cloud.openstack.config import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("5s", 5.0),
        ("1m", 60.0),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("250ms", 0.25),
        ("3\u00b5s", 3e-6),
        ("-2s", -2.0),
        ("+2s", 2.0),
    ],
)
def test_go_durations_give_their_seconds(text: str, seconds: float) -> None:
    """Every form of Go's syntax gives its number of seconds."""
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1d", "-", "five", "1s2"])
def test_anything_else_is_no_duration(text: str) -> None:
    """A number without unit, or another unit, is refused, as in Go."""
    with pytest.raises(ValueError, match="no duration"):
        durations.parse(text)
