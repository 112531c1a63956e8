"""Each transition of the simulated parent happens, on the facts it is based on."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import (
    ADDRESS_LEASES,
    ADDRESSES,
    ATTACHMENTS,
    CHECKED_SERVICES,
    CLASSES,
    DISKS,
    IMAGES,
    MACHINES,
    OPERATIONS,
)
from lib.lab.dvp.project import Project
from lib.lab.dvp.transitions import TRANSITIONS
from lib.lab.kube import kube_objects
from lib.lab.run import waiting
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.recorder import Recorder

SLICES = Resource(
    "discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True
)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
MISSING = "DatasourceIsNotFound"
WEB = {"port": 80, "targetPort": 30080, "protocol": "TCP", "name": "web"}


def disk_spec(storage: str, size: str) -> dict[str, object]:
    return {"persistentVolumeClaim": {"storageClassName": storage, "size": size}}


def attachment_spec(disk: str, machine: str) -> dict[str, object]:
    reference = {"kind": "VirtualDisk", "name": disk}
    return {"virtualMachineName": machine, "blockDeviceRef": reference}


class Play:
    """What the objects of a project go through, in acts."""

    def __init__(self, parent: DvpParent, project: Project) -> None:
        self.parent = parent
        self.project = project
        self.objects = kube_objects.Objects(parent.api, project.namespace)

    def wait(self, kind: Resource, name: str, *phases: str) -> None:
        self.parent.wait_phase(kind, self.project, name, *phases)

    def shows(self, kind: Resource, name: str, **fields: str) -> None:
        def is_shown() -> bool:
            item = self.objects.get(kind, name) or {}
            return bool(fields.items() <= item.get("status", {}).items())

        self.parent.wait(f"{name} has {fields}", is_shown)

    def reason(self, disk: str) -> str:
        """Return why a disk is not Ready."""
        item = self.objects.get(DISKS, disk) or {}
        rows = item.get("status", {}).get("conditions", ())
        return next((str(row["reason"]) for row in rows if row["type"] == "Ready"), "")

    def gone(self, kind: Resource, name: str) -> None:
        self.parent.wait(f"{name} is gone", lambda: not self.objects.get(kind, name))

    def operate(self, name: str, kind: str, phase: str = "Completed") -> None:
        operation = self.parent.operate(self.project, name, kind)
        self.wait(OPERATIONS, operation, phase)

    def disk(self, name: str, storage: str, size: str = "1Gi") -> None:
        self.objects.make(DISKS, name, spec=disk_spec(storage, size))

    def attach(self, name: str, disk: str, machine: str) -> None:
        self.objects.make(ATTACHMENTS, name, spec=attachment_spec(disk, machine))

    def machines(self) -> None:
        """VMs of every run policy; one that waits for its class; a static address."""
        static = {"type": "Static", "staticIP": "10.99.0.7"}
        self.objects.make(ADDRESSES, "static", spec=static)
        machine, project = self.parent.machine, self.project
        machine(project, "a", virtualMachineIPAddressName="static")
        machine(project, "manual", runPolicy="Manual")
        machine(project, "off", runPolicy="AlwaysOff")
        machine(project, "blocked", virtualMachineClassName="later")
        self.wait(MACHINES, "a", "Running")
        self.wait(MACHINES, "manual", "Stopped")
        self.wait(MACHINES, "off", "Stopped")
        self.operate("manual", "Start")
        self.objects.patch(MACHINES, "off", spec={"runPolicy": "AlwaysOn"})
        self.wait(MACHINES, "off", "Running")
        self.objects.patch(MACHINES, "off", spec={"runPolicy": "AlwaysOff"})
        self.wait(MACHINES, "off", "Stopped")
        self.objects.make(CLASSES, "later", spec={"cpu": {"type": "Host"}})
        self.wait(MACHINES, "blocked", "Running")

    def disks(self) -> None:
        """A disk that waits for its consumer is attached, expanded, moved."""
        self.disk("data", projects.STORAGE)
        self.wait(DISKS, "data", "WaitForFirstConsumer")
        self.attach("data-a", "data", "a")
        self.wait(ATTACHMENTS, "data-a", "Attached")
        self.attach("second", "a-boot", "a")
        self.wait(ATTACHMENTS, "second", "Failed")
        self.objects.patch(DISKS, "data", spec=disk_spec(projects.STORAGE, "2Gi"))
        self.shows(DISKS, "data", capacity="2Gi", phase="Ready")
        moved = disk_spec(projects.STORAGE_AT_ONCE, "2Gi")
        self.objects.patch(DISKS, "data", spec=moved)
        name = projects.STORAGE_AT_ONCE
        self.shows(DISKS, "data", storageClassName=name, phase="Ready")
        reference = {"kind": "VirtualImage", "name": "later"}
        source = {"type": "ObjectRef", "objectRef": reference}
        self.objects.make(DISKS, "copy", spec={"dataSource": source})
        self.parent.wait("copy has no image", lambda: self.reason("copy") == MISSING)
        http = {"type": "HTTP", "http": {"url": "https://lab.invalid/image"}}
        self.objects.make(IMAGES, "later", spec={"dataSource": http})
        self.wait(DISKS, "copy", "WaitForFirstConsumer")

    def balancers(self) -> None:
        """A label of a VM makes its address an endpoint of a parent's Service."""
        label = {"dvp.deckhouse.io/lb": "loadbalancer"}
        self.objects.patch(MACHINES, "a", metadata={"labels": label})
        spec = {"type": "LoadBalancer", "selector": label, "ports": [WEB]}
        self.objects.make(resources.SERVICES, "web", spec=spec)
        self.parent.serve_checked_services()
        self.objects.make(CHECKED_SERVICES, "checked", spec=spec)
        for name in ("web", "checked"):
            reads = functools.partial(self.is_served, name)
            self.parent.wait(f"{name} has an ingress and the endpoint", reads)

    def is_served(self, name: str) -> bool:
        return self.ingress(name) and self.endpoints(name) == ["10.99.0.7"]

    def ingress(self, name: str) -> bool:
        service = self.objects.get(resources.SERVICES, name) or {}
        return bool(service.get("status", {}).get("loadBalancer", {}).get("ingress"))

    def endpoints(self, name: str) -> list[str]:
        return [
            address
            for item in self.objects.all(SLICES)
            if item["metadata"]["labels"].get("kubernetes.io/service-name") == name
            for endpoint in item["endpoints"] or ()
            for address in endpoint["addresses"]
        ]

    def operations(self) -> None:
        """A VM migrates, stops, starts and restarts; an operation does not apply."""
        self.operate("a", "Migrate")
        self.operate("a", "Start", "Failed")
        self.operate("a", "Stop")
        self.wait(ATTACHMENTS, "data-a", "Pending")
        self.operate("a", "Start")
        self.wait(ATTACHMENTS, "data-a", "Attached")
        self.operate("a", "Restart")
        self.wait(ATTACHMENTS, "data-a", "Attached")

    def ends(self) -> None:
        """Attachment, disk and VM are deleted; the address is released."""
        self.objects.delete(ATTACHMENTS, "data-a", None)
        self.gone(ATTACHMENTS, "data-a")
        self.objects.delete(DISKS, "data", None)
        self.gone(DISKS, "data")
        self.objects.delete(MACHINES, "a", None)
        self.gone(MACHINES, "a")
        self.wait(ADDRESSES, "static", "Bound")
        self.objects.delete(ADDRESSES, "static", None)
        self.wait(ADDRESS_LEASES, "ip-10-99-0-7", "Released")


