"""What the lab's user of Services does and sees, against the fake API server."""

import json

import pytest

from lib.kube import resources
from lib.kube.fake.api import FakeApi
from tests.harness.services import services

FINALIZERS = ["service.kubernetes.io/load-balancer-cleanup"]


@pytest.fixture()
def api() -> FakeApi:
    return FakeApi()


def told(number: int, name: str, count: int) -> dict[str, object]:
    return {
        "metadata": {"name": f"event-{number}", "namespace": "a"},
        "involvedObject": {"name": name},
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": f"message {number}",
        "count": count,
        "source": {"component": "service-controller"},
    }


def test_only_those_of_the_own_namespace_are_seen(api: FakeApi) -> None:
    """Twice the same namespace is fine; Services of others are ignored."""
    mine, again = services.Services(api, "a"), services.Services(api, "a")
    services.Services(api, "b").make("theirs")
    mine.make("web", {"key": "value"}, [services.port(53, "UDP", nodePort=30053)])
    (service,) = again.all().values()
    assert services.annotations(service) == {"key": "value"}
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["spec"]["ports"] == [
        {"port": 53, "protocol": "UDP", "name": "udp-53", "nodePort": 30053}
    ]


def test_a_change_leaves_the_rest(api: FakeApi) -> None:
    """None takes an annotation away; ports are those given and no others."""
    mine = services.Services(api, "a")
    mine.make("web", {"one": "1", "two": "2"}, type="ClusterIP")
    mine.change("web", {"one": None}, ports=[services.port(443)])
    service = mine.get("web")
    assert service is not None
    assert services.annotations(service) == {"two": "2"}
    assert service["spec"] == {"type": "ClusterIP", "ports": [services.port(443)]}


def test_events_are_given_by_service_and_in_order(api: FakeApi) -> None:
    mine = services.Services(api, "a")
    for number, (name, count) in enumerate([("web", 1), ("shop", 1), ("web", 3)]):
        api.put(resources.EVENTS, told(number, name, count))
    events = mine.events()
    assert [event.message for event in events["web"]] == ["message 0", "message 2"]
    assert [event.count for event in events["web"]] == [1, 3]
    assert events["shop"][0].component == "service-controller"


def test_who_still_has_a_load_balancer_goes_only_when_it_is_abandoned(
    api: FakeApi,
) -> None:
    mine = services.Services(api, "a")
    mine.make("web")
    body = json.dumps({"metadata": {"finalizers": FINALIZERS}}).encode()
    api.patch(resources.SERVICES, "web", body, "a", timeout_s=1)
    mine.delete(["web"])
    assert list(mine.all()) == ["web"]
    mine.abandon()
    assert mine.all() == {}


def test_nodes_are_made_labelled_and_deleted(api: FakeApi) -> None:
    """The Service with labels keeps those that no user removes."""
    services.make_node(api, "one", ["10.0.0.1", "fd00::1"], {"a": "1", "b": "2"})
    services.make_node(api, "two", ["10.0.0.2"])
    services.label_node(api, "one", {"a": None, "c": "3"})
    assert services.node_labels(api) == {"one": {"b": "2", "c": "3"}, "two": {}}
    services.delete_nodes(api, ["one", "nobody"])
    assert services.node_labels(api).keys() == {"two"}


def test_addresses_are_those_of_the_status() -> None:
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "a"}]}}
    assert services.addresses({"status": status}) == ["192.0.2.1"]
    assert services.addresses({"status": {"loadBalancer": {}}}) == []
    assert services.addresses(None) == []


def test_a_service_says_which_load_balancer_it_leads_to() -> None:
    named = {"annotations": {services.LOAD_BALANCER_ID: "one"}}
    assert services.balancer_id({"metadata": named}) == "one"
    assert services.balancer_id({"metadata": {}}) == ""
