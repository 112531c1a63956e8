"""Which objects of a cloud are the ones that a plan would create."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lib.cloud.layouts import ProjectObject
from lib.layouts.openstack import blocks, recover

UUID = "5f1e7d2c-3b44-4c9a-9d11-8f6a2b7c0e55"
OTHER = UUID.replace("5", "6")
Resource = tuple[str, Mapping[str, Any]]
ANY = {"status": "available"}


def plan(*resources: Resource, **known: str) -> Mapping[str, Any]:
    """Return a plan that creates resources; known: IDs of those in the state."""
    changes = []
    for address, values in resources:
        module, kind, _ = ("." + address).rsplit(".", 2)
        id_ = known.get(kind)
        changes.append(
            {
                "address": address,
                "module_address": module.strip("."),
                "mode": "managed",
                "type": kind,
                "change": {
                    "actions": ["no-op"] if id_ else ["create"],
                    "after": {**values, **({"id": id_} if id_ else {})},
                },
            }
        )
    return {
        "format_version": "1.2",
        "variables": {"clusterUUID": {"value": UUID}},
        "resource_changes": changes,
    }


def item(kind: str, id_: str, name: str = "prod", **fields: str) -> ProjectObject:
    return ProjectObject(kind, id_, name, UUID, None, {"description": "", **fields})


def rule(id_: str, **fields: str) -> ProjectObject:
    common = {"security_group_id": "g", "direction": "ingress", "ethertype": "IPv4"}
    return ProjectObject("rule", id_, "", fields={**common, **fields})


NETWORK = ("module.network.openstack_networking_network_v2.internal", {"name": "prod"})
GROUP = ("module.s[0].openstack_networking_secgroup_v2.kube", {"name": "prod"})
SERVER = ("module.master.openstack_compute_instance_v2.server", {"name": "prod"})
VOLUME = (
    "module.data.openstack_blockstorage_volume_v3.kubernetes_data",
    {"name": "prod"},
)
ATTACHMENT: Resource = ("module.data.openstack_compute_volume_attach_v2.it", {})
KEY = (
    "module.keypair.openstack_compute_keypair_v2.ssh",
    {"name": "prod", "public_key": "ssh-ed25519 AAAA me"},
)
ROUTER = ("module.router.openstack_networking_router_v2.router", {"name": "prod"})
INTERFACE: Resource = (
    "module.router.openstack_networking_router_interface_v2.router",
    {},
)
ADDRESS = (
    "module.floating_ip[0].openstack_networking_floatingip_v2.floating_ip[0]",
    {"description": "prod-master-0"},
)
ASSOCIATION: Resource = (
    "module.floating_ip[0].openstack_networking_floatingip_associate_v2.floating_ip",
    {},
)
PORT = ("module.port.openstack_networking_port_v2.port", {"name": "prod"})


def _rule(**values: Any) -> Resource:
    address = "module.s[0].openstack_networking_secgroup_rule_v2.it"
    return address, {"direction": "ingress", "ethertype": "IPv4", **values}


SSH = _rule(
    protocol="tcp", port_range_min=22, port_range_max=22, remote_ip_prefix="0.0.0.0/0"
)
SSH_RULE = rule(
    "ssh",
    protocol="tcp",
    port_range_min="22",
    port_range_max="22",
    remote_ip_prefix="0.0.0.0/0",
)
ROWS: Mapping[str, tuple[Mapping[str, Any], Sequence[ProjectObject], list[str]]] = {
    "nothing exists": (plan(NETWORK), [], []),
    "a network of the cluster": (plan(NETWORK), [item("network", "n")], ["n"]),
    "a network of another cluster": (
        plan(NETWORK),
        [dataclasses.replace(item("network", "n"), owner=OTHER)],
        [],
    ),
    "a network without a tag": (
        plan(NETWORK),
        [dataclasses.replace(item("network", "n"), owner="")],
        [],
    ),
    "a network of another name": (plan(NETWORK), [item("network", "n", "prod2")], []),
    "a namesake of another kind": (plan(NETWORK), [item("router", "n")], []),
    "a key pair with this key": (
        plan(KEY),
        [item("key pair", "prod", public_key="ssh-ed25519 AAAA you")],
        ["prod"],
    ),
    "a server group of this policy": (
        plan(
            (
                "module.g[0].openstack_compute_servergroup_v2.server_group",
                {"name": "prod", "policies": ["anti-affinity"]},
            )
        ),
        [item("server group", "g", policy="anti-affinity")],
        ["g"],
    ),
    "a server group of another policy": (
        plan(
            (
                "module.g[0].openstack_compute_servergroup_v2.server_group",
                {"name": "prod", "policies": ["anti-affinity"]},
            )
        ),
        [item("server group", "g", policy="affinity")],
        [],
    ),
    "a port of another network": (
        plan((PORT[0], {"name": "prod", "network_id": "n1"})),
        [
            item("port", "p1", network_id="n1", device_owner=""),
            item("port", "p2", network_id="n2", device_owner=""),
        ],
        ["p1"],
    ),
    "a rule of the group that is imported, too": (
        plan(GROUP, SSH),
        [item("security group", "g"), SSH_RULE, rule("icmp", protocol="icmp")],
        ["g", "ssh"],
    ),
    "a rule of a group in the state": (
        plan(GROUP, SSH, openstack_networking_secgroup_v2="g"),
        [item("security group", "g"), SSH_RULE],
        ["ssh"],
    ),
    "a rule of another group": (
        plan(GROUP, SSH, openstack_networking_secgroup_v2="g2"),
        [SSH_RULE],
        [],
    ),
    "the rule within the group": (
        plan(GROUP, _rule(), openstack_networking_secgroup_v2="g"),
        [rule("out", remote_group_id="h"), rule("in", remote_group_id="g")],
        ["in"],
    ),
    "an interface of a router": (
        plan(ROUTER, INTERFACE),
        [
            item("router", "r"),
            item(
                "port",
                "p",
                "",
                device_id="r",
                device_owner="network:router_interface_distributed",
                subnet_ids="s",
            ),
            item("port", "q", "", device_id="r", device_owner="network:router_gateway"),
        ],
        ["r", "p"],
    ),
    "a floating IP of this node, which a port has": (
        plan(ADDRESS, ASSOCIATION),
        [
            item("floating IP", "f", "", description="prod-master-0", port_id="p"),
            item("floating IP", "h", "", description="prod-master-1", port_id="q"),
        ],
        ["f", "f"],
    ),
    "a floating IP that no port has yet": (
        plan(ADDRESS, ASSOCIATION),
        [item("floating IP", "f", "", description="prod-master-0", port_id="")],
        ["f"],
    ),
    "an existing floating IP that another port has": (
        plan((ASSOCIATION[0], {"floating_ip": "192.0.2.9", "port_id": "p"})),
        [item("floating IP", "f", "", address="192.0.2.9", port_id="q")],
        [],
    ),
    "a volume that is attached to the node": (
        plan(SERVER, VOLUME, ATTACHMENT, openstack_compute_instance_v2="s"),
        [item("volume", "v", server_ids="s", **ANY)],
        ["v", "s/v"],
    ),
    "a volume that is attached to a server that is imported": (
        plan(SERVER, VOLUME, ATTACHMENT),
        [
            item("server", "s", status="ACTIVE"),
            item("volume", "v", server_ids="s", **ANY),
        ],
        ["s", "v"],
    ),
    "a volume that is not attached yet": (
        plan(SERVER, VOLUME, ATTACHMENT),
        [
            item("server", "s", status="BUILD"),
            item("volume", "v", server_ids="", **ANY),
        ],
        ["s", "v"],
    ),
    "a volume of a server that another state has": (
        plan(SERVER, VOLUME, ATTACHMENT, openstack_compute_instance_v2="s"),
        [item("volume", "v", server_ids="t", **ANY)],
        ["v"],
    ),
    "an object that the state has at another address": (
        plan(
            NETWORK,
            ("module.a.openstack_networking_subnet_v2.it", {"name": "x"}),
            openstack_networking_subnet_v2="n",
        ),
        [item("network", "n")],
        [],
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_exists_is_imported(
    row: tuple[Mapping[str, Any], Sequence[ProjectObject], list[str]],
) -> None:
    document, objects, ids = row

    recovery = recover.of_plan(document, objects)

    assert [each.id for each in recovery.imports] == ids
    assert recovery.problems == ()


PROBLEMS: Mapping[str, tuple[Mapping[str, Any], Sequence[ProjectObject], str]] = {
    "two of one name": (
        plan(NETWORK),
        [item("network", "n2"), item("network", "n1")],
        "networks n1, n2 are all this cluster's: delete all but one",
    ),
    "a key pair with another key": (
        plan(KEY),
        [item("key pair", "prod", public_key="ssh-rsa BBBB")],
        "key pair prod exists with another key: delete it, or choose another prefix",
    ),
    "a server that failed to start": (
        plan(SERVER),
        [item("server", "s", status="ERROR")],
        "server s is in status error: delete it; the next apply creates it",
    ),
    "a volume that could not be created": (
        plan(VOLUME),
        [item("volume", "v", status="error")],
        "volume v is in status error: delete it",
    ),
}


@pytest.mark.parametrize("row", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_what_blocks_cannot_solve_is_a_problem(
    row: tuple[Mapping[str, Any], Sequence[ProjectObject], str],
) -> None:
    document, objects, text = row

    recovery = recover.of_plan(document, objects)

    assert recovery.imports == ()
    (problem,) = recovery.problems
    assert text in problem
    assert problem.startswith(document["resource_changes"][0]["address"])


def test_a_plan_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="it is of no layout"):
        recover.of_plan({"format_version": "1.2", "resource_changes": []}, [])


def test_what_a_plan_deletes_or_reads_is_not_imported() -> None:
    document = plan(NETWORK)
    (change,) = document["resource_changes"]
    change["change"]["actions"] = ["delete", "create"]

    assert recover.of_plan(document, [item("network", "n")]) == blocks.Recovery()


def test_blocks_are_written_as_files_of_a_root() -> None:
    recovery = blocks.Recovery(
        (blocks.ImportBlock('module.a["b"].t.n', "id", "Found."),),
        (blocks.MovedBlock("a.b[1]", 'c.d["e"]'),),
        ("module.m.t.n",),
    )

    assert blocks.text(recovery) == (
        "# Before the next plan; the objects stay:\n#   tofu state rm module.m.t.n\n\n"
        'moved {\n  from = a.b[1]\n  to   = c.d["e"]\n}\n\n'
        '# Found.\nimport {\n  to = module.a["b"].t.n\n  id = "id"\n}\n'
    )