@pytest.fixture(scope="module")
def record(parent: DvpParent, project: Project) -> Iterator[Recorder]:
    """Record all acts."""
    recorder = Recorder(parent.api, project.namespace)
    recorder.wait_synced(60)
    slow = ("machine_running", "machine_stopped", "disk_volume", "attachment_attached")
    with (
        contextlib.closing(recorder),
        parent.delaying(**dict.fromkeys(slow, 0.3), disk_expanded=0.5, disk_moved=0.5),
    ):
        play = Play(parent, project)
        play.machines()
        play.disks()
        play.balancers()
        play.operations()
        play.ends()
        yield recorder
    parent.forget_checked_services()


def ordered(expected: Sequence[str], phases: Sequence[str]) -> bool:
    """Report whether some phases followed each other, whatever was between them."""
    rest = iter(phases)
    return all(phase in rest for phase in expected)


Check = Callable[[Recorder], bool]


def went(kind: Resource, name: str, *expected: str) -> Check:
    """Return the question whether an object had these phases one after the other."""
    return lambda record: ordered(expected, record.phases(kind, name))


def had(kind: Resource, name: str, type_: str, status: str, reason: str) -> Check:
    """Return the question whether an object had a condition."""

    def check(record: Recorder) -> bool:
        return reason in record.conditions(kind, name).get((type_, status), ())

    return check


