"""Retry-After: how it is parsed, and what it means for the next try. Pure."""

import email.utils

SHORTEST_S = 1.0
LONGEST_S = 300.0
"""A server that asks for a longer pause is called again after this one: its clock may
be wrong, and nothing else would notice that it has recovered."""
LONGEST_REPEAT_S = 5.0
"""A read is not repeated after a longer pause: that is left to the caller's queue."""
REPEAT_S = 1.0
"""Of the repetition without Retry-After: half of it fixed, half of it jitter."""


def seconds(header: str | None, now: float) -> float | None:
    """Parse the value of a Retry-After header into seconds, 1 to 300.

    None without a header that can be parsed, and for a pause of zero or a date in the
    past: neither says when a retry makes sense, so the caller's own backoff applies.

    now: seconds since the epoch, for the form that names a date.

    Source: RFC 9110, 10.2.3.
    """
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdecimal():
        return bounded(float(text))
    try:
        date = email.utils.parsedate_to_datetime(text)
        return bounded(date.timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def bounded(pause_s: float) -> float | None:
    """Return a pause of 1 to 300 seconds; None when it is not above zero."""
    if pause_s > 0:
        return min(max(pause_s, SHORTEST_S), LONGEST_S)
    return None


def pause_s(asked_s: float | None, backoff_s: float, jitter: float) -> float:
    """Return the pause before the next try of a key, in seconds.

    A pause that the server asked for is kept, and never shortens the backoff. asked_s:
    None: it asked for none. jitter: share of the pause, from 0, by which it becomes
    longer; at most LONGEST_S in all.
    """
    if asked_s is None:
        return backoff_s
    return max(min(max(0.0, asked_s) * (1 + jitter), LONGEST_S), backoff_s)


def repeat_s(asked_s: float | None, jitter: float) -> float | None:
    """Return the pause before a read is repeated once; None: it is not repeated.

    jitter: from 0 to 1.
    """
    base_s = REPEAT_S / 2 if asked_s is None else asked_s
    pause_s = base_s + jitter * REPEAT_S / 2
    return pause_s if pause_s <= LONGEST_REPEAT_S else None
