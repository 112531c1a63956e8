"""Order of chart versions. Pure.

Source: Semantic Versioning 2.0.0, precedence; build metadata as a last resort, so that
the order is total.
"""

import re
from collections.abc import Iterable

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+(.+))?")

_Part = tuple[int, int, str]
Key = tuple[int, int, int, bool, tuple[_Part, ...], str]


def key(version: str) -> Key | None:
    """Return what versions are compared by; None: it is no semantic version."""
    parsed = _VERSION.fullmatch(version)
    if parsed is None:
        return None
    major, minor, patch = (int(number) for number in parsed.group(1, 2, 3))
    pre = parsed[4] or ""
    parts = tuple(_part(part) for part in pre.split(".")) if pre else ()
    return major, minor, patch, not pre, parts, parsed[5] or ""


def newest(versions: Iterable[str]) -> str | None:
    """Return the newest version that is no pre-release; None without any."""
    keyed = [
        (parsed, version)
        for version in versions
        if (parsed := key(version)) and parsed[3]
    ]
    return max(keyed)[1] if keyed else None


def some(versions: Iterable[str], limit: int = 5) -> str:
    """Return the newest versions as a text for an error message."""
    ordered = sorted(
        versions,
        key=lambda version: (key(version) is not None, key(version) or version),
    )
    shown = ", ".join(reversed(ordered[-limit:]))
    return shown or "none"


def _part(text: str) -> _Part:
    """Numbers come before words, and among themselves by size."""
    return (0, int(text), "") if text.isdecimal() else (1, 0, text)
