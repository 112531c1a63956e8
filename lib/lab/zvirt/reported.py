"""Devices that the guest agent of a VM reports: lo, one per NIC. Source: 1.4, 1.8."""

import uuid
from collections.abc import Sequence

from ovirtsdk4 import types

from lib.lab.zvirt import xml_documents
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord, Entity

_LOOPBACK_MAC = "00:00:00:00:00:00"


def devices(engine: Engine, vm: EngineRecord) -> Sequence[Entity]:
    """Return the devices of a VM whose guest agent runs."""
    loopback = _device(vm, "lo", _LOOPBACK_MAC, ("127.0.0.1", "::1"))
    others = [
        _device(vm, f"eth{number}", nic.entity.mac.address, _addresses(nic))
        for number, nic in enumerate(engine.within("nic", vm.key))
        if nic.entity.plugged
    ]
    return [loopback, *others]


def _addresses(nic: EngineRecord) -> tuple[str, ...]:
    """Return the addresses of a NIC: by the last bytes of its MAC."""
    *_, third, second, first = nic.entity.mac.address.split(":")
    numbers = ".".join(str(int(part, 16)) for part in (third, second, first))
    return f"10.{numbers}", f"fe80::{third}{second}:{first}"


def addresses(engine: Engine, vm: EngineRecord) -> Sequence[str]:
    """Return the addresses that others reach a VM at; empty without guest agent."""
    if not vm.extra.get("agent"):
        return []
    return [ip.address for device in devices(engine, vm)[1:] for ip in device.ips]


def _device(vm: EngineRecord, name: str, mac: str, texts: tuple[str, ...]) -> Entity:
    ips = [
        types.Ip(
            address=text,
            version=types.IpVersion.V6 if ":" in text else types.IpVersion.V4,
        )
        for text in texts
    ]
    device = types.ReportedDevice(
        id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{mac}{name}")),
        name=name,
        description="guest reported data",
        type=types.ReportedDeviceType.NETWORK,
        mac=types.Mac(address=mac),
        ips=ips,
        vm=types.Vm(id=vm.key),
    )
    return xml_documents.refer(device, vm.key)
