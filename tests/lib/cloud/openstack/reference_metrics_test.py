"""Each call for instances has a row in the table of the reference's names.

Nodes of a cluster are read over the stand-in: all at once, one by one, by name, and as
absent; the calls of Nova and Neutron are those that the client made.
"""

from collections.abc import Callable
from typing import Protocol

from lib.cloud.model import InstanceRef
from lib.cloud.openstack.instances import cloud
from tests.lib.cloud.openstack import reference_calls

Json = dict[str, object]
OF_THE_REFERENCE = reference_calls.of_the_reference("server", "network", "port_list")


class StandIn(Protocol):
    newest: str
    servers: list[Json]
    ports: list[Json]
    networks: list[Json]
    flavors: list[Json]


def furnish(
    stand_in: StandIn, make_server: Callable[..., Json], make_port: Callable[..., Json]
) -> None:
    """Have a server whose flavor has no name in it, with a port on a trunk."""
    stand_in.newest = "2.46"
    stand_in.servers.append(make_server("s1", "node-1"))
    stand_in.flavors.append({"id": "flavor-1", "name": "m1.small"})
    stand_in.networks.append({"id": "network-1", "name": "inside"})
    trunk = {"sub_ports": [{"port_id": "p2"}]}
    stand_in.ports += [
        make_port("p1", "s1", "10.0.0.1", trunk_details=trunk),
        make_port("p2", "", "10.7.0.1"),
    ]


def test_every_call_has_a_row(
    stand_in: StandIn,
    make_instances: Callable[[], cloud.OpenStackInstances],
    make_server: Callable[..., Json],
    make_port: Callable[..., Json],
    observed: list[tuple[str, str]],
) -> None:
    """Prints calls and labels; a call without its row, or a row not called, fails."""
    furnish(stand_in, make_server, make_port)
    instances = make_instances()
    present = InstanceRef("node-1", "openstack:///s1")
    instances.observe([present, InstanceRef("node-2", "")], 1000.0)
    instances.look([present])
    assert instances.confirm_absent(InstanceRef("node-2", ""))
    assert instances.confirm_absent(InstanceRef("node-3", "openstack:///s3"))
    operations = {operation for operation, _ in observed}
    print("\n".join(reference_calls.table(operations)))
    assert reference_calls.missing(operations) == set()
    assert OF_THE_REFERENCE - operations == {"list external networks"}
    assert "list flavors" in operations
