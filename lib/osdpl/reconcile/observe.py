"""Reads what a reconciliation needs: caches, and checks that have not passed yet."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from lib.helm import errors as helm_errors
from lib.helm import manifest
from lib.helm import model as helm
from lib.operator_edge.objects import Objects
from lib.osdpl.api import hashing, model, settings
from lib.osdpl.api.model import Document
from lib.osdpl.api.settings import OsdplSettings
from lib.osdpl.reconcile import bundles, caches, checks, desire, restore, work
from lib.osdpl.reconcile import snapshot as snapshots
from lib.osdpl.reconcile.snapshot import (
    Blocker,
    Desired,
    Installed,
    Refused,
    Snapshot,
    Workloads,
)
from lib.osdpl.values import credentials

HOLD_S = 5.0
"""For this long a write of ours may be missing in the caches."""


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """Content of the Secret of a revision.

    trouble: what is wrong with it; empty: nothing. workloads: of its manifest.
    restores: it restores a backup of the database. installed: what it was made from.
    """

    trouble: str = ""
    workloads: tuple[model.Workload, ...] = ()
    restores: bool = False
    installed: Installed | None = None


class Observer:
    """Makes snapshots. For the threads of one runner.

    default: the source of charts when the spec names none. files: ini files with
    settings by name, below those of the ConfigMap.
    """

    def __init__(  # noqa: PLR0913 # the parts of an observation
        self,
        deployments: Objects,
        kept: caches.Caches,
        checks_: checks.Checks,
        worker: work.Worker,
        default: model.Source | None,
        clock: Callable[[], float] = time.monotonic,
        files: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._deployments = deployments
        self._caches = kept
        self._checks = checks_
        self._worker = worker
        self._default = default
        self._clock = clock
        self._files = files
        self._settings: tuple[Mapping[str, str], OsdplSettings] = ({}, OsdplSettings())
        self._memo: tuple[object, Desired] | None = None
        self._needed: tuple[object, frozenset[str]] | None = None
        self._holds: dict[tuple[str, str], float] = {}
        self._statuses: dict[str, float] = {}
        self._earlier: frozenset[str] | None = None
        self._decoded: dict[str, tuple[object, Content]] = {}

    def hold(self, plural: str, key: str, version: str | None) -> None:
        """Hold reconciliations until a cache has seen our own write."""
        for resource, kept in self._caches.all():
            if resource.plural == plural:
                kept.note_write(key, version)
                self._holds[plural, key] = self._clock() + HOLD_S

    def note_status(self, name: str) -> None:
        """Note that the status of a HelmBundle was written just now."""
        self._statuses[name] = self._clock()

    def settings(self) -> OsdplSettings:
        """Return the settings of ini files and ConfigMap; read again after a change."""
        files = {**self._files(), **self._caches.ini_files()}
        if files != self._settings[0]:
            self._settings = (files, settings.read(files))
        return self._settings[1]

    def observe(self, keys: Iterable[str]) -> Mapping[str, Snapshot]:
        """Return a snapshot of each object that exists."""
        snapshots = {}
        for key in keys:
            document = self._deployments.get(key)
            if document is not None:
                snapshots[key] = self._snapshot(key, document)
        return snapshots

    def _snapshot(self, key: str, document: Document) -> Snapshot:
        oldest = self._oldest(key)
        if key != oldest:
            return Snapshot(key, document, oldest)
        namespace = key.partition("/")[0]
        if namespace != self._caches.namespace:
            words = (
                f"namespace {namespace}: not served: must be {self._caches.namespace},"
                " the namespace of this osdpl-controller (--namespace)"
            )
            blockers: tuple[Blocker, ...] = (
                Blocker(Refused.NAMESPACE_NOT_SERVED, words),
            )
            return Snapshot(key, document, oldest, blockers, blockers)
        status = self._caches.statuses.get(key)
        # Read first: results of the jobs are then in the caches, or missing.
        jobs = self._worker.observed()
        revisions = self._caches.revisions()
        contents = self._contents(revisions)
        workloads = self._caches.observed()
        is_deleted = bool(document["metadata"].get("deletionTimestamp"))
        # A deletion needs no desired state: whatever the spec is, it must be possible.
        desired = Desired() if is_deleted else self._desired(document)
        unlisted, is_definition_deleted = self._checks.unlisted(), False
        if is_deleted:
            waits, is_definition_deleted = self._checks.deletion()
            unlisted = (*unlisted, *waits)
        left = snapshots.reference_finalizers(document) if is_deleted else ()
        blockers = (*self._checks.blockers(), *unlisted, *self._bundles_of_others())
        return Snapshot(
            key=key,
            document=document,
            oldest=oldest,
            held=self._is_held(),
            work=jobs,
            blockers=blockers,
            unlisted=unlisted,
            is_definition_deleted=is_definition_deleted,
            is_reference_absent=bool(left) and self._checks.is_reference_absent(),
            desired=desired,
            revisions=revisions,
            earlier=self._pending_at_first(revisions),
            workloads=workloads,
            settings=settings.with_spec(self.settings(), desired.spec),
            **of_contents(contents, workloads),
            bundles={
                bundle.metadata.name: bundle.document()
                for bundle in self._caches.bundles.items().values()
            },
            status=status.document() if status is not None else None,
            status_ages_s={
                name: self._clock() - at for name, at in self._statuses.items()
            },
        )

    def _oldest(self, key: str) -> str:
        """Return the oldest object; one before this one is read again first."""
        for older in self._deployments.by_age():
            if older == key or self._checks.exists(older):
                return older
            missed = self._deployments.get(older)
            if missed is not None:
                self._deployments.remove(missed)
        return key

    def _pending_at_first(
        self, revisions: Mapping[str, helm.Revision]
    ) -> frozenset[str]:
        """Return the UIDs of the Secrets that were pending when this process began."""
        if self._earlier is None and self._caches.secrets.synced.is_set():
            self._earlier = frozenset(
                revision.secret_uid
                for revision in revisions.values()
                if revision.status.is_pending
            )
        return self._earlier or frozenset()

    def _contents(self, revisions: Mapping[str, helm.Revision]) -> dict[str, Content]:
        """Return the contents of releases; each Secret is decoded once."""
        for name, revision in revisions.items():
            version = (revision.secret_uid, revision.resource_version)
            if name not in self._decoded or self._decoded[name][0] != version:
                self._decoded[name] = (version, content(self._caches, revision))
        return {name: self._decoded[name][1] for name in revisions}

    def _bundles_of_others(self) -> tuple[Blocker, ...]:
        not_owned = [
            bundle.metadata.name
            for bundle in self._caches.bundles.items().values()
            if not bundles.is_owned(bundle.document())
        ]
        if not not_owned:
            return ()
        words = (
            f"HelmBundle {', '.join(sorted(not_owned))}: conflict: the label"
            f" {bundles.MANAGED_BY}={bundles.MANAGER} is not set: it is owned by"
            " another controller"
        )
        return (Blocker(Refused.HELM_BUNDLE_NOT_OWNED, words),)

    def _desired(self, document: Document) -> Desired:
        """Return the desired state; computed again when its inputs change."""
        stored = self._caches.stored()
        metadata = document["metadata"]
        state = (metadata.get("uid"), metadata.get("generation"))
        if self._needed is None or self._needed[0] != state:
            self._needed = (state, desire.needed(document))
        versions = {
            name: secret.metadata.resource_version
            for name in self._needed[1] & stored.keys()
            if (secret := self._caches.secrets.get(f"{self._caches.namespace}/{name}"))
        }
        version = (*state, versions)
        if self._memo is None or self._memo[0] != version:
            self._memo = (version, desire.desire(document, stored, self._default))
        return self._memo[1]

    def _is_held(self) -> bool:
        now = self._clock()
        by_plural = {resource.plural: kept for resource, kept in self._caches.all()}
        for (plural, key), until in list(self._holds.items()):
            if by_plural[plural].is_current(key) or now >= until:
                del self._holds[plural, key]
        return bool(self._holds)


def content(kept: caches.Caches, revision: helm.Revision) -> Content:
    """Return the content of a revision."""
    try:
        release = kept.release(revision)
    except helm_errors.MalformedRelease as error:
        return Content(trouble=str(error))
    if release is None:
        return Content()
    try:
        documents = tuple(manifest.objects(release.manifest, tuple(model.Kind)))
    except yaml.YAMLError:
        documents = ()
    workloads = tuple(
        model.Workload(
            kind=model.Kind(document["kind"]), name=document["metadata"]["name"]
        )
        for document in documents
        if document["metadata"].get("namespace") in (None, kept.namespace)
    )
    installed = Installed(
        release.chart,
        release.chart_version,
        release.namespace,
        hashing.contents(release.values),
        hashing.contents(release.values, has_images=False),
    )
    return Content("", workloads, restore.is_on(release.values), installed)


def of_contents(
    contents: Mapping[str, Content], workloads: Workloads
) -> Mapping[str, Any]:
    """Return what a snapshot says about the contents of releases, by its fields."""
    missing = {
        name: tuple(w for w in release_content.workloads if w not in workloads.ready)
        for name, release_content in contents.items()
    }
    return {
        "unreadable": {
            name: release_content.trouble
            for name, release_content in contents.items()
            if release_content.trouble
        },
        "missing": {
            name: workloads_ for name, workloads_ in missing.items() if workloads_
        },
        "restoring": frozenset(
            name
            for name, release_content in contents.items()
            if release_content.restores
        ),
        "installed": {
            name: release_content.installed
            for name, release_content in contents.items()
            if release_content.installed is not None
        },
    }


def secrets_of(kept: caches.Caches) -> frozenset[str]:
    """Return the texts of all Secrets, so that they can be kept out of messages."""
    texts: set[str] = set()
    for stored in kept.stored().values():
        texts |= _texts(stored)
    return frozenset(texts)


def _texts(stored: credentials.Stored) -> frozenset[str]:
    return frozenset().union(*(work.texts_of(value) for value in stored.data.values()))
