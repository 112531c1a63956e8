"""Which addresses a Node gets of what the guest agent reports: pure.

Source: deckhouse cloud-controller-manager of zVirt: all reported addresses but local
ones, each as an external and as an internal one, then the name of the VM.
"""

import dataclasses
import fnmatch
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence

from lib.cloud.model import Address, AddressType
from lib.cloud.zvirt.documents import Entity

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_LOCAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/32",
        "127.0.0.0/8",
        "169.254.0.0/15",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "::1/128",
        "fe80::/10",
        "ff00::/8",
    )
)
"""The reference's ranges."""
_LOCAL_DEVICES = re.compile(r"lo|dummy[0-9]+")


@dataclasses.dataclass(frozen=True, slots=True)
class AddressRules:
    """What a user may set.

    all_devices: as the reference: every device that the agent reports, with IPv4;
    otherwise those with the MAC address of a NIC of the VM, which bridges and tunnels
    of a Pod network are not. nics: patterns of names of NICs. networks: that an
    address must be in; empty: any. ipv6: whether IPv6 addresses count, too.
    """

    all_devices: bool = False
    nics: tuple[str, ...] = ("*",)
    networks: tuple[Network, ...] = ()
    ipv6: bool = False


def of_vm(vm: Entity, rules: AddressRules) -> tuple[Address, ...]:
    """Return the addresses of a VM's Node; none before its agent has reported one."""
    texts = tuple(dict.fromkeys(str(ip) for ip in _ips(vm, rules)))
    if not texts:
        return ()
    return (
        *(Address(AddressType.EXTERNAL_IP, text) for text in texts),
        *(Address(AddressType.INTERNAL_IP, text) for text in texts),
        *((Address(AddressType.HOSTNAME, vm.name),) if vm.name else ()),
    )


def _ips(vm: Entity, rules: AddressRules) -> Iterator[_IpAddress]:
    for device in _devices(vm, rules):
        for reported in device.ips or ():
            ip = _parsed(reported.address)
            if ip is not None and _counts(ip, rules):
                yield ip


def _devices(vm: Entity, rules: AddressRules) -> Sequence[Entity]:
    """Return the devices that count: in the order of NICs, or as they are reported."""
    devices = [
        device
        for device in vm.reported_devices or ()
        if not _LOCAL_DEVICES.fullmatch(device.name or "")
    ]
    if rules.all_devices:
        return devices
    positions = _positions(vm, rules)
    own = [device for device in devices if _mac(device) in positions]
    return sorted(own, key=lambda device: (positions[_mac(device)], device.name or ""))


def _positions(vm: Entity, rules: AddressRules) -> Mapping[str, int]:
    """Return the NICs whose addresses count: their order by MAC address."""
    chosen = [
        nic
        for nic in vm.nics or ()
        if any(fnmatch.fnmatchcase(nic.name or "", pattern) for pattern in rules.nics)
    ]
    ordered = sorted(chosen, key=lambda nic: nic.name or "")
    macs = [_mac(nic) for nic in ordered]
    return {mac: position for position, mac in enumerate(macs) if mac}


def _mac(entity: Entity) -> str:
    mac = entity.mac
    return "" if mac is None else (mac.address or "").lower()


def _parsed(text: str | None) -> _IpAddress | None:
    try:
        return ipaddress.ip_address((text or "").partition("%")[0].strip())
    except ValueError:
        return None


def _counts(ip: _IpAddress, rules: AddressRules) -> bool:
    if ip.version == 6 and (rules.all_devices or not rules.ipv6):
        return False
    if any(ip in network for network in _LOCAL if network.version == ip.version):
        return False
    return not rules.networks or any(
        ip in network for network in rules.networks if network.version == ip.version
    )
