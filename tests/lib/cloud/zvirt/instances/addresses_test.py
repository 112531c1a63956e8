"""Addresses of a Node from what the guest agent of its VM reports."""

import ipaddress
from collections.abc import Mapping, Sequence

import pytest
from ovirtsdk4 import types

from lib.cloud.model import AddressType
from lib.cloud.zvirt import documents
from lib.cloud.zvirt.instances import addresses
from lib.cloud.zvirt.instances.addresses import AddressRules

MACS = {"nic1": "56:6f:00:00:00:01", "nic2": "56:6F:00:00:00:02"}
Device = tuple[str, str, Sequence[str]]
BRIDGE: Device = ("cni0", "5e:00:00:00:00:99", ["10.244.1.1"])
FIRST: Device = ("eth0", MACS["nic1"], ["10.0.0.5", "fe80::1%eth0", "2001:db8::5"])
SECOND: Device = ("eth1", MACS["nic2"].lower(), ["192.168.7.5", "192.168.7.5"])
LOCAL: Sequence[Device] = (
    ("lo", "00:00:00:00:00:00", ["127.0.0.1", "::1"]),
    ("dummy0", MACS["nic1"], ["10.9.9.9"]),
    (
        "eth0",
        MACS["nic1"],
        ["169.254.7.7", "224.0.0.1", "255.255.255.255", "", "nonsense"],
    ),
)
OF_EVERYTHING = [SECOND, BRIDGE, FIRST, *LOCAL]
Network = ipaddress.ip_network
CASES: Mapping[str, tuple[Sequence[Device], AddressRules, Sequence[str]]] = {
    "nothing is reported": ([], AddressRules(), []),
    "local addresses and devices": (LOCAL, AddressRules(), []),
    "devices of NICs, in the order of NICs": (
        OF_EVERYTHING,
        AddressRules(),
        ["10.0.0.5", "192.168.7.5"],
    ),
    "all devices, as the reference": (
        OF_EVERYTHING,
        AddressRules(all_devices=True),
        ["192.168.7.5", "10.244.1.1", "10.0.0.5"],
    ),
    "all devices have IPv4 only": (
        [FIRST],
        AddressRules(all_devices=True, ipv6=True),
        ["10.0.0.5"],
    ),
    "a NIC by its name": (
        OF_EVERYTHING,
        AddressRules(nics=("nic2",)),
        ["192.168.7.5"],
    ),
    "a pattern that no NIC has": (OF_EVERYTHING, AddressRules(nics=("eth*",)), []),
    "a network": (
        OF_EVERYTHING,
        AddressRules(networks=(Network("10.0.0.0/8"),)),
        ["10.0.0.5"],
    ),
    "IPv6": (
        OF_EVERYTHING,
        AddressRules(ipv6=True),
        ["10.0.0.5", "2001:db8::5", "192.168.7.5"],
    ),
    "IPv6 of a network": (
        OF_EVERYTHING,
        AddressRules(networks=(Network("2001:db8::/32"),), ipv6=True),
        ["2001:db8::5"],
    ),
    "a bridge alone": ([BRIDGE], AddressRules(), []),
}


def vm(devices: Sequence[Device]) -> documents.Entity:
    return types.Vm(
        name="web-1",
        nics=[
            types.Nic(name=name, mac=types.Mac(address=MACS[name]))
            for name in ("nic2", "nic1")
        ],
        reported_devices=[
            types.ReportedDevice(
                name=name,
                mac=types.Mac(address=mac),
                ips=[types.Ip(address=text) for text in texts],
            )
            for name, mac, texts in devices
        ],
    )


@pytest.mark.parametrize("case", CASES)
def test_addresses(case: str) -> None:
    devices, rules, expected = CASES[case]
    shown = addresses.of_vm(vm(devices), rules)
    by_type = {
        kind: [address.address for address in shown if address.type is kind]
        for kind in AddressType
    }
    print(f"{case:40} {expected}")
    assert by_type[AddressType.EXTERNAL_IP] == expected
    assert by_type[AddressType.INTERNAL_IP] == expected
    assert by_type[AddressType.HOSTNAME] == (["web-1"] if expected else [])


def test_an_agent_that_reports_no_mac_and_no_name() -> None:
    device = types.ReportedDevice(ips=[types.Ip(address="10.0.0.5")])
    bare = types.Vm(
        name="web-1", nics=[types.Nic(name="nic1")], reported_devices=[device]
    )
    assert addresses.of_vm(bare, AddressRules()) == ()
    assert addresses.of_vm(types.Vm(name="web-1"), AddressRules()) == ()
