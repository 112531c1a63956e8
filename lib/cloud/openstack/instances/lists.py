"""The reads of this package: whole lists, and direct reads that confirm an absence."""

import re
import urllib.parse
from collections.abc import Collection, Mapping

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances.addresses import Wiring

SERVERS_PAGE = 1000
"""Source: Nova configuration, [api] max_limit, default."""
PORTS_PAGE = 5000
"""Neutron has no limit by default; where one is set, the pages are smaller."""
FILTERED = 100
"""Ids in one query: the URL stays below 8 KiB, the least that servers accept."""
_PORT_FIELDS = ("id", "device_id", "status", "network_id", "fixed_ips", "trunk_details")
_IN_PATTERNS = re.compile(r"[][\\.+*?()|{}^$]")

COMPUTE = client.Service.COMPUTE
NETWORK = client.Service.NETWORK


def servers(api: client.Client, deadline: float) -> tuple[native.Server, ...]:
    """List all servers of our project, each once."""
    call = client.Get(COMPUTE, "servers/detail", "list servers")
    servers = api.items(call, SERVERS_PAGE, native.ServersPage, deadline)
    return tuple({server.id: server for server in servers}.values())


def flavors(api: client.Client, deadline: float) -> Mapping[str, str]:
    """List the names of flavors by id, private ones too where we may see them."""
    query = (("is_public", "None"),)
    call = client.Get(COMPUTE, "flavors/detail", "list flavors", query)
    flavors = api.items(call, SERVERS_PAGE, native.FlavorsPage, deadline)
    return {flavor.id: flavor.name for flavor in flavors}


def wirings(api: client.Client, deadline: float) -> Mapping[str, Wiring]:
    """List what Neutron knows of each server, by the server's id.

    One list of ports: device_owner can't be filtered by its prefix, and the ports on
    trunks are needed as well. Networks are listed only where a trunk has such ports.
    """
    return _wired(api, _ports(api, (), deadline), deadline)


def wirings_of(
    api: client.Client, server_ids: Collection[str], deadline: float
) -> Mapping[str, Wiring]:
    """List what Neutron knows of these servers only, by the server's id."""
    ports = _ports_with(api, "device_id", server_ids, deadline)
    subs = {sub.port_id for port in ports for sub in _sub_ports(port)}
    ports += _ports_with(api, "id", subs, deadline)
    return _wired(api, ports, deadline)


def _ports_with(
    api: client.Client, field: str, values: Collection[str], deadline: float
) -> tuple[native.Port, ...]:
    """List the ports whose field has one of these values, some values a call.

    Source: Networking API v2, "Filtering": one field given twice means either.
    """
    ordered = sorted(values)
    parts = [
        tuple((field, value) for value in ordered[at : at + FILTERED])
        for at in range(0, len(ordered), FILTERED)
    ]
    return tuple(port for part in parts for port in _ports(api, part, deadline))


def _ports(
    api: client.Client, query: client.Query, deadline: float
) -> tuple[native.Port, ...]:
    fields = tuple(("fields", name) for name in _PORT_FIELDS)
    whole = (*fields, *query, *api.project_filter())
    call = client.Get(NETWORK, "ports", "list ports", whole)
    return api.items(call, PORTS_PAGE, native.PortsPage, deadline)


def _wired(
    api: client.Client, ports: tuple[native.Port, ...], deadline: float
) -> Mapping[str, Wiring]:
    trunks = any(port.device_id and _sub_ports(port) for port in ports)
    names = _networks(api, deadline) if trunks else {}
    by_server: dict[str, list[native.Port]] = {}
    for port in ports:
        if port.device_id:
            by_server.setdefault(port.device_id, []).append(port)
    by_id = {port.id: port for port in ports}
    return {
        server_id: Wiring(tuple(own), _trunked(own, by_id, names))
        for server_id, own in by_server.items()
    }


def has_server(api: client.Client, server_id: str, deadline: float) -> bool:
    """Read a server directly; False only when Nova itself says it is not there.

    Raises:
        CloudError: it is unknown.
    """
    path = "servers/" + urllib.parse.quote(server_id, safe="")
    call = client.Get(COMPUTE, path, "get server", resource=server_id)
    try:
        api.get(call, deadline)
    except errors.NotFound:
        return False
    return True


def has_server_named(api: client.Client, name: str, deadline: float) -> bool:
    """Read servers of exactly this name directly, letter case aside.

    Raises:
        CloudError: it is unknown.
    """
    pattern = "^" + _IN_PATTERNS.sub(r"\\\g<0>", name) + "$"
    query = (("name", pattern),)
    call = client.Get(COMPUTE, "servers", "find servers", query, resource=name)
    return bool(api.items(call, SERVERS_PAGE, native.ServersPage, deadline))


def _networks(api: client.Client, deadline: float) -> Mapping[str, str]:
    query = (("fields", "id"), ("fields", "name"))
    call = client.Get(NETWORK, "networks", "list networks", query)
    networks = api.items(call, PORTS_PAGE, native.NetworksPage, deadline)
    return {network.id: network.name for network in networks}


def _sub_ports(port: native.Port) -> tuple[native.SubPort, ...]:
    return () if port.trunk_details is None else port.trunk_details.sub_ports


def _trunked(
    own: list[native.Port],
    by_id: Mapping[str, native.Port],
    names: Mapping[str, str],
) -> tuple[tuple[str, str], ...]:
    """Resolve ports on trunks; those that are not visible to us are omitted."""
    sub_ports = [by_id.get(sub.port_id) for port in own for sub in _sub_ports(port)]
    return tuple(
        (names[port.network_id], fixed.ip_address)
        for port in sub_ports
        if port is not None and port.network_id in names
        for fixed in port.fixed_ips
    )
