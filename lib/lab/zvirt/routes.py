"""All paths of the API, and the transitions of its objects."""

import copy
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

from ovirtsdk4 import types

from lib.lab.zvirt import (
    attachments,
    disks,
    groups,
    kinds,
    lists,
    nics,
    vm_power,
    vms,
    xml_documents,
)
from lib.lab.zvirt.calls import ApiAnswer, ApiCall, Handler
from lib.lab.zvirt.engine_core import Engine, Timed
from lib.lab.zvirt.records import EngineRecord, Entity

TIMED: Mapping[str, Timed] = {
    "vm-copied": vms.copied,
    "vm-launched": vm_power.launched,
    "vm-booted": vm_power.booted,
    "vm-booted-silent": vm_power.booted_silent,
    "vm-agent": vm_power.reported,
    "vm-stopped": vm_power.stopped,
    "vm-migrated": vm_power.migrated,
    "operation-ended": disks.job_ended,
    "disk-ready": disks.ready,
    "disk-job-ended": disks.job_ended,
}
_ID = "([^/]+)"
_PLURALS = {kind.path: kind.plural for kind in kinds.KINDS.values()}


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """One path. kind: as requests are counted, such as `vms/{id}/start`."""

    kind: str
    pattern: re.Pattern[str]
    handlers: Mapping[str, Handler]


def _same(entity: Entity) -> Entity:
    return entity


def _whole(call: ApiCall) -> Callable[[Entity], Entity]:
    """Return how a VM is shown: without what only all_content shows."""
    if call.flag("all_content"):
        return _with_console
    return _same


def _with_console(entity: Entity) -> Entity:
    shown = copy.copy(entity)
    shown.console = entity.console or types.Console(enabled=False)
    shown.soundcard_enabled = bool(entity.soundcard_enabled)
    return shown


def _list(kind: str) -> Handler:
    def handle(engine: Engine, call: ApiCall) -> ApiAnswer:
        rows = tuple(engine.records.all(kind))
        if kind == "event":
            rows = tuple(_events(engine, call, rows))
        if kind == "storage_domain":
            engine.rule("domain-status-omitted")
        if kind == "job":
            engine.rule("job-shown")
        alter = _whole(call) if kind == "vm" else _same
        return lists.answer(engine, call, kind, rows, alter)

    return handle


def _events(
    engine: Engine, call: ApiCall, rows: tuple[EngineRecord, ...]
) -> Iterator[EngineRecord]:
    """Yield events after from=, the newest first."""
    engine.rule("event-shown")
    least = int(call.query.get("from", "0") or "0")
    return (row for row in reversed(rows) if row.entity.index > least)


