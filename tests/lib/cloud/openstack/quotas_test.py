"""What the services say of their quotas, taken from their API references."""

import json

import msgspec
import pytest

from lib.cloud.checkup import Quota
from lib.cloud.openstack import quotas


def test_nova() -> None:
    absolute = {
        "maxTotalInstances": 10,
        "totalInstancesUsed": 3,
        "maxTotalCores": -1,
        "totalCoresUsed": 6,
        "maxTotalRAMSize": 51200,
        "totalRAMUsed": 1536,
        "maxServerMeta": 128,
    }
    body = json.dumps({"limits": {"rate": [], "absolute": absolute}}).encode()
    assert quotas.of_nova(body) == (
        Quota("servers", 3, 10),
        Quota("cores", 6, None),
        Quota("RAM (MiB)", 1536, 51200),
    )


def test_cinder() -> None:
    absolute = {
        "maxTotalVolumes": 10,
        "totalVolumesUsed": 1,
        "maxTotalVolumeGigabytes": 1000,
        "totalGigabytesUsed": 8,
    }
    body = json.dumps({"limits": {"absolute": absolute}}).encode()
    assert quotas.of_cinder(body) == (
        Quota("volumes", 1, 10),
        Quota("volumes (GiB)", 8, 1000),
    )


def test_neutron_counts_what_is_reserved_as_used() -> None:
    port = {"limit": 50, "used": 3, "reserved": 1}
    rule = {"limit": -1, "used": 4}
    quota = {"port": port, "security_group_rule": rule, "trunk": port}
    assert quotas.of_neutron(json.dumps({"quota": quota}).encode()) == (
        Quota("ports", 4, 50),
        Quota("security group rules", 4, None),
    )


@pytest.mark.parametrize("key", ["load_balancer", "loadbalancer"])
@pytest.mark.parametrize(("message", "limit"), [(5, 5), (-1, None), (None, None)])
def test_octavia_is_counted_by_its_list(
    key: str, message: int | None, limit: int | None
) -> None:
    quota = json.dumps(
        {"quota": {key: message, "pool": -1, "project_id": "p"}}
    ).encode()
    listed = b'{"loadbalancers": [{"id": "a"}, {"id": "b"}]}'
    assert quotas.of_octavia(quota, listed) == (Quota("load balancers", 2, limit),)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"limits": []}'])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    for read in (quotas.of_nova, quotas.of_cinder, quotas.of_neutron):
        with pytest.raises(msgspec.DecodeError):
            read(body)
