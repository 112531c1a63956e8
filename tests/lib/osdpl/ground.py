"""The operator over a fake API server and a fake helm, reconciled step by step."""

import datetime
import json
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import prometheus_client

from lib.helm import cache
from lib.helm.fake import helm as fake_helm
from lib.kube import events, resources
from lib.kube.fake import api as fake_api
from lib.operator_edge import objects
from lib.osdpl.api.model import Kind
from lib.osdpl.reconcile import (
    act,
    actions,
    bundles,
    caches,
    checks,
    decide,
    observe,
    work,
)
from lib.osdpl.reconcile.snapshot import Snapshot
from lib.osdpl.values import catalog, generating
from lib.reconcile import jobs
from lib.reconcile.outcome import Outcome

NAMESPACE = "openstack"
KEY = "openstack/osh-dev"
SHORTEST_S = 0.01
"""Time of one step at least: sums of floats leave rests."""
CHARTS = tuple(catalog.CHARTS)
RELEASES = frozenset(catalog.BY_RELEASE)
_KINDS = {
    Kind.STATEFUL_SET: resources.STATEFUL_SETS,
    Kind.DEPLOYMENT: resources.DEPLOYMENTS,
}
GATES = {
    service.charts[0].release: (_KINDS[service.workload.kind], service.workload.name)
    for service in catalog.SERVICES
    if service.workload
}
"""The workload of a release that others wait for."""

DEFINED = (
    resources.OPENSTACK_DEPLOYMENTS,
    resources.OPENSTACK_DEPLOYMENT_STATUSES,
    resources.HELM_BUNDLES,
)
"""Kinds of the operator's CustomResourceDefinitions."""


class Death(BaseException):
    """The process is killed here."""


class Generator(generating.Random):
    """Random credentials, but for SSH keys: an RSA key takes a tenth of a second."""

    def ssh_key(self, name: str) -> tuple[str, str]:
        """Return random texts in the place of both parts."""
        return self.password(name, 32), self.password(name, 32)


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime.datetime:
        start = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
        return start + datetime.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def spec(url: str, **changes: Any) -> dict[str, Any]:
    releases = {"repo": "charts", "releases": {"version": "2026.1.0"}}
    return {
        "openstack_version": "gazpacho",
        "preset": "core",
        "size": "tiny",
        "public_domain_name": "it.just.works",
        "local_volume_storage_class": "local",
        "persistent_volume_storage_class": "local",
        "common": {
            "charts": {"repositories": [{"name": "charts", "url": url}]},
            "openstack": releases,
            "infra": releases,
        },
        "features": {
            "services": list(catalog.BY_NAME),
            "neutron": {"tunnel_interface": "ens3"},
            "nova": {"live_migration_interface": "ens3"},
        },
        **changes,
    }


def write_charts(folder: pathlib.Path) -> str:
    """Write a chart without templates for each release; return the folder's address."""
    for name in CHARTS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        text = f"apiVersion: v2\nname: {name}\nversion: 2026.1.0\n"
        (folder / name / "Chart.yaml").write_text(text)
    return folder.as_uri()


