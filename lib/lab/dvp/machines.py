"""How VirtualMachines and their launcher Pods move. Pure."""

import datetime
import zlib
from collections.abc import Iterator, Mapping, Sequence

from lib.kube import resources
from lib.lab.dvp import writes
from lib.lab.dvp.kinds import (
    ADDRESSES,
    ATTACHMENTS,
    CLASSES,
    CLUSTER_IMAGES,
    DISKS,
    GROUP,
    IMAGES,
    MACHINES,
    OPERATIONS,
    Item,
    Json,
    World,
)
from lib.lab.dvp.writes import CreateObject, DeleteObject, Finding, Step

FINALIZER = f"{GROUP}/vm-cleanup"
MACHINE_LABEL = f"vm.kubevirt.internal.{GROUP}/name"
NODE_LABEL = f"lab.{GROUP}/hypervisor"
ALIVE = ("Running", "Migrating")
_DEVICE_KINDS = {kind.kind: kind for kind in (DISKS, IMAGES, CLUSTER_IMAGES)}
_SECRETS = {
    "userDataRef": (f"provisioning.{GROUP}/cloud-init", ("userData", "userdata")),
    "sysprepRef": (
        f"provisioning.{GROUP}/sysprep",
        ("autounattend.xml", "unattend.xml"),
    ),
}
_RUNNING = Finding("Running", True, "Running")


def decide(world: World, now: datetime.datetime) -> Iterator[Step]:
    """Yield what happens to each VirtualMachine and its Pods."""
    pods = _launchers(world)
    attached = _attached(world)
    for vm in world.of(MACHINES).values():
        own = pods.get(vm.metadata.key, ())
        if vm.is_ending:
            yield from _end(vm, own, now)
            continue
        step = _phase(world, vm, own, now)
        if step is not None:
            yield step
        yield from _labels(vm, own)
        yield from _devices(world, vm, attached.get(vm.metadata.key, {}))
    yield from _pods(world, now)


def _launchers(world: World) -> Mapping[str, Sequence[Item]]:
    """Return the launcher Pods of each VirtualMachine, by its key."""
    pods: dict[str, list[Item]] = {}
    for pod in world.of(resources.PODS).values():
        name = pod.metadata.labels.get(MACHINE_LABEL)
        if name:
            pods.setdefault(f"{pod.namespace}/{name}", []).append(pod)
    return pods


def _attached(world: World) -> Mapping[str, Mapping[tuple[str, str], str]]:
    """Return, by the key of the VM, its attached devices with their attachments."""
    attached: dict[str, dict[tuple[str, str], str]] = {}
    for item in world.of(ATTACHMENTS).values():
        if item.phase in ("Attached", "Terminating") and _is_attached(item):
            reference = item.spec["blockDeviceRef"]
            key = f"{item.namespace}/{item.spec['virtualMachineName']}"
            device = (reference["kind"], reference["name"])
            attached.setdefault(key, {})[device] = item.name
    return attached


def _is_attached(item: Item) -> bool:
    rows = item.status.get("conditions", ())
    return any(
        row["type"] == "Attached" and row["status"] == "True" for row in rows
    ) or (item.phase == "Attached")


def ready(pod: Item) -> bool:
    """Report whether a Pod is Ready."""
    rows = pod.status.get("conditions", ())
    return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)


def _phase(
    world: World, vm: Item, pods: Sequence[Item], now: datetime.datetime
) -> Step | None:
    if not vm.phase:
        return _accept(vm, now)
    if vm.phase == "Pending":
        return _start(world, vm, pods, now)
    if vm.phase == "Starting":
        return _run(world, vm, pods, now)
    if vm.phase == "Stopping":
        return _stop(world, vm, pods, now)
    switched = _switched(vm)
    if switched is None and vm.phase == "Migrating":
        return _migrate(vm, pods, now)
    return switched


