"""What is read of objects of layouts, and what tells who owns them."""

import json
import types
import urllib.parse
from collections.abc import Mapping
from typing import Any, cast

import keystoneauth1.discover
import keystoneauth1.session
import pytest

from lib.cloud import errors
from lib.cloud.layouts import ProjectObject
from lib.cloud.openstack.http import client
from lib.cloud.openstack.layouts import cloud
from lib.cloud.openstack.layouts.layout_offers import ImageOffer

UUID = "5f1e7d2c-3b44-4c9a-9d11-8f6a2b7c0e55"
OTHER = UUID.replace("5", "6")
TAG = f"cluster-uuid={UUID}"
MINE = {"cluster-uuid": UUID}


class Session:
    """Stands in for keystoneauth's session: one answer for each path."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.auth = None
        self.timeout = 30.0
        self._answers = answers

    def get_endpoint_data(
        self, *, service_type: str, **rest: object
    ) -> keystoneauth1.discover.EndpointData:
        del rest
        return keystoneauth1.discover.EndpointData(
            service_url=f"http://cloud/{service_type}", api_version=(3, 0)
        )

    def request(self, url: str, method: str, **rest: object) -> object:
        del rest
        assert method == "GET"
        path = urllib.parse.urlsplit(url).path.strip("/")
        status, body = 200, self._answers.get(path)
        if body is None:
            status, body = 503, {}
        return types.SimpleNamespace(
            status_code=status, content=json.dumps(body).encode(), headers={}
        )


def opened(**changes: Any) -> cloud.OpenStackLayouts:
    answers = {**ANSWERS, **changes}
    session = cast(keystoneauth1.session.Session, Session(answers))
    effects = client.Effects(sleep=lambda seconds: None)
    where = client.Where("RegionOne", "public")
    api = client.Client(session, where, lambda *message: None, effects)
    return cloud.OpenStackLayouts(api)


ANSWERS: Mapping[str, Any] = {
    "network/networks": {
        "networks": [
            {"id": "n1", "name": "prod", "tags": [TAG], "router:external": False},
            {"id": "n2", "name": "public", "tags": [], "router:external": True},
            {"id": "n3", "name": "prod", "tags": [f"cluster-uuid={OTHER}"]},
        ]
    },
    "network/subnets": {
        "subnets": [
            {
                "id": "s1",
                "name": "prod",
                "description": f"Kubernetes cluster prod, {TAG}",
                "network_id": "n1",
                "cidr": "10.0.0.0/24",
            },
            {"id": "s2", "name": "prod", "description": f"x{TAG}", "network_id": "n3"},
        ]
    },
    "network/routers": {"routers": [{"id": "r1", "name": "prod", "tags": ["a", TAG]}]},
    "network/ports": {
        "ports": [
            {
                "id": "p1",
                "name": "prod-master-0",
                "tags": [TAG],
                "network_id": "n1",
                "device_id": "v1",
                "device_owner": "compute:az1",
                "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.7"}],
            },
            {"id": "p2", "name": "", "network_id": "n1", "device_id": "r1"},
        ]
    },
    "network/security-groups": {"security_groups": []},
    "network/security-group-rules": {
        "security_group_rules": [
            {
                "id": "u1",
                "security_group_id": "g1",
                "direction": "ingress",
                "ethertype": "IPv4",
                "protocol": "tcp",
                "port_range_min": 22,
                "port_range_max": 22,
                "remote_ip_prefix": None,
                "remote_group_id": "g1",
            }
        ]
    },
    "network/floatingips": {
        "floatingips": [
            {
                "id": "f1",
                "tags": [TAG],
                "floating_ip_address": "192.0.2.7",
                "port_id": None,
                "created_at": "2026-01-01T00:00:00Z",
            }
        ]
    },
    "compute/servers/detail": {
        "servers": [
            {"id": "v1", "name": "prod-master-0", "status": "ACTIVE", "metadata": MINE},
            {"id": "v2", "name": "web", "status": "ACTIVE", "metadata": {}},
        ]
    },
    "block-storage/volumes/detail": {
        "volumes": [
            {
                "id": "d1",
                "name": "prod-kubernetes-data-0",
                "status": "in-use",
                "metadata": MINE,
                "attachments": [{"server_id": "v1"}],
                "created_at": "2026-01-01T00:00:00.000000",
            },
            {"id": "d2", "name": "pvc-1", "metadata": {"cluster-uuid": None}},
        ]
    },
    "compute/os-keypairs": {
        "keypairs": [{"keypair": {"name": "prod", "public_key": "ssh-ed25519 AAAA"}}]
    },
    "compute/os-server-groups": {
        "server_groups": [{"id": "h1", "name": "prod", "policies": ["anti-affinity"]}]
    },
    "compute/os-availability-zone": {
        "availabilityZoneInfo": [{"zoneName": "az1", "zoneState": {"available": True}}]
    },
    "compute/flavors/detail": {
        "flavors": [{"id": "1", "name": "m1", "ram": 1, "vcpus": 1, "disk": 3}]
    },
    "image/images": {
        "images": [
            {"id": "i1", "name": "a", "min_disk": 4, "size": 10},
            {"id": "i2", "name": "b", "size": 10, "virtual_size": 2**31 + 1},
            {"id": "i3", "name": None, "size": None},
        ]
    },
    "block-storage/types": {"volume_types": [{"id": "1", "name": "fast"}]},
}


def test_the_objects_of_a_cluster_by_kind_in_the_order_of_deletion() -> None:
    owned = opened().owned(UUID)

    assert [(each.kind, each.id) for each in owned] == [
        ("server", "v1"),
        ("volume", "d1"),
        ("floating IP", "f1"),
        ("port", "p1"),
        ("router", "r1"),
        ("subnet", "s1"),
        ("network", "n1"),
    ]
    created = {each.id: each.created for each in owned if each.created}
    assert {str(at) for at in created.values()} == {"2026-01-01 00:00:00+00:00"}
    assert created.keys() == {"d1", "f1"}


def test_a_description_counts_as_a_tag_where_it_is_whole() -> None:
    subnets = opened().of_project(("subnet",))

    assert {each.id: each.owner for each in subnets} == {"s1": UUID, "s2": ""}


def by_id(*kinds: str) -> Mapping[str, ProjectObject]:
    return {each.id: each for each in opened().of_project(kinds)}


def test_what_tells_objects_apart_is_in_their_fields() -> None:
    items = by_id()

    assert items["p1"].fields == {
        "description": "",
        "network_id": "n1",
        "device_id": "v1",
        "device_owner": "compute:az1",
        "subnet_ids": "s1",
    }
    assert items["u1"].fields == {
        "security_group_id": "g1",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "port_range_min": "22",
        "port_range_max": "22",
        "remote_group_id": "g1",
    }
    assert items["d1"].fields == {"status": "in-use", "server_ids": "v1"}
    assert items["f1"].fields["address"] == "192.0.2.7"
    assert items["prod"].fields == {"public_key": "ssh-ed25519 AAAA"}
    assert items["h1"].fields == {"policy": "anti-affinity"}


def test_an_image_needs_a_disk_for_its_content() -> None:
    offers = opened().offers()

    assert offers.images == (
        ImageOffer("i1", "a", 4),
        ImageOffer("i2", "b", 3),
        ImageOffer("i3", "", 0),
    )
    assert (offers.zones, offers.flavors) == (("az1",), {"m1": 3})
    assert offers.volume_types == {"fast"}
    assert {each.kind for each in offers.objects} == {
        "network",
        "subnet",
        "server group",
        "key pair",
    }


def test_a_list_that_fails_is_no_empty_list() -> None:
    with pytest.raises(errors.Unavailable, match="503"):
        opened(**{"network/ports": None}).owned(UUID)
