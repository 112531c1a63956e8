"""What a reconciliation can do; each action is one write, or the start of one job."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from lib.helm import model as helm
from lib.osdpl.api import model


@dataclasses.dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Have the deletion of the OpenStackDeployment wait for the releases'."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Action: the deletion of the OpenStackDeployment may be completed.

    names: finalizers of the reference; empty: our own.
    """

    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class EnsureCredentials:
    """Generate what a Secret of credentials lacks; what it has is kept."""

    secret: str


@dataclasses.dataclass(frozen=True, slots=True)
class ReadChart:
    """Read a chart in a job, to learn its digest."""

    release: str
    chart: model.ChartRef


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyBundle:
    """Create or change a HelmBundle: everything of it that is ours."""

    name: str
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyBundleStatus:
    """Change the status of a HelmBundle."""

    name: str
    status: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class DeleteBundle:
    """Delete a HelmBundle whose releases are uninstalled, and before it what they left.

    releases: whose hook Jobs are deleted, found by their label. secrets: generated ones
    that are deleted, too. has_claims: so are the PersistentVolumeClaims.
    """

    name: str
    uid: str
    releases: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    has_claims: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Upgrade:
    """Install or upgrade a release in a job.

    owner: UID of the OpenStackDeployment. digest: of the chart. hash: of all that the
    release depends on. interrupted: a revision that a killed helm process left pending;
    its Secret is deleted first. missing: workloads that were deleted. is_damaged: that
    is the only reason.
    """

    release: model.Release
    owner: str
    digest: str
    hash: str
    interrupted: helm.Revision | None = None
    missing: tuple[model.Workload, ...] = ()
    is_damaged: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Relabel:
    """Record OpenStack version and owner of a release that needs no run of helm."""

    revision: helm.Revision
    openstack_version: str
    owner: str


@dataclasses.dataclass(frozen=True, slots=True)
class Uninstall:
    """Delete a release in a job; hooks: whether its pre-delete Jobs are run."""

    release: str
    hooks: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Cancel:
    """End the job of a release early: what it installs is to be deleted."""

    release: str


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Change the OpenStackDeploymentStatus: everything of it that is ours."""

    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ApplyConditions:
    """Change the status of the OpenStackDeployment, and report what has changed."""

    status: Mapping[str, Any] = dataclasses.field(repr=False)
    events: tuple[tuple[str, str, str], ...] = ()
    """Type, reason and message of each Event."""


Action = (
    AddFinalizer
    | RemoveFinalizer
    | EnsureCredentials
    | ReadChart
    | ApplyBundle
    | ApplyBundleStatus
    | DeleteBundle
    | Upgrade
    | Relabel
    | Uninstall
    | Cancel
    | ApplyStatus
    | ApplyConditions
)