def _switched(vm: Item) -> Step | None:
    """Return what a changed run policy does to a VM that runs, or is stopped."""
    policy = vm.spec.get("runPolicy")
    if vm.phase in ALIVE and policy == "AlwaysOff":
        fields = {"phase": "Stopping"}
        return Step("machine-switched-off", vm, [writes.status(MACHINES, vm, fields)])
    if vm.phase == "Stopped" and policy == "AlwaysOn":
        fields = {"phase": "Pending"}
        return Step("machine-switched-on", vm, [writes.status(MACHINES, vm, fields)])
    return None


def _accept(vm: Item, now: datetime.datetime) -> Step:
    rows = writes.conditions(vm, now, Finding("Running", False, "NotRunning"))
    fields = {"phase": "Pending", "conditions": rows}
    return Step(
        "machine-accepted",
        vm,
        [
            writes.finalizers(MACHINES, vm, with_=FINALIZER),
            writes.status(MACHINES, vm, fields),
        ],
    )


def address_of(world: World, vm: Item) -> Item | None:
    """Return the VirtualMachineIPAddress of a VM; None when there is none."""
    name = vm.spec.get("virtualMachineIPAddressName") or auto_address(vm)
    return world.get(ADDRESSES, vm.namespace, name)


def auto_address(vm: Item) -> str:
    """Return the name of the address that a VM gets by itself."""
    return f"{vm.name}-{zlib.crc32(vm.uid.encode()):08x}"


def _start(
    world: World, vm: Item, pods: Sequence[Item], now: datetime.datetime
) -> Step | None:
    if address_of(world, vm) is None and not vm.spec.get("virtualMachineIPAddressName"):
        return Step("machine-address", vm, [_auto(vm)])
    missing = _missing(world, vm)
    if missing is not None:
        return _blocked(world, vm, missing, now)
    policy = vm.spec.get("runPolicy")
    if policy in ("AlwaysOff", "Manual") and not _is_asked(world, vm, "Start"):
        held = writes.status(MACHINES, vm, {"phase": "Stopped"})
        return Step("machine-held-back", vm, [held])
    node = place(world, vm, ())
    if node is None:
        reason = Finding("Running", False, "PodNotStarted", "no node fits the VM")
        return _blocked(world, vm, reason, now)
    settled = [_RUNNING_CLASS, _RUNNING_DEVICES, _RUNNING_ADDRESS, _PROVISIONED]
    rows = writes.conditions(vm, now, *settled, _NOT_RUNNING)
    fields: Json = {"phase": "Starting", "conditions": rows, **_addressed(world, vm)}

    def refuse(reason: str, message: str) -> writes.Call:
        del reason, message
        condition = Finding("Running", False, "PodNotStarted", _NO_POD)
        changed = {"conditions": writes.conditions(vm, now, condition)}
        return writes.status(MACHINES, vm, changed)

    created = [] if pods else [launcher(vm, node)]
    calls: list[writes.Call] = [*created, writes.status(MACHINES, vm, fields)]
    return Step("machine-started", vm, calls, refuse)


_NO_POD = "Cannot start the virtual machine: creating its instance failed."
"""Source: deckhouse/virtualization pkg/controller/vm/internal/util.go
(vmStartupMessage): a fixed text, without that of the API server."""
_RUNNING_CLASS = Finding("VirtualMachineClassReady", True, "VirtualMachineClassReady")
_RUNNING_DEVICES = Finding("BlockDevicesReady", True, "BlockDevicesReady")
_RUNNING_ADDRESS = Finding(
    "VirtualMachineIPAddressReady", True, "VirtualMachineIPAddressReady"
)
_PROVISIONED = Finding("ProvisioningReady", True, "ProvisioningReady")
_NOT_RUNNING = Finding("Running", False, "NotRunning")


def _is_asked(world: World, vm: Item, *types: str) -> bool:
    """Report whether an operation of these types waits for a VM; Restart starts it."""
    return any(
        item.spec["virtualMachineName"] == vm.name
        and item.spec["type"] in (*types, "Restart")
        and item.phase not in ("Completed", "Failed", "Superseded")
        for item in world.within(OPERATIONS, vm.namespace)
    )


def _addressed(world: World, vm: Item) -> Json:
    """Return the address of a VM in its status, which it has as soon as it is bound."""
    address = address_of(world, vm)
    if address is None or not address.status.get("address"):
        return {}
    name = {"virtualMachineIPAddressName": address.name}
    return {**name, "ipAddress": address.status["address"]}


