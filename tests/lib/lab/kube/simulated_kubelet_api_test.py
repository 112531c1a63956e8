"""The simulated kubelets against a fake API server and a cloud of one server."""

import dataclasses
import datetime

from lib.kube import resources
from lib.kube.fake import api as fake
from lib.lab.grounds import servers
from lib.lab.kube import simulated_kubelet
from lib.lab.status import table
from lib.lab.whole import parts

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


class Cloud:
    """A cloud that is only looked at."""

    def __init__(self, *present: servers.Server) -> None:
        self.servers = present

    def items(self) -> tuple[servers.Server, ...]:
        return self.servers

    def set(self, status: str) -> None:
        self.servers = tuple(
            dataclasses.replace(server, status=status) for server in self.servers
        )

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        raise NotImplementedError(name, kind)

    def stop(self, server_id: str) -> None:
        raise NotImplementedError(server_id)

    start = delete = remove_floating_ips = stop

    def add_floating_ip(self, server_id: str) -> str:
        raise NotImplementedError(server_id)


def tick(api: fake.FakeApi, cloud: Cloud, ticks: list[str]) -> list[str]:
    """Run through some ticks; before each the server gets the status named."""
    left, lines = iter(ticks), list[str]()

    def wait() -> bool:
        status = next(left, None)
        if status == "node deleted":
            api.remove(resources.NODES, "a")
        elif status is not None:
            cloud.set(status)
        return status is not None

    simulated_kubelet.run(api, cloud, ["a"], lambda: NOW, wait, lines.append)
    return lines


def names(api: fake.FakeApi) -> list[str]:
    return [table.node(node).name for node in api.all(resources.NODES)]


def test_running_server_has_a_ready_node_and_a_lease() -> None:
    """One tick makes the Node; it is Ready and its Lease is renewed."""
    api = fake.FakeApi()
    assert tick(api, Cloud(servers.Server("1", "a", "ACTIVE")), ["ACTIVE"]) == []
    assert [table.node(node).ready for node in api.all(resources.NODES)] == ["True"]
    assert len(api.all(resources.LEASES)) == 1


def test_a_stopped_server_s_kubelet_is_silent() -> None:
    """No call at all is made for it."""
    api = fake.FakeApi()
    tick(api, Cloud(servers.Server("1", "a", "SHUTOFF")), ["SHUTOFF"])
    assert api.calls == []


def test_a_deleted_node_stays_away_while_its_server_runs_on() -> None:
    """A kubelet does not register twice."""
    api, cloud = fake.FakeApi(), Cloud(servers.Server("1", "a", "ACTIVE"))
    tick(api, cloud, ["node deleted", "ACTIVE"])
    assert names(api) == []


def test_a_deleted_node_comes_back_when_its_server_boots() -> None:
    """Stopped and started, the kubelet registers anew."""
    api, cloud = fake.FakeApi(), Cloud(servers.Server("1", "a", "ACTIVE"))
    tick(api, cloud, ["node deleted", "SHUTOFF", "ACTIVE"])
    assert names(api) == ["a"]


def test_a_node_of_an_earlier_server_is_replaced() -> None:
    """Its provider ID is for ever wrong; the one that fits is left alone."""
    api = fake.FakeApi()
    assert parts.register_simulated_nodes(api, {"a": "1", "b": "2"}) == ("a", "b")
    for node, server in (("a", "old"), ("b", "2")):
        document = simulated_kubelet.manifest(node, NOW)
        document["spec"] = {"providerID": f"openstack:///{server}"}
        api.put(resources.NODES, document)
    assert parts.register_simulated_nodes(api, {"a": "1", "b": "2"}) == ("a",)