def _show(kind: str) -> Handler:
    def handle(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
        if kind == "event":
            record = engine.records.get(kind, key)
            if record is None:
                engine.refuse("call-absent", "")
        else:
            record = engine.find(kind, key)
        if kind == "disk" and call.flag("all_content"):
            return lists.show(engine, call, record, _with_vms(engine))
        return lists.show(engine, call, record, _whole(call))

    return handle


def _with_vms(engine: Engine) -> Callable[[Entity], Entity]:
    """Return how a disk is shown with all its content: with its VMs.

    Source: ovirt-engine-api-model, DiskService, Get, all_content: lists have none.
    """

    def show(entity: Entity) -> Entity:
        engine.rule("disk-vms")
        shown = copy.copy(entity)
        record = engine.records.get("disk", entity.id)
        using = () if record is None else disks.users(engine, record)
        shown.vms = [types.Vm(id=vm.key) for vm in using]
        return xml_documents.refer_members(shown)

    return show


def _inner_list(parent: str, kind: str) -> Handler:
    def handle(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
        engine.find(parent, key)
        if parent == "template" and kind == "disk_attachment":
            engine.rule("template-disks")
        rows = tuple(engine.within(kind, key))
        return lists.answer(engine, call, kind, rows)

    return handle


def _inner_show(parent: str, kind: str) -> Handler:
    def handle(engine: Engine, call: ApiCall, outer: str, key: str) -> ApiAnswer:
        engine.find(parent, outer)
        return lists.show(engine, call, engine.find(kind, key, outer), _same)

    return handle


def _vm_tags(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    engine.find("vm", key)
    return lists.answer(engine, call, "tag", lists.tags_of(engine, key))


def _vm_tag(engine: Engine, call: ApiCall, key: str, tag: str) -> ApiAnswer:
    engine.find("vm", key)
    for row in lists.tags_of(engine, key):
        if row.key == tag:
            return lists.show(engine, call, row, _same)
    return engine.refuse("call-absent", "")


def _devices(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    del call
    engine.find("vm", key)
    devices = lists.devices_of(engine, key)
    return ApiAnswer(200, xml_documents.write_list(devices, "reported_devices"))


def _group_vms(engine: Engine, call: ApiCall, cluster: str, key: str) -> ApiAnswer:
    group = engine.find("affinity_group", key, cluster).entity
    rows = [engine.records.get("vm", vm.id) for vm in group.vms or ()]
    members = [row for row in rows if row is not None]
    return lists.answer(engine, call, "vm", members)


def _domains(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """List the storage domains of a data center, with their status."""
    engine.find("data_center", key)
    engine.rule("domain-status-shown")
    rows = lists.domains_of(engine, key)
    status = {row.key: row.extra["status"] for row in rows}
    return lists.answer(
        engine,
        call,
        "storage_domain",
        rows,
        lambda entity: lists.with_status(entity, status[entity.id]),
    )


def _domain(engine: Engine, call: ApiCall, key: str, domain: str) -> ApiAnswer:
    engine.find("data_center", key)
    engine.rule("domain-status-shown")
    row = engine.find("storage_domain", domain)
    status = row.extra["status"]
    return lists.show(
        engine, call, row, lambda entity: lists.with_status(entity, status)
    )


def _of_data_center(kind: str) -> Handler:
    def handle(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
        engine.find("data_center", key)
        rows = [
            row for row in engine.records.all(kind) if row.entity.data_center.id == key
        ]
        return lists.answer(engine, call, kind, rows)

    return handle


def _networks_of_cluster(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    center = engine.find("cluster", key).entity.data_center.id
    return _of_data_center("network")(engine, call, center)


def _disks_of_domain(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    engine.find("storage_domain", key)
    rows = [
        row
        for row in engine.records.all("disk")
        if key in [domain.id for domain in row.entity.storage_domains or ()]
    ]
    return lists.answer(engine, call, "disk", rows)


def _profiles(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    engine.find("network", key)
    rows = [
        row
        for row in engine.records.all("vnic_profile")
        if row.entity.network.id == key
    ]
    return lists.answer(engine, call, "vnic_profile", rows)


def _permissions(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    rows = engine.records.all("permission")
    mine = [row for row in rows if row.entity.user and row.entity.user.id == key]
    return lists.answer(engine, call, "permission", mine)


def _nothing(path: str) -> Handler:
    tag = kinds.EMPTY.get(path) or _PLURALS[path]

    def handle(engine: Engine, call: ApiCall, *keys: str) -> ApiAnswer:
        del call, keys
        engine.rule("call-empty")
        return ApiAnswer(200, xml_documents.write_list([], tag))

    return handle


_TOP: Mapping[str, Mapping[str, Handler]] = {
    "vms": {"POST": vms.create},
    "vms/{}": {"PUT": vms.update, "DELETE": vms.remove},
    "vms/{}/start": {"POST": vm_power.start},
    "vms/{}/stop": {"POST": vm_power.stop},
    "vms/{}/shutdown": {"POST": vm_power.shutdown},
    "vms/{}/migrate": {"POST": vm_power.migrate},
    "vms/{}/nics": {"GET": _inner_list("vm", "nic"), "POST": nics.create},
    "vms/{}/nics/{}": {
        "GET": _inner_show("vm", "nic"),
        "PUT": nics.update,
        "DELETE": nics.remove,
    },
    "vms/{}/diskattachments": {
        "GET": _inner_list("vm", "disk_attachment"),
        "POST": attachments.create,
    },
    "vms/{}/diskattachments/{}": {
        "GET": _inner_show("vm", "disk_attachment"),
        "PUT": attachments.update,
        "DELETE": attachments.remove,
    },
    "vms/{}/tags": {"GET": _vm_tags, "POST": groups.assign_tag},
    "vms/{}/tags/{}": {"GET": _vm_tag, "DELETE": groups.unassign_tag},
    "vms/{}/reporteddevices": {"GET": _devices},
    "templates/{}/diskattachments": {"GET": _inner_list("template", "disk_attachment")},
    "templates/{}/diskattachments/{}": {
        "GET": _inner_show("template", "disk_attachment")
    },
    "disks": {"GET": _list("disk"), "POST": disks.create},
    "disks/{}": {"PUT": disks.update, "DELETE": disks.remove},
    "vnicprofiles": {"POST": nics.create_profile},
    "vnicprofiles/{}": {"PUT": nics.update_profile, "DELETE": nics.remove_profile},
    "networks/{}/vnicprofiles": {"GET": _profiles},
    "tags": {"POST": groups.create_tag},
    "tags/{}": {"PUT": groups.update_tag, "DELETE": groups.remove_tag},
    "clusters/{}/affinitygroups": {
        "GET": _inner_list("cluster", "affinity_group"),
        "POST": groups.create_group,
    },
    "clusters/{}/affinitygroups/{}": {
        "GET": _inner_show("cluster", "affinity_group"),
        "PUT": groups.update_group,
        "DELETE": groups.remove_group,
    },
    "clusters/{}/affinitygroups/{}/vms": {
        "GET": _group_vms,
        "POST": groups.add_member,
    },
    "clusters/{}/affinitygroups/{}/vms/{}": {"DELETE": groups.remove_member},
    "clusters/{}/networks": {"GET": _networks_of_cluster},
    "storagedomains/{}/disks": {"GET": _disks_of_domain},
    "datacenters/{}/storagedomains": {"GET": _domains},
    "datacenters/{}/storagedomains/{}": {"GET": _domain},
    "datacenters/{}/clusters": {"GET": _of_data_center("cluster")},
    "datacenters/{}/networks": {"GET": _of_data_center("network")},
    "users/{}/permissions": {"GET": _permissions},
    "jobs": {"POST": groups.create_job},
    "jobs/{}/end": {"POST": groups.end_job},
    "jobs/{}/clear": {"POST": groups.clear_job},
    "events": {"POST": groups.create_event},
    "events/{}": {"DELETE": groups.remove_event},
}


def _routes() -> Iterator[Route]:
    table: dict[str, dict[str, Handler]] = {}
    for kind in kinds.KINDS.values():
        if not kind.parent:
            table[kind.path] = {"GET": _list(kind.name)}
            table[f"{kind.path}/{{}}"] = {"GET": _show(kind.name)}
    for path in kinds.EMPTY_TOP:
        table[path] = {"GET": _nothing(path)}
    for text, handlers in _TOP.items():
        table.setdefault(text, {}).update(handlers)
    for kind in kinds.KINDS.values():
        outer = "" if not kind.parent else f"{kinds.KINDS[kind.parent].path}/{{}}/"
        for link in kind.links:
            text = f"{outer}{kind.path}/{{}}/{link}"
            table.setdefault(text, {"GET": _nothing(link)})
    for text, handlers in table.items():
        pattern = re.compile(text.replace("{}", _ID))
        yield Route(text.replace("{}", "{id}"), pattern, handlers)


ROUTES = tuple(_routes())


def find(path: str) -> tuple[Route, tuple[str, ...]] | None:
    """Return the route of a path below the root of the API, and its IDs."""
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match is not None:
            return route, match.groups()
    return None