def launchers(record: Recorder, machine: str) -> Sequence[str]:
    return record.names(resources.PODS, f"virt-launcher-{machine}-")


def nodes(record: Recorder) -> set[tuple[str, str]]:
    """Return nodes and addresses of the VM "a" while it ran."""
    return {
        (str(item.status.get("nodeName")), str(item.status.get("ipAddress")))
        for item in record.versions(MACHINES, "a")
        if item is not None and item.phase == "Running"
    }


def users(record: Recorder) -> list[list[str]]:
    """Return the VMs of the disk "data", each change once."""
    lists: list[list[str]] = []
    for item in record.versions(DISKS, "data"):
        rows = item.status.get("attachedToVirtualMachines", ()) if item else ()
        names = [row["name"] for row in rows]
        if not lists or lists[-1] != names:
            lists.append(names)
    return lists


def devices(record: Recorder) -> set[tuple[str, ...]]:
    """Return the lists of devices that the VM "a" had."""
    return {
        tuple(row["name"] for row in item.status.get("blockDeviceRefs", ()))
        for item in record.versions(MACHINES, "a")
        if item is not None
    }


def finalizers(record: Recorder, kind: Resource, name: str) -> set[str]:
    return {
        finalizer.rpartition("/")[2]
        for item in record.versions(kind, name)
        if item is not None
        for finalizer in item.metadata.finalizers
    }


def operations(record: Recorder, phase: str) -> bool:
    names = record.names(OPERATIONS)
    return any(phase in record.phases(OPERATIONS, name) for name in names)


def labelled(record: Recorder) -> bool:
    return any(
        item is not None and "dvp.deckhouse.io/lb" in item.metadata.labels
        for name in launchers(record, "a")
        for item in record.versions(resources.PODS, name)
    )


def claim_phases(record: Recorder, disk: str) -> Sequence[str]:
    (name,) = record.names(resources.CLAIMS, f"vd-{disk}-")
    return record.phases(resources.CLAIMS, name)


def ingresses(record: Recorder, name: str) -> bool:
    return any(
        item is not None and item.status.get("loadBalancer", {}).get("ingress")
        for item in record.versions(resources.SERVICES, name)
    )


