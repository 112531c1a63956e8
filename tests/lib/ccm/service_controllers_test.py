"""What the balancers flow is wired to: Services, Nodes, the Lease and the cloud."""

import contextlib
import dataclasses
import datetime
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from lib.balancers import serving_nodes
from lib.balancers.model import FINALIZER
from lib.ccm import options, parts, service_controllers
from lib.cloud import errors as cloud_errors
from lib.cloud.fake import load_balancers as fake_cloud
from lib.cloud.load_balancers import Observed, Plan, Target
from lib.cloud.steps import Step, Verb
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.plans import engine
from lib.process import flags
from lib.reconcile import loops

Json = dict[str, Any]
NODE: Json = {
    "metadata": {"name": "node-1"},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
}
SERVICE: Json = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "type": "LoadBalancer",
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}],
    },
}
SOURCE = "cloud-provider-openstack"
ABSENT_S = 0.5
"""What does not happen within this time does not happen: ten times the longest of the
waits that conftest.py shortens."""


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


MakeParts = Callable[..., parts.Parts]


class Reports:
    """Reports of a cloud; those who subscribed."""

    def __init__(self) -> None:
        self.subscribers: list[Callable[[str], None]] = []

    def subscribe(self, fn: Callable[[str], None]) -> None:
        self.subscribers.append(fn)


class Running:
    """The controller over fakes, in threads of its own.

    unsettled_s: see lib/kube/election.py.
    """

    def __init__(
        self,
        make_parts: MakeParts,
        *arguments: str,
        unsettled_s: Callable[[float], float] = lambda settle_s: 0.0,
        disabled_by: str = "",
    ) -> None:
        self.reports = Reports()
        self._settings = service_controllers.ServiceSettings(
            SOURCE, disabled_by, lambda: self.reports
        )
        self._make_parts = make_parts
        words = ["--cloud-provider=openstack", "--lb-drift-period=1h", *arguments]
        self.options = options.read(flags.parse(options.FLAGS, words), "openstack")
        self.api = fake_api.FakeApi()
        self.api.put(resources.NAMESPACES, {"metadata": {"name": "kube-system"}})
        self.api.put(resources.NODES, NODE)
        self.api.put(resources.SERVICES, SERVICE)
        self.cloud = fake_cloud.FakeLoadBalancers(
            time.monotonic, busy_s=0.1, poll_s=0.02
        )
        self._unsettled_s = unsettled_s
        self._stop = threading.Event()
        self._loops = loops.Loops(self._stop)

    def begin(self) -> None:
        shared = self._make_parts(
            self.api,
            self._loops,
            is_dry=self.options.dry_run,
            unsettled_s=self._unsettled_s,
        )
        self.registry = shared.registry
        self.nodes = shared.nodes
        self.services = service_controllers.ServiceControllers(
            lambda: self.cloud, shared, self.options, self._settings
        )
        self.services.watch(self._loops)
        self._loops.start("watch nodes", shared.nodes.run)
        self.services.start(self._loops)

    def service(self) -> Json:
        (service_object,) = self.api.all(resources.SERVICES)
        return dict(service_object)

    @property
    def is_served(self) -> bool:
        status: Json = self.service().get("status", {})
        return bool(status.get("loadBalancer", {}).get("ingress"))

    def passes(self) -> float:
        """Count the reconciliations of Services, whatever their outcome."""
        return sum(
            sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == "mooring_reconcile_total"
        )

    def settle(self) -> None:
        """Wait until no reconciliation has come for ABSENT_S."""
        before, end = -1.0, time.monotonic() + 60
        while (now := self.passes()) != before:
            assert time.monotonic() < end, "reconciliations go on without a change"
            before = now
            time.sleep(ABSENT_S)

    def ended_as(self, outcome: str) -> float | None:
        """Return how many reconciliations ended so."""
        labels = {"controller": "balancers", "outcome": outcome}
        return self.registry.get_sample_value("mooring_reconcile_total", labels)

    def members(self) -> list[str]:
        observed = [
            load_balancer.request
            for load_balancer in self.cloud.load_balancers.values()
        ]
        return sorted(str(request) for request in observed)

    def end(self) -> None:
        self._stop.set()
        assert self._loops.join(10) == ()


