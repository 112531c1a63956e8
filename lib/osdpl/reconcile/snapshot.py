"""What a reconciliation of an OpenStackDeployment knows before it decides."""

import dataclasses
import datetime
import enum
from collections.abc import Mapping

from lib.helm import model as helm
from lib.osdpl.api import model
from lib.osdpl.api.model import Document
from lib.osdpl.api.settings import OsdplSettings
from lib.process import config


class Refused(enum.StrEnum):
    """Why nothing at all is done for an OpenStackDeployment: reasons of `Accepted`."""

    INVALID_SPEC = "InvalidSpec"
    SECRET_MISSING = "SecretMissing"  # noqa: S105 # the name of a reason
    SECOND_DEPLOYMENT = "SecondDeployment"
    NAMESPACE_NOT_SERVED = "NamespaceNotServed"
    NAMESPACE_MISSING = "NamespaceMissing"
    POD_SECURITY = "PodSecurity"
    HELM_BUNDLE_NOT_OWNED = "HelmBundleNotOwned"
    HELM_UNUSABLE = "HelmUnusable"
    FORBIDDEN = "Forbidden"
    DELETION_REFUSED = "DeletionRefused"
    UNKNOWN = "Unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Blocker:
    """A fact of the cluster that forbids to install anything."""

    reason: Refused
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Desired:
    """What an OpenStackDeployment and its Secrets mean; pure of those.

    reason, problems: why it cannot be served; None and empty when it can. missing:
    names of the credential Secrets that have to be generated or completed first;
    nothing is rendered before. absent: those of them that do not exist. spec: the
    effective one, without references.
    """

    deployment: model.Deployment | None = None
    reason: Refused | None = None
    problems: tuple[config.FieldProblem, ...] = ()
    missing: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    rendered: model.Rendered | None = None
    spec: model.Tree = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """How a piece of work outside the reconciliation ended.

    about: what it was tried with, such as the hash of the values; another one makes it
    void. count: attempts in a row that failed with it. retry_at: None for success.
    is_final: only a change of the input, or of what it refers to, can help.
    """

    about: str
    ended_at: datetime.datetime
    message: str = ""
    is_final: bool = False
    count: int = 0
    retry_at: datetime.datetime | None = None

    @property
    def is_ok(self) -> bool:
        """Report whether it succeeded."""
        return self.retry_at is None


@dataclasses.dataclass(frozen=True, slots=True)
class Workloads:
    """Readiness of the workloads in the namespace.

    ready: by kind and name. releases: the workloads of each release. pods: a text about
    those of each workload.
    """

    ready: Mapping[model.Workload, bool] = dataclasses.field(default_factory=dict)
    releases: Mapping[str, tuple[model.Workload, ...]] = dataclasses.field(
        default_factory=dict
    )
    pods: Mapping[model.Workload, str] = dataclasses.field(default_factory=dict)

    def count(self, release: str) -> tuple[int, int]:
        """Return how many workloads of a release are ready, and how many there are."""
        workloads = self.releases.get(release, ())
        return sum(self.ready.get(workload, False) for workload in workloads), len(
            workloads
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Installed:
    """Content of the newest revision of a release.

    values, values_without_images: their digest; see lib/osdpl/api/hashing.py, contents.
    """

    chart: str
    version: str
    namespace: str
    values: str
    values_without_images: str

    def holds(self, release: model.Release) -> bool:
        """Report whether it is the content of a desired release."""
        own = self.values_without_images if release.images_base else self.values
        return (self.chart, self.version, self.namespace, own) == (
            release.chart.name,
            release.chart.version,
            release.namespace,
            release.contents or own,
        )


ChartKey = tuple[str, str, str]
"""Address of the source, name and version of a chart."""


def chart_key(chart: model.ChartRef) -> ChartKey:
    """Return what the digest of a chart is kept by."""
    return chart.repository.url, chart.name, chart.version


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """Work outside the reconciliation.

    running: releases with a helm run or a chart download under way. free: slots.
    attempts: the last one of each release. digests: of charts read by this process.
    deleting: those of running that are being deleted. reading: those whose chart is
    only read. unfinished: by release, the hash
    of its last upgrade by this process, if that has not succeeded. limit_s: that a run
    of helm may last.
    """

    running: frozenset[str] = frozenset()
    free: int = 0
    attempts: Mapping[str, Attempt] = dataclasses.field(default_factory=dict)
    digests: Mapping[ChartKey, str] = dataclasses.field(default_factory=dict)
    deleting: frozenset[str] = frozenset()
    unfinished: Mapping[str, str] = dataclasses.field(default_factory=dict)
    limit_s: float = 0.0
    reading: frozenset[str] = frozenset()


def reference_finalizers(document: Document) -> tuple[str, ...]:
    """Return the finalizers of the reference's controllers on an object.

    Source: rockoon, one Kopf process for each container, named after its peering.
    """
    prefix, suffix = f"{model.GROUP}/rockoon", "-finalizer"
    names = document["metadata"].get("finalizers") or ()
    return tuple(n for n in names if n.startswith(prefix) and n.endswith(suffix))


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that is known of one OpenStackDeployment.

    oldest: key of the one that is served. unlisted: why a cache is not filled: not even
    a deletion goes on before. is_definition_deleted: the object is only deleted because
    its CustomResourceDefinition is. is_reference_absent: nothing else would remove the
    reference's finalizers. revisions, bundles: by name. status: the
    OpenStackDeploymentStatus. held: a write of ours is not in the caches yet.
    status_ages_s: seconds since this process wrote the status of a HelmBundle, by
    name. earlier: UIDs of the Secrets that were pending when this process began to act:
    what left them has ended, or has lost the Lease. unreadable: by release, what is
    wrong with the Secret of its newest revision. missing: by release, the workloads of
    its newest revision that do not exist. restoring: releases whose newest revision
    restores a backup of the database. installed: by release, what its newest revision
    holds.
    """

    key: str
    document: Document
    oldest: str
    blockers: tuple[Blocker, ...] = ()
    unlisted: tuple[Blocker, ...] = ()
    is_definition_deleted: bool = False
    is_reference_absent: bool = False
    desired: Desired = dataclasses.field(default_factory=Desired)
    revisions: Mapping[str, helm.Revision] = dataclasses.field(default_factory=dict)
    workloads: Workloads = dataclasses.field(default_factory=Workloads)
    work: Work = dataclasses.field(default_factory=Work)
    bundles: Mapping[str, Document] = dataclasses.field(default_factory=dict)
    status: Document | None = None
    held: bool = False
    status_ages_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    earlier: frozenset[str] = frozenset()
    unreadable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing: Mapping[str, tuple[model.Workload, ...]] = dataclasses.field(
        default_factory=dict
    )
    restoring: frozenset[str] = frozenset()
    installed: Mapping[str, Installed] = dataclasses.field(default_factory=dict)
    settings: OsdplSettings = dataclasses.field(default_factory=OsdplSettings)

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.key.partition("/")[2]

    @property
    def uid(self) -> str:
        """UID of the object."""
        return str(self.document["metadata"].get("uid") or "")

    @property
    def is_deleted(self) -> bool:
        """Report whether the object is being deleted."""
        return bool(self.document["metadata"].get("deletionTimestamp"))
