"""From Nova's and Neutron's words to the model's: pure."""

from collections.abc import Mapping

from lib.cloud import provider_id
from lib.cloud.model import Address, Instance, InstanceId, Phase
from lib.cloud.openstack import native
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.instances import addresses
from lib.cloud.support import label_values

PHASES: Mapping[str, Phase] = {
    "ACTIVE": Phase.RUNNING,
    "BUILD": Phase.PENDING,
    "DELETED": Phase.DELETING,
    "ERROR": Phase.FAILED,
    "HARD_REBOOT": Phase.RUNNING,
    "MIGRATING": Phase.RUNNING,
    "PASSWORD": Phase.RUNNING,
    "PAUSED": Phase.SUSPENDED,
    "REBOOT": Phase.RUNNING,
    "REBUILD": Phase.PENDING,
    "RESCUE": Phase.SUSPENDED,
    "RESIZE": Phase.PENDING,
    "REVERT_RESIZE": Phase.PENDING,
    "SHELVED": Phase.SUSPENDED,
    "SHELVED_OFFLOADED": Phase.SUSPENDED,
    "SHUTOFF": Phase.STOPPED,
    "SOFT_DELETED": Phase.STOPPED,
    "SUSPENDED": Phase.SUSPENDED,
    "UNKNOWN": Phase.UNKNOWN,
    "VERIFY_RESIZE": Phase.RUNNING,
}
"""Any other status is UNKNOWN. Only SHUTOFF is STOPPED as in the reference
(InstanceShutdown), and SOFT_DELETED: such a server is off, and may be restored.

Source: Nova api/openstack/common.py (_STATE_MAP); kubernetes/cloud-provider-openstack
pkg/openstack/instancesv2.go.
"""


def phase(status: str) -> Phase:
    """Return where a server of this native status stands."""
    return PHASES.get(status, Phase.UNKNOWN)


def needs_flavors(server: native.Server) -> bool:
    """Report whether the instance type takes the list of flavors."""
    name = server.flavor.original_name
    return not name or not label_values.is_label_value(name)


def instance_type(flavor: native.Flavor, flavors: Mapping[str, str]) -> str | None:
    """Return the flavor's name where it can be a label's value, else its id.

    An ID that can't be one either is converted, as zones are: administrators choose it.
    flavors: names by id. None when the cloud no longer has the flavor.
    """
    if flavor.original_name:
        if label_values.is_label_value(flavor.original_name):
            return flavor.original_name
        ids = [key for key, name in flavors.items() if name == flavor.original_name]
        return label_values.label_value(ids[0]) if ids else None
    name = flavors.get(flavor.id)
    is_shown = name is None or label_values.is_label_value(name)
    return name if is_shown else label_values.label_value(flavor.id)


def instance(
    server: native.Server,
    flavors: Mapping[str, str],
    wiring: addresses.Wiring | None,
    config: Config,
) -> Instance:
    """Return the model's instance; wiring: None when Neutron could not be read."""
    region = config.credentials.region
    type_ = instance_type(server.flavor, flavors)
    server_addresses: tuple[Address, ...] = ()
    address_problem = ""
    if wiring is not None:
        server_addresses = addresses.of_server(server, wiring, config.networking)
        address_problem = addresses.problem(
            server, wiring, config.networking, server_addresses
        )
    return Instance(
        id=InstanceId(server.id),
        name=server.name or "",
        phase=phase(server.status),
        provider_id=provider_id.openstack(server.id, region if config.regional else ""),
        addresses=server_addresses,
        addresses_known=wiring is not None,
        address_problem=address_problem,
        instance_type=type_,
        type_problem="its flavor is gone or can't be read" if type_ is None else "",
        zone=label_values.label_value(server.zone or ""),
        region=label_values.label_value(region),
    )
