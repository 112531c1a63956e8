"""Reads what keeps osdpl-controller from working: `mooring doctor osdpl`.

Rules: each check is read and judged, whatever the others gave; nothing is written: what
is created is a dry run. No secret reaches a line.
"""

import contextlib
import dataclasses
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lib.doctor import cluster, judge, rights
from lib.doctor.model import CheckResult, CheckState, DaemonAccount, Read, Right
from lib.helm import cache, outcome
from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.kube import client, errors, listing, objects, resources
from lib.osdpl.api import model, references
from lib.osdpl.api.model import Document
from lib.osdpl.doctor import findings
from lib.osdpl.reconcile import caches, checks, desire, planning, states
from lib.osdpl.reconcile.snapshot import Desired, Refused, Snapshot
from lib.osdpl.webhook import webhook
from lib.osdpl.webhook.webhook_certificate import Held
from lib.process import config

COMPONENT = "osdpl-controller"
NOTHING = "there is no OpenStackDeployment: name a FILE with one"
NO_SERVER = "not asked: the API server does not answer"
PROBE = "mooring-doctor-osdpl"
"""Name of the invalid object that is offered to the API server as a dry run."""
CRDS = (
    resources.OPENSTACK_DEPLOYMENTS,
    resources.OPENSTACK_DEPLOYMENT_STATUSES,
    resources.HELM_BUNDLES,
)
CLASSES = ("persistent_volume_storage_class", "local_volume_storage_class")


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """namespace: the served one. account: of the daemon; None: the user's own.

    default: the source of charts when the spec names none. timeout_s: for each call.
    """

    namespace: str
    lease: str
    timeout_s: float
    account: DaemonAccount | None = None
    default: model.Source | None = None


