"""The next move of a release, by its observed and desired state and its jobs. Pure.

Every combination has a row: `TABLE` is complete.
"""

import datetime
import enum
from collections.abc import Mapping

from lib.helm import model as helm


class Observed(enum.StrEnum):
    """Observed state of the newest revision of a release."""

    NONE = "no release"
    EQUAL = "deployed with the desired hash"
    DAMAGED = "deployed with the desired hash, without one of its workloads"
    CHANGED = "deployed with the desired hash, by another helm process"
    """helm keeps the labels in a manual upgrade; its content shows it."""
    DIFFERENT = "deployed with another hash"
    NOT_OWNED = "without the labels of this OpenStackDeployment"
    FAILED = "failed"
    BUSY = "pending, possibly of another helm process"
    PENDING_INSTALL = "pending-install of a helm process that has ended"
    PENDING_UPGRADE = "pending-upgrade of a helm process that has ended"
    PENDING_ROLLBACK = "pending-rollback of a helm process that has ended"
    UNINSTALLING = "uninstalling by a helm process that has ended"
    UNINSTALLED = "uninstalled, with its history kept"
    SUPERSEDED = "superseded, without a deployed revision"
    UNREADABLE = "unreadable"


class Desired(enum.StrEnum):
    """Desired state of a release by the OpenStackDeployment."""

    INSTALLED = "installed"
    ABSENT = "absent"
    KEPT = "kept as it is"
    """Its service is desired, but cannot be rendered."""


class Move(enum.StrEnum):
    """The next move."""

    SKIP = "skip"
    INSTALL = "install"
    UPGRADE = "upgrade"
    REPAIR = "delete the Secret of the pending revision, then upgrade"
    UNINSTALL = "uninstall"
    REFUSE = "refuse"
    WAIT = "wait"


_COLUMNS = (Desired.INSTALLED, Desired.ABSENT, Desired.KEPT)
_WITHOUT_CHILD: Mapping[Observed, tuple[Move, Move, Move]] = {
    Observed.NONE: (Move.INSTALL, Move.SKIP, Move.SKIP),
    Observed.EQUAL: (Move.SKIP, Move.UNINSTALL, Move.SKIP),
    Observed.DAMAGED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Observed.CHANGED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Observed.DIFFERENT: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Observed.NOT_OWNED: (Move.REFUSE, Move.SKIP, Move.SKIP),
    Observed.FAILED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Observed.BUSY: (Move.WAIT, Move.WAIT, Move.SKIP),
    Observed.PENDING_INSTALL: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Observed.PENDING_UPGRADE: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Observed.PENDING_ROLLBACK: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Observed.UNINSTALLING: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Observed.UNINSTALLED: (Move.INSTALL, Move.UNINSTALL, Move.SKIP),
    Observed.SUPERSEDED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Observed.UNREADABLE: (Move.REFUSE, Move.REFUSE, Move.SKIP),
}
TABLE: Mapping[tuple[Observed, Desired, bool], Move] = {
    **{
        (row, desired, False): move
        for row, moves in _WITHOUT_CHILD.items()
        for desired, move in zip(_COLUMNS, moves, strict=True)
    },
    # A child process runs to its end; the next reconciliation reads what it left.
    **{
        (row, desired, True): Move.WAIT
        for row in _WITHOUT_CHILD
        for desired in _COLUMNS
    },
}
"""By release, desired state, and whether a child process works on the release."""

_BY_STATUS: Mapping[helm.Status, Observed] = {
    helm.Status.UNKNOWN: Observed.UNREADABLE,
    helm.Status.DEPLOYED: Observed.DIFFERENT,
    helm.Status.UNINSTALLED: Observed.UNINSTALLED,
    helm.Status.SUPERSEDED: Observed.SUPERSEDED,
    helm.Status.FAILED: Observed.FAILED,
    helm.Status.UNINSTALLING: Observed.UNINSTALLING,
    helm.Status.PENDING_INSTALL: Observed.PENDING_INSTALL,
    helm.Status.PENDING_UPGRADE: Observed.PENDING_UPGRADE,
    helm.Status.PENDING_ROLLBACK: Observed.PENDING_ROLLBACK,
}


def observed(
    revision: helm.Revision | None,
    *,
    is_owned: bool,
    is_readable: bool,
    has_hash: bool,
    is_damaged: bool,
    is_abandoned: bool,
) -> Observed:
    """Return the row of a release.

    has_hash: its hash is the desired one. is_damaged: a workload of it does not exist;
    read only for a deployed one. is_abandoned: the helm process that left it
    pending has ended; read only for a pending one.
    """
    if revision is None:
        return Observed.NONE
    if not is_owned:
        return Observed.NOT_OWNED
    if not is_readable:
        return Observed.UNREADABLE
    if revision.status.is_pending and not is_abandoned:
        return Observed.BUSY
    if revision.status is helm.Status.DEPLOYED and has_hash:
        return Observed.DAMAGED if is_damaged else Observed.EQUAL
    return _BY_STATUS[revision.status]


def abandoned_in_s(
    revision: helm.Revision,
    began: datetime.datetime | None,
    limit_s: float,
    now: datetime.datetime,
) -> float:
    """Return in how many seconds no helm process can work on a pending revision.

    began: when it was written; None: not known. limit_s: that a run of helm may last.
    """
    if not revision.status.is_pending or began is None:
        return 0.0
    return max(0.0, limit_s - (now - began).total_seconds())
