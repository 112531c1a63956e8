"""How images, classes, addresses and Services of a parent cluster move. Pure."""

import datetime
from collections.abc import Iterator

from lib.kube import resources
from lib.lab.dvp import pools, writes
from lib.lab.dvp.kinds import (
    ADDRESS_LEASES,
    ADDRESSES,
    CHECKED_SERVICES,
    CLASSES,
    CLUSTER_IMAGES,
    IMAGES,
    MACHINES,
    Item,
    Json,
    World,
)
from lib.lab.dvp.writes import CreateObject, Finding, Step

_SIZE = {
    "stored": "32Mi",
    "storedBytes": str(2**25),
    "unpacked": "64Mi",
    "unpackedBytes": str(2**26),
}


class Allocated:
    """The addresses that a parent assigns to VMs and to Services."""

    def __init__(self) -> None:
        self.machines = pools.Pool("10.64.0.0/12")
        self.services = pools.Pool("192.0.2.0/24", "198.18.0.0/15")


def decide(
    world: World, allocated: Allocated, now: datetime.datetime
) -> Iterator[Step]:
    """Yield what happens to each of these objects."""
    yield from _images(world, now)
    yield from _classes(world, now)
    yield from _addresses(world, allocated, now)
    yield from _services(world, allocated)
    yield from _checked_services(world)


def _images(world: World, now: datetime.datetime) -> Iterator[Step]:
    for kind in (IMAGES, CLUSTER_IMAGES):
        for image in world.of(kind).values():
            if image.is_ending:
                continue
            if not image.phase:
                row = Finding("Ready", False, "Provisioning")
                rows = writes.conditions(image, now, row)
                fields: Json = {"phase": "Provisioning", "conditions": rows}
                call = writes.status(kind, image, fields)
                yield Step("image-provisioning", image, [call])
            elif image.phase == "Provisioning":
                rows = writes.conditions(image, now, Finding("Ready", True, "Ready"))
                fields = {"phase": "Ready", "size": _SIZE, "format": "qcow2"}
                fields |= {"progress": "100%", "conditions": rows}
                call = writes.status(kind, image, fields)
                yield Step("image-ready", image, [call])


def _classes(world: World, now: datetime.datetime) -> Iterator[Step]:
    for item in world.of(CLASSES).values():
        if not item.phase:
            rows = writes.conditions(item, now, Finding("Ready", True, "Ready"))
            fields = {"phase": "Ready", "conditions": rows}
            yield Step("class-ready", item, [writes.status(CLASSES, item, fields)])


def _addresses(
    world: World, allocated: Allocated, now: datetime.datetime
) -> Iterator[Step]:
    users = {
        f"{vm.namespace}/{vm.status.get('virtualMachineIPAddressName')}": vm.name
        for vm in world.of(MACHINES).values()
    }
    items = world.of(ADDRESSES)
    taken = {str(item.status.get("address")) for item in items.values()}
    for key, item in items.items():
        if not item.phase:
            address = item.spec.get("staticIP")
            address = address or allocated.machines.give(item.uid, taken)
            yield _bind(item, str(address), now)
        elif item.phase == "Bound" and key in users:
            yield _used("address-attached", item, "Attached", users[key])
        elif item.phase == "Attached" and key not in users:
            yield _used("address-released", item, "Bound", "")
    for lease in world.of(ADDRESS_LEASES).values():
        reference = lease.spec.get("virtualMachineIPAddressRef") or {}
        key = f"{reference.get('namespace')}/{reference.get('name')}"
        word = "Bound" if key in items else "Released"
        if lease.phase != word:
            call = writes.status(ADDRESS_LEASES, lease, {"phase": word})
            yield Step("lease-released", lease, [call])


def _used(transition: str, item: Item, phase: str, machine: str) -> Step:
    fields = {"phase": phase, "virtualMachineName": machine}
    return Step(transition, item, [writes.status(ADDRESSES, item, fields)])


def _bind(item: Item, address: str, now: datetime.datetime) -> Step:
    rows = writes.conditions(item, now, Finding("Bound", True, "Bound"))
    fields = {"phase": "Bound", "address": address, "conditions": rows}
    reference = {"name": item.name, "namespace": item.namespace}
    lease = {
        "apiVersion": ADDRESS_LEASES.api_version,
        "kind": ADDRESS_LEASES.kind,
        "metadata": {"name": f"ip-{address.replace('.', '-')}"},
        "spec": {"virtualMachineIPAddressRef": reference},
    }
    calls: list[writes.Call] = [
        CreateObject(ADDRESS_LEASES, "", lease),
        writes.status(ADDRESSES, item, fields),
    ]
    return Step("address-bound", item, calls)