class Diagnosis:
    """One examination. file: in the place of the OpenStackDeployment; None: none."""

    def __init__(
        self,
        api: client.Api,
        charts: cache.Charts,
        settings: Settings,
        now: Callable[[], datetime.datetime],
        file: Document | None = None,
    ) -> None:
        self._api = api
        self._charts = charts
        self._settings = settings
        self._now = now
        self._file = file
        self._kept = caches.open_caches(api, settings.namespace)
        self._document: Document | None = None
        self._desired = Desired()
        self._missing: tuple[str, ...] = ()
        self._hidden: frozenset[str] = frozenset()

    def examine(self) -> Iterator[CheckResult]:
        """Yield a line or more for each of `findings.CHECKS`, in their order.

        Each is yielded as soon as it is known.
        """
        server = self._attempt(findings.API_SERVER, self._server, "")
        if any(result.state is CheckState.FAILED for result in server):
            rest = findings.CHECKS[1:]
            yield from server
            for name in rest:
                yield from findings.unchecked(name, NO_SERVER)
            return
        parts: tuple[tuple[str, Callable[[], Iterable[CheckResult]]], ...] = (
            (findings.DEFINITIONS, self._definitions),
            (findings.RIGHTS, self._rights),
            (findings.POD_SECURITY, self._pods),
            (findings.NODES, self._nodes),
            (findings.STORAGE, self._storage),
            (findings.CHARTS, self._chart_sources),
            (findings.LEASE, self._lease),
            (findings.RELEASES, self._releases),
            (findings.SECRETS, self._secrets),
            (findings.WEBHOOK, self._webhook),
        )
        unread = self._attempt(findings.SECRETS, self._desire, "see the rights above")
        yield from server
        for name, part in parts:
            yield from self._attempt(name, part, "see the rights above")
        yield from unread

    def _attempt(
        self, check: str, part: Callable[[], Iterable[CheckResult]], remedy: str
    ) -> tuple[CheckResult, ...]:
        """Read and judge one part; an error is a line of it."""
        try:
            return tuple(map(self._scrubbed, part()))
        except errors.KubeError as error:
            return findings.failed(check, str(error), remedy or _REACH)
        except (config.ConfigError, msgspec.MsgspecError) as error:
            text = "; ".join(str(error).splitlines())
            return findings.failed(check, text, "correct the object")

    def _scrubbed(self, line: CheckResult) -> CheckResult:
        """Return a line without values of Secrets that the spec refers to."""
        text, remedy = (
            outcome.scrub(each, self._hidden) for each in (line.text, line.remedy)
        )
        return dataclasses.replace(line, text=text, remedy=remedy)

    def _server(self) -> Iterable[CheckResult]:
        body = self._api.request("GET", "/version", timeout_s=self._settings.timeout_s)
        version = str(msgspec.json.decode(body).get("gitVersion", ""))  # noqa: TID251
        return (judge.api_server(Read(version)),)

    def _desire(self) -> Iterable[CheckResult]:
        """Read the OpenStackDeployment and what it means; lines only of errors."""
        self._kept.secrets.relist()
        self._document = self._file
        with contextlib.suppress(errors.NotFound):  # reported by `_definitions`
            self._kept.bundles.relist()
            held = planning.oldest(self._api, self._settings.timeout_s)
            self._document = self._file or held
        if self._document is not None:
            document = {"metadata": {}, **self._document}
            stored = self._kept.stored()
            self._hidden = frozenset(_referred(document, stored))
            default = self._settings.default
            self._missing = desire.desire(document, stored, default).missing
            self._desired = planning.desired_of(document, stored, default)
        return ()

    def _list(self, kind: resources.Resource) -> list[objects.ObjectMeta]:
        """Return the metadata of all objects of a kind in the cluster."""
        timeout_s = self._settings.timeout_s
        listed = listing.read(self._api, kind, objects.Bare, timeout_s=timeout_s)
        return [item.metadata for item in listed.items]

    def _definitions(self) -> Iterable[CheckResult]:
        lines: list[CheckResult] = []
        for kind in CRDS:
            name = f"{kind.plural}.{kind.group}"
            definition = self._read(resources.DEFINITIONS, name)
            is_bundle = kind is resources.HELM_BUNDLES
            lines += findings.definition(name, definition, is_bundle)
        return lines

    def _read(
        self, kind: resources.Resource, name: str, namespace: str | None = None
    ) -> dict[str, Any] | None:
        try:
            body = self._api.read(
                kind, name, namespace, timeout_s=self._settings.timeout_s
            )
        except errors.NotFound:
            return None
        return dict(msgspec.json.decode(body))  # noqa: TID251 # no type

    def _rights(self) -> Iterable[CheckResult]:
        settings = self._settings
        needed = rights_of(settings.namespace)
        asked = cluster.ClusterReader(self._api, settings.timeout_s)
        gaps = asked.gaps(needed, settings.account)
        who = str(settings.account or "this user")
        return judge.rights(len(needed), who, Read(gaps), "osdpl-controller")

    def _pods(self) -> Iterable[CheckResult]:
        namespace = self._settings.namespace
        refused = checks.pods_refused(self._api, namespace)
        return findings.pods(namespace, refused)

    def _nodes(self) -> Iterable[CheckResult]:
        if self._desired.rendered is None:
            return self._not_rendered(findings.NODES)
        labels = [metadata.labels for metadata in self._list(resources.NODES)]
        return findings.nodes(roles(self._desired.rendered), labels)

    def _not_rendered(self, check: str) -> tuple[CheckResult, ...]:
        """Return why the spec could not be rendered."""
        if self._document is None:
            return findings.unchecked(check, NOTHING)
        problems = "; ".join(map(str, self._desired.problems))
        return findings.unchecked(check, problems)

    def _storage(self) -> Iterable[CheckResult]:
        if self._document is None:
            return findings.unchecked(findings.STORAGE, NOTHING)
        spec = self._document.get("spec") or {}
        fields = {name: str(spec[name]) for name in CLASSES if spec.get(name)}
        known = frozenset(
            metadata.name for metadata in self._list(resources.STORAGE_CLASSES)
        )
        return findings.storage(fields, known)

    def _chart_sources(self) -> Iterable[CheckResult]:
        rendered = self._desired.rendered
        if rendered is None:
            return self._not_rendered(findings.CHARTS)
        pins = self._pinned()
        return findings.charts(
            [
                self._chart(release, pins)
                for bundle in rendered.bundles
                for release in bundle.releases
            ]
        )

    def _pinned(self) -> Snapshot:
        """Return a snapshot with the recorded digests of charts."""
        recorded = self._kept.bundles.items().values()
        return Snapshot(
            key="",
            document=self._document or {},
            oldest="",
            revisions=self._kept.revisions(),
            bundles={bundle.metadata.name: bundle.document() for bundle in recorded},
        )

    def _chart(self, release: model.Release, pins: Snapshot) -> findings.ChartFact:
        chart, url = release.chart, release.chart.repository.url
        digest = states.pinned(pins, release)
        pin = helm.Pin(chart.name, chart.version, digest)
        error = ""
        try:
            self._charts.get(url, pin)
        except helm_errors.HelmError as raised:
            error = str(raised)
        return findings.ChartFact(release.name, chart.name, chart.version, url, error)

    def _lease(self) -> Iterable[CheckResult]:
        settings = self._settings
        asked = cluster.ClusterReader(self._api, settings.timeout_s)
        lease = asked.lease(settings.namespace, settings.lease)
        name = f"{settings.namespace}/{settings.lease}"
        line = judge.lease(name, Read(lease), self._now())
        remedy = line.remedy and "see that osdpl-controller runs, and what it logs"
        return (dataclasses.replace(line, remedy=remedy),)

    def _releases(self) -> Iterable[CheckResult]:
        revisions = self._kept.revisions()
        unreadable: dict[str, str] = {}
        for name, revision in revisions.items():
            try:
                self._kept.release(revision)
            except helm_errors.MalformedRelease as error:
                unreadable[name] = str(error)
        return findings.releases(revisions, unreadable, self._now())

    def _secrets(self) -> Iterable[CheckResult]:
        if self._document is None:
            return findings.unchecked(findings.SECRETS, NOTHING)
        if self._desired.reason is Refused.INVALID_SPEC:
            return self._not_rendered(findings.SECRETS)
        problems = list(map(str, self._desired.problems))
        return findings.secrets(problems, self._missing)

    def _webhook(self) -> Iterable[CheckResult]:
        configuration = self._read(resources.VALIDATING_WEBHOOKS, webhook.CONFIGURATION)
        key = f"{self._settings.namespace}/{webhook.SECRET}"
        secret = self._kept.secrets.get(key)
        published = None
        if configuration is not None:
            published = msgspec.convert(
                configuration, webhook.Configuration
            ).published()
        fact = findings.WebhookFact(
            published=published,
            held=None if secret is None else Held.parse(secret.data),
            answer="" if configuration is None else self._offer(),
        )
        names = webhook.names(self._settings.namespace)
        return findings.webhook(fact, names, self._now())

    def _offer(self) -> str:
        """Offer an invalid object as a dry run; return why it is refused."""
        kind = resources.OPENSTACK_DEPLOYMENTS
        document = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": PROBE},
            "spec": _INVALID,
        }
        try:
            self._api.create(
                kind,
                msgspec.json.encode(document),
                self._settings.namespace,
                query={"dryRun": "All"},
                timeout_s=self._settings.timeout_s,
            )
        except errors.KubeError as error:
            return error.message
        return ""


