"""Watched stores of what the operator reads, in the namespace that it serves."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from lib.helm import model as helm
from lib.helm import releases
from lib.kube import client, errors, objects, resources, store
from lib.osdpl.api import model, references
from lib.osdpl.api.model import Document
from lib.osdpl.api.settings import CONFIG_MAP
from lib.osdpl.reconcile.snapshot import Workloads
from lib.osdpl.values import credentials, secret_shapes

RELEASE = "meta.helm.sh/release-name"
"""Annotation of every object that helm has made.

Source: helm.sh/helm/v4 pkg/action, validate.go."""


class WorkloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Counts of a Deployment, StatefulSet or DaemonSet."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0


class UpdateStrategy(msgspec.Struct, frozen=True):
    """How pods of an older revision are replaced; OnDelete: they are not."""

    type: str = ""


class WorkloadSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Replicas of a Deployment or StatefulSet; absent: 1."""

    replicas: int = 1
    update_strategy: UpdateStrategy = UpdateStrategy()


class WorkloadObject(msgspec.Struct, frozen=True):
    """A Deployment, StatefulSet or DaemonSet."""

    metadata: objects.ObjectMeta
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)


class Custom(msgspec.Struct, frozen=True):
    """An object of a custom resource, whole."""

    metadata: objects.ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}

    def document(self) -> Document:
        """Return it as a decoded JSON object."""
        metadata: dict[str, Any] = msgspec.to_builtins(self.metadata)
        return {"metadata": metadata, "spec": self.spec, "status": self.status}


_WORKLOADS = {
    model.Kind.DEPLOYMENT: resources.DEPLOYMENTS,
    model.Kind.STATEFUL_SET: resources.STATEFUL_SETS,
    model.Kind.DAEMON_SET: resources.DAEMON_SETS,
}


def is_ready(kind: model.Kind, workload: WorkloadObject) -> bool:
    """Report whether all pods of a workload are of its last revision, and ready.

    With the strategy OnDelete pods of older revisions count, too.
    """
    status = workload.status
    if status.observed_generation < workload.metadata.generation:
        return False
    ready, updated, count = _pods(kind, workload)
    is_complete = kind is model.Kind.DAEMON_SET or status.replicas == count
    is_updated = workload.spec.update_strategy.type == "OnDelete" or updated == count
    return ready == count and is_complete and is_updated


def pods_of(kind: model.Kind, workload: WorkloadObject) -> str:
    """Return how many pods of a workload are ready, and of its newest revision."""
    ready, updated, count = _pods(kind, workload)
    return f"{ready}/{count} pods Ready, {updated} of the newest revision"


def _pods(kind: model.Kind, workload: WorkloadObject) -> tuple[int, int, int]:
    """Return how many pods are ready, of the newest revision, and desired."""
    status = workload.status
    if kind is model.Kind.DAEMON_SET:
        count = status.desired_number_scheduled
        return status.number_ready, status.updated_number_scheduled, count
    count = workload.spec.replicas
    return status.ready_replicas, status.updated_replicas, count