WAIT = "WaitForFirstConsumer"
CHECKS: Mapping[str, Check] = {
    "machine-accepted": lambda record: "vm-cleanup"
    in finalizers(record, MACHINES, "a"),
    "machine-address": lambda record: bool(record.names(ADDRESSES, "manual-")),
    "machine-blocked": had(
        MACHINES,
        "blocked",
        "VirtualMachineClassReady",
        "False",
        "VirtualMachineClassNotReady",
    ),
    "machine-held-back": went(MACHINES, "manual", "Pending", "Stopped", "Running"),
    "machine-started": went(MACHINES, "a", "Pending", "Starting"),
    "machine-running": went(MACHINES, "a", "Starting", "Running"),
    "machine-labels": labelled,
    "machine-devices": lambda record: devices(record)
    >= {("a-boot",), ("a-boot", "data")},
    "machine-switched-off": went(MACHINES, "off", "Running", "Stopping", "Stopped"),
    "machine-switched-on": went(MACHINES, "off", "Stopped", "Starting", "Running"),
    "machine-stopped": went(MACHINES, "a", "Stopping", "Stopped", "Starting"),
    "machine-migrated": lambda record: went(MACHINES, "a", "Migrating", "Running")(
        record
    )
    and len({node for node, _ in nodes(record)}) >= 2
    and {address for _, address in nodes(record)} == {"10.99.0.7"},
    "machine-ending": went(MACHINES, "a", "Running", "Terminating"),
    "machine-gone": went(MACHINES, "a", "Terminating", "gone"),
    "pod-running": lambda record: went(
        resources.PODS, launchers(record, "a")[0], "Pending", "Running"
    )(record),
    "pod-gone": lambda record: all(
        record.phases(resources.PODS, name)[-1] == "gone"
        for name in launchers(record, "a")
    ),
    "disk-accepted": lambda record: "vd-cleanup" in finalizers(record, DISKS, "data"),
    "disk-refused": had(DISKS, "copy", "Ready", "False", MISSING),
    "disk-claimed": went(DISKS, "data", "Pending", WAIT),
    "disk-consumed": went(DISKS, "data", WAIT, "Provisioning"),
    "disk-volume": lambda record: ordered(
        ("Pending", "Bound"), claim_phases(record, "data")
    ),
    "disk-ready": went(DISKS, "data", "Provisioning", "Ready"),
    "disk-expanding": had(DISKS, "data", "Resizing", "True", "InProgress"),
    "disk-expanded": went(DISKS, "data", "Ready", "Resizing", "Ready"),
    "disk-moving": went(DISKS, "data", "Ready", "Migrating"),
    "disk-moved": went(DISKS, "data", "Migrating", "Ready"),
    "disk-used": lambda record: "vd-protection" in finalizers(record, DISKS, "data")
    and ["a"] in users(record),
    "disk-released": lambda record: users(record)[-1] == [],
    "disk-ending": went(DISKS, "data", "Ready", "Terminating"),
    "disk-gone": lambda record: went(DISKS, "data", "Terminating", "gone")(record)
    and claim_phases(record, "data")[-1] == "gone",
    "attachment-accepted": lambda record: "vmbda-cleanup"
    in finalizers(record, ATTACHMENTS, "data-a"),
    "attachment-waits": went(ATTACHMENTS, "data-a", "Attached", "Pending"),
    "attachment-conflict": had(ATTACHMENTS, "second", "Attached", "False", "Conflict"),
    "attachment-sent": went(ATTACHMENTS, "data-a", "Pending", "InProgress"),
    "attachment-attached": went(ATTACHMENTS, "data-a", "InProgress", "Attached"),
    "attachment-ending": went(ATTACHMENTS, "data-a", "Attached", "Terminating"),
    "attachment-gone": went(ATTACHMENTS, "data-a", "Terminating", "gone"),
    "image-provisioning": went(IMAGES, "later", "", "Provisioning"),
    "image-ready": went(IMAGES, "later", "Provisioning", "Ready"),
    "class-ready": went(CLASSES, "later", "", "Ready"),
    "address-bound": went(ADDRESSES, "static", "", "Bound"),
    "address-attached": went(ADDRESSES, "static", "Bound", "Attached"),
    "address-released": went(ADDRESSES, "static", "Attached", "Bound"),
    "lease-released": went(ADDRESS_LEASES, "ip-10-99-0-7", "Bound", "Released"),
    "operation-started": lambda record: operations(record, "InProgress"),
    "operation-done": lambda record: operations(record, "Completed"),
    "operation-failed": lambda record: operations(record, "Failed"),
    "service-ingress": lambda record: ingresses(record, "web"),
    "checked-service": lambda record: ingresses(record, "checked"),
    "checked-endpoints": lambda record: any(
        item is not None and item.endpoints
        for item in record.versions(resources.ENDPOINT_SLICES, "checked-checked")
    ),
}


