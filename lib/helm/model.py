"""Releases, runs of helm, and charts, as the rest of the program knows them."""

import dataclasses
import datetime
import enum
import pathlib
from collections.abc import Mapping


class Status(enum.StrEnum):
    """Status of a release's revision.

    Source: helm.sh/helm/v4 pkg/release/common, Status.
    """

    UNKNOWN = "unknown"
    DEPLOYED = "deployed"
    UNINSTALLED = "uninstalled"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    UNINSTALLING = "uninstalling"
    PENDING_INSTALL = "pending-install"
    PENDING_UPGRADE = "pending-upgrade"
    PENDING_ROLLBACK = "pending-rollback"

    @property
    def is_pending(self) -> bool:
        """Report whether a helm process is at work, or was killed while it was."""
        return self in (
            Status.PENDING_INSTALL,
            Status.PENDING_UPGRADE,
            Status.PENDING_ROLLBACK,
            Status.UNINSTALLING,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a release, as the labels of its Secret describe it.

    labels: those of --labels, without helm's own. modified_at:
    the last write of a helm process; None: not known.
    """

    name: str
    namespace: str
    number: int
    status: Status
    labels: Mapping[str, str]
    secret_name: str
    secret_uid: str
    resource_version: str
    modified_at: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """A revision with its content.

    values: as the user gave them; they may hold passwords. manifest: YAML documents,
    without those of hooks. description: of the last operation, in helm's words.
    """

    name: str
    namespace: str
    number: int
    status: Status
    chart: str
    chart_version: str
    description: str
    finished_at: datetime.datetime | None
    values: Mapping[str, object] = dataclasses.field(repr=False)
    manifest: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Upgrade:
    """An installation or upgrade of a release.

    chart: archive or folder. labels: for the release Secret; a value has at most 63
    characters. timeout_s: for each operation within helm, such as one hook Job.
    limit_s: for the whole run. secrets: texts that must not appear in an error.
    """

    release: str
    namespace: str
    chart: pathlib.Path
    values: Mapping[str, object] = dataclasses.field(repr=False)
    labels: Mapping[str, str]
    timeout_s: float
    limit_s: float
    secrets: frozenset[str] = dataclasses.field(default=frozenset(), repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Uninstall:
    """A deletion of a release. hooks: whether its pre-delete Jobs are run."""

    release: str
    namespace: str
    timeout_s: float
    limit_s: float
    hooks: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """A rendering of a chart without a cluster; fields as in `Upgrade`."""

    release: str
    namespace: str
    chart: pathlib.Path
    values: Mapping[str, object] = dataclasses.field(repr=False)
    limit_s: float = 60.0
    secrets: frozenset[str] = dataclasses.field(default=frozenset(), repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Pin:
    """A chart in one version, and its content.

    digest: "sha256:" and 64 hex digits of the archive; None: not known yet.
    """

    name: str
    version: str
    digest: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart in the cache. path: its archive, which is never changed."""

    name: str
    version: str
    digest: str
    path: pathlib.Path