def _auto(vm: Item) -> CreateObject:
    body = {
        "apiVersion": ADDRESSES.api_version,
        "kind": ADDRESSES.kind,
        "metadata": {"name": auto_address(vm), "ownerReferences": [owner(vm)]},
        "spec": {"type": "Auto"},
    }
    return CreateObject(ADDRESSES, vm.namespace, body)


def owner(vm: Item) -> Json:
    """Return an owner reference to a VirtualMachine."""
    kind: Json = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind}
    return {**kind, "name": vm.name, "uid": vm.uid, "controller": True}


def _missing(world: World, vm: Item) -> Finding | None:
    """Return what a VM waits for; None when it can start."""
    name = str(vm.spec["virtualMachineClassName"])
    kind = world.get(CLASSES, "", name)
    if kind is None or kind.phase != "Ready":
        text = f"VirtualMachineClass {name} is missing or not Ready"
        reason = "VirtualMachineClassNotReady"
        return Finding("VirtualMachineClassReady", False, reason, text)
    for reference in vm.spec["blockDeviceRefs"]:
        problem = _device_problem(world, vm, reference)
        if problem:
            reason = "BlockDevicesNotReady"
            return Finding("BlockDevicesReady", False, reason, problem)
    problem = _secret_problem(world, vm)
    if problem:
        return Finding("ProvisioningReady", False, "ProvisioningNotReady", problem)
    address = address_of(world, vm)
    if address is None or address.phase not in ("Bound", "Attached"):
        reason = "VirtualMachineIPAddressNotReady"
        return Finding("VirtualMachineIPAddressReady", False, reason, "no address")
    return None


def _device_problem(world: World, vm: Item, reference: Json) -> str:
    kind = _DEVICE_KINDS[reference["kind"]]
    device = world.get(kind, vm.namespace, reference["name"])
    what = f"{kind.kind} {reference['name']}"
    if device is None:
        return f"{what} is missing"
    usable = ("Ready", "WaitForFirstConsumer", "Provisioning", "Resizing", "Migrating")
    if device.phase not in (usable if kind is DISKS else ("Ready",)):
        return f"{what} is {device.phase or 'new'}"
    return ""


def _secret_problem(world: World, vm: Item) -> str:
    provisioning = vm.spec.get("provisioning") or {}
    for member, (type_, keys) in _SECRETS.items():
        if member not in provisioning:
            continue
        name = provisioning[member]["name"]
        secret = world.get(resources.SECRETS, vm.namespace, name)
        if secret is None or secret.type != type_:
            return f"Secret {name} is missing or its type is not {type_}"
        if not any(key in (secret.data or {}) for key in keys):
            return f"Secret {name} has none of the keys {', '.join(keys)}"
    return ""


def _blocked(
    world: World, vm: Item, reason: Finding, now: datetime.datetime
) -> Step | None:
    address = _addressed(world, vm)
    is_shown = vm.status.get("ipAddress", "") == address.get("ipAddress", "")
    if writes.holds(vm, reason) and is_shown:
        return None
    fields = {"conditions": writes.conditions(vm, now, reason), **address}
    return Step("machine-blocked", vm, [writes.status(MACHINES, vm, fields)])


def place(world: World, vm: Item, besides: Sequence[str]) -> str | None:
    """Return the node that a VM runs on; None when none fits. besides: others."""
    kind = world.get(CLASSES, "", str(vm.spec["virtualMachineClassName"]))
    selector = dict(vm.spec.get("nodeSelector") or {})
    if kind is not None:
        selector |= (kind.spec.get("nodeSelector") or {}).get("matchLabels") or {}
    fitting = sorted(
        node.name
        for node in world.of(resources.NODES).values()
        if NODE_LABEL in node.metadata.labels
        and selector.items() <= dict(node.metadata.labels).items()
        and node.name not in besides
    )
    return fitting[zlib.crc32(vm.uid.encode()) % len(fitting)] if fitting else None


