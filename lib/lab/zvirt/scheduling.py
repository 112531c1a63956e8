"""The host on which a VM starts. Source: 1.8; filters by their names in the engine."""

from collections.abc import Iterator

from ovirtsdk4 import types

from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord


def host_for(engine: Engine, vm: EngineRecord, but: str = "") -> EngineRecord:
    """Return the host with most memory left that fits. but: ID of one that does not.

    Raises:
        Refused: none exists.
    """
    cluster = vm.entity.cluster.id
    hosts = [
        host
        for host in engine.records.all("host")
        if host.entity.cluster.id == cluster
        and host.entity.status == types.HostStatus.UP
        and host.key != but
    ]
    reasons: dict[str, str] = {}
    fitting = []
    for host in hosts:
        reason = _reason(engine, vm, host)
        if reason:
            reasons[host.entity.name] = reason
        else:
            fitting.append(host)
    if not fitting:
        name, reason = next(iter(reasons.items()), ("", "CPU"))
        engine.refuse("vm-no-host", host=name, filter=reason)
    return max(fitting, key=lambda host: _free(engine, host))


def _reason(engine: Engine, vm: EngineRecord, host: EngineRecord) -> str:
    """Return the filter that a host does not pass; empty: it fits."""
    policy = vm.entity.placement_policy
    pinned = [row.id for row in (policy and policy.hosts) or ()]
    if pinned and host.key not in pinned:
        return "PinToHost"
    if vm.entity.memory > _free(engine, host):
        return "Memory"
    topology, threads = vm.entity.cpu.topology, host.entity.cpu.topology
    needed = topology.cores * topology.sockets * topology.threads
    if needed > threads.cores * threads.sockets * threads.threads:
        return "CPU"
    if host.key in set(_avoided(engine, vm)):
        engine.rule("affinity-enforced")
        return "VmAffinityGroups"
    return ""


def _free(engine: Engine, host: EngineRecord) -> int:
    used = sum(
        int(row.entity.memory)
        for row in engine.records.all("vm")
        if row.entity.host is not None and row.entity.host.id == host.key
    )
    return int(host.entity.memory) - used


def _avoided(engine: Engine, vm: EngineRecord) -> Iterator[str]:
    """Yield the hosts of VMs that an enforced rule keeps apart from a VM."""
    for row in engine.within("affinity_group", vm.entity.cluster.id):
        rule = row.entity.vms_rule
        if rule is None or not rule.enforcing or rule.positive or not rule.enabled:
            continue
        members = [member.id for member in row.entity.vms or ()]
        if vm.key not in members:
            continue
        for member in members:
            other = engine.records.get("vm", member)
            if other is not None and other.entity.host is not None:
                yield other.entity.host.id
