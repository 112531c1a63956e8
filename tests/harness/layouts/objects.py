"""All objects of a project that layouts create, read by the SDK."""

import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import openstack.connection

Objects = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Kind, then ID: every field as the cloud shows it."""
_PASSING = frozenset({"updated_at", "revision_number", "location", "attachments"})


def take(connection: openstack.connection.Connection) -> Objects:
    """Return the objects of the connection's project, by kind and ID."""
    project = {"project_id": connection.current_project_id}
    compute, network = connection.compute, connection.network
    blocks = connection.block_storage
    kinds: Mapping[str, Callable[[], Iterable[Any]]] = {
        "floating IP": lambda: network.ips(**project),
        "key pair": lambda: compute.keypairs(),
        "network": lambda: network.networks(**project),
        "port": lambda: network.ports(**project),
        "router": lambda: network.routers(**project),
        "security group": lambda: network.security_groups(**project),
        "server": lambda: compute.servers(),
        "server group": lambda: compute.server_groups(),
        "subnet": lambda: network.subnets(**project),
        "volume": lambda: blocks.volumes(),
    }
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        lists = {kind: pool.submit(list, read()) for kind, read in kinds.items()}
        return {
            kind: {str(item.id): _still(item.to_dict()) for item in items.result()}
            for kind, items in lists.items()
        }


def added(before: Objects, after: Objects) -> dict[str, list[str]]:
    """Return the names of the objects that came, by kind; without empty kinds."""
    return {
        kind: names
        for kind in sorted(after)
        if (names := sorted(_names(before[kind], after[kind])))
    }


def untagged(before: Objects, after: Objects, uuid: str) -> list[str]:
    """Return the objects that were added without the ownership tag.

    Key pairs and server groups cannot carry one, nor is there one on what Nova and
    Neutron create by themselves: ports without a name.
    """
    return [
        f"{kind} {id_}"
        for kind, items in after.items()
        for id_ in items.keys() - before[kind].keys()
        if kind not in ("key pair", "server group") and items[id_].get("name") != ""
        if uuid not in (items[id_].get("metadata") or {}).values()
        if f"cluster-uuid={uuid}" not in (items[id_].get("tags") or ())
    ]


def _names(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterable[str]:
    for id_ in after.keys() - before.keys():
        yield str(after[id_].get("name") or "")


def _still(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that stay without a write; the order of lists says nothing."""
    return {
        name: sorted(value, key=repr) if isinstance(value, list) else value
        for name, value in fields.items()
        if name not in _PASSING
    }
