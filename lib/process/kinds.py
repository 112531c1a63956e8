"""What a flag's text may be, read the way Go programs read it.

A kind reads one text at a time; a flag that is given again is joined with what was
given before (lists and maps), or replaces it (everything else).
"""

import csv
import dataclasses
import fractions
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


def _last(before: T, now: T) -> T:
    del before
    return now


# No slots: Python 3.11 then could not make it as Kind[...](...).
@dataclasses.dataclass(frozen=True)
class FlagKind(Generic[T_co]):
    """One type of flag.

    name: shown in help. expected: what is required, read after "must be". read:
    raises ValueError. join: earlier and later value to one. implied: the text that a
    flag without any stands for; None when it must have one. show: for help.
    """

    name: str
    expected: str
    read: Callable[[str], T_co]
    join: Callable[[T_co, T_co], T_co] = _last
    implied: str | None = None
    show: Callable[[T_co], str] = str


_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


def _read_boolean(text: str) -> bool:
    """Source: Go strconv.ParseBool."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(text)


def _show_boolean(value: bool) -> str:
    return "true" if value else "false"


_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]*|[1-9][0-9]*)")


def read_integer(text: str) -> int:
    """Read a whole number as pflag does: a leading 0 means octal.

    Raises:
        ValueError: it is malformed, or does not fit into 64 bits.

    Source: pflag int.go, Go strconv.ParseInt with base 0 (without underscores).
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lower()
    if digits.startswith("0") and digits[1:].isdigit():
        digits = f"0o{digits[1:]}"
    number = sign * int(digits, 0)
    if not -_INT64_MAX <= number <= _INT64_MAX:
        raise ValueError(text)
    return number


_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5
    "μs": 10**3,  # U+03BC
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_PARTS = re.compile(_PART)
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)")


def read_duration(text: str) -> float:
    """Read a duration such as 5m0s, in seconds.

    Raises:
        ValueError: it is malformed, or too long for Go.

    Source: Go time.ParseDuration.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    total = sum(
        int(fractions.Fraction(number.rstrip(".")) * _UNITS_NS[unit])
        for number, unit in _PARTS.findall(text)
    )
    if total > _INT64_MAX:
        raise ValueError(text)
    return (-total if text.startswith("-") else total) / 10**9


def show_duration(seconds: float) -> str:
    """Write seconds as Go does: 300 is 5m0s, 0.1 is 100ms.

    Source: Go time.Duration.String.
    """
    sign, ns = ("-" if seconds < 0 else ""), round(abs(seconds) * 10**9)
    for unit in ("ns", "us", "ms"):
        if 0 < ns < 10**9 and ns < 1000 * _UNITS_NS[unit]:
            return f"{sign}{ns / _UNITS_NS[unit]:.10g}{unit}"
    minutes, rest = divmod(ns, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest // 10**9}"
    if fraction := rest % 10**9:
        text += f".{fraction:09d}".rstrip("0")
    text += "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _read_list(text: str) -> tuple[str, ...]:
    """Source: pflag string_slice.go: one line of comma-separated values."""
    if not text:
        return ()
    try:
        return tuple(next(csv.reader([text], strict=True)))
    except (csv.Error, StopIteration) as error:
        raise ValueError(text) from error


def _show_list(values: Sequence[str]) -> str:
    return "[" + ",".join(values) + "]"


def _joined(before: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    return before + now


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not equals or not key.strip() for key, equals, _ in pairs):
        raise ValueError(text)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _read_map(text: str) -> Mapping[str, str]:
    return MappingProxyType(_pairs(text))


def _read_boolean_map(text: str) -> Mapping[str, bool]:
    """Source: k8s.io/component-base cli/flag MapStringBool."""
    pairs = _pairs(text)
    return MappingProxyType({key: _read_boolean(on) for key, on in pairs.items()})


def _read_levels(text: str) -> Mapping[str, int]:
    """Source: klog --vmodule, pattern=N."""
    pairs = _pairs(text)
    return MappingProxyType({key: _read_level(at) for key, at in pairs.items()})


def _read_level(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text) or int(text) > _INT32_MAX:
        raise ValueError(text)
    return int(text)


def _merged(before: Mapping[str, T], now: Mapping[str, T]) -> Mapping[str, T]:
    return MappingProxyType({**before, **now})


def _show_map(values: Mapping[str, object]) -> str:
    return ",".join(f"{key}={str(at).lower()}" for key, at in sorted(values.items()))


BOOLEAN = FlagKind(
    "boolean", "true or false", _read_boolean, implied="true", show=_show_boolean
)
TEXT = FlagKind("string", "a string", str)
DURATION = FlagKind(
    "duration",
    "a duration such as 5m0s, 1h30m, 100ms or 0",
    read_duration,
    show=show_duration,
)
"""Seconds, as a float; may be negative."""
LEVEL = FlagKind("level", "a whole number from 0", _read_level)
"""klog's -v."""
LEVELS = FlagKind(
    "pattern=N,...", "pattern=N,...", _read_levels, _merged, show=_show_map
)
"""klog's --vmodule: file pattern to level."""
LIST = FlagKind(
    "strings", "comma-separated values", _read_list, _joined, show=_show_list
)
"""pflag's stringSlice: comma-separated, may be given again."""
ARRAY = FlagKind[tuple[str, ...]](
    "stringArray", "a string", lambda text: (text,), _joined, show=_show_list
)
"""pflag's stringArray: one value each time, commas are part of it."""
MAP = FlagKind("key=value,...", "key=value,...", _read_map, _merged, show=_show_map)
BOOLEAN_MAP = FlagKind(
    "key=true|false,...",
    "key=true or key=false, separated by commas",
    _read_boolean_map,
    _merged,
    show=_show_map,
)
"""Feature gates."""


def integer(least: int = -_INT64_MAX, most: int = _INT64_MAX) -> FlagKind[int]:
    """Create a kind for whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        number = read_integer(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    limits = f" from {least}" if least > -_INT64_MAX else ""
    limits += f" to {most}" if most < _INT64_MAX else ""
    return FlagKind("int", f"a whole number{limits}", read)


def duration(least_s: float) -> FlagKind[float]:
    """Create a kind for durations of least_s seconds or more."""

    def read(text: str) -> float:
        seconds = read_duration(text)
        if seconds < least_s:
            raise ValueError(text)
        return seconds

    expected = f"a duration such as 5m0s, at least {show_duration(least_s)}"
    return FlagKind("duration", expected, read, show=show_duration)


def one_of(*choices: str) -> FlagKind[str]:
    """Create a kind for one of a few words."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return FlagKind("string", "one of " + ", ".join(choices), read)