_REACH = "see that the kubeconfig's server is right and can be reached from here"
_INVALID = {
    "openstack_version": "gazpacho",
    "preset": "core",
    "size": "tiny",
    "public_domain_name": "doctor.invalid",
    "draft": True,
    "features": {
        "neutron": {"tunnel_interface": "x"},
        "nova": {"live_migration_interface": "x"},
    },
    "nodes": {"no-value": {}},
}
"""Valid for the schema, and not for the rules."""


def rights_of(namespace: str) -> tuple[Right, ...]:
    """Return the rights that the chart grants in a namespace."""
    text = rights.manifest(COMPONENT)
    return rights.parse(text.replace("namespace: openstack", f"namespace: {namespace}"))


def _referred(document: Document, stored: desire.Secrets) -> Iterator[str]:
    """Yield the values of Secrets that a spec refers to."""
    for reference in references.find(document.get("spec") or {}):
        secret = stored.get(reference.secret)
        if secret is not None and reference.key in secret.data:
            yield secret.data[reference.key].decode(errors="replace")


_WITHOUT_PODS = ("linuxbridge", "sriov")
"""Labels in the values of neutron whose agents are never rendered here."""


def roles(rendered: model.Rendered) -> tuple[tuple[str, str], ...]:
    """Return label and value of the Nodes that the pods of the charts select."""
    labels: set[tuple[str, str]] = set()
    for bundle in rendered.bundles:
        for release in bundle.releases:
            labels |= selectors(release.values.get("labels") or {})
    return tuple(sorted(labels))


def selectors(tree: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return label and value of each node selector in the values of a chart."""
    key, value = tree.get("node_selector_key"), tree.get("node_selector_value")
    labels = (
        {(str(key), str(value))}
        if key and value and key not in _WITHOUT_PODS
        else set()
    )
    for below in tree.values():
        if isinstance(below, Mapping):
            labels |= selectors(below)
    return labels
