"""Tags, affinity groups, and jobs and events of clients. Source: 1.4, 1.7."""

from ovirtsdk4 import types

from lib.lab.zvirt import calls, kinds, replies
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord, Entity


def create_tag(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create a tag."""
    tag = calls.read(engine, call, "tag", "add")
    _check_tag_name(engine, tag.name)
    tag.id = None
    parent = (
        kinds.BLANK if tag.parent is None else engine.referred("tag", tag.parent).key
    )
    tag.parent = types.Tag(id=parent)
    engine.rule("tag-created")
    return replies.created(engine, call, engine.add("tag", tag))


def _check_tag_name(engine: Engine, name: str) -> None:
    if any(row.entity.name == name for row in engine.records.all("tag")):
        engine.refuse("tag-name-taken")


def update_tag(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Change a tag."""
    record = engine.find("tag", key)
    change = calls.read(engine, call, "tag", "update")
    members = {}
    if change.name not in (None, record.entity.name):
        _check_tag_name(engine, change.name)
        members["name"] = change.name
    if change.description is not None:
        members["description"] = change.description
    if change.parent is not None:
        members["parent"] = types.Tag(id=engine.referred("tag", change.parent).key)
    return replies.shown(engine, call, engine.change(record, **members))


def remove_tag(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Remove a tag, also from all VMs."""
    del call
    record = engine.find("tag", key)
    engine.rule("tag-removed")
    for row in tuple(engine.records.all("assigned_tag")):
        if row.key.endswith(f"/{key}"):
            engine.records.remove(row)
    engine.records.remove(record)
    return ApiAnswer()


def assign_tag(engine: Engine, call: ApiCall, vm_key: str) -> ApiAnswer:
    """Assign a tag to a VM; fine when it is assigned."""
    engine.find("vm", vm_key)
    tag = engine.referred("tag", calls.read(engine, call, "tag", "assign"))
    engine.records.put(EngineRecord("assigned_tag", f"{vm_key}/{tag.key}"))
    engine.rule("tag-assigned")
    return replies.created(engine, call, tag)


def unassign_tag(engine: Engine, call: ApiCall, vm_key: str, key: str) -> ApiAnswer:
    """Unassign a tag from a VM."""
    del call
    engine.find("vm", vm_key)
    record = engine.records.get("assigned_tag", f"{vm_key}/{key}")
    if record is None:
        engine.refuse("call-absent", "")
    engine.rule("tag-unassigned")
    engine.records.remove(record)
    return ApiAnswer()


def create_group(engine: Engine, call: ApiCall, cluster: str) -> ApiAnswer:
    """Create an affinity group of a cluster."""
    engine.find("cluster", cluster)
    group = calls.read(engine, call, "affinity_group", "add")
    if any(
        row.entity.name == group.name
        for row in engine.within("affinity_group", cluster)
    ):
        engine.refuse("affinity-name-taken")
    group.id = None
    group.cluster = types.Cluster(id=cluster)
    group.vms = _members(engine, "vm", types.Vm, group.vms)
    group.hosts = _members(engine, "host", types.Host, group.hosts)
    group.vms_rule = _rule(group.vms_rule)
    group.hosts_rule = _rule(group.hosts_rule)
    group.priority = group.priority if group.priority is not None else 1.0
    group.positive = group.vms_rule.positive
    group.enforcing = group.vms_rule.enforcing
    group.broken = False
    engine.rule("affinity-created")
    record = engine.add("affinity_group", group, parent=cluster)
    return replies.created(engine, call, record)


def _rule(rule: Entity | None) -> Entity:
    if rule is None:
        return types.AffinityRule(enabled=False, enforcing=False, positive=False)
    return types.AffinityRule(
        enabled=rule.enabled is not False,
        enforcing=bool(rule.enforcing),
        positive=bool(rule.positive),
    )


def _members(
    engine: Engine, kind: str, member_type: type, members: list[Entity] | None
) -> list[Entity]:
    return [
        member_type(id=engine.referred(kind, member).key) for member in members or ()
    ]


def update_group(engine: Engine, call: ApiCall, cluster: str, key: str) -> ApiAnswer:
    """Change an affinity group."""
    record = engine.find("affinity_group", key, cluster)
    change = calls.read(engine, call, "affinity_group", "update")
    members = {
        name: getattr(change, name)
        for name in ("name", "description", "priority")
        if getattr(change, name) is not None
    }
    if change.vms_rule is not None:
        members["vms_rule"] = rule = _rule(change.vms_rule)
        members["positive"], members["enforcing"] = rule.positive, rule.enforcing
    if change.hosts_rule is not None:
        members["hosts_rule"] = _rule(change.hosts_rule)
    if change.vms is not None:
        members["vms"] = _members(engine, "vm", types.Vm, change.vms)
    if change.hosts is not None:
        members["hosts"] = _members(engine, "host", types.Host, change.hosts)
    return replies.shown(engine, call, engine.change(record, **members))


def remove_group(engine: Engine, call: ApiCall, cluster: str, key: str) -> ApiAnswer:
    """Remove an affinity group."""
    del call
    engine.rule("affinity-removed")
    engine.records.remove(engine.find("affinity_group", key, cluster))
    return ApiAnswer()


def add_member(engine: Engine, call: ApiCall, cluster: str, key: str) -> ApiAnswer:
    """Add a VM to an affinity group; fine when it is a member."""
    record = engine.find("affinity_group", key, cluster)
    vm = engine.referred("vm", calls.read(engine, call, "vm", "assign"))
    members = [row for row in record.entity.vms or () if row.id != vm.key]
    engine.rule("affinity-member")
    engine.change(record, vms=[*members, types.Vm(id=vm.key)])
    return replies.created(engine, call, vm)


def remove_member(
    engine: Engine, call: ApiCall, cluster: str, key: str, vm_key: str
) -> ApiAnswer:
    """Remove a VM from an affinity group."""
    del call
    record = engine.find("affinity_group", key, cluster)
    members = [row for row in record.entity.vms or () if row.id != vm_key]
    if len(members) == len(record.entity.vms or ()):
        engine.refuse("call-absent", "")
    engine.rule("affinity-member")
    engine.change(record, vms=members)
    return ApiAnswer()


def create_job(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create an external job."""
    job = calls.read(engine, call, "job", "add")
    record = engine.begin_job(job.description, call.correlation_id)
    engine.change(record, external=True, auto_cleared=bool(job.auto_cleared))
    return replies.created(engine, call, record)


def end_job(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """End an external job."""
    record = engine.find("job", key)
    action = calls.read(engine, call, "action", "end")
    engine.end_job(record.key, failed=action.succeeded is False)
    return replies.done(engine, call, "Ending a job")


def clear_job(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Clear an external job."""
    record = engine.find("job", key)
    calls.read(engine, call, "action", "clear")
    engine.change(record, auto_cleared=True)
    return replies.done(engine, call, "Clearing a job")


def create_event(engine: Engine, call: ApiCall) -> ApiAnswer:
    """Create an external event."""
    event = calls.read(engine, call, "event", "add")
    vm = "" if event.vm is None else engine.referred("vm", event.vm).key
    record = engine.note(9802, event.description, severity=event.severity, vm=vm)
    engine.change(record, origin=event.origin, custom_id=event.custom_id)
    return replies.created(engine, call, record)


def remove_event(engine: Engine, call: ApiCall, key: str) -> ApiAnswer:
    """Remove an event."""
    del call
    record = engine.records.get("event", key)
    if record is None:
        engine.refuse("call-absent", "")
    engine.records.remove(record)
    return ApiAnswer()
