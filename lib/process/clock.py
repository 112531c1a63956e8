"""The time of day, for those that are not given another clock."""

import datetime


def utc_now() -> datetime.datetime:
    """Return the time of day, with its zone."""
    return datetime.datetime.now(datetime.UTC)