Begin = Callable[..., Running]


@pytest.fixture()
def make(make_parts: MakeParts) -> Iterator[Begin]:
    with contextlib.ExitStack() as stack:

        def begin(
            *words: str,
            unsettled_s: Callable[[float], float] = lambda settle_s: 0.0,
            disabled_by: str = "",
        ) -> Running:
            running = Running(
                make_parts, *words, unsettled_s=unsettled_s, disabled_by=disabled_by
            )
            stack.callback(running.end)
            return running

        yield begin


def test_a_service_gets_its_load_balancer_and_says_who_did_it(make: Begin) -> None:
    """Address, finalizer, Events of the reference's component; the cluster's mark."""
    running = make()
    running.begin()
    until(lambda: running.is_served)
    assert running.service()["metadata"]["finalizers"] == [FINALIZER]
    (namespace,) = running.api.all(resources.NAMESPACES)
    uid: str = dict(namespace)["metadata"]["uid"]  # type: ignore[index] # of the fake
    (owned,) = running.cloud.owned(uid)
    assert owned.uid == running.service()["metadata"]["uid"]
    until(lambda: len(running.api.all(resources.EVENTS)) == 2)
    events: list[Json] = [dict(event) for event in running.api.all(resources.EVENTS)]
    assert [(e["reason"], e["source"]["component"]) for e in events] == [
        ("EnsuringLoadBalancer", "service-controller"),
        ("EnsuredLoadBalancer", "service-controller"),
    ]
    synced = "service_controller_loadbalancer_sync_total"
    assert running.registry.get_sample_value(synced) == 1


def test_the_clusters_id_can_be_given(make: Begin) -> None:
    """Then nobody needs to read the namespace."""
    running = make("--cluster-id=prod-1")
    running.begin()
    until(lambda: running.is_served)
    assert len(list(running.cloud.owned("prod-1"))) == 1
    assert not [call for call in running.api.calls if call.resource == "namespaces"]


def test_nothing_is_done_until_it_is_known_which_cluster_this_is(make: Begin) -> None:
    """A namespace that can't be read yet is asked for again."""
    running = make()
    refused = errors.Forbidden("no", operation="read namespace")
    tries: list[object] = []
    may_read = threading.Event()

    def refuse(call: calls.Call) -> None:
        if call.resource == "namespaces" and not may_read.is_set():
            tries.append(call)
            raise refused

    running.api.before_call = refuse
    running.begin()
    until(lambda: len(tries) >= 2)
    assert not running.cloud.load_balancers
    may_read.set()
    until(lambda: running.is_served)


def test_a_new_node_reaches_every_service(make: Begin) -> None:
    """Without a change of the Service."""
    running = make()
    running.begin()
    until(lambda: running.is_served)
    before = running.members()
    second = {**NODE, "metadata": {"name": "node-2"}}
    running.api.put(resources.NODES, second)
    until(lambda: running.members() != before)
    assert "node-2" in running.members()[0]


def test_what_cannot_be_made_twice_waits_after_a_takeover(make: Begin) -> None:
    """What the former process began may still appear; it is not to be doubled."""
    asked: list[bool] = []
    may_create = threading.Event()

    def unsettled_s(settle_s: float) -> float:
        asked.append(may_create.is_set())
        return 0.0 if may_create.is_set() else 0.05

    running = make(unsettled_s=unsettled_s)
    running.begin()
    until(lambda: len(asked) >= 3)
    assert not running.cloud.load_balancers
    may_create.set()
    until(lambda: running.is_served)
    assert len(running.cloud.load_balancers) == 1


