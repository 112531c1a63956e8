"""With --dry-run a flow decides as ever; its actions are logged, not carried out."""

from typing import TypeVar

import structlog

from lib.reconcile import outcome

Action = TypeVar("Action")


def omits(action: Action, key: str, *, is_note: bool) -> bool:
    """Report whether a dry run omits this action of a key, and log that.

    is_note: it changes only what this process remembers; a dry run carries it out. An
    action's field that holds a secret has repr=False.
    """
    if not is_note:
        log = structlog.stdlib.get_logger()
        log.info("action skipped (dry run)", key=key, action=str(action))
    return not is_note


def omits_write(action: object, *, is_note: bool) -> bool:
    """Report whether a dry run skips this action; reports are never skipped."""
    return not is_note and not isinstance(action, outcome.ReportAction)
