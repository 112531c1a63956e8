"""What the checks of `mooring doctor` read and return."""

import dataclasses
import datetime
import enum
from typing import Generic, TypeVar

T = TypeVar("T")


class CheckState(enum.Enum):
    """Result of a check, as it is printed."""

    OK = "OK"
    WARNING = "WARN"
    """Works, or is not used now, but an administrator should know of it."""
    FAILED = "FAIL"
    SKIPPED = "SKIP"
    """Not checked: a check that it depends on failed, or the object is absent."""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one check.

    remedy: empty where none is needed. more: objects that `text` counts and does not
    name.
    """

    check: str
    state: CheckState
    text: str
    remedy: str = ""
    more: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """Result of a read."""

    value: T


@dataclasses.dataclass(frozen=True, slots=True)
class ReadFailure:
    """Failure of a read. reason: a reason of lib/cloud/errors.py, or empty."""

    text: str
    reason: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ClockReadings:
    """Two clocks at one moment; remote: None without an answer."""

    local: datetime.datetime
    remote: datetime.datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource.

    group: empty for the core group. subresource, name: empty for none and for any.
    namespace: empty for all of them, and for kinds that have none.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        if self.subresource:
            what += f"/{self.subresource}"
        if self.name:
            what += f" {self.name}"
        where = f"namespace {self.namespace}" if self.namespace else "the whole cluster"
        return f"{self.verb} {what} in {where}"


@dataclasses.dataclass(frozen=True, slots=True)
class DaemonAccount:
    """A ServiceAccount."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Holder of a Lease. holder: empty after a release. duration_s: of the Lease.

    work: what the holder is doing, in one line; empty: nothing.
    """

    holder: str
    renewed_at: datetime.datetime | None
    duration_s: int
    work: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A Node and its provider ID. is_new: not initialised yet."""

    name: str
    provider_id: str
    is_new: bool = False


CRASHED = "CrashLoopBackOff"
NOT_READY = "NotReady"
UNSCHEDULABLE = "Unschedulable"
"""Reasons of a `PodProblem`, beside those that Kubernetes reports."""


@dataclasses.dataclass(frozen=True, slots=True)
class PodProblem:
    """Why a container does not serve. container: empty for the whole Pod.

    reason, text: of Kubernetes.
    """

    namespace: str
    pod: str
    container: str
    reason: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class PodReport:
    """Number of Pods of this project in the cluster, and their problems."""

    number: int
    problems: tuple[PodProblem, ...] = ()