def launcher(vm: Item, node: str) -> CreateObject:
    """Return the creation of a VM's launcher Pod on a node."""
    number = zlib.crc32(f"{vm.uid} {node}".encode())
    room = {
        "cpu": str(vm.spec["cpu"]["cores"]),
        "memory": str(vm.spec["memory"]["size"]),
    }
    body: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-launcher-{vm.name}-{number:08x}",
            "labels": {**vm.metadata.labels, MACHINE_LABEL: vm.name},
            "annotations": dict(vm.metadata.annotations),
            "ownerReferences": [owner(vm)],
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [
                {
                    "name": "compute",
                    "image": "lab.invalid/launcher",
                    "resources": {"requests": room, "limits": room},
                }
            ],
        },
    }
    return CreateObject(resources.PODS, vm.namespace, body)


def _run(
    world: World, vm: Item, pods: Sequence[Item], now: datetime.datetime
) -> Step | None:
    alive = [pod for pod in pods if ready(pod) and not pod.is_ending]
    address = address_of(world, vm)
    disks = [
        world.get(DISKS, vm.namespace, reference["name"])
        for reference in vm.spec["blockDeviceRefs"]
        if reference["kind"] == DISKS.kind
    ]
    settled = all(disk and disk.phase not in _UNSETTLED for disk in disks)
    if not alive or address is None or not settled:
        return None
    fields = {
        **_on(alive[0]),
        "phase": "Running",
        **_addressed(world, vm),
        "guestOSInfo": {"name": "Simulated", "versionId": "1"},
        "conditions": writes.conditions(
            vm, now, _RUNNING, Finding("AgentReady", True, "AgentReady")
        ),
    }

    def fail(reason: str, message: str) -> writes.Call:
        row = Finding("Running", False, reason, message)
        changed = {"phase": "Pending", "conditions": writes.conditions(vm, now, row)}
        return writes.status(MACHINES, vm, changed)

    calls = [writes.status(MACHINES, vm, fields)]
    return Step("machine-running", vm, calls, failed=fail)


_UNSETTLED = ("", "Pending", "WaitForFirstConsumer", "Provisioning")


def _on(pod: Item) -> Json:
    pods = [{"name": pod.name, "active": True}]
    return {"nodeName": pod.spec.get("nodeName", ""), "virtualMachinePods": pods}


def _migrate(vm: Item, pods: Sequence[Item], now: datetime.datetime) -> Step | None:
    source = str(vm.status.get("nodeName", ""))
    targets = [
        pod
        for pod in pods
        if pod.spec.get("nodeName") != source and ready(pod) and not pod.is_ending
    ]
    if not targets:
        return None
    ends = {
        "source": {"node": source},
        "target": {"node": targets[0].spec.get("nodeName")},
    }
    done = Finding("Migrating", False, "Completed")
    fields = {
        **_on(targets[0]),
        "phase": "Running",
        "migrationState": {**ends, "result": "Succeeded"},
        "conditions": writes.conditions(vm, now, done),
    }
    left = [pod for pod in pods if pod is not targets[0]]

    def fail(reason: str, message: str) -> writes.Call:
        row = Finding("Migrating", False, reason, message)
        changed = {
            "phase": "Running",
            "migrationState": {**ends, "result": "Failed"},
            "conditions": writes.conditions(vm, now, row),
        }
        return writes.status(MACHINES, vm, changed)

    calls: list[writes.Call] = [
        writes.status(MACHINES, vm, fields),
        *map(_remove, left),
    ]
    return Step("machine-migrated", vm, calls, failed=fail)


def _remove(pod: Item) -> DeleteObject:
    return DeleteObject(resources.PODS, pod.namespace, pod.name, pod.uid)


def _stop(world: World, vm: Item, pods: Sequence[Item], now: datetime.datetime) -> Step:
    if pods:
        return Step("machine-stopped", vm, [_remove(pod) for pod in pods])
    fields = {
        "phase": "Pending" if _is_asked(world, vm) else "Stopped",
        "nodeName": "",
        "virtualMachinePods": [],
        "conditions": writes.conditions(vm, now, _NOT_RUNNING),
    }
    return Step("machine-stopped", vm, [writes.status(MACHINES, vm, fields)])


