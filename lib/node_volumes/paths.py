"""Failures of paths, with one text for all requests."""

from lib.kernel.model import Entry
from lib.node_volumes.call_failures import CallFailed, FailureReason
from lib.node_volumes.model import NodeOutcome


def wrong_kind(field: str, path: str, entry: Entry, required: str) -> NodeOutcome:
    """Return the failure for a path that is of another kind than required."""
    text = f'{field}: invalid value "{path}": is a {entry.kind.value}'
    return NodeOutcome(
        failure=CallFailed(FailureReason.INVALID, f"{text}, must be {required}")
    )


def failed(reason: FailureReason, text: str) -> NodeOutcome:
    """Return a failure."""
    return NodeOutcome(failure=CallFailed(reason, text))
