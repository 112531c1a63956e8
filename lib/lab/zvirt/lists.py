"""Reading: one object, and lists with search, order, pages and `follow`.

Source: 1.2 and 1.3 of the facts.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence

from ovirtsdk4 import types

from lib.lab.zvirt import kinds, reported, search, xml_documents
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.fields import FIELDS
from lib.lab.zvirt.records import EngineRecord, Entity

_PAGE = 100
"""Objects of a page without max. Source: SearchResultsLimit of the engine."""


class _Row(Mapping[str, Sequence[search.Value]]):
    """The fields of one object, computed when they are compared."""

    def __init__(self, engine: Engine, record: EngineRecord) -> None:
        self._engine, self._record = engine, record
        self._fields = FIELDS[record.kind]

    def __getitem__(self, name: str) -> Sequence[search.Value]:
        return self._fields[name](self._engine, self._record)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def show(
    engine: Engine,
    call: ApiCall,
    record: EngineRecord,
    alter: Callable[[Entity], Entity],
) -> ApiAnswer:
    """Return one object. alter: returns it as it is shown."""
    entity, followed = _followed(engine, call, [record], alter)
    return ApiAnswer(200, xml_documents.write(entity[0], followed))


def answer(
    engine: Engine,
    call: ApiCall,
    kind: str,
    records: Sequence[EngineRecord],
    alter: Callable[[Entity], Entity] = lambda entity: entity,
) -> ApiAnswer:
    """Return a collection of a kind, as the query asks for it."""
    chosen = [row for row in records if not engine.is_hidden(row)]
    if kind in FIELDS:
        chosen = _searched(engine, call, kind, chosen)
    limit = call.query.get("max", "")
    if limit.lstrip("-").isdecimal() and int(limit) >= 0 and not _has_page(call):
        engine.rule("call-max")
        chosen = chosen[: int(limit)]
    entities, followed = _followed(engine, call, chosen, alter)
    return ApiAnswer(
        200, xml_documents.write_list(entities, kinds.KINDS[kind].plural, followed)
    )


def _has_page(call: ApiCall) -> bool:
    return " page " in f" {call.query.get('search', '')}"


def _searched(
    engine: Engine, call: ApiCall, kind: str, records: list[EngineRecord]
) -> list[EngineRecord]:
    text = call.query.get("search", "")
    if not text:
        return records
    is_exact = call.flag("case_sensitive")
    try:
        parsed = search.parse(text, frozenset(FIELDS[kind]), is_exact)
    except search.Invalid as error:
        engine.refuse("search-invalid", why=error)
    engine.rule("search-filter")
    if not is_exact:
        engine.rule("search-case")
    if parsed.texts:
        engine.rule("search-text")
    if any("." in name for name in parsed.fields):
        engine.rule("search-cross")
    chosen = [row for row in records if parsed.matches(_Row(engine, row))]
    if parsed.sort is not None:
        engine.rule("search-order")
        chosen = _sorted(engine, chosen, *parsed.sort)
    if parsed.page:
        engine.rule("search-page")
        size = int(call.query.get("max", _PAGE))
        chosen = chosen[(parsed.page - 1) * size : parsed.page * size]
    return chosen


def _sorted(
    engine: Engine, records: list[EngineRecord], name: str, descends: bool
) -> list[EngineRecord]:
    def order(record: EngineRecord) -> tuple[bool, float, str]:
        values = FIELDS[record.kind][name](engine, record)
        value = values[0] if values else None
        if isinstance(value, float):
            return True, value, ""
        return value is not None, 0.0, str(value or "")

    return sorted(records, key=order, reverse=descends)


def _followed(
    engine: Engine,
    call: ApiCall,
    records: Sequence[EngineRecord],
    alter: Callable[[Entity], Entity],
) -> tuple[list[Entity], set[str]]:
    """Return the objects as they are shown, and the collections that they contain."""
    if call.flag("all_content"):
        engine.rule("call-all-content")
    paths = [part for part in call.query.get("follow", "").split(",") if part]
    engine.rule("call-links")
    shown = [alter(row.entity) for row in records]
    if not paths:
        return shown, set()
    engine.rule("call-follow")
    shown = [copy.copy(entity) for entity in shown]
    for entity in shown:
        for path in paths:
            _follow(engine, entity, path.strip().split("."))
    return shown, {path.split(".")[0].replace("_", "") for path in paths}


def _follow(engine: Engine, entity: Entity, names: Sequence[str]) -> None:
    """Replace what a path names by whole objects."""
    name, rest = names[0].replace("_", ""), names[1:]
    attribute = _ATTRIBUTES.get(name, names[0])
    if not hasattr(entity, attribute):
        engine.refuse("call-follow-unknown", name=names[0])
    if name in _COLLECTIONS:
        members = [copy.copy(row) for row in _COLLECTIONS[name](engine, entity)]
    elif name in kinds.EMPTY:
        members = []
    else:
        _resolve(engine, entity, attribute, rest)
        return
    for member in members:
        if rest:
            _follow(engine, member, rest)
    setattr(entity, attribute, members)


def _resolve(
    engine: Engine, entity: Entity, attribute: str, rest: Sequence[str]
) -> None:
    """Replace a reference, or each of several, by the object."""
    value = getattr(entity, attribute)
    many = value if isinstance(value, list) else [value]
    whole = []
    for reference in many:
        kind = kinds.BY_TYPE.get(type(reference).__name__)
        record = None if kind is None else engine.records.get(kind.name, reference.id)
        if record is None:
            continue
        member = copy.copy(record.entity)
        if rest:
            _follow(engine, member, rest)
        whole.append(member)
    if isinstance(value, list):
        setattr(entity, attribute, whole)
    elif whole:
        setattr(entity, attribute, whole[0])


def tags_of(engine: Engine, vm: str) -> list[EngineRecord]:
    """Return the tags of a VM."""
    rows = (
        engine.records.get("tag", row.key.partition("/")[2])
        for row in engine.within("assigned_tag", vm)
    )
    return [row for row in rows if row is not None]


def _inner(kind: str) -> Callable[[Engine, Entity], Sequence[Entity]]:
    return lambda engine, entity: [row.entity for row in engine.within(kind, entity.id)]


def _of_network(engine: Engine, network: Entity) -> Sequence[Entity]:
    return [
        row.entity
        for row in engine.records.all("vnic_profile")
        if row.entity.network.id == network.id
    ]


def _of_data_center(kind: str) -> Callable[[Engine, Entity], Sequence[Entity]]:
    return lambda engine, entity: [
        row.entity
        for row in engine.records.all(kind)
        if row.entity.data_center is not None and row.entity.data_center.id == entity.id
    ]


def domains_of(engine: Engine, data_center: str) -> list[EngineRecord]:
    """Return the storage domains of a data center."""
    return [
        row
        for row in engine.records.all("storage_domain")
        if data_center in [item.id for item in row.entity.data_centers or ()]
    ]


def with_status(entity: Entity, status: str) -> Entity:
    """Return a storage domain as its data center shows it."""
    shown = copy.copy(entity)
    shown.status = types.StorageDomainStatus(status)
    return shown


def devices_of(engine: Engine, vm: str) -> Sequence[Entity]:
    """Return what the guest agent of a VM reports."""
    record = engine.records.get("vm", vm)
    engine.rule("devices-shown")
    if record is None or not record.extra.get("agent"):
        return []
    return reported.devices(engine, record)


_ATTRIBUTES: Mapping[str, str] = {
    "diskattachments": "disk_attachments",
    "reporteddevices": "reported_devices",
    "affinitygroups": "affinity_groups",
    "storagedomains": "storage_domains",
    "vnicprofiles": "vnic_profiles",
    "vnicprofile": "vnic_profile",
    "hostdevices": "host_devices",
    "graphicsconsoles": "graphics_consoles",
    "affinitylabels": "affinity_labels",
    "numanodes": "numa_nodes",
    "cpuprofiles": "cpu_profiles",
    "diskprofiles": "disk_profiles",
}
_COLLECTIONS: Mapping[str, Callable[[Engine, Entity], Sequence[Entity]]] = {
    "diskattachments": _inner("disk_attachment"),
    "nics": _inner("nic"),
    "affinitygroups": _inner("affinity_group"),
    "reporteddevices": lambda engine, entity: devices_of(engine, entity.id),
    "tags": lambda engine, entity: [row.entity for row in tags_of(engine, entity.id)],
    "vnicprofiles": _of_network,
    "storagedomains": lambda engine, entity: [
        with_status(row.entity, row.extra["status"])
        for row in domains_of(engine, entity.id)
    ],
    "clusters": _of_data_center("cluster"),
    "permissions": lambda engine, entity: [],
    "permits": lambda engine, entity: entity.permits or [],
}
