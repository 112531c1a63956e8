"""Where the Nodes' servers live, as far as this process has seen it.

In a wrong project every id is honestly "not found". So absence counts only where ids
that were asked for have last been seen (docs/decisions/0006-absence-counts-at-home.md).
"""

import dataclasses

from lib.cloud import errors


@dataclasses.dataclass(frozen=True, slots=True)
class Home:
    """One project's servers in one region; ids, so that they say the same anywhere."""

    project_id: str
    region: str


@dataclasses.dataclass(slots=True)
class Memory:
    """What outlives a change of the credentials; losing it does no harm but that.

    home: where an id that was asked for was last seen; None: not yet. witnesses: ids
    of the servers that the last list showed. Written by one read at a time; each
    value is replaced as a whole.
    """

    home: Home | None = None
    witnesses: tuple[str, ...] = ()


def check(known: Home | None, here: Home, operation: str) -> None:
    """See that absence here means anything.

    Raises:
        Unavailable: the servers were last seen elsewhere.
    """
    if known is None or known == here:
        return
    raise errors.Unavailable(
        f"none of the Nodes' servers is in project {here.project_id!r}, region"
        f" {here.region!r}; they were seen in project {known.project_id!r}, region"
        f" {known.region!r}",
        operation=operation,
    )
