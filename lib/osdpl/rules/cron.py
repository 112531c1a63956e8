"""Schedules of CronJobs."""

import re

_NICKNAMES = (
    *("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"),
)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()
_FIELDS: tuple[tuple[int, int, list[str]], ...] = (
    (0, 59, []),
    (0, 23, []),
    (1, 31, []),
    (1, 12, _MONTHS),
    (0, 7, _DAYS),
)
"""Least and greatest number, and names, of each field.

Source: Kubernetes batch/v1 CronJob, spec.schedule."""


def is_valid(text: str) -> bool:
    """Report whether a text is a schedule: 5 fields, or a nickname such as @daily."""
    if text in _NICKNAMES:
        return True
    fields = text.split()
    return len(fields) == len(_FIELDS) and all(
        _is_field(field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )


def _is_field(text: str, least: int, most: int, names: list[str]) -> bool:
    return all(_is_part(part, least, most, names) for part in text.split(","))


def _is_part(text: str, least: int, most: int, names: list[str]) -> bool:
    span, slash, step = text.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span in ("*", "?"):
        return True
    ends = [_number(word, least, names) for word in re.split("-", span, maxsplit=1)]
    return all(least <= end <= most for end in ends) and ends == sorted(ends)


def _number(word: str, least: int, names: list[str]) -> int:
    """Return the number of a word; -1 if it is none."""
    if word.isdecimal():
        return int(word)
    return names.index(word.lower()) + least if word.lower() in names else -1
