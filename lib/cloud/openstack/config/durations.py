"""Durations as Go writes them."""

import re

_UNIT_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = r"(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)"
_WHOLE = re.compile(rf"([-+]?)((?:{_PART})+|0)")


def parse(text: str) -> float:
    """Give the seconds of a duration like "1m30s".

    Raises:
        ValueError: it is none.

    Source: Go package time, ParseDuration.
    """
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise ValueError("no duration")
    parts = re.findall(_PART, whole[2])
    seconds = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    return -seconds if whole[1] == "-" else seconds