def test_each_transition_happens(record: Recorder) -> None:
    """Prints a row for each; one without a check fails, as one too many does."""
    assert CHECKS.keys() == TRANSITIONS.keys()
    failed = []
    for name, facts in TRANSITIONS.items():
        happened = CHECKS[name](record)
        word = "happened" if happened else "DID NOT HAPPEN"
        print(f"{name:22} {word:14} {facts.section:46} {facts.change}")
        if facts.assumed:
            print(f"{'':22} {'assumed':14} {facts.assumed}")
        failed += [] if happened else [name]
    assert failed == []


def test_quotas_are_those_of_kubernetes(parent: DvpParent, project: Project) -> None:
    """The refusal of the real API server is what the disk reports; a VM does not."""
    other = parent.project(f"{project.namespace}-quota")
    objects = parent.objects(other)
    hard = {"requests.storage": "1Gi", "requests.cpu": "1"}
    objects.make(QUOTAS, "small", spec={"hard": hard})
    parent.wait(
        "the quota is counted",
        lambda: (objects.get(QUOTAS, "small") or {}).get("status", {}).get("used"),
    )
    objects.make(DISKS, "large", spec=disk_spec(projects.STORAGE, "2Gi"))
    parent.machine(other, "big", cpu={"cores": 2})
    rows = {
        (DISKS, "large"): ("Ready", "QuotaExceeded", "exceeded quota: small"),
        (MACHINES, "big"): ("Running", "PodNotStarted", "creating its instance failed"),
    }
    for (kind, name), (type_, reason, expected) in rows.items():

        def message(
            kind: Resource = kind,
            name: str = name,
            type_: str = type_,
            reason: str = reason,
        ) -> str | None:
            item = objects.get(kind, name) or {}
            return next(
                (
                    row["message"]
                    for row in item.get("status", {}).get("conditions", ())
                    if (row["type"], row["reason"]) == (type_, reason)
                ),
                None,
            )

        text = parent.wait(f"{name} has {reason}", message)
        print(f"{kind.kind:16} {name:8} {reason:14} {text}")
        assert expected in text


def is_crashed(objects: kube_objects.Objects) -> bool:
    vm = objects.get(MACHINES, "degraded") or {}
    rows = vm.get("status", {}).get("conditions", ())
    return "Crashed" in [row["reason"] for row in rows]


def test_failures_come_on_demand(parent: DvpParent, project: Project) -> None:
    """Each kind of failure that a test can ask for."""
    other = parent.project(f"{project.namespace}-failures")
    objects = parent.objects(other)
    parent.machines(other, ["f"])
    objects.make(DISKS, "good", spec=disk_spec(projects.STORAGE_AT_ONCE, "1Gi"))
    parent.wait_phase(DISKS, other, "good", "Ready")
    with parent.failing(
        "disk-volume bad ProvisioningFailed no room on any storage",
        "attachment-attached bad* DeviceNotAvailableOnNode not here",
        "machine-running degraded Crashed it does not boot",
    ):
        objects.make(DISKS, "bad", spec=disk_spec(projects.STORAGE_AT_ONCE, "1Gi"))
        objects.make(ATTACHMENTS, "bad-f", spec=attachment_spec("good", "f"))
        parent.machine(other, "degraded")
        parent.wait_phase(DISKS, other, "bad", "Failed")
        parent.wait_phase(ATTACHMENTS, other, "bad-f", "Failed")
        waiting.until("its failure is shown", lambda: is_crashed(objects))
    with parent.failing("machine-migrated f Aborted too much memory changes"):
        operation = parent.operate(other, "f", "Migrate")
        parent.wait_phase(OPERATIONS, other, operation, "Failed")
    parent.wait_phase(MACHINES, other, "f", "Running")
