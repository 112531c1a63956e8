"""What the operator would do now, from one reading of the cluster; a plan only."""

import dataclasses
import datetime
import difflib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from lib.helm import cache, command, outcome
from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.kube import client, errors, resources
from lib.operator_edge import objects
from lib.osdpl.api import model, settings
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import caches, decide, desire, images, live, observe, states
from lib.osdpl.reconcile.snapshot import Desired, Refused, Snapshot, Work, chart_key
from lib.osdpl.values import credentials, generating
from lib.process import config, decoding

LIST_TIMEOUT_S = 30.0
DIFF_LINES = 400
"""Lines of one release's difference that are kept."""
HOOK = "helm.sh/hook"
APPLY_CRDS = "kubectl apply --server-side -f charts/osdpl-controller/crds"
"""As a user does it in a checkout."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A release, or a service that cannot be served.

    action: skip, install, upgrade, delete or refused. diff: of the manifests, without
    the content of Secrets.
    """

    name: str
    service: str
    state: states.State
    action: states.Step
    reason: str
    diff: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What would be done.

    refused: why the object as a whole is not served; empty: it is. ignored: a text per
    field of the spec that has no effect, with its path. changes: manual ones of objects
    of releases.
    """

    rows: tuple[Row, ...]
    refused: str = ""
    ignored: tuple[str, ...] = ()
    changes: tuple[live.LiveChange, ...] = ()


class _List(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]] = []


def oldest(api: client.Api, timeout_s: float) -> Document | None:
    """Return the OpenStackDeployment that is served; None if there is none.

    Raises:
        NotFound: their CustomResourceDefinition does not exist.
        KubeError: they cannot be listed.
    """
    kind = resources.OPENSTACK_DEPLOYMENTS
    body = api.list_page(kind, query={}, timeout_s=timeout_s)
    known = objects.Objects()
    for item in decoding.decode(body, _List).items:
        known.put({"apiVersion": kind.api_version, "kind": kind.kind, **item})
    keys = known.by_age()
    return known.get(keys[0]) if keys else None


class Planner:
    """Plans for one namespace. charts: a cache that may be thrown away."""

    def __init__(
        self,
        api: client.Api,
        program: command.Helm,
        charts: cache.Charts,
        default: model.Source | None = None,
    ) -> None:
        self._api = api
        self._helm = program
        self._charts = charts
        self._default = default
        self._now = datetime.datetime.now(datetime.UTC)

    def plan(self, file: Document | None, is_live: bool = False) -> Plan:
        """Return the plan for the object of the cluster, or of a file in its place.

        is_live: also compare the objects of the releases with the cluster.

        Raises:
            KubeError: the cluster cannot be read. ConfigError: there is no object.
        """
        document = self._document(file)
        namespace = str(document["metadata"].get("namespace") or "openstack")
        kept = caches.open_caches(self._api, namespace)
        kept.read()
        desired = desired_of(document, kept.stored(), self._default)
        key = objects.key_of(document)
        status = kept.statuses.get(key)
        problems = desired.problems or decide.violations(
            document,
            desired,
            status.document() if status is not None else None,
            kept.revisions(),
        )
        if desired.reason is not None or problems:
            reason = desired.reason or Refused.INVALID_SPEC
            return Plan((), f"{reason.value}: {'; '.join(map(str, problems))}")
        if desired.rendered is None:
            return Plan((), Refused.UNKNOWN.value)
        snapshot = self._snapshot(document, kept, desired)
        rows = list(self._rows(snapshot, desired.rendered, kept))
        for refusal in desired.rendered.refusals:
            words = "; ".join(map(str, refusal.problems))
            rows.append(
                Row(
                    name=refusal.service,
                    service=refusal.service,
                    state=states.State.INVALID,
                    action=states.Step.REFUSED,
                    reason=f"{refusal.reason.value}: {words}",
                )
            )
        changes = tuple(live.changes(self._api, kept)) if is_live else ()
        ignored = decide.ignored(snapshot, desired.rendered)
        return Plan(tuple(rows), ignored=ignored, changes=changes)

    def _document(self, file: Document | None) -> Document:
        """Return the oldest object; with a file: its spec in the object's place."""
        held, missing = None, ""
        try:
            held = oldest(self._api, LIST_TIMEOUT_S)
        except errors.NotFound:
            missing = f" (the CustomResourceDefinitions are missing: {APPLY_CRDS})"
        if file is None and held is None:
            expected = f"an OpenStackDeployment{missing}, or a FILE with one"
            raise config.ConfigError([config.FieldProblem("cluster", None, expected)])
        if file is None or held is None:
            return held or file or {}
        metadata = {**held["metadata"], "generation": 0}
        return {**file, "metadata": metadata}

    def _snapshot(
        self, document: Document, kept: caches.Caches, desired: Desired
    ) -> Snapshot:
        key = objects.key_of(document)
        bundles = {
            bundle.metadata.name: bundle.document()
            for bundle in kept.bundles.items().values()
        }
        revisions = kept.revisions()
        workloads = kept.observed()
        contents = {
            name: observe.content(kept, revision)
            for name, revision in revisions.items()
        }
        snapshot = Snapshot(
            key=key,
            document=document,
            oldest=key,
            desired=desired,
            revisions=revisions,
            workloads=workloads,
            bundles=bundles,
            settings=settings.with_spec(settings.read(kept.ini_files()), desired.spec),
            **observe.of_contents(contents, workloads),
        )
        return dataclasses.replace(snapshot, work=self._charts_of(snapshot))

    def _charts_of(self, snapshot: Snapshot) -> Work:
        """Read the charts that are not pinned yet, as the first run would."""
        digests, attempts = {}, {}
        rendered = snapshot.desired.rendered
        for bundle in rendered.bundles if rendered else ():
            for release in bundle.releases:
                if states.pinned(snapshot, release) is not None:
                    continue
                url, name, version = chart_key(release.chart)
                try:
                    chart = self._charts.get(url, helm.Pin(name, version))
                except helm_errors.HelmError as error:
                    attempts[release.name] = states.failed_chart(
                        release, self._now, error
                    )
                    continue
                digests[url, name, version] = chart.digest
        return Work(digests=digests, attempts=attempts)

    def _rows(
        self, snapshot: Snapshot, rendered: model.Rendered, kept: caches.Caches
    ) -> Iterator[Row]:
        secrets = observe.secrets_of(kept)
        for state in decide.release_states(snapshot, rendered, self._now):
            reason = state.waits or _reason(state)
            diff: tuple[str, ...] = ()
            if state.step in (states.Step.INSTALL, states.Step.UPGRADE):
                diff, trouble = self._diff(state, kept, secrets)
                reason = trouble or reason
            yield Row(state.name, state.service, state.state, state.step, reason, diff)

    def _diff(
        self,
        state: states.ReleaseState,
        kept: caches.Caches,
        secrets: frozenset[str],
    ) -> tuple[tuple[str, ...], str]:
        """Return the difference of the manifests, or why it is not known."""
        release = state.release
        if release is None or state.digest is None:
            return (), ""
        pin = helm.Pin(release.chart.name, release.chart.version, state.digest)
        try:
            chart = self._charts.get(release.chart.repository.url, pin)
            run = helm.Template(
                release.name,
                release.namespace,
                chart.path,
                images.relocated(
                    release.values, chart.path.read_bytes(), release.images_base
                ),
                secrets=secrets,
            )
            after = self._helm.template(run, threading.Event())
            installed = kept.release(state.revision) if state.revision else None
        except helm_errors.HelmError as error:
            return (), str(error)
        before = installed.manifest if installed is not None else ""
        lines = difference(before, after)
        return tuple(outcome.scrub(line, secrets) for line in lines[:DIFF_LINES]), ""