@pytest.mark.parametrize("ingress", [[], [{"ip": "198.18.0.9"}]], ids=["none", "one"])
def test_a_deleted_service_waits_after_a_takeover(
    make: Begin, ingress: list[Json]
) -> None:
    """A load balancer that the previous leader began to create may still appear.

    A Service with an address has its load balancer, and waits for a shorter time.
    """
    asked: list[float] = []
    is_settled = threading.Event()

    def unsettled_s(settle_s: float) -> float:
        asked.append(settle_s)
        return 0.0 if is_settled.is_set() else 0.05

    running = make(unsettled_s=unsettled_s)
    about = {**SERVICE["metadata"], "finalizers": [FINALIZER]}
    status = {"loadBalancer": {"ingress": ingress}}
    service = {**SERVICE, "metadata": about, "status": status}
    running.api.put(resources.SERVICES, service)
    running.api.remove(resources.SERVICES, "web", "default")
    running.begin()
    until(lambda: len(asked) >= 3)
    assert running.service()["metadata"]["finalizers"] == [FINALIZER]
    assert set(asked) == {engine.CREATE_AFTER_S if ingress else engine.FORGET_AFTER_S}
    is_settled.set()
    until(lambda: not running.api.all(resources.SERVICES))


def test_a_dry_run_writes_nothing(make: Begin) -> None:
    """Neither in the cloud nor in the cluster; a plan is logged."""
    running = make("--dry-run")
    running.begin()
    until(lambda: running.passes() >= 1)
    assert not running.cloud.load_balancers
    assert not [call for call in running.api.calls if call.is_write]


def dry_run_entries(entries: list[MutableMapping[str, Any]]) -> list[str]:
    """Return the actions of which a dry run has said that it left them out."""
    return [
        str(entry["action"])
        for entry in entries
        if entry["event"] == "action skipped (dry run)"
    ]


def test_a_dry_run_does_not_poll_a_service_that_would_change(make: Begin) -> None:
    """It is read when it appears, and once more for the Nodes that appear with it."""
    running = make("--dry-run")
    running.cloud.plan = planned_again_at_once  # type: ignore[method-assign]
    with structlog.testing.capture_logs() as entries:
        running.begin()
        until(lambda: len(dry_run_entries(entries)) >= 3)
        time.sleep(ABSENT_S)
    reads = [call for call in running.cloud.calls if call.startswith("list")]
    assert len(reads) <= 2
    assert len(dry_run_entries(entries)) == 3 * len(reads)
    assert running.ended_as("success") == len(reads)


def planned_again_at_once(
    target: Target, observed: Observed, now: datetime.datetime
) -> Plan:
    """Plan one step, and to look again after 10 ms."""
    del target, observed, now
    step = Step(Verb.CREATE, ("load balancer",), "there is none", None)
    return Plan((step,), retry_after_s=0.01)


def test_a_dry_run_reports_a_cloud_that_cannot_be_read_and_tries_again(
    make: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_controllers, "FIRST_BACKOFF_S", 0.01)
    running = make("--dry-run")
    outage = cloud_errors.Unavailable("503", operation="list load balancers")
    running.cloud.faults += [outage] * 3
    with structlog.testing.capture_logs() as entries:
        running.begin()
        until(lambda: bool(dry_run_entries(entries)))
    assert running.ended_as("failure") == 3
    failed = [entry for entry in entries if entry["event"] == "reconcile failed"]
    assert failed, "the same failure is logged once a minute"
    assert all("503" in str(entry["error"]) for entry in failed)
    assert not [call for call in running.api.calls if call.is_write]
    assert "cannot send the Event" not in {entry["event"] for entry in entries}


def test_the_cloud_is_asked_only_for_what_counts(make: Begin) -> None:
    """A Node's heartbeat costs no call."""
    running = make()
    running.begin()
    until(lambda: running.is_served)
    running.settle()
    before, passes = len(running.cloud.calls), running.passes()
    heartbeat = {**NODE, "status": {**NODE["status"], "phase": "x"}}
    version = running.nodes.items()["node-1"].metadata.resource_version
    running.api.put(resources.NODES, heartbeat)
    until(lambda: running.nodes.items()["node-1"].metadata.resource_version != version)
    running.settle()
    assert (len(running.cloud.calls), running.passes()) == (before, passes)


