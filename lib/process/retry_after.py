"""Retry-After headers, read once for every client."""

import email.utils

SHORTEST_S = 1.0
LONGEST_S = 300.0
"""A server that asks for a longer pause is called again after this one: its clock may
be wrong, and nothing else would notice that it has recovered."""


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
