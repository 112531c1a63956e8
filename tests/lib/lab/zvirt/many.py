"""An engine with many VMs, each with one disk, one NIC and a guest agent."""

from ovirtsdk4 import types

from lib.lab.zvirt import disks, seed
from lib.lab.zvirt.engine_core import Engine


def fill(engine: Engine, count: int) -> None:
    """Create VMs that are up, as records and not by requests."""
    domain = engine.records.get("storage_domain", seed.identifier(seed.NFS))
    assert domain is not None
    for number in range(count):
        name = f"node-{number:05}"
        vm = types.Vm(
            name=name,
            cluster=types.Cluster(id=seed.identifier("cluster")),
            template=types.Template(id=seed.identifier("template 1")),
            status=types.VmStatus.UP,
            memory=1 << 30,
            type=types.VmType.SERVER,
            os=types.OperatingSystem(type="debian_9"),
            cpu=types.Cpu(topology=types.CpuTopology(cores=1, sockets=1, threads=1)),
        )
        record = engine.add("vm", vm, agent=True)
        disk = types.Disk(
            alias=f"{name}_Disk1",
            provisioned_size=1 << 30,
            format=types.DiskFormat.RAW,
            sparse=True,
        )
        stored = disks.allocate(engine, disk, domain, "add")
        engine.change(stored, status=types.DiskStatus.OK)
        attachment = types.DiskAttachment(
            bootable=True,
            active=True,
            interface=types.DiskInterface.VIRTIO_SCSI,
            disk=types.Disk(id=stored.key),
        )
        disks.attach(engine, record, attachment)
        nic = types.Nic(
            name="nic1",
            mac=types.Mac(address=f"56:6f:1a:00:{number >> 8:02x}:{number & 255:02x}"),
            vm=types.Vm(id=record.key),
            plugged=True,
        )
        engine.add("nic", nic, parent=record.key)
    engine.records.commit()