def endpoint_slice(node: str, *, ready: bool) -> Json:
    return {
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "labels": {serving_nodes.SERVICE_LABEL: "web"},
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": ["10.244.0.1"],
                "nodeName": node,
                "conditions": {"ready": ready},
            }
        ],
    }


def test_endpoints_are_watched_for_a_cloud_that_uses_them(make: Begin) -> None:
    """With the traffic policy Local only Nodes with a ready endpoint are members."""
    running = make()
    running.cloud.uses_endpoints = True
    local = {**SERVICE["spec"], "externalTrafficPolicy": "Local"}
    running.api.put(resources.SERVICES, {**SERVICE, "spec": local})
    second = {**NODE, "metadata": {"name": "node-2"}}
    running.api.put(resources.NODES, second)
    running.api.put(resources.ENDPOINT_SLICES, endpoint_slice("node-1", ready=True))
    running.begin()
    until(lambda: running.is_served)

    def members() -> set[str]:
        (balancer,) = running.cloud.load_balancers.values()
        return set(balancer.request.members)

    until(lambda: members() == {"node-1"})
    running.api.put(resources.ENDPOINT_SLICES, endpoint_slice("node-2", ready=True))
    until(lambda: members() == {"node-2"})
    running.api.put(resources.ENDPOINT_SLICES, endpoint_slice("node-2", ready=False))
    until(lambda: members() == set())


def test_endpoints_are_not_read_for_a_cloud_that_does_not_use_them(
    make: Begin,
) -> None:
    running = make()
    local = {**SERVICE["spec"], "externalTrafficPolicy": "Local"}
    running.api.put(resources.SERVICES, {**SERVICE, "spec": local})
    running.begin()
    until(lambda: running.is_served)
    kinds = {call.resource for call in running.api.calls}
    assert "services" in kinds
    assert not kinds & {"endpointslices", "configmaps"}
    assert "node-1" in running.members()[0]


def test_a_config_map_disables_load_balancers_as_long_as_it_exists(
    make: Begin,
) -> None:
    """Nothing is created, changed or deleted; afterwards everything is made up for."""
    running = make(disabled_by="provider/disable")
    switch: Json = {"metadata": {"name": "disable", "namespace": "provider"}}
    running.begin()
    until(lambda: running.is_served)
    running.settle()
    running.api.put(resources.CONFIG_MAPS, switch)
    with structlog.testing.capture_logs() as entries:
        until(lambda: any("disabled" in entry["event"] for entry in entries))
    calls_before = len(running.cloud.calls)
    running.api.remove(resources.SERVICES, "web", "default")
    running.api.put(
        resources.SERVICES,
        {**SERVICE, "metadata": {"name": "late", "namespace": "default"}},
    )
    until(lambda: running.services.services.get("default/late") is not None)
    time.sleep(ABSENT_S)
    assert len(running.cloud.calls) == calls_before
    assert len(running.api.all(resources.SERVICES)) == 2
    running.api.remove(resources.CONFIG_MAPS, "disable", "provider")
    until(lambda: len(running.api.all(resources.SERVICES)) == 1)
    until(lambda: running.is_served)
    assert running.service()["metadata"]["name"] == "late"
    assert len(running.cloud.load_balancers) == 1


def test_a_change_that_the_cloud_reports_is_repaired_without_a_drift_check(
    make: Begin,
) -> None:
    """The Service is read again: its load balancer, and no other."""
    running = make()
    running.begin()
    until(lambda: running.is_served)
    running.settle()
    (balancer,) = running.cloud.load_balancers.values()
    balancer.request = dataclasses.replace(balancer.request, members=frozenset())
    (report,) = running.reports.subscribers
    report("uid of no Service")
    running.settle()
    assert not balancer.request.members
    report(running.service()["metadata"]["uid"])
    until(lambda: balancer.request.members == {"node-1"})
