"""Each call for load balancers has a row in the table of the reference's names."""

from lib.cloud.load_balancers import Port, PortProtocol
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from tests.lib.cloud.openstack import reference_calls

CONFIGS = (
    settings.LoadBalancer(manage_security_groups=True),
    settings.LoadBalancer(provider_requires_serial_api_calls=True),
)
TCP, UDP = PortProtocol.TCP, PortProtocol.UDP
CONTAINER = f"https://keys.example/v1/containers/{driver.UID}"
OF_THE_REFERENCE = reference_calls.of_the_reference(
    "loadbalancer", "floating_ip", "security_group"
)


def live(config: settings.LoadBalancer) -> set[str]:
    """Serve a Service from its creation to its end; return the calls by name."""
    on = driver.ground()
    ports = (Port(80, TCP, 30080), Port(53, UDP, 30053))
    facts = driver.service((on.node(1),), ports=ports)
    driven = driver.Driver(on, facts, config)
    driven.annotate({keys.ENABLE_MONITOR: "true"})
    driven.settle()
    driven.annotate({keys.MONITOR_DELAY: "9", keys.TIMEOUT_CLIENT_DATA: "7000"})
    driven.change(
        nodes=(*facts.nodes, on.node(2)), ports=(*ports, Port(443, TCP, 30443))
    )
    driven.settle()
    driven.annotate({keys.ENABLE_MONITOR: "false", keys.METHOD: "LEAST_CONNECTIONS"})
    driven.change(ports=ports[:1])
    driven.settle()
    driven.annotate({keys.INTERNAL: "true", keys.TLS_REF: CONTAINER})
    driven.settle()
    driven.restart()
    driven.settle(gone=True)
    return on.cloud.operations


def test_every_call_has_a_row() -> None:
    """Prints calls and names; a call without a row fails."""
    kinds = set().union(*(live(config) for config in CONFIGS))
    print("\n".join(reference_calls.table(kinds)))
    assert reference_calls.missing(kinds) == set()
    print(f"not made here: {sorted(OF_THE_REFERENCE - kinds)}")
    assert len(OF_THE_REFERENCE & kinds) >= 20
