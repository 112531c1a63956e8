"""What is done about a release, by what it is, what is desired, and what runs. Pure.

Every combination has a row: `TABLE` is complete.
"""

import datetime
import enum
from collections.abc import Mapping

from lib.helm import model as helm


class Found(enum.StrEnum):
    """What the newest revision of a release is."""

    NONE = "no release"
    EQUAL = "deployed with the desired hash"
    DAMAGED = "deployed with the desired hash, without one of its workloads"
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
    """What the OpenStackDeployment means for a release."""

    INSTALLED = "installed"
    ABSENT = "absent"
    KEPT = "kept as it is"
    """Its service is desired, but cannot be rendered."""


class Move(enum.StrEnum):
    """What is done next."""

    SKIP = "skip"
    INSTALL = "install"
    UPGRADE = "upgrade"
    REPAIR = "delete the Secret of the pending revision, then upgrade"
    UNINSTALL = "uninstall"
    REFUSE = "refuse"
    WAIT = "wait"


_COLUMNS = (Desired.INSTALLED, Desired.ABSENT, Desired.KEPT)
_WITHOUT_CHILD: Mapping[Found, tuple[Move, Move, Move]] = {
    Found.NONE: (Move.INSTALL, Move.SKIP, Move.SKIP),
    Found.EQUAL: (Move.SKIP, Move.UNINSTALL, Move.SKIP),
    Found.DAMAGED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Found.DIFFERENT: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Found.NOT_OWNED: (Move.REFUSE, Move.SKIP, Move.SKIP),
    Found.FAILED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Found.BUSY: (Move.WAIT, Move.WAIT, Move.SKIP),
    Found.PENDING_INSTALL: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Found.PENDING_UPGRADE: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Found.PENDING_ROLLBACK: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Found.UNINSTALLING: (Move.REPAIR, Move.UNINSTALL, Move.SKIP),
    Found.UNINSTALLED: (Move.INSTALL, Move.UNINSTALL, Move.SKIP),
    Found.SUPERSEDED: (Move.UPGRADE, Move.UNINSTALL, Move.SKIP),
    Found.UNREADABLE: (Move.REFUSE, Move.REFUSE, Move.SKIP),
}
TABLE: Mapping[tuple[Found, Desired, bool], Move] = {
    **{
        (found, desired, False): move
        for found, moves in _WITHOUT_CHILD.items()
        for desired, move in zip(_COLUMNS, moves, strict=True)
    },
    # A child process runs to its end; the next reconciliation reads what it left.
    **{
        (found, desired, True): Move.WAIT
        for found in _WITHOUT_CHILD
        for desired in _COLUMNS
    },
}
"""By release, desired state, and whether a child process works on the release."""

_BY_STATUS: Mapping[helm.Status, Found] = {
    helm.Status.UNKNOWN: Found.UNREADABLE,
    helm.Status.DEPLOYED: Found.DIFFERENT,
    helm.Status.UNINSTALLED: Found.UNINSTALLED,
    helm.Status.SUPERSEDED: Found.SUPERSEDED,
    helm.Status.FAILED: Found.FAILED,
    helm.Status.UNINSTALLING: Found.UNINSTALLING,
    helm.Status.PENDING_INSTALL: Found.PENDING_INSTALL,
    helm.Status.PENDING_UPGRADE: Found.PENDING_UPGRADE,
    helm.Status.PENDING_ROLLBACK: Found.PENDING_ROLLBACK,
}


def found(
    revision: helm.Revision | None,
    *,
    is_owned: bool,
    is_readable: bool,
    has_hash: bool,
    is_damaged: bool,
    is_abandoned: bool,
) -> Found:
    """Return which row a release is.

    has_hash: its hash is the desired one. is_damaged: a workload of it does not exist;
    read only for a deployed one. is_abandoned: the helm process that left it
    pending has ended; read only for a pending one.
    """
    if revision is None:
        return Found.NONE
    if not is_owned:
        return Found.NOT_OWNED
    if not is_readable:
        return Found.UNREADABLE
    if revision.status.is_pending and not is_abandoned:
        return Found.BUSY
    if revision.status is helm.Status.DEPLOYED and has_hash:
        return Found.DAMAGED if is_damaged else Found.EQUAL
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
