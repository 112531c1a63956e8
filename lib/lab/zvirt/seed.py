"""The objects of a new engine: one data center with hosts, storage and templates."""

import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence

from ovirtsdk4 import types

from lib.lab.zvirt import disks, kinds
from lib.lab.zvirt.engine_core import Engine

_GIB = 1 << 30
DATA_CENTER = "Default"
CLUSTER = "Default"
HOSTS = ("host-1", "host-2", "host-3")
NFS = "nfs-1"
ISCSI = "iscsi-1"
TEMPLATE = "debian-12"
NETWORK = "ovirtmgmt"
USER = "admin@internal"
PERMITS = (
    "login",
    "create_vm",
    "delete_vm",
    "edit_vm_properties",
    "vm_basic_operations",
    "configure_vm_network",
    "configure_vm_storage",
    "create_disk",
    "attach_disk",
    "edit_disk_properties",
    "delete_disk",
    "tag_management",
)
"""Source: ovirt-engine-api-model, Permit."""
ROLES: Mapping[str, tuple[str, ...]] = {
    "SuperUser": PERMITS,
    "UserRole": ("login", "vm_basic_operations"),
    "VmCreator": ("create_vm",),
    "DiskCreator": ("create_disk",),
    "DiskOperator": ("login", "create_disk", "edit_disk_properties", "delete_disk"),
}
"""Permits by role. Source: ovirt-engine, predefined roles, of PERMITS alone."""
_NAMESPACE = uuid.UUID("6d6f6f72-696e-4720-8000-7a7669727400")


def identifier(name: str) -> str:
    """Return the ID of an object of a new engine, the same in every lab."""
    return str(uuid.uuid5(_NAMESPACE, name))


def numbered() -> Callable[[], str]:
    """Return a source of IDs that repeats from run to run, for tests."""
    numbers = itertools.count(1)
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012x}"


def fill(engine: Engine) -> None:
    """Create the objects of a new engine."""
    add_place(engine, DATA_CENTER, CLUSTER, HOSTS)
    _storage(engine)
    _networks(engine)
    _templates(engine)
    _people(engine)
    engine.add("tag", types.Tag(id=kinds.BLANK, name="root", description="root"))
    engine.records.commit()


def _data_center(name: str) -> str:
    """Return the ID of a data center."""
    is_first = name == DATA_CENTER
    return identifier("data center" if is_first else f"data center {name}")


def add_place(
    engine: Engine, data_center: str, cluster: str, hosts: Sequence[str] = ()
) -> str:
    """Create a data center with a cluster; return the ID of the cluster."""
    version = types.Version(major=4, minor=7)
    is_first = data_center == DATA_CENTER
    center = engine.add(
        "data_center",
        types.DataCenter(
            id=_data_center(data_center),
            name=data_center,
            status=types.DataCenterStatus.UP,
            storage_format=types.StorageFormat.V5,
            local=False,
            version=version,
        ),
    )
    place = engine.add(
        "cluster",
        types.Cluster(
            id=identifier("cluster" if is_first else f"cluster {cluster}"),
            name=cluster,
            data_center=types.DataCenter(id=center.key),
            version=version,
            cpu=types.Cpu(type="Intel Skylake Server Family", architecture=_x86()),
        ),
    )
    for name in hosts:
        _add_host(engine, name, place.key)
    return place.key


def _add_host(engine: Engine, name: str, cluster: str) -> None:
    topology = types.CpuTopology(cores=16, sockets=2, threads=2)
    host = types.Host(
        id=identifier(name),
        name=name,
        address=f"{name}.example.com",
        status=types.HostStatus.UP,
        cluster=types.Cluster(id=cluster),
        memory=256 * _GIB,
        cpu=types.Cpu(topology=topology, name="Intel Xeon"),
    )
    engine.add("host", host)


def _x86() -> types.Architecture:
    return types.Architecture.X86_64


def _storage(engine: Engine) -> None:
    add_domain(engine, NFS, "data", DATA_CENTER)
    add_domain(engine, ISCSI, "data", DATA_CENTER, types.StorageType.ISCSI)