def _end(vm: Item, pods: Sequence[Item], now: datetime.datetime) -> Iterator[Step]:
    if vm.phase != "Terminating":
        fields = {
            "phase": "Terminating",
            "conditions": writes.conditions(vm, now, _NOT_RUNNING),
        }
        yield Step("machine-ending", vm, [writes.status(MACHINES, vm, fields)])
    elif pods:
        yield Step("machine-ending", vm, [_remove(pod) for pod in pods])
    elif FINALIZER in vm.metadata.finalizers:
        calls = [writes.finalizers(MACHINES, vm, without=FINALIZER)]
        yield Step("machine-gone", vm, calls)


def _labels(vm: Item, pods: Sequence[Item]) -> Iterator[Step]:
    desired = {**vm.metadata.labels, MACHINE_LABEL: vm.name}
    for pod in pods:
        present = dict(pod.metadata.labels)
        # Others get them through the template of the instance, at their next start.
        is_running = pod.phase == "Running"
        if present != desired and is_running and not pod.is_ending:
            labels = {**dict.fromkeys(present), **desired}
            body = {"metadata": {"labels": labels}}
            call = writes.PatchObject(resources.PODS, pod, body)
            yield Step("machine-labels", pod, [call])


def _devices(
    world: World, vm: Item, attached: Mapping[tuple[str, str], str]
) -> Iterator[Step]:
    if vm.phase not in (*ALIVE, "Stopped"):
        return
    desired = devices(world, vm, attached)
    if vm.status.get("blockDeviceRefs", []) != desired:
        fields = {"blockDeviceRefs": desired}
        yield Step("machine-devices", vm, [writes.status(MACHINES, vm, fields)])


def devices(
    world: World, vm: Item, attached: Mapping[tuple[str, str], str]
) -> list[Json]:
    """Return status.blockDeviceRefs: the devices of the spec, then hot-plugged ones."""
    static = [
        {
            "kind": reference["kind"],
            "name": reference["name"],
            "bootOrder": reference.get("bootOrder", number),
        }
        for number, reference in enumerate(vm.spec["blockDeviceRefs"], 1)
    ]
    plugged = [
        {
            "kind": kind,
            "name": name,
            "hotplugged": True,
            "virtualMachineBlockDeviceAttachmentName": attachment,
        }
        for (kind, name), attachment in sorted(attached.items())
    ]
    # A device that stays keeps its letter, whatever becomes of others.
    before = {
        (row["kind"], row["name"]): row.get("target", "")
        for row in vm.status.get("blockDeviceRefs", ())
    }
    kept = set(before.values())
    free = (f"sd{chr(97 + n)}" for n in range(26) if f"sd{chr(97 + n)}" not in kept)
    rows = []
    for row in [*static, *plugged]:
        disk = world.get(_DEVICE_KINDS[row["kind"]], vm.namespace, row["name"])
        size = disk.status.get("capacity", "") if disk else ""
        target = before.get((row["kind"], row["name"])) or next(free)
        rows.append(
            {**row, "size": size, "attached": vm.phase in ALIVE, "target": target}
        )
    return rows


def _pods(world: World, now: datetime.datetime) -> Iterator[Step]:
    for pod in world.of(resources.PODS).values():
        name = pod.metadata.labels.get(MACHINE_LABEL)
        if not name:
            continue
        if pod.is_ending:
            yield Step("pod-gone", pod, [_remove(pod)])
            continue
        vm = world.get(MACHINES, pod.namespace, name)
        address = address_of(world, vm) if vm else None
        if vm is None or address is None or ready(pod):
            continue
        body = {"status": _pod_status(str(address.status.get("address", "")), now)}
        call = writes.PatchObject(resources.PODS, pod, body, "status")
        yield Step("pod-running", pod, [call])


def _pod_status(address: str, now: datetime.datetime) -> Json:
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": at,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": at} for kind in kinds
        ],
        "containerStatuses": [
            {
                "name": "compute",
                "image": "lab.invalid/launcher",
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": at}},
            }
        ],
    }
