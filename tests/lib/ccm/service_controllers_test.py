"""What the balancers flow is wired to: Services, Nodes, the Lease and the cloud."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lib.balancers.model import FINALIZER
from lib.ccm import options, parts, service_controllers
from lib.cloud.fake import load_balancers as fake_cloud
from lib.kube import errors, resources
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
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


def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.01)


MakeParts = Callable[..., parts.Parts]


class Running:
    """The controller over fakes, in threads of its own."""

    def __init__(
        self, make_parts: MakeParts, *given: str, early_s: float = 0.0
    ) -> None:
        self._make_parts = make_parts
        words = ["--cloud-provider=openstack", "--lb-drift-period=1h", *given]
        self.wanted = options.read(flags.parse(options.FLAGS, words), "openstack")
        self.api = fake_api.FakeApi()
        self.api.put(resources.NAMESPACES, {"metadata": {"name": "kube-system"}})
        self.api.put(resources.NODES, NODE)
        self.api.put(resources.SERVICES, SERVICE)
        self.cloud = fake_cloud.FakeLoadBalancers(time.monotonic)
        self.began = time.monotonic()
        self.early_s = early_s
        self._stop = threading.Event()
        self._loops = loops.Loops(self._stop)

    def begin(self) -> None:
        shared = self._make_parts(
            self.api,
            self._loops,
            is_dry=self.wanted.dry_run,
            create_in_s=lambda: self.began + self.early_s - time.monotonic(),
        )
        self.registry = shared.registry
        self.services = service_controllers.ServiceControllers(
            self.cloud, shared, self.wanted, SOURCE
        )
        self.services.watch(self._loops)
        self._loops.start("watch nodes", shared.nodes.run)
        self.services.start(self._loops)

    def service(self) -> Json:
        (found,) = self.api.all(resources.SERVICES)
        return dict(found)

    @property
    def is_served(self) -> bool:
        status: Json = self.service().get("status", {})
        return bool(status.get("loadBalancer", {}).get("ingress"))

    def members(self) -> list[str]:
        found = [one.wish for one in self.cloud.there.values()]
        return sorted(str(wish) for wish in found)

    def end(self) -> None:
        self._stop.set()
        assert self._loops.join(10) == ()


Begin = Callable[..., Running]


@pytest.fixture()
def make(make_parts: MakeParts) -> Iterator[Begin]:
    with contextlib.ExitStack() as stack:

        def begin(*given: str, early_s: float = 0.0) -> Running:
            running = Running(make_parts, *given, early_s=early_s)
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
    said: list[Json] = [dict(one) for one in running.api.all(resources.EVENTS)]
    assert [(e["reason"], e["source"]["component"]) for e in said] == [
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
    assert not [one for one in running.api.calls if one.resource == "namespaces"]


def test_nothing_is_done_until_it_is_known_which_cluster_this_is(make: Begin) -> None:
    """A namespace that can't be read yet is asked for again."""
    running = make()
    refused = errors.Forbidden("no", operation="read namespace")
    tries: list[object] = []

    def refuse(call: calls.Call) -> None:
        if call.resource == "namespaces" and len(tries) < 1:
            tries.append(call)
            raise refused

    running.api.before_call = refuse
    running.begin()
    until(lambda: bool(tries))
    assert not running.cloud.there
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
    running = make(early_s=1.5)
    running.begin()
    until(lambda: running.is_served)
    assert time.monotonic() - running.began >= 1.5
    assert len(running.cloud.there) == 1


def test_a_dry_run_writes_nothing(make: Begin) -> None:
    """Neither in the cloud nor in the cluster; a plan is logged."""
    running = make("--dry-run")
    running.begin()
    until(lambda: running.services.services.synced.is_set())
    time.sleep(1.5)
    assert not running.cloud.there
    assert not [one for one in running.api.calls if one.is_write]


def test_the_cloud_is_asked_only_for_what_counts(make: Begin) -> None:
    """A Node's heartbeat costs no call."""
    running = make()
    running.begin()
    until(lambda: running.is_served)
    time.sleep(1.0)
    before = len(running.cloud.calls)
    running.api.put(
        resources.NODES, {**NODE, "status": {**NODE["status"], "phase": "x"}}
    )
    time.sleep(1.5)
    assert len(running.cloud.calls) == before
