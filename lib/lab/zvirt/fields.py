"""Fields of the search language by type. Source: 1.3 of the facts."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from lib.lab.zvirt import reported
from lib.lab.zvirt.engine_core import Engine, name_of
from lib.lab.zvirt.records import EngineRecord
from lib.lab.zvirt.search import Value

Field = Callable[[Engine, EngineRecord], Sequence[Value]]


def _text(*names: str) -> Field:
    def read(engine: Engine, record: EngineRecord) -> Sequence[Value]:
        del engine
        value = record.entity
        for name in names:
            value = None if value is None else getattr(value, name)
        text = getattr(value, "value", value)
        return (
            []
            if text is None
            else [str(text).lower() if text in (True, False) else str(text)]
        )

    return read


def _number(*names: str, unit: float = 1.0) -> Field:
    def read(engine: Engine, record: EngineRecord) -> Sequence[Value]:
        del engine
        value = record.entity
        for name in names:
            value = None if value is None else getattr(value, name)
        return [] if value is None else [float(value) / unit]

    return read


def _name(kind: str, *names: str) -> Field:
    """Return the name of a referred object."""

    def read(engine: Engine, record: EngineRecord) -> Sequence[Value]:
        value = record.entity
        for name in names:
            value = None if value is None else getattr(value, name)
        many = value if isinstance(value, list) else [value]
        rows = (engine.records.get(kind, item.id) for item in many if item is not None)
        return [name_of(row) for row in rows if row is not None]

    return read


def _data_center(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    cluster = engine.records.get("cluster", record.entity.cluster.id)
    if cluster is None:
        return []
    return _name("data_center", "data_center")(engine, cluster)


def _addresses(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    return reported.addresses(engine, record)


def _tags(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    rows = (
        engine.records.get("tag", row.key.partition("/")[2])
        for row in engine.within("assigned_tag", record.key)
    )
    return [row.entity.name for row in rows if row is not None]


def _vcpus(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    del engine
    topology = record.entity.cpu.topology
    return [float(topology.cores * topology.sockets * topology.threads)]


def _vms_of_disk(engine: Engine, record: EngineRecord) -> Iterator[EngineRecord]:
    for row in engine.records.all("disk_attachment"):
        if row.entity.id == record.key and row.entity.vm is not None:
            vm = engine.records.get("vm", row.entity.vm.id)
            if vm is not None:
                yield vm


def _vm_names(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    return [name_of(vm) for vm in _vms_of_disk(engine, record)]


def _vm_count(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    return [float(len(tuple(_vms_of_disk(engine, record))))]


def _extra(name: str) -> Field:
    def read(engine: Engine, record: EngineRecord) -> Sequence[Value]:
        del engine
        value = record.extra.get(name)
        return [str(value)] if value else []

    return read


def _vms_of_template(engine: Engine, record: EngineRecord) -> Sequence[Value]:
    return [
        name_of(vm)
        for vm in engine.records.all("vm")
        if vm.entity.template.id == record.key
    ]


def _all_in(kind: str, *names: str) -> Field:
    """Return the names of the objects that refer to this one."""

    def read(engine: Engine, record: EngineRecord) -> Sequence[Value]:
        values: list[Value] = []
        for row in engine.records.all(kind):
            value = row.entity
            for name in names:
                value = None if value is None else getattr(value, name)
            many = value if isinstance(value, list) else [value]
            if record.key in [item.id for item in many if item is not None]:
                values.append(name_of(row))
        return values

    return read


_COMMON: Mapping[str, Field] = {
    "name": _text("name"),
    "description": _text("description"),
    "comment": _text("comment"),
    "id": _text("id"),
}
_VM: Mapping[str, Field] = {
    **_COMMON,
    "status": _text("status"),
    "host": _name("host", "host"),
    "fqdn": _text("fqdn"),
    "os": _text("os", "type"),
    "type": _text("type"),
    "ip": _addresses,
    "address": _addresses,
    "memory": _number("memory", unit=1 << 20),
    "guaranteed_memory": _number("memory_policy", "guaranteed", unit=1 << 20),
    "vcpus": _vcpus,
    "cluster": _name("cluster", "cluster"),
    "datacenter": _data_center,
    "template": _name("template", "template"),
    "tag": _tags,
    "next_run_config_exists": _text("next_run_configuration_exists"),
}
_DISK: Mapping[str, Field] = {
    **_COMMON,
    "alias": _text("alias"),
    "status": _text("status"),
    "provisioned_size": _number("provisioned_size", unit=1 << 30),
    "size": _number("provisioned_size", unit=1 << 30),
    "actual_size": _number("actual_size", unit=1 << 30),
    "shareable": _text("shareable"),
    "wipe_after_delete": _text("wipe_after_delete"),
    "disk_type": _text("storage_type"),
    "disk_content_type": _text("content_type"),
    "number_of_vms": _vm_count,
    "vm_names": _vm_names,
    "storage": _name("storage_domain", "storage_domains"),
    "storage.name": _name("storage_domain", "storage_domains"),
}
FIELDS: Mapping[str, Mapping[str, Field]] = {
    "vm": _VM,
    "disk": _DISK,
    "storage_domain": {
        **_COMMON,
        "type": _text("storage", "type"),
        "status": _extra("status"),
        "datacenter": _name("data_center", "data_centers"),
        "free_size": _number("available", unit=1 << 30),
        "used_size": _number("used", unit=1 << 30),
        "committed": _number("committed", unit=1 << 30),
    },
    "template": {
        **_COMMON,
        "status": _text("status"),
        "os": _text("os", "type"),
        "cluster": _name("cluster", "cluster"),
        "datacenter": _data_center,
        "version_name": _text("version", "version_name"),
        "version_number": _number("version", "version_number"),
        "vm.name": _vms_of_template,
        "vms.name": _vms_of_template,
    },
    "cluster": {**_COMMON, "datacenter": _name("data_center", "data_center")},
    "data_center": {
        **_COMMON,
        "status": _text("status"),
        "clusters.name": _all_in("cluster", "data_center"),
        "storage.name": _all_in("storage_domain", "data_centers"),
    },
    "host": {
        **_COMMON,
        "status": _text("status"),
        "cluster": _name("cluster", "cluster"),
        "address": _text("address"),
    },
    "network": {**_COMMON, "datacenter": _name("data_center", "data_center")},
    "vnic_profile": {**_COMMON, "network_name": _name("network", "network")},
    "job": {
        "description": _text("description"),
        "status": _text("status"),
        "id": _text("id"),
        "correlation_id": _extra("correlation_id"),
    },
    "event": {
        "message": _text("description"),
        "severity": _text("severity"),
        "type": _number("code"),
        "correlation_id": _text("correlation_id"),
        "vm.name": _name("vm", "vm"),
        "vms.name": _name("vm", "vm"),
        "usrname": _text("user", "name"),
    },
    "user": {
        "name": _text("name"),
        "usrname": _text("user_name"),
        "id": _text("id"),
        "email": _text("email"),
    },
    "role": _COMMON,
}
