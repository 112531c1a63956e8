"""The Services of docs/examples are applied by kubectl, and have the result they state.

openstack-ccm, the PEX, serves all of them together; results are read from Octavia and
Neutron.
"""

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping

import pytest
import yaml

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab.kube import control_plane
from lib.lab.openstack import cloud, seed_cloud
from lib.lab.run import waiting
from tests.harness.openstack import balancers, cases
from tests.harness.services import services, stages

FOLDER = pathlib.Path("docs/examples/services")
NAMESPACE = "examples"
SERVED_S = waiting.LIMIT_S
NODES = ("examples-1", "examples-2")
PLACEHOLDER_IP = "203.0.113.10"
PLACEHOLDER_ID = "9b1c3d52-6f0e-4c0e-8f55-0d6f4a6f1a11"
"""Values that the examples ask their reader to replace."""
SETTINGS = "\n[LoadBalancer]\ncontainer-store = external\n"
"""There is no Barbican in the lab."""


@dataclasses.dataclass(frozen=True)
class Ground:
    """Where the examples are applied. free_ip: a floating IP that is not attached."""

    stage: stages.Stage
    free_ip: str

    def apply(self, name: str, replaced: Mapping[str, str]) -> None:
        """Apply an example in the namespace of the stage. replaced: placeholders."""
        text = (FOLDER / f"{name}.yaml").read_text()
        for placeholder, value in replaced.items():
            assert placeholder in text
            text = text.replace(placeholder, value)
        document = yaml.safe_load(text)
        assert document["metadata"]["name"] == name
        document["metadata"]["namespace"] = NAMESPACE
        control_plane.apply_manifests(self.stage.where, yaml.safe_dump(document))

    def service(self, name: str) -> Mapping[str, object]:
        stored = self.stage.services.get(name)
        assert stored is not None, name
        return stored

    def wait(self, *names: str) -> None:
        """Wait until Services have addresses."""
        end = time.monotonic() + SERVED_S
        while missing := [
            name for name in names if not services.ingress(dict(self.service(name)))
        ]:
            assert time.monotonic() < end, (missing, self.stage.services.events())
            time.sleep(0.5)

    def observed(self, name: str) -> cases.Observed:
        view = balancers.look(self.stage.mine.connection)
        return cases.Observed(self.service(name), view, {"free": self.free_ip})


@pytest.fixture(scope="module")
def ground(open_stage: stages.Open) -> Iterator[Ground]:
    """Serve a project with an IPv6 subnet and a floating IP of its own."""
    with contextlib.ExitStack() as ends:
        stage = ends.enter_context(open_stage(NAMESPACE))
        network_id, _ = stage.network()
        network = stage.mine.connection.network
        with cloud.sentences():
            network.create_subnet(
                name="v6", network_id=network_id, ip_version=6, cidr="fd00:43::/64"
            )
            public = network.find_network(
                seed_cloud.PUBLIC_NETWORK, ignore_missing=False
            )
            free = network.create_ip(floating_network_id=public.id)
        ports = balancers.node_ports(stage.mine.connection, network_id, len(NODES))
        stage.add_nodes(dict(zip(NODES, ports, strict=True)))
        stage.serve(settings=SETTINGS)
        new_ground = Ground(stage, str(free.floating_ip_address))
        names = {file.stem for file in FOLDER.glob("*.yaml")} - {"shared-user"}
        for name in sorted(names):
            is_fixed = name == "fixed-floating-ip"
            replaced = {PLACEHOLDER_IP: new_ground.free_ip} if is_fixed else {}
            new_ground.apply(name, replaced)
        new_ground.wait("shared-owner")
        owner = services.balancer_id(dict(new_ground.service("shared-owner")))
        new_ground.apply("shared-user", {PLACEHOLDER_ID: owner})
        new_ground.wait(*names, "shared-user")
        yield new_ground


def listeners(observed: cases.Observed) -> list[tuple[str, int]]:
    """Return protocol and port of all listeners of the load balancer."""
    return sorted(
        (listener["protocol"], listener["protocol_port"])
        for listener in observed.view.listeners.values()
        if {"id": observed.id} in listener["loadbalancers"]
    )


def internal(observed: cases.Observed) -> object:
    is_vip = observed.ingress == [f"{observed.balancer['vip_address']} VIP"]
    return listeners(observed), observed.address, is_vip, len(observed.members)


def shared(observed: cases.Observed) -> object:
    return listeners(observed), observed.ingress == [f"{observed.address} VIP"]


def proxied(observed: cases.Observed) -> object:
    pool = observed.view.pool(observed.id, 443)
    return listeners(observed), pool["protocol"], observed.ingress[0].split()[1]


def fixed(observed: cases.Observed) -> object:
    has_address = observed.address == observed.names["free"]
    return has_address, observed.ingress == [f"{observed.address} VIP"]


def local(observed: cases.Observed) -> object:
    health = observed.service["spec"]["healthCheckNodePort"]
    ports = {member["monitor_port"] for member in observed.members}
    return observed.part("monitor")["type"], ports == {health}


def tls(observed: cases.Observed) -> object:
    listener = observed.view.listener(observed.id, 443)
    reference = observed.annotation(keys.TLS_REF)
    is_used = listener["default_tls_container_ref"] == reference
    return listeners(observed), is_used, listener["insert_headers"]


def ranges(observed: cases.Observed) -> object:
    return sorted(observed.part("listener")["allowed_cidrs"])


def families(observed: cases.Observed) -> object:
    return ["IPv6" if ":" in address else "IPv4" for address in observed.ingress]


TWO = [("TCP", 80), ("TCP", 8080)]
RESULTS: Mapping[str, tuple[Callable[[cases.Observed], object], object]] = {
    "internal": (internal, ([("TCP", 80)], "", True, len(NODES))),
    "shared-owner": (shared, (TWO, True)),
    "shared-user": (shared, (TWO, True)),
    "proxy-protocol": (proxied, ([("TCP", 443)], "PROXYV2", "Proxy")),
    "fixed-floating-ip": (fixed, (True, True)),
    "local-traffic": (local, ("HTTP", True)),
    "udp": (listeners, [("TCP", 53), ("UDP", 53)]),
    "tls": (
        tls,
        ([("TERMINATED_HTTPS", 443)], True, {"X-Forwarded-For": "true"}),
    ),
    "source-ranges": (ranges, ["192.0.2.0/24", "198.51.100.7/32"]),
    "dual-stack": (families, ["IPv4", "IPv6"]),
}


def test_each_example_has_an_expected_result() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == RESULTS.keys()


@pytest.mark.parametrize("name", RESULTS)
def test_an_example_has_its_result(ground: Ground, name: str) -> None:
    probe, expected = RESULTS[name]
    end = time.monotonic() + SERVED_S
    # Members and health monitors may follow the address.
    while (result := probe(ground.observed(name))) != expected:
        if time.monotonic() > end:
            break
        time.sleep(1.0)
    print(f"{name:20} {result}")
    assert result == expected


def test_the_fixed_floating_ip_is_kept(ground: Ground) -> None:
    """Last of all: the Services are deleted."""
    ground.stage.services.clear()
    view = balancers.look(ground.stage.mine.connection)
    addresses = {ip["floating_ip_address"] for ip in view.floating_ips.values()}
    assert addresses == {ground.free_ip}
    assert view.balancers == {}
