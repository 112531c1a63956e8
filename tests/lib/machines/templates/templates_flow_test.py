"""Templates on the fake API server: what is written, when, and when nothing is."""

import datetime
from typing import Any

import pytest

from lib.kube import errors as kube_errors
from lib.kube import resources, store
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.machines import kinds
from lib.machines.model import MachineSettings
from lib.machines.templates import flow, model
from lib.reconcile import failure, queue, runner

SPACE = "machines"
GROUP = "infrastructure.cluster.x-k8s.io"
TEMPLATE = resources.Resource(GROUP, "v1", "fakemachinetemplates", "FakeTemplate", True)
CLUSTERS = resources.Resource(kinds.CORE, "v1beta2", "clusters", "Cluster", True)
NOW = datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC)
Json = dict[str, Any]


def shape(spec: Any) -> model.NodeShape | None:
    cores = spec.get("cores")
    return model.NodeShape(str(cores), "8Gi") if isinstance(cores, int) else None


KINDS = model.TemplateKinds(TEMPLATE, "fake-capi", shape)
SHOWN: Json = {
    "capacity": {"cpu": "4", "memory": "8Gi"},
    "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
}


class Stage:
    """A fake API server, and the flow over it."""

    def __init__(self, **settings: Any) -> None:
        self.api = fake_api.FakeApi()
        self.now_s = 1000.0
        self.failures: list[failure.Failure | None] = []
        self.stores = model.TemplateStores(
            store.Store(self.api, TEMPLATE, model.TemplateObject),
            store.Store(self.api, CLUSTERS, kinds.OwnerCluster),
        )
        of = MachineSettings("cluster-1", **settings)
        self.flow = flow.TemplatesFlow(self.stores, self.api, KINDS, of)
        backoff = queue.Backoff(base_s=2, max_s=300)
        self.queue = queue.Queue(backoff, clock=lambda: self.now_s)
        flow.watch(self.stores, self.queue.add)

    def cluster(self, **spec: Any) -> Json:
        about = {"name": "one", "namespace": SPACE}
        return dict(self.api.put(CLUSTERS, {"metadata": about, "spec": spec}))

    def template(self, name: str = "small", cores: object = 4, **about: Any) -> None:
        metadata = {"name": name, "namespace": SPACE, **about}
        spec = {"template": {"spec": {"cores": cores}}}
        self.api.put(TEMPLATE, {"metadata": metadata, "spec": spec})

    def owned(self, name: str = "small") -> None:
        owner = self.cluster()
        reference = {
            "apiVersion": CLUSTERS.api_version,
            "kind": "Cluster",
            "name": "one",
            "uid": owner["metadata"]["uid"],
        }
        self.template(name, ownerReferences=[reference])

    def status(self, name: str = "small") -> Json:
        for document in self.api.all(TEMPLATE):
            typed: Json = dict(document)
            if typed["metadata"]["name"] == name:
                return dict(typed.get("status", {}))
        raise AssertionError(f"no template {name}")

    def settle(self) -> None:
        """Reconcile until nothing is due; the watch shows each write afterwards."""
        for _ in range(20):
            self.stores.clusters.relist()
            self.stores.templates.relist()
            claims = self.queue.take_due(100)
            snapshots = self.flow.observe(claims)
            for claim in claims:
                self._pass(claim, snapshots.get(claim.key))
            self.now_s += 10.0

    def _pass(self, claim: queue.Claim, snapshot: model.Snapshot | None) -> None:
        self.queue.done(claim.key)
        if snapshot is None:
            return
        try:
            for action in runner.decide(self.flow, snapshot, NOW).actions:
                snapshot = self.flow.act(snapshot, action)
        except kube_errors.KubeError as error:
            self.failures.append(self.flow.failure(error))
            self.queue.retry(claim.key, claim.topics, None)

    def writes(self) -> list[str]:
        return [
            f"{call.verb} {call.resource}/{call.subresource}"
            for call in self.api.calls
            if call.is_write
        ]


def test_capacity_and_platform_are_applied_with_one_write() -> None:
    stage = Stage()
    stage.template()
    stage.settle()
    assert stage.status() == SHOWN
    assert stage.writes() == ["patch fakemachinetemplates/status"]
    stage.settle()
    assert len(stage.writes()) == 1


def test_a_changed_spec_and_a_lost_status_are_shown_again() -> None:
    stage = Stage()
    stage.template()
    stage.settle()
    stage.template(cores=8)
    stage.settle()
    assert stage.status()["capacity"] == {"cpu": "8", "memory": "8Gi"}
    assert len(stage.writes()) == 2


def test_keys_of_others_stay_and_cause_no_write() -> None:
    stage = Stage()
    stage.template()
    more = {**SHOWN, "capacity": {**SHOWN["capacity"], "nvidia.com/gpu": "1"}}
    about = {"name": "small", "namespace": SPACE}
    stage.api.put(TEMPLATE, {"metadata": about, "status": more})
    stage.settle()
    assert stage.status() == more
    assert stage.writes() == []


@pytest.mark.parametrize("cores", ["many", None])
def test_an_invalid_template_shows_nothing(cores: object) -> None:
    stage = Stage()
    stage.template(cores=cores)
    stage.settle()
    assert stage.writes() == []


@pytest.mark.parametrize(
    ("settings", "about"),
    [
        ({}, {"annotations": {kinds.PAUSED: ""}}),
        ({"namespace": "elsewhere"}, {}),
        ({"watch_filter": "a"}, {"labels": {kinds.WATCH_FILTER: "b"}}),
    ],
)
def test_templates_that_are_not_reconciled(settings: Json, about: Json) -> None:
    stage = Stage(**settings)
    stage.template(**about)
    stage.settle()
    assert stage.writes() == []


def test_a_pause_of_the_cluster_ends() -> None:
    stage = Stage()
    stage.owned()
    stage.cluster(paused=True)
    stage.settle()
    assert stage.writes() == []
    stage.cluster(paused=False)
    stage.settle()
    assert stage.status() == SHOWN


def test_a_rejected_write_is_retried_and_others_are_served() -> None:
    stage = Stage()
    refusal = kube_errors.Unavailable("x", operation="PATCH", status=503)
    stage.api.faults.append(calls.Fault(refusal, "patch", TEMPLATE.plural))
    stage.template("a")
    stage.template("b")
    stage.settle()
    assert stage.status("a") == stage.status("b") == SHOWN
    assert len(stage.writes()) == 3
    assert None not in stage.failures


def test_a_template_is_held_until_the_watch_shows_our_own_write() -> None:
    stage = Stage()
    stage.template()
    stage.stores.templates.relist()
    stage.stores.clusters.relist()
    (claim,) = stage.queue.take_due(1)
    snapshot = stage.flow.observe([claim])[claim.key]
    (action,) = runner.decide(stage.flow, snapshot, NOW).actions
    stage.flow.act(snapshot, action)
    again = stage.flow.observe([claim])[claim.key]
    assert runner.decide(stage.flow, again, NOW).actions == ()
    assert stage.flow.held_s(again) > 0
    stage.stores.templates.relist()
    assert stage.flow.held_s(stage.flow.observe([claim])[claim.key]) == 0
