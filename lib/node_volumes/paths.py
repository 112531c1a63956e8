"""Failures of paths, with one text for all requests."""

from lib.kernel.model import Entry
from lib.node_volumes.failures import Failure, Reason
from lib.node_volumes.model import Outcome


def wrong_kind(field: str, path: str, entry: Entry, required: str) -> Outcome:
    """Return the failure for a path that is of another kind than required."""
    text = f'{field}: invalid value "{path}": is a {entry.kind.value}'
    return Outcome(failure=Failure(Reason.INVALID, f"{text}, must be {required}"))


def failed(reason: Reason, text: str) -> Outcome:
    """Return a failure."""
    return Outcome(failure=Failure(reason, text))
