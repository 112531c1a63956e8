"""Bad input in the flow: a condition, one Event, no hot loop; others are served."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.machines import machine_names
from lib.cloud.machines import Reason
from lib.kube import errors, resources
from lib.kube.fake import calls
from tests.contract import dvp_machines
from tests.contract.dvp_machines import CLASS, DISKS, IMAGE, SECRETS, STORAGE, VMS
from tests.harness.dvp import parent_api
from tests.lib.cloud.dvp.machines.stage import UUID, Life, Stage

HOUR_S = 3600.0
REQUESTS_MAX = 12
"""Requests to the parent within an hour, for one machine that cannot be created."""
RETRIES_MAX = 28
"""The same of a write that is retried: by the queue, and by drift detection."""
BACKOFF_MAX_S = 400.0
"""Longer than the longest delay between two attempts."""
QUOTA = "exceeded quota: project, requested: count/virtualmachines=1"
CLASSES, IMAGES = kinds.MACHINE_CLASSES.resource, kinds.CLUSTER_IMAGES.resource
STORAGE_CLASSES = kinds.STORAGE_CLASSES.resource
Arrange = Callable[[Stage], None]


@dataclasses.dataclass(frozen=True)
class BadInput:
    """One row. text: in the message. repair: what ends it; None: a new machine.

    event: its reason where it is not that of the condition. is_retried: no watch shows
    the end of the cause, so that the write is sent again.
    """

    reason: str
    text: str
    arrange: Arrange = lambda stage: None
    repair: Arrange | None = None
    spec: tuple[tuple[str, Any], ...] = ()
    event: str = ""
    is_retried: bool = False


def offer(kind: resources.Resource, name: str, **status: Any) -> Arrange:
    return lambda stage: stage.parent.offer(kind, name, **status)


def take(kind: resources.Resource, name: str, **labels: str) -> Arrange:
    """Return what creates an object of another owner with a name of ours."""

    def arrange(stage: Stage) -> None:
        about = {"name": name, "namespace": dvp_machines.NAMESPACE, "labels": labels}
        specs = {
            DISKS: {"persistentVolumeClaim": {"size": "1Mi"}},
            VMS: parent_api.vm_spec(),
        }
        stage.parent.put(kind, {"metadata": about, "spec": specs.get(kind, {})})

    return arrange


def drop(kind: resources.Resource, name: str) -> Arrange:
    space = dvp_machines.NAMESPACE if kind.namespaced else None
    return lambda stage: stage.parent.remove(kind, name, space)


def refuse(error: errors.KubeError, plural: str) -> Arrange:
    """Return what refuses every creation."""

    def arrange(stage: Stage) -> None:
        stage.parent.faults += [calls.Fault(error, "create", plural)] * 99

    return arrange


SIZING = errors.Forbidden(
    'admission webhook "vm.virtualization-controller.validate.d8-virtualization" denied'
    ' the request: does not match any sizing policy of VirtualMachineClass "small": its'
    " 2 CPU core(s) fall outside the allowed ranges (4-8); set the number of cores"
    " (spec.cpu.cores) accordingly",
    operation="POST",
    status=403,
)
"""Source: deckhouse/virtualization pkg/controller/service/errors.go."""


def sized(stage: Stage) -> None:
    stage.parent.offer(CLASSES, "small", phase="Ready")
    stage.parent.faults += [calls.Fault(SIZING, "create", VMS.plural)] * 99


OTHER = {ownership.CLUSTER: UUID, ownership.OWNER_UID: "another"}
PREREQUISITE, NOT_OWNED = str(Reason.PREREQUISITE), str(Reason.NOT_OWNED)
INVALID = str(Reason.INVALID_SPEC)
MISSING_IMAGE = {"kind": "ClusterVirtualImage", "name": "late"}
ROWS = {
    "class missing": BadInput(
        PREREQUISITE,
        'spec.vmClassName: unsupported value "late"',
        repair=offer(CLASSES, "late", phase="Ready"),
        spec=(("vmClassName", "late"),),
    ),
    "class not ready": BadInput(
        PREREQUISITE,
        "VirtualMachineClass late is Pending: must be Ready",
        offer(CLASSES, "late", phase="Pending"),
        offer(CLASSES, "late", phase="Ready"),
        (("vmClassName", "late"),),
    ),
    "image missing": BadInput(
        PREREQUISITE,
        'spec.bootDiskImageRef.name: unsupported value "late"',
        repair=offer(IMAGES, "late", phase="Ready"),
        spec=(("bootDiskImageRef", MISSING_IMAGE),),
    ),
    "image not ready": BadInput(
        PREREQUISITE,
        "ClusterVirtualImage late is Provisioning: must be Ready",
        offer(IMAGES, "late", phase="Provisioning"),
        offer(IMAGES, "late", phase="Ready"),
        (("bootDiskImageRef", MISSING_IMAGE),),
    ),
    "storage class missing": BadInput(
        PREREQUISITE,
        'spec.rootDiskStorageClass: unsupported value "late"',
        repair=offer(STORAGE_CLASSES, "late"),
        spec=(("rootDiskStorageClass", "late"),),
    ),
    "sizing policy not met": BadInput(
        "SizingPolicyNotMatched",
        "its 2 CPU core(s) fall outside the allowed ranges (4-8)",
        sized,
        spec=(("vmClassName", "small"),),
        is_retried=True,
    ),
    "image larger than its disk": BadInput(
        "ImageLargerThanDisk",
        'spec.rootDiskSize: invalid value "1Mi": must be at least 67108864',
        spec=(("rootDiskSize", "1Mi"),),
    ),
    "invalid quantity": BadInput(
        INVALID, 'spec.memory: invalid value "much"', spec=(("memory", "much"),)
    ),
    "invalid fraction": BadInput(
        INVALID,
        'spec.cpu.cpuFraction: invalid value "200%"',
        spec=(("cpu", {"cores": 2, "cpuFraction": "200%"}),),
    ),
    "policy Never": BadInput(
        INVALID,
        'spec.liveMigrationPolicy: unsupported value "Never"',
        spec=(("liveMigrationPolicy", "Never"),),
    ),
    "VM of another machine": BadInput(
        NOT_OWNED,
        f'VirtualMachine bad of the parent: label {ownership.OWNER_UID} is "another"',
        take(VMS, "bad", **OTHER),
        drop(VMS, "bad"),
    ),
    "VM of another cluster": BadInput(
        NOT_OWNED,
        f'VirtualMachine bad of the parent: label {ownership.CLUSTER} is "other"',
        take(VMS, "bad", **{ownership.CLUSTER: "other"}),
    ),
    "Secret of another client": BadInput(
        NOT_OWNED,
        "Secret cloud-init-bad of the parent",
        take(SECRETS, machine_names.secret("bad")),
    ),
    "disk of another machine": BadInput(
        NOT_OWNED,
        "VirtualDisk bad-boot of the parent",
        take(
            DISKS,
            machine_names.boot_disk("bad"),
            **OTHER,
            **{ownership.HOSTNAME: "bad"},
        ),
        drop(DISKS, machine_names.boot_disk("bad")),
    ),
    "quota of VMs": BadInput(
        "QuotaExceeded",
        f"create virtualmachine bad: {QUOTA}",
        refuse(errors.Forbidden(QUOTA, operation="POST", status=403), VMS.plural),
        lambda stage: stage.parent.faults.clear(),
        is_retried=True,
    ),
    "quota of disks": BadInput(
        "QuotaExceeded",
        f"create virtualdisk bad-boot: {QUOTA}",
        refuse(errors.Forbidden(QUOTA, operation="POST", status=403), DISKS.plural),
        lambda stage: stage.parent.faults.clear(),
        is_retried=True,
    ),
    "creation forbidden": BadInput(
        str(Reason.ERROR),
        "create virtualmachine bad: no right",
        refuse(errors.Forbidden("no right", operation="POST", status=403), VMS.plural),
        lambda stage: stage.parent.faults.clear(),
        event="CredentialsRejected",
        is_retried=True,
    ),
}


def wait(process: Life, seconds: float) -> None:
    """Reconcile what is due within some seconds: queue, periods and backoffs."""
    stage = process.ground
    end = stage.now_s + seconds
    while stage.now_s < end:
        process.relist()
        process.turn()
        stage.now_s += 5.0


@pytest.mark.parametrize("row", ROWS)
def test_bad_input_is_a_condition_and_one_event(row: str) -> None:
    case = ROWS[row]
    stage = Stage()
    stage.machine("good")
    process = Life(stage)
    wait(process, 30)
    case.arrange(stage)
    stage.machine("bad", **dict(case.spec))
    wait(process, 120)
    process.send_events()
    conditions = stage.conditions("bad")
    assert conditions["Ready"] == ("False", case.reason), conditions
    machine = stage.get(stage.kinds.machine, "bad") or {}
    (ready,) = (c for c in machine["status"]["conditions"] if c["type"] == "Ready")
    assert case.text in ready["message"]
    assert stage.conditions("good")["Ready"] == ("True", "VMRunning")
    expected = case.event or case.reason
    events = [event for event in stage.events() if f" {expected}: " in event]
    print(f"{row}: {events}")
    assert len(events) == 1
    assert case.text in events[0]
    before = len(stage.requests())
    wait(process, HOUR_S)
    requests = stage.requests()[before:]
    print(f"within an hour: {len(requests)} requests to the parent")
    assert len(requests) <= (RETRIES_MAX if case.is_retried else REQUESTS_MAX)
    process.send_events()
    assert [event for event in stage.events() if f" {expected}: " in event] == events
    if case.repair is not None:
        case.repair(stage)
        wait(process, BACKOFF_MAX_S if case.is_retried else 30)
        assert stage.conditions("bad")["Ready"] == ("True", "VMRunning")
    else:
        stage.delete("bad")
        wait(process, 30)
        assert stage.get(stage.kinds.machine, "bad") is None


def test_the_cluster_uuid_must_be_that_of_the_parent() -> None:
    stage = Stage()
    stage.settings = {}
    stage.machine("bad")
    process = Life(stage)
    process.access.cluster_uuid = "another"
    wait(process, 60)
    assert stage.conditions("bad")["Ready"] == ("False", INVALID)
    assert stage.requests() == []


def test_many_machines_at_once_write_few_statuses() -> None:
    """As many writes for each as for one; no request but its creations."""
    count = 40
    stage = Stage()
    stage.parent.moves = False
    for number in range(count):
        stage.machine(f"worker-{number}")
    Life(stage).settle()
    states = stage.state()["machines"].values()
    assert all(m["conditions"]["Ready"] == ("True", "VMRunning") for m in states)
    statuses = [c for c in stage.api.calls if c.is_write and c.subresource == "status"]
    requests = stage.requests()
    print(f"{count} machines: {len(statuses)} writes, {len(requests)} requests")
    assert len(statuses) <= 3 * count
    assert len(requests) == 4 * count


def test_names_of_classes_that_exist_are_in_the_message() -> None:
    stage = Stage()
    stage.machine("bad", vmClassName="other", rootDiskStorageClass="other")
    process = Life(stage)
    wait(process, 60)
    machine = stage.get(stage.kinds.machine, "bad") or {}
    (ready,) = (c for c in machine["status"]["conditions"] if c["type"] == "Ready")
    print(ready["message"])
    assert f"must be one of {CLASS}, the VirtualMachineClass" in ready["message"]
    assert f"must be one of {STORAGE}, the StorageClass" in ready["message"]
    assert IMAGE not in ready["message"]