def add_domain(
    engine: Engine,
    name: str,
    kind: str,
    data_center: str,
    storage: types.StorageType = types.StorageType.NFS,
) -> None:
    """Create a storage domain. kind: such as data, iso or export."""
    domain = types.StorageDomain(
        id=identifier(name),
        name=name,
        type=types.StorageDomainType(kind),
        storage=types.HostStorage(type=storage),
        storage_format=types.StorageFormat.V5,
        master=name == NFS,
        available=10_000 * _GIB,
        used=100 * _GIB,
        committed=0,
        external_status=types.ExternalStatus.OK,
        critical_space_action_blocker=5,
        warning_low_space_indicator=10,
        wipe_after_delete=False,
        discard_after_delete=False,
        backup=False,
        data_centers=[types.DataCenter(id=_data_center(data_center))],
    )
    engine.add("storage_domain", domain, status="active")


def _networks(engine: Engine) -> None:
    network = types.Network(
        id=identifier("network"),
        name=NETWORK,
        data_center=types.DataCenter(id=identifier("data center")),
        mtu=0,
        stp=False,
        usages=[types.NetworkUsage.VM, types.NetworkUsage.MANAGEMENT],
    )
    engine.add("network", network)
    profile = types.VnicProfile(
        id=identifier("profile"),
        name=NETWORK,
        network=types.Network(id=identifier("network")),
        pass_through=types.VnicPassThrough(mode=types.VnicPassThroughMode.DISABLED),
        port_mirroring=False,
    )
    engine.add("vnic_profile", profile)


def _templates(engine: Engine) -> None:
    engine.add("template", _template("Blank", kinds.BLANK, kinds.BLANK, 1, ""))
    base = identifier("template 1")
    for number in (1, 2):
        key = identifier(f"template {number}")
        version = "base version" if number == 1 else f"version {number}"
        engine.add("template", _template(TEMPLATE, key, base, number, version))
        disk = types.Disk(
            id=identifier(f"template disk {number}"),
            alias=f"{TEMPLATE}_Disk1",
            name=f"{TEMPLATE}_Disk1",
            provisioned_size=4 * _GIB,
            format=types.DiskFormat.RAW,
            sparse=True,
        )
        domain = engine.records.get("storage_domain", identifier(NFS))
        if domain is None:
            raise LookupError("storage comes first")
        stored = disks.allocate(engine, disk, domain, "add")
        engine.change(stored, status=types.DiskStatus.OK)
        attachment = types.DiskAttachment(
            id=stored.key,
            active=True,
            bootable=True,
            read_only=False,
            interface=types.DiskInterface.VIRTIO_SCSI,
            disk=types.Disk(id=stored.key),
            template=types.Template(id=key),
        )
        engine.add("disk_attachment", attachment, parent=key, parent_kind="template")


def _template(
    name: str, key: str, base: str, number: int, version: str
) -> types.Template:
    return types.Template(
        id=key,
        name=name,
        description="",
        status=types.TemplateStatus.OK,
        memory=_GIB,
        cpu=types.Cpu(
            architecture=_x86(),
            topology=types.CpuTopology(cores=1, sockets=1, threads=1),
        ),
        os=types.OperatingSystem(type="debian_9"),
        type=types.VmType.SERVER,
        cluster=types.Cluster(id=identifier("cluster")),
        version=types.TemplateVersion(
            version_name=version,
            version_number=number,
            base_template=types.Template(id=base),
        ),
    )


def _permits(role: str) -> list[types.Permit]:
    """Return the permits of a role, of those that clients ask for."""
    held = ROLES[role]
    return [
        types.Permit(id=str(number), name=name)
        for number, name in enumerate(PERMITS, 1)
        if name in held
    ]


def _people(engine: Engine) -> None:
    user = types.User(
        id=identifier("admin"),
        name="admin",
        user_name=f"{USER}-authz",
        principal="admin",
        namespace="*",
        domain=types.Domain(name="internal-authz"),
    )
    engine.add("user", user)
    for name in ROLES:
        role = types.Role(
            id=identifier(f"role {name}"),
            name=name,
            administrative=name == "SuperUser",
            mutable=False,
            permits=_permits(name),
        )
        engine.add("role", role)
    permission = types.Permission(
        id=identifier("permission"),
        user=types.User(id=identifier("admin")),
        role=types.Role(id=identifier("role SuperUser")),
    )
    engine.add("permission", permission)
