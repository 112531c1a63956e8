"""Copies of what one Service has in the cloud: thousands of Services in seconds."""

import copy
import json
from collections.abc import Callable, Mapping

from lib.cloud.openstack.fake import session, wire

Swap = Callable[[str], str]
"""Puts another Service's name and UID in the place of the first one's, in any text."""


class Copier:
    """Copies the load balancer, its parts and its floating IP."""

    def __init__(self, cloud: session.FakeOpenStack) -> None:
        """cloud: holds one load balancer, which has a floating IP."""
        self._cloud = cloud
        octavia, neutron = cloud.octavia, cloud.neutron
        (balancer,) = octavia.load_balancers.values()
        (self._ip,) = copy.deepcopy(list(neutron.floating_ips.values()))
        self._port = copy.deepcopy(neutron.ports[str(balancer["vip_port_id"])])
        kinds = (octavia.load_balancers, octavia.listeners, octavia.pools)
        self._objects = [
            (kind, copy.deepcopy(list(kind.values()))) for kind in (*kinds,)
        ]
        self._members = copy.deepcopy(octavia.members)
        own = [*octavia.load_balancers, *octavia.listeners, *octavia.pools]
        self._ids = [*own, *neutron.floating_ips, str(balancer["vip_port_id"])]

    def id_of(self, text: str, number: int) -> str:
        """Put the IDs of a copy in the place of the first Service's."""
        for id_ in self._ids:
            text = text.replace(id_, id_.replace("-4000-8000-0000", _part(number)))
        return text

    def add(
        self,
        number: int,
        swap: Swap,
        address: str,
        member_ports: Mapping[int, int] | None = None,
    ) -> None:
        """Add a copy to the cloud.

        number: from 1. address: of its floating IP. member_ports: ports of its members
        by those of the first Service's; None: the same.
        """
        octavia, neutron = self._cloud.octavia, self._cloud.neutron
        for kind, objects in self._objects:
            copied = [self._of(original, number, swap) for original in objects]
            kind.update({str(copy_["id"]): copy_ for copy_ in copied})
        for pool_id, members in self._members.items():
            octavia.members[self.id_of(pool_id, number)] = {
                id_: _member(member, member_ports or {})
                for id_, member in members.items()
            }
        port = self._of(self._port, number, swap)
        neutron.ports[str(port["id"])] = port
        ip = {**self._of(self._ip, number, swap), "floating_ip_address": address}
        neutron.floating_ips[str(ip["id"])] = ip

    def _of(self, original: wire.Json, number: int, swap: Swap) -> wire.Json:
        copied: wire.Json = json.loads(swap(self.id_of(json.dumps(original), number)))
        return copied


def _part(number: int) -> str:
    return f"-4000-8000-{number:04x}"


def _member(original: wire.Json, ports: Mapping[int, int]) -> wire.Json:
    port = int(str(original["protocol_port"]))
    return {**original, "protocol_port": ports.get(port, port)}
