"""HelmBundle objects: what is desired and observed of a service's releases. Pure.

Rules: no values, which contain passwords. A HelmBundle without our label belongs to
another controller.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.osdpl.api import annotations, hashing, model
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile.actions import DeleteBundle
from lib.osdpl.reconcile.snapshot import Snapshot
from lib.osdpl.reconcile.states import DIGEST_LABEL, ReleaseState, State, Why, owned
from lib.osdpl.values import graph, required_secrets
from lib.process import redaction

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "osdpl-controller"
API_VERSION = f"{model.GROUP}/{model.VERSION}"
MESSAGE_MAX = 1000
PROGRESS_S = 30.0
"""Shortest time between two writes of a status in which only the progress changed."""
_RESULTS = ("ready", "message", "attempt", "version")
"""Fields of a release's status that are written without delay; the others, such as the
number of workloads that are ready, show the progress."""


def is_owned(document: Document) -> bool:
    """Report whether a HelmBundle, or its definition, is ours."""
    labels = document["metadata"].get("labels") or {}
    return bool(labels.get(MANAGED_BY) == MANAGER)


def desired(
    snapshot: Snapshot, bundle: model.Bundle, states: Mapping[str, ReleaseState]
) -> dict[str, Any]:
    """Return the HelmBundle of a service, as it is applied."""
    releases = [
        _release(snapshot, release, states[release.name]) for release in bundle.releases
    ]
    return _document(snapshot, bundle.name, _repositories(bundle), releases)


def of_installed(snapshot: Snapshot, service: str) -> dict[str, Any] | None:
    """Return the HelmBundle of a service that is installed and not rendered.

    It is made from the release Secrets, which do not have the address of the charts.
    None: no release of the service is owned.
    """
    names = [name for name, _ in graph.RELEASES.get(service, ())]
    releases = [_installed(snapshot, name) for name in names if name in owned(snapshot)]
    if not releases:
        return None
    return _document(snapshot, f"openstack-{service}", [], releases)


def _installed(snapshot: Snapshot, name: str) -> dict[str, Any]:
    labels = snapshot.revisions[name].labels
    described: dict[str, Any] = {
        "name": name,
        "namespace": snapshot.namespace,
        "chart": name.removeprefix("openstack-"),
        "requires": list(graph.requires(name)),
    }
    installed = snapshot.installed.get(name)
    if installed is not None:
        described |= {"chart": installed.chart, "version": installed.version}
    digest = hashing.of_label(labels.get(DIGEST_LABEL, ""))
    if digest is not None:
        described["digest"] = digest
    return described


def _document(
    snapshot: Snapshot,
    name: str,
    repositories: Sequence[Mapping[str, Any]],
    releases: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "HelmBundle",
        "metadata": {
            "name": name,
            "namespace": snapshot.namespace,
            "labels": {MANAGED_BY: MANAGER},
            "ownerReferences": [owner(snapshot)],
        },
        "spec": {"repositories": list(repositories), "releases": list(releases)},
    }


def owner(snapshot: Snapshot) -> dict[str, Any]:
    """Return the ownerReference to the OpenStackDeployment."""
    return {
        "apiVersion": API_VERSION,
        "kind": "OpenStackDeployment",
        "name": snapshot.name,
        "uid": snapshot.uid,
    }


def _repositories(bundle: model.Bundle) -> list[dict[str, str]]:
    urls = {
        release.chart.repository.name: redaction.scrub(release.chart.repository.url)
        for release in bundle.releases
    }
    return [{"name": name, "url": url} for name, url in sorted(urls.items())]


def _release(
    snapshot: Snapshot, release: model.Release, state: ReleaseState
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": release.name,
        "namespace": release.namespace,
        "chart": f"{release.chart.repository.name}/{release.chart.name}",
        "version": release.chart.version,
        "requires": list(requires(snapshot, release)),
    }
    if state.digest is not None:
        described["digest"] = state.digest
    if state.hash is not None:
        described["hash"] = state.hash
    return described


def requires(snapshot: Snapshot, release: model.Release) -> tuple[str, ...]:
    """Return the desired releases with the workloads that a release waits for."""
    rendered = snapshot.desired.rendered
    if rendered is None or not release.gates:
        return ()
    present = {
        release.name for bundle in rendered.bundles for release in bundle.releases
    }
    return tuple(name for name in graph.requires(release.name) if name in present)


def status(
    snapshot: Snapshot, bundle: model.Bundle, states: Mapping[str, ReleaseState]
) -> dict[str, Any]:
    """Return the status of a HelmBundle."""
    observed = snapshot.bundles.get(bundle.name)
    generation = (observed or {}).get("metadata", {}).get("generation")
    described: dict[str, Any] = {
        "releaseStatuses": {
            release.name: _release_status(snapshot, states[release.name])
            for release in bundle.releases
        }
    }
    return described | ({"observedGeneration": generation} if generation else {})


def status_due_s(
    snapshot: Snapshot, name: str, desired: Mapping[str, Any]
) -> float | None:
    """Return in how many seconds a status is to be written; None: it is as desired.

    Progress changes many times in an installation, results only a few times.
    """
    observed = snapshot.bundles.get(name)
    if observed is None:
        return None
    after = desired["releaseStatuses"]
    before = (observed.get("status") or {}).get("releaseStatuses") or {}
    if before == after:
        return None
    if _results(before) != _results(after):
        return 0.0
    age_s = snapshot.status_ages_s.get(name, PROGRESS_S)
    return max(0.0, PROGRESS_S - age_s)


def _results(statuses: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        name: [release.get(field) for field in _RESULTS]
        for name, release in statuses.items()
    }


def _release_status(snapshot: Snapshot, state: ReleaseState) -> dict[str, Any]:
    ready, total = snapshot.workloads.count(state.name)
    is_in_sync, progress = state.state is State.IN_SYNC, state.progress
    is_failed = progress.why is Why.FAILED
    described: dict[str, Any] = {
        "namespace": snapshot.namespace,
        "success": is_in_sync,
        "ready": is_in_sync and ready == total,
        "state": state.state.value,
        "message": progress.message[:MESSAGE_MAX] if is_failed else "",
        "waitingFor": "" if is_failed else state.waits[:MESSAGE_MAX],
        "workloads": f"{ready}/{total}",
    }
    if state.release is not None:
        described["chart"] = state.release.chart.name
        described["version"] = state.release.chart.version
    if state.revision is not None:
        described["revision"] = state.revision.number
        described["status"] = state.revision.status.value
    if state.hash is not None:
        described["hash"] = state.hash
    attempt = snapshot.work.attempts.get(state.name)
    if attempt is not None and not attempt.is_ok:
        described["attempt"] = attempt.count
    return described


def surplus(
    snapshot: Snapshot, services: Sequence[str], left: frozenset[str]
) -> Iterator[DeleteBundle]:
    """Yield the deletions of our HelmBundles of no service whose releases are gone.

    services: that are desired, or refused. left: releases that are still installed.
    """
    kept = {f"openstack-{service}" for service in services}
    purged = annotations.names(snapshot.document, annotations.PURGE)
    for name, document in sorted(snapshot.bundles.items()):
        recorded = (document.get("spec") or {}).get("releases") or ()
        releases = [str(release.get("name")) for release in recorded]
        if name in kept or not is_owned(document) or set(releases) & left:
            continue
        service = name.removeprefix("openstack-")
        has_claims = service in purged
        yield DeleteBundle(
            name=name,
            uid=str(document["metadata"].get("uid") or ""),
            releases=tuple(
                release for release in releases if release not in snapshot.revisions
            ),
            secrets=required_secrets.of_service(service) if has_claims else (),
            has_claims=has_claims,
        )
