"""NICs of VMs and vNIC profiles. Source: 1.5 of the facts."""

from ovirtsdk4 import types

from lib.lab.zvirt import calls, replies, vms
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine, name_of
from lib.lab.zvirt.records import EngineRecord, Entity

_MAC_PREFIX = "56:6f:1a"


def create(engine: Engine, call: ApiCall, vm_key: str) -> ApiAnswer:
    """Add a NIC to a VM."""
    vm = engine.find("vm", vm_key)
    nic = calls.read(engine, call, "nic", "add")
    vms.check_unlocked(engine, vm, "add")
    if any(row.entity.name == nic.name for row in engine.within("nic", vm_key)):
        engine.refuse("nic-name-taken")
    nic.id = None
    nic.mac = _mac(engine, nic.mac)
    if nic.vnic_profile is not None:
        profile = engine.referred("vnic_profile", nic.vnic_profile)
        nic.vnic_profile = types.VnicProfile(id=profile.key)
        nic.network = profile.entity.network
    nic.interface = nic.interface or types.NicInterface.VIRTIO
    nic.linked = nic.linked is not False
    nic.plugged = nic.plugged is not False
    nic.vm = types.Vm(id=vm_key)
    engine.rule("nic-created")
    return replies.created(engine, call, engine.add("nic", nic, parent=vm_key))


def _mac(engine: Engine, mac: Entity | None) -> Entity:
    used = {row.entity.mac.address.lower() for row in engine.records.all("nic")}
    if mac is None or mac.address is None:
        for number in range(1 << 24):
            address = _MAC_PREFIX + "".join(
                f":{number >> shift & 255:02x}" for shift in (16, 8, 0)
            )
            if address not in used:
                return types.Mac(address=address)
    elif mac.address.lower() in used:
        engine.refuse("nic-mac-taken", mac=mac.address)
    return mac


def update(engine: Engine, call: ApiCall, vm_key: str, key: str) -> ApiAnswer:
    """Change a NIC."""
    engine.find("vm", vm_key)
    record = engine.find("nic", key, vm_key)
    change = calls.read(engine, call, "nic", "update")
    members = {
        name: getattr(change, name)
        for name in ("name", "interface", "linked", "plugged", "comment")
        if getattr(change, name) is not None
    }
    if change.vnic_profile is not None:
        profile = engine.referred("vnic_profile", change.vnic_profile)
        members["vnic_profile"] = types.VnicProfile(id=profile.key)
    if change.mac is not None and change.mac.address != record.entity.mac.address:
        members["mac"] = _mac(engine, change.mac)
    engine.rule("nic-changed")
    return replies.shown(engine, call, engine.change(record, **members))


def remove(engine: Engine, call: ApiCall, vm_key: str, key: str) -> ApiAnswer:
    """Remove a NIC."""
    del call
    vm = engine.find("vm", vm_key)
    record = engine.find("nic", key, vm_key)
    if record.entity.plugged and vm.entity.status in vms.RUNNING:
        engine.refuse("nic-plugged")
    engine.rule("nic-removed")
    engine.records.remove(record)
    return ApiAnswer()


def create_profile(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create a vNIC profile of a network."""
    profile = calls.read(engine, call, "vnic_profile", "add")
    network = engine.referred("network", profile.network)
    for row in engine.records.all("vnic_profile"):
        if (row.entity.name, row.entity.network.id) == (profile.name, network.key):
            engine.refuse("profile-name-taken")
    profile.id = None
    profile.network = types.Network(id=network.key)
    profile.port_mirroring = profile.port_mirroring or False
    if profile.pass_through is None:
        mode = types.VnicPassThroughMode.DISABLED
        profile.pass_through = types.VnicPassThrough(mode=mode)
    engine.rule("profile-created")
    return replies.created(engine, call, engine.add("vnic_profile", profile))


def update_profile(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Change a vNIC profile."""
    record = engine.find("vnic_profile", key)
    change = calls.read(engine, call, "vnic_profile", "update")
    members = {
        name: getattr(change, name)
        for name in ("name", "description", "pass_through", "port_mirroring")
        if getattr(change, name) is not None
    }
    return replies.shown(engine, call, engine.change(record, **members))


def remove_profile(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Remove a vNIC profile that no VM uses."""
    del call
    record = engine.find("vnic_profile", key)
    for row in engine.records.all("nic"):
        profile = row.entity.vnic_profile
        if profile is not None and profile.id == key:
            engine.refuse("profile-in-use", name=_name_of_vm(engine, row))
    engine.rule("profile-removed")
    engine.records.remove(record)
    return ApiAnswer()


def _name_of_vm(engine: Engine, nic: EngineRecord) -> str:
    vm = engine.records.get("vm", nic.entity.vm.id)
    return "" if vm is None else name_of(vm)