def desired_of(
    document: Document, stored: desire.Secrets, default: model.Source | None
) -> Desired:
    """Return the desired state; missing credentials have placeholders."""
    desired = desire.desire(document, stored, default)
    if not desired.missing:
        return desired
    known_secrets = dict(stored)
    shapes = desire.shapes(document)
    for write in credentials.writes(shapes, known_secrets, generating.Placeholders()):
        known = known_secrets.get(write.name)
        data = {**(known.data if known else {}), **write.data}
        known_secrets[write.name] = (
            dataclasses.replace(known, data=data) if known else credentials.Stored(data)
        )
    return desire.desire(document, known_secrets, default)


def _reason(state: states.ReleaseState) -> str:
    match state.step:
        case states.Step.NOTHING:
            return "hash and status are as desired"
        case states.Step.INSTALL:
            return "no release of this name"
        case states.Step.DELETE:
            return "not desired any more"
        case _ if state.is_changed:
            return "changed by another helm process"
        case _:
            revision = state.revision
            if revision is not None and revision.status is not helm.Status.DEPLOYED:
                return f"the release is {revision.status.value}"
            return "values or chart have changed"


def difference(before: str, after: str) -> list[str]:
    """Return a unified diff of manifests by object; of Secrets only that they differ.

    Hooks are omitted: a release does not keep them in its manifest.
    """
    old, new = _by_object(before), _by_object(after)
    lines: list[str] = []
    for name in sorted({*old, *new}):
        left, right = old.get(name), new.get(name)
        if left == right:
            continue
        if name.startswith("Secret/"):
            word = (
                "added" if left is None else "removed" if right is None else "changed"
            )
            lines.append(f"{name}: {word}")
            continue
        diff = difflib.unified_diff(
            _lines(left), _lines(right), name, name, n=2, lineterm=""
        )
        lines += diff
    return lines


def _lines(document: Mapping[str, Any] | None) -> list[str]:
    return [] if document is None else yaml.safe_dump(document).splitlines()


def _by_object(manifest: str) -> dict[str, Mapping[str, Any]]:
    objects_ = {}
    for document in yaml.load_all(manifest, _Loader):  # a safe loader
        if not isinstance(document, Mapping):
            continue
        metadata = document.get("metadata") or {}
        if HOOK not in (metadata.get("annotations") or {}):
            objects_[f"{document.get('kind')}/{metadata.get('name')}"] = document
    return objects_