def _services(world: World, allocated: Allocated) -> Iterator[Step]:
    services = world.of(resources.SERVICES)
    taken = {
        str(row.get("ip"))
        for service in services.values()
        for row in (service.status.get("loadBalancer") or {}).get("ingress", ())
    }
    for service in services.values():
        balancer = service.status.get("loadBalancer") or {}
        if service.spec.get("type") != "LoadBalancer" or service.is_ending:
            continue
        asked = service.spec.get("loadBalancerIP")
        present = [row.get("ip") for row in balancer.get("ingress", ())]
        if present and (not asked or present == [asked]):
            continue
        address = asked or allocated.services.give(service.uid, taken)
        row = {"ip": address, "ipMode": "VIP"}
        body = {"status": {"loadBalancer": {"ingress": [row]}}}
        call = writes.PatchObject(resources.SERVICES, service, body, "status")
        yield Step("service-ingress", service, [call])


_COPIED = ("type", "ports", "internalTrafficPolicy", "externalTrafficPolicy")
"""What a ServiceWithHealthchecks passes on. Its Service has no selector, which would
add endpoints that are not probed, and no class, address, external IPs or source ranges.
"""


def _checked_services(world: World) -> Iterator[Step]:
    for item in world.of(CHECKED_SERVICES).values():
        if item.is_ending:
            continue
        service = world.get(resources.SERVICES, item.namespace, item.name)
        if service is None:
            yield Step("checked-service", item, [_own_service(item)])
            continue
        desired = {
            "metadata": {
                "labels": dict(item.metadata.labels),
                "annotations": dict(item.metadata.annotations),
            },
            "spec": {name: item.spec[name] for name in _COPIED if name in item.spec},
        }
        if not _has(desired, _shown(service)):
            change = writes.PatchObject(resources.SERVICES, service, desired)
            yield Step("checked-service", item, [change])
            continue
        balancer = service.status.get("loadBalancer") or {}
        if balancer != item.status.get("loadBalancer", {}):
            call = writes.status(CHECKED_SERVICES, item, {"loadBalancer": balancer})
            yield Step("checked-service", item, [call])
            continue
        yield from _checked_endpoints(world, item)


def _checked_endpoints(world: World, item: Item) -> Iterator[Step]:
    """Yield the write of the endpoints: VMs that the selector selects and that run.

    In the lab the probe of each of them succeeds.
    """
    selector = item.spec.get("selector") or {}
    addresses = sorted(
        str(vm.status["ipAddress"])
        for vm in world.within(MACHINES, item.namespace)
        if selector.items() <= dict(vm.metadata.labels).items()
        and vm.phase in ("Running", "Migrating")
        and vm.status.get("ipAddress")
    )
    endpoints = [{"addresses": [each]} for each in addresses]
    name = f"{item.name}-checked"
    present = world.get(resources.ENDPOINT_SLICES, item.namespace, name)
    if present is None:
        body = _slice(item, name, endpoints)
        call = CreateObject(resources.ENDPOINT_SLICES, item.namespace, body)
        yield Step("checked-endpoints", item, [call])
        return
    shown = [each["addresses"][0] for each in present.endpoints or ()]
    if shown != addresses:
        change = writes.PatchObject(
            resources.ENDPOINT_SLICES, present, {"endpoints": endpoints}
        )
        yield Step("checked-endpoints", item, [change])


def _slice(item: Item, name: str, endpoints: list[Json]) -> Json:
    ports = [
        {
            "name": port.get("name", ""),
            "port": port.get("targetPort", port["port"]),
            "protocol": port.get("protocol", "TCP"),
        }
        for port in item.spec.get("ports", ())
    ]
    return {
        "apiVersion": resources.ENDPOINT_SLICES.api_version,
        "kind": resources.ENDPOINT_SLICES.kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/service-name": item.name},
            "ownerReferences": [_owner(item)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports,
    }


def _has(desired: object, present: object) -> bool:
    """Report whether a document has all that another one has."""
    if isinstance(desired, dict) and isinstance(present, dict):
        return all(_has(value, present.get(key)) for key, value in desired.items())
    if isinstance(desired, list) and isinstance(present, list):
        pairs = zip(desired, present, strict=False)
        return len(desired) == len(present) and all(_has(*pair) for pair in pairs)
    return desired == present


def _shown(service: Item) -> Json:
    """Return the parts of a Service that its ServiceWithHealthchecks determines."""
    about = service.metadata
    metadata = {"labels": dict(about.labels), "annotations": dict(about.annotations)}
    return {"metadata": metadata, "spec": dict(service.spec)}


def _owner(item: Item) -> Json:
    return {
        "apiVersion": CHECKED_SERVICES.api_version,
        "kind": CHECKED_SERVICES.kind,
        "name": item.name,
        "uid": item.uid,
        "controller": True,
    }


def _own_service(item: Item) -> CreateObject:
    meta = {
        "name": item.name,
        "labels": dict(item.metadata.labels),
        "annotations": dict(item.metadata.annotations),
        "ownerReferences": [_owner(item)],
    }
    spec = {name: item.spec[name] for name in _COPIED if name in item.spec}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    return CreateObject(resources.SERVICES, item.namespace, body)