class Cluster:
    """What outlives the process: API server, helm, charts, time."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.clock = Clock()
        self.api = fake_api.FakeApi(self.clock.now)
        self.helm = fake_helm.FakeHelm(self.api)
        self.folder = folder
        self.url = write_charts(folder / "charts")
        self.opens_gates = True
        self.helm.hook = self._on_run
        self.death: tuple[str, str] | None = None
        """Moment and release of a run at which the process is killed."""
        for kind in DEFINED:
            metadata = {
                "name": f"{kind.plural}.{kind.group}",
                "labels": {bundles.MANAGED_BY: bundles.MANAGER},
                "finalizers": ["customresourcecleanup.apiextensions.k8s.io"],
            }
            spec_ = {"versions": [{"name": "v1alpha1", "served": True}]}
            self.api.put(resources.DEFINITIONS, {"metadata": metadata, "spec": spec_})

    def copy(self) -> "Cluster":
        """Return another cluster in the same state; no call or run was made in it."""
        other = Cluster(self.folder)
        other.clock.seconds = self.clock.seconds
        other.api = self.api.copy(other.clock.now)
        other.helm = fake_helm.FakeHelm(other.api)
        other.helm.hook = other._on_run
        other.helm.upgrades.update(self.helm.upgrades)
        return other

    def create(self, name: str = "osh-dev", **changes: Any) -> None:
        document: dict[str, object] = {
            "apiVersion": "lcm.mirantis.com/v1alpha1",
            "kind": "OpenStackDeployment",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec(self.url, **changes),
        }
        self.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
        self.clock.seconds += 1

    def change(self, **changes: Any) -> None:
        document = self.deployment()
        self.api.put(
            resources.OPENSTACK_DEPLOYMENTS,
            {**document, "spec": {**document["spec"], **changes}},
        )

    def deployment(self, name: str = "osh-dev") -> dict[str, Any]:
        return next(
            document
            for document in self.documents(resources.OPENSTACK_DEPLOYMENTS)
            if document["metadata"]["name"] == name
        )

    def documents(self, resource: resources.Resource) -> list[dict[str, Any]]:
        """Return all objects of a kind, as decoded JSON."""
        observed: list[dict[str, Any]] = json.loads(json.dumps(self.api.all(resource)))
        return observed

    def condition(self, type: str, name: str = "osh-dev") -> dict[str, Any]:
        observed = self.deployment(name).get("status", {}).get("conditions", [])
        return next((item for item in observed if item["type"] == type), {})

    def upgrades(self) -> list[str]:
        return [run for run in self.helm.runs if run.startswith("upgrade ")]

    def leave(self, release: str) -> None:
        """Create what a release leaves behind: a hook Job, and the claim of a pod."""
        metadata = {
            "name": f"{release}-left",
            "namespace": NAMESPACE,
            "labels": {"release_group": release},
        }
        for kind in (resources.JOBS, resources.CLAIMS):
            self.api.put(kind, {"metadata": metadata})

    def credentials(self) -> dict[str, object]:
        """Return the data of all Secrets that are not of helm, by name."""
        return {
            document["metadata"]["name"]: document["data"]
            for document in self.documents(resources.SECRETS)
            if document.get("type") == "Opaque"
        }

    def deployed(self) -> frozenset[str]:
        return frozenset(
            document["metadata"]["labels"]["name"]
            for document in self.documents(resources.SECRETS)
            if document["metadata"].get("labels", {}).get("status") == "deployed"
        )

    def _on_run(self, moment: str, release: str) -> None:
        runs = [run for run in self.helm.runs if run.endswith(f" {release}")]
        is_upgrade = moment == "end" and runs[-1].startswith("upgrade ")
        if is_upgrade and release in GATES and self.opens_gates:
            self.ready(release)
        if self.death == (moment, release):
            self.death = None
            raise Death

    def ready(self, release: str) -> None:
        """Bring the workload of a release, that others wait for, to readiness."""
        resource, name = GATES[release]
        self.workload(release, name, resource)

    def workload(
        self,
        release: str,
        name: str,
        resource: resources.Resource = resources.DEPLOYMENTS,
        ready: int = 1,
    ) -> None:
        """Create or change a workload of a release, with one replica."""
        counts = {"replicas": 1, "readyReplicas": ready, "updatedReplicas": 1}
        self.api.put(
            resource,
            {
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "annotations": {caches.RELEASE: release},
                },
                "spec": {"replicas": 1},
                "status": {"observedGeneration": 1, **counts},
            },
        )


Installed = Callable[[str], Cluster]
"""Returns a copy of a cluster in which all releases of an OpenStack version are."""


class Process:
    """One life of osdpl-controller, without its threads."""

    def __init__(self, cluster: Cluster, slots: int = 4) -> None:
        self.cluster = cluster
        self.died = False
        api, clock = cluster.api, cluster.clock
        self.deployments = objects.Objects()
        self.caches = caches.open_caches(api, NAMESPACE)
        self.jobs = jobs.Jobs(slots, lambda name: None)
        self.most = 0
        self.unlisted: frozenset[str] = frozenset()
        """Kinds whose lists the API server does not answer."""
        self._listed: dict[resources.Resource, tuple[object, ...]] = {}
        checks_ = checks.Checks(api, cluster.helm, self.caches, clock.monotonic)
        self.worker = work.Worker(
            self.jobs,
            _Mortal(cluster.helm, self),
            cache.Charts(cluster.folder / "cache"),
            api,
            self.caches,
            work.Settings(NAMESPACE, lambda: 600),
            secrets=lambda: observe.secrets_of(self.caches),
            registry=prometheus_client.CollectorRegistry(),
            now=clock.now,
        )
        self.observer = observe.Observer(
            self.deployments,
            self.caches,
            checks_,
            self.worker,
            None,
            clock.monotonic,
        )
        self.recorder = events.Recorder(api, component="t", host="", clock=lambda: 0.0)
        self.actor = act.Actor(
            api,
            self.deployments,
            self.observer,
            self.worker,
            self.recorder,
            self.caches.stored,
            Generator(),
        )

    def refresh(self) -> None:
        """Bring the caches up to date, as watches would: kinds that were written."""
        calls = list(self.cluster.api.calls)
        before, self.cluster.api.before_call = self.cluster.api.before_call, None
        after, self.cluster.api.after_call = self.cluster.api.after_call, None
        for kind, kept in self.caches.all():
            if kind.plural in self.unlisted:
                continue
            present = self.cluster.api.all(kind)
            if self._listed.get(kind) != present:
                kept.relist()
                self._listed[kind] = present
        deployments = self.cluster.documents(resources.OPENSTACK_DEPLOYMENTS)
        for document in deployments:
            self.deployments.put(document)
        names = {objects.key_of(item) for item in deployments}
        for key in self.deployments.by_age():
            held = self.deployments.get(key)
            if key not in names and held is not None:
                self.deployments.remove(held)
        self.cluster.api.calls[:] = calls
        self.cluster.api.before_call, self.cluster.api.after_call = before, after

    def step(self) -> tuple[list[actions.Action], float | None]:
        """Reconcile every object once; return what was done and when to look again."""
        self.refresh()
        done: list[actions.Action] = []
        waits: list[float] = []
        for key in self.deployments.by_age():
            for snapshot in self.observer.observe([key]).values():
                outcome = self.act_on(snapshot)
                if outcome.requeue_after_s is not None:
                    waits.append(outcome.requeue_after_s)
                done += outcome.actions
        self.most = max(self.most, len(self.jobs.running()))
        self.idle()
        if self.died:
            raise Death
        return done, min(waits, default=None)

    def act_on(self, snapshot: Snapshot) -> Outcome[actions.Action]:
        """Decide about a snapshot and act; return what was decided."""
        outcome = decide.decide(snapshot, self.cluster.clock.now())
        for action in outcome.actions:
            self.actor.act(snapshot, action)
        return outcome

    def idle(self) -> None:
        """Wait until all runs of helm have ended."""
        deadline = time.monotonic() + 20
        while self.jobs.running() and time.monotonic() < deadline:
            time.sleep(0.002)

    def settle(self, limit: int = 60) -> int:
        """Reconcile until nothing is done any more; return the number of steps."""
        for count in range(limit):
            done, wait_s = self.step()
            if not done and wait_s is None:
                return count
            self.cluster.clock.seconds += max(wait_s or 0.1, SHORTEST_S)
        raise AssertionError(f"not settled after {limit} steps: {done}")


class _Mortal:
    """Passes runs on to helm; a death in one is the death of the process."""

    def __init__(self, inner: fake_helm.FakeHelm, process: Process) -> None:
        self._inner = inner
        self._process = process

    def check(self, cancel: threading.Event) -> str:
        return self._inner.check(cancel)

    def template(self, run: Any, cancel: threading.Event) -> str:
        return self._inner.template(run, cancel)

    def upgrade(self, run: Any, cancel: threading.Event) -> None:
        self._guard(lambda: self._inner.upgrade(run, cancel))

    def uninstall(self, run: Any, cancel: threading.Event) -> None:
        self._guard(lambda: self._inner.uninstall(run, cancel))

    def _guard(self, fn: Any) -> None:
        try:
            fn()
        except Death:
            self._process.died = True
