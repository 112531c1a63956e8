"""A cluster and a cloud for discovery, and a valid published document."""

import base64
import copy
import datetime
import json
from typing import Any

import prometheus_client
import pytest

from lib.cloud import catalog
from lib.cloud.fake import catalog as fake_catalog
from lib.discoverer import metrics
from lib.discovery import act, flow, model, observe, storage_classes
from lib.discovery.openstack import provider
from lib.discovery.provider import DATA_SECRET
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.reconcile import queue

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
CLUSTER = "cluster-1"
PROVISIONER = "cinder.csi.openstack.org"
DOCUMENT: dict[str, object] = {
    "apiVersion": "deckhouse.io/v1alpha1",
    "kind": "OpenStackCloudProviderDiscoveryData",
    "flavors": ["m1.small", "большой"],
    "additionalNetworks": ["net"],
    "additionalSecurityGroups": ["default"],
    "defaultImageName": "ubuntu",
    "images": ["ubuntu"],
    "mainNetwork": "net",
    "zones": ["az1"],
    "volumeTypes": [{"id": "1", "name": "fast"}],
}


class Clock:
    """Monotonic seconds that move only by `pass_by`."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


class Ground:
    """A cluster and a cloud, which outlive the processes that work on them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.now = NOW
        self.api = fake_api.FakeApi(lambda: NOW)
        self.cloud = fake_catalog.FakeCatalog(
            instance_types=(
                catalog.InstanceType("m1.small", 2, 2048, 20),
                catalog.InstanceType("большой", 4, 1536, 0),
            ),
            document=copy.deepcopy(DOCUMENT),
            marked={CLUSTER: (self.volume("1", "pvc-1"), self.volume("2", "pvc-2"))},
            storage_types=(
                catalog.StorageType("SSD R1", "id-1"),
                catalog.StorageType("fast", "id-2"),
            ),
        )
        self.settings = model.DiscoverySettings(
            cluster_id=CLUSTER,
            manages_classes=True,
            provider=provider.OPENSTACK,
            rules=storage_classes.StorageClassRules(),
        )

    def volume(self, key: str, name: str) -> catalog.CatalogVolume:
        return catalog.CatalogVolume(key, name, NOW - datetime.timedelta(hours=1))

    def persistent(self, name: str, handle: str = "") -> None:
        spec = {"csi": {"driver": PROVISIONER, "volumeHandle": handle}}
        self.api.put(
            resources.PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec}
        )

    def claim(self) -> str:
        """Add a PersistentVolumeClaim that is not bound; return its UID."""
        metadata = {"name": "claim", "namespace": "default"}
        created: Any = self.api.put(
            resources.CLAIMS, {"metadata": metadata, "spec": {}}
        )
        return str(created["metadata"]["uid"])

    def process(self) -> "Process":
        return Process(self)

    def secret(self) -> dict[str, Any] | None:
        """Return the published document."""
        for item in self.api.all(resources.SECRETS):
            observed: dict[str, Any] = item
            if observed["metadata"]["name"] == DATA_SECRET:
                text = base64.b64decode(observed["data"][model.DATA_KEY])
                published: dict[str, Any] = json.loads(text)
                return published
        return None

    def classes(self) -> dict[str, Any]:
        """Return the StorageClasses by name."""
        observed: dict[str, Any] = {}
        for item in self.api.all(resources.STORAGE_CLASSES):
            named: dict[str, Any] = item
            observed[named["metadata"]["name"]] = named
        return observed


class Process:
    """One life of the discoverer, driven by hand."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.registry = prometheus_client.CollectorRegistry()
        self.discovery_metrics = metrics.DiscoveryMetrics(
            self.registry,
            ground.settings.steps,
            ground.clock,
            lambda: 1.0,
            ground.settings.provider.signals(self.registry),
        )
        self.queue = queue.Queue(
            queue.Backoff(base_s=3, max_s=300), clock=ground.clock, chance=lambda: 0.0
        )
        observer = observe.CatalogObserver(
            ground.cloud,
            ground.api,
            ground.settings,
            self.discovery_metrics.shown,
            ground.clock,
        )
        actor = act.DiscoveryActor(
            ground.api, self.discovery_metrics, ground.settings.provider
        )
        self.flow = flow.DiscoveryFlow(
            observer, actor, ground.settings, self.discovery_metrics
        )

    def cycle(self) -> dict[str, Exception]:
        """Take one cycle as the runner does; give what failed, by step."""
        for step in self.ground.settings.steps:
            self.queue.add(step.value, flow.CYCLE)
        return self.due()

    def due(self) -> dict[str, Exception]:
        """Take what is due now."""
        failed: dict[str, Exception] = {}
        claims = self.queue.take_due(10)
        observed = self.flow.observe(claims)
        for claim in claims:
            error = self._pass(observed[claim.key])
            if error is None:
                self.queue.forget(claim.key)
            else:
                failed[claim.key] = error
                self.queue.retry(claim.key, claim.topics)
            self.queue.done(claim.key)
        return failed

    def _pass(self, snapshot: model.Snapshot) -> Exception | None:
        """Decide and act; return the error with which that ended."""
        try:
            outcome = self.flow.decide(snapshot, self.ground.now)
            for action in outcome.actions:
                self.flow.act(snapshot, action)
            error = outcome.failure
        except Exception as raised:
            error = raised
        if error is not None and self.flow.failure(error) is None:
            raise error  # a bug
        self.flow.ended(snapshot, error)
        return error

    def value(self, series: str, /, **labels: str) -> float | None:
        return self.registry.get_sample_value(series, labels)

    def orphans(self) -> set[str]:
        return {
            sample.labels["id"]
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == "cloud_data_discovery_orphaned_disk_info"
        }


@pytest.fixture()
def ground() -> Ground:
    return Ground()
