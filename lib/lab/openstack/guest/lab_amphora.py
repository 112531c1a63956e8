"""Replacement of the instance that octavia starts per load balancer, and of its ports.

No test reads the state of an amphora. Octavia's API, its worker, and neutron's objects
of each VIP (port, addresses, security group) are real.
An instance with its ports would make each load balancer ten times as slow.
"""

import functools
import uuid
from typing import ClassVar

from octavia.common import constants, data_models
from octavia.compute import compute_base
from octavia.controller.worker.v2.tasks import (
    amphora_driver_tasks,
    cert_task,
    network_tasks,
)
from octavia.network import data_models as network_models
from octavia.network.drivers.neutron import allowed_address_pairs

ADDRESS = "192.0.2.1"
"""Where each would be managed: for documentation only."""


class NoInstances(compute_base.ComputeBase):
    """Compute driver: an instance is only a name, and is ACTIVE immediately."""

    def build(self, *args, **kwargs):
        """Return the ID of an instance."""
        return str(uuid.uuid4())

    def delete(self, compute_id):
        """Nothing to delete."""

    def status(self, compute_id):
        """Each is up."""
        return constants.UP

    def get_amphora(self, compute_id, management_network_id=None):
        """Return the amphora of an instance."""
        amphora = data_models.Amphora(
            compute_id=compute_id,
            status=constants.ACTIVE,
            lb_network_ip=ADDRESS,
        )
        return amphora, None

    def create_server_group(self, name, policy):
        """There are no groups."""
        raise NotImplementedError

    def delete_server_group(self, server_group_id):
        """There are no groups."""

    def attach_network_or_port(self, *args, **kwargs):
        """No port of an instance is there."""
        raise NotImplementedError

    def detach_port(self, compute_id, port_id):
        """No port of an instance is there."""

    def validate_flavor(self, flavor_id):
        """Any will do."""

    def validate_availability_zone(self, availability_zone):
        """Any will do."""


class VipsOnly(allowed_address_pairs.AllowedAddressPairsDriver):
    """Keeps neutron's part of VIPs; the interface of each amphora is its VIP's port."""

    _known: ClassVar[dict] = {}
    _subnets: ClassVar[dict] = {}

    def _check_extension_enabled(self, extension_alias):
        """Ask once: each task of a flow has a driver of its own, which would ask."""
        if extension_alias not in self._known:
            answer = super()._check_extension_enabled(extension_alias)
            self._known[extension_alias] = answer
        return self._known[extension_alias]

    def get_subnet(self, subnet_id, context=None):
        """Ask once for the worker, which does for each member; users' calls go on."""
        if context is not None:
            return super().get_subnet(subnet_id, context=context)
        if subnet_id not in self._subnets:
            self._subnets[subnet_id] = super().get_subnet(subnet_id)
        return self._subnets[subnet_id]

    def plug_aap_port(self, load_balancer, vip, amphora, subnet):
        """Have no port but the VIP's."""
        return data_models.Amphora(
            id=amphora.id,
            compute_id=amphora.compute_id,
            vrrp_ip=vip.ip_address,
            ha_ip=vip.ip_address,
            ha_port_id=vip.port_id,
        )

    def unplug_aap_port(self, vip, amphora, subnet):
        """Nothing is plugged."""

    def unplug_vip(self, load_balancer, vip):
        """Nothing is plugged."""

    def update_aap_port_sg(self, load_balancer, amphora, vip):
        """The VIP's port has its groups already."""

    def unplug_network(self, compute_id, network_id):
        """Nothing is plugged."""

    def plug_port(self, amphora, port):
        """Nothing is plugged."""
        return network_models.Interface(
            compute_id=amphora.compute_id,
            network_id=port.network_id,
            port_id=port.id,
            fixed_ips=port.fixed_ips,
        )

    def plug_fixed_ip(self, port_id, subnet_id, ip_address=None):
        """Nothing is plugged."""
        return self.get_port(port_id)

    def unplug_fixed_ip(self, port_id, subnet_id):
        """Nothing is plugged."""
        return self.get_port(port_id)


INSTANCE_TASKS = (
    (network_tasks.CalculateDelta, dict),
    (network_tasks.HandleNetworkDeltas, dict),
    (network_tasks.GetAmphoraNetworkConfigs, dict),
    (network_tasks.GetAmphoraeNetworkConfigs, dict),
    (amphora_driver_tasks.AmphoraPostVIPPlug, lambda: None),
    (amphora_driver_tasks.AmphoraePostNetworkPlug, lambda: None),
    (amphora_driver_tasks.AmphoraFinalize, lambda: None),
    (amphora_driver_tasks.ListenersUpdate, lambda: None),
)
"""Tasks about instances and the networks plugged into them, and what each returns.

Each would read the whole tree of its load balancer, and then do nothing.
"""


def skip_instance_tasks():
    """Replace the tasks of instances, a third of the work for a load balancer."""
    for task, result in INSTANCE_TASKS:
        task.execute = _returning(task.execute, result)
    task = cert_task.GenerateServerPEMTask
    certificate = functools.lru_cache(maxsize=1)(task().execute)
    task.execute = _returning(task.execute, lambda: certificate("lab"))


def _returning(execute, result):
    # Taskflow reads the names of the arguments from the original.
    @functools.wraps(execute)
    def returning(self, *args, **kwargs):
        return result()

    return returning