@dataclasses.dataclass(frozen=True, slots=True)
class Caches:
    """The stores. Reading is cheap and safe from any thread."""

    namespace: str
    secrets: store.Store[releases.Secret]
    workloads: Mapping[model.Kind, store.Store[WorkloadObject]]
    bundles: store.Store[Custom]
    statuses: store.Store[Custom]
    settings: store.Store[objects.ConfigMap]

    def all(self) -> Iterator[tuple[resources.Resource, store.Store[Any]]]:
        """Yield each store with what it holds."""
        yield resources.SECRETS, self.secrets
        for kind, kept in self.workloads.items():
            yield _WORKLOADS[kind], kept
        yield resources.HELM_BUNDLES, self.bundles
        yield resources.OPENSTACK_DEPLOYMENT_STATUSES, self.statuses
        yield resources.CONFIG_MAPS, self.settings

    def read(self) -> None:
        """List all kinds once; a kind whose definition is absent has no objects.

        Raises:
            KubeError: a kind cannot be listed.
        """
        for _, kept in self.all():
            with contextlib.suppress(errors.NotFound):
                kept.relist()

    def runs(self) -> Iterator[tuple[str, Callable[[threading.Event], None]]]:
        """Yield name and loop of each watch."""
        for resource, kept in self.all():
            yield f"watch {resource.plural}", kept.run

    def subscribe(self, ring: Callable[[], None]) -> None:
        """Have `ring` called for each change that can matter."""

        def changed(key: str, old: Any, new: Any) -> None:
            del key, old, new
            ring()

        for kept in (self.secrets, self.bundles, self.statuses, self.settings):
            kept.subscribe(changed)
        for kind, workloads in self.workloads.items():
            workloads.subscribe(_readiness(kind, ring))

    def revisions(self) -> Mapping[str, helm.Revision]:
        """Return the newest revision of each release, by name."""
        kept = (secret.metadata for secret in self.secrets.items().values())
        return {revision.name: revision for revision in releases.latest(kept).values()}

    def installed(self, release: str) -> tuple[helm.Revision, ...]:
        """Return the revisions of which objects may exist: the newest, the deployed."""
        revisions = [
            revision
            for secret in self.secrets.items().values()
            if (revision := releases.revision(secret.metadata))
            and revision.name == release
        ]
        newest = max((revision.number for revision in revisions), default=0)
        return tuple(
            revision
            for revision in revisions
            if revision.number == newest or revision.status is helm.Status.DEPLOYED
        )

    def release(self, revision: helm.Revision) -> helm.Release | None:
        """Return the content of a revision; None: it is gone.

        Raises:
            MalformedRelease: its Secret holds none.
        """
        secret = self.secrets.get(f"{revision.namespace}/{revision.secret_name}")
        return releases.decode(secret) if secret is not None else None

    def ini_files(self) -> Mapping[str, str]:
        """Return the ini files of the ConfigMap with settings, by name."""
        config_map = self.settings.get(f"{self.namespace}/{CONFIG_MAP}")
        data = (config_map.data if config_map is not None else None) or {}
        return {
            f"ConfigMap {CONFIG_MAP} {name}": data[name]
            for name in sorted(data)
            if name.endswith(".ini")
        }

    def stored(self) -> Mapping[str, credentials.Stored]:
        """Return the Secrets that are not of helm, by name."""
        return {
            secret.metadata.name: credentials.Stored(
                secret.data,
                _priority(secret.metadata),
                secret.metadata.labels.get(references.LABEL) == references.LABEL_VALUE,
            )
            for secret in self.secrets.items().values()
            if secret.type != releases.TYPE
        }

    def observed(self) -> Workloads:
        """Return the readiness of all workloads."""
        ready: dict[model.Workload, bool] = {}
        of: dict[str, list[model.Workload]] = {}
        pods: dict[model.Workload, str] = {}
        for kind, kept in self.workloads.items():
            for stored in kept.items().values():
                workload = model.Workload(kind=kind, name=stored.metadata.name)
                ready[workload] = is_ready(kind, stored)
                pods[workload] = pods_of(kind, stored)
                release = stored.metadata.annotations.get(RELEASE)
                if release:
                    of.setdefault(release, []).append(workload)
        releases_ = {name: tuple(workloads) for name, workloads in of.items()}
        return Workloads(ready, releases_, pods)


def open_caches(api: client.Api, namespace: str) -> Caches:
    """Return the stores of a namespace; nothing is read yet."""
    return Caches(
        namespace=namespace,
        secrets=store.Store(
            api, resources.SECRETS, releases.Secret, namespace=namespace
        ),
        workloads={
            kind: store.Store(api, resource, WorkloadObject, namespace=namespace)
            for kind, resource in _WORKLOADS.items()
        },
        bundles=store.Store(api, resources.HELM_BUNDLES, Custom, namespace=namespace),
        statuses=store.Store(
            api, resources.OPENSTACK_DEPLOYMENT_STATUSES, Custom, namespace=namespace
        ),
        settings=store.Store(
            api,
            resources.CONFIG_MAPS,
            objects.ConfigMap,
            namespace=namespace,
            field_selector=f"metadata.name={CONFIG_MAP}",
        ),
    )


def _readiness(
    kind: model.Kind, ring: Callable[[], None]
) -> store.Subscriber[WorkloadObject]:
    """Return a subscriber that rings when a workload becomes ready, or no longer is."""

    def changed(
        key: str, old: WorkloadObject | None, new: WorkloadObject | None
    ) -> None:
        del key
        before = None if old is None else is_ready(kind, old)
        after = None if new is None else is_ready(kind, new)
        if before != after:
            ring()

    return changed


def _priority(metadata: objects.ObjectMeta) -> int:
    """Return which of a pair of credential Secrets is active; not a number: 0."""
    text = metadata.annotations.get(secret_shapes.PRIORITY_ANNOTATION, "")
    return int(text) if text.isdecimal() else 0
