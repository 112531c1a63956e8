"""Volumes of DVP between their phases: first consumers, quotas, devices, waits."""

import concurrent.futures
import contextlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
import pytest

from lib.kube import resources
from lib.lab.dvp import project as projects
from lib.lab.dvp import quantities
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness.dvp import csi_dvp, recorder
from tests.harness.dvp.dvp_parent import DvpParent, machine_spec

GIB = csi_dvp.GIB
NODE = "node-1"
FULL = "node-full"
VM = "node-1-0a1b2c"
"""Of NODE: a VM of Terraform has another name than its Node."""
QUOTA = resources.Resource("", "v1", "resourcequotas", "ResourceQuota", True)
STATIC = 15
"""Static disks of FULL: one device of 16 is left."""
WAITS_S = 1.5
"""For which an RPC must still be waiting."""


@pytest.fixture(scope="module")
def driver(
    parent: DvpParent, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[csi_dvp.CsiDvp]:
    parent.machine(project, NODE, name=VM)
    objects = parent.objects(project)
    claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": "1Mi"}
    boot = machine_spec(f"{FULL}-boot")["blockDeviceRefs"]
    names = [f"{FULL}-{number}" for number in range(1, STATIC)]
    for name in names:
        objects.make(DISKS, name, spec={"persistentVolumeClaim": claim})
    refs = [{"kind": DISKS.kind, "name": name} for name in names]
    parent.machine(project, FULL, blockDeviceRefs=[*boot, *refs])
    for name in (VM, FULL):
        parent.wait_phase(MACHINES, project, name, "Running")
    state = tmp_path_factory.mktemp("csi")
    with csi_dvp.running(state, parent.where, project) as started:
        yield started


@pytest.fixture()
def recorded(parent: DvpParent, project: Project) -> Iterator[recorder.Recorder]:
    """Record every phase of the project's objects."""
    new = recorder.Recorder(parent.api, project.namespace)
    try:
        new.wait_synced(30)
        yield new
    finally:
        new.close()


def new_name() -> str:
    return f"pvc-{uuid.uuid4()}"


def attachment_of(disk: str, node: str = NODE) -> str:
    return f"vmbda-{disk}-{node}"


def refused(call: Callable[[], object]) -> tuple[str, str]:
    """Return code and message of a call that is refused."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    return error.code().name, error.details()


class PendingRpc:
    """An RPC that is called beside the test."""

    def __init__(self, pool: concurrent.futures.Executor, call: Any) -> None:
        self._call = pool.submit(call)

    def still_waits(self) -> None:
        """Fail if the RPC has returned."""
        done, _ = concurrent.futures.wait([self._call], WAITS_S)
        assert not done, self._call.result()

    def result(self) -> Any:
        """Return the answer of the RPC."""
        return self._call.result(60)


@contextlib.contextmanager
def beside(call: Callable[[], object]) -> Iterator[PendingRpc]:
    """Call an RPC while the block runs."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield PendingRpc(pool, call)


def test_a_volume_waits_for_its_first_consumer(
    driver: csi_dvp.CsiDvp,
    parent: DvpParent,
    project: Project,
    recorded: recorder.Recorder,
) -> None:
    """With a class that binds late it is created, expanded, attached and deleted."""
    name, objects = new_name(), parent.objects(project)
    created = driver.create(name, dvpStorageClass=projects.STORAGE)
    assert created.capacity_bytes == GIB
    parent.wait_phase(DISKS, project, name, "WaitForFirstConsumer")
    assert driver.create(name, dvpStorageClass=projects.STORAGE) == created
    assert (objects.get(DISKS, name) or {})["status"].get("capacity", "") == ""
    context = driver.publish(name, NODE)
    disk = objects.get(DISKS, name) or {}
    assert context == {csi_dvp.UID_KEY: disk["metadata"]["uid"]}
    assert quantities.parse(disk["status"]["capacity"]) == GIB
    assert driver.expand(name, 2 * GIB) == 2 * GIB
    driver.unpublish(name, NODE)
    driver.delete(name)
    waiting.until(
        "its end is recorded", lambda: recorded.phases(DISKS, name)[-1] == "gone"
    )
    phases = list(recorded.phases(DISKS, name))
    attached = list(recorded.phases(ATTACHMENTS, attachment_of(name)))
    print("disk:", *phases)
    print("attachment:", *attached)
    first = phases.index("WaitForFirstConsumer")
    assert phases[first : first + 3] == [
        "WaitForFirstConsumer",
        "Provisioning",
        "Ready",
    ]
    assert phases.index("Resizing") < phases.index("Terminating")
    assert attached.index("InProgress") < attached.index("Attached")


def test_a_quota_of_the_parent_is_reached_and_freed(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """A real ResourceQuota: of creation and of expansion; nothing remains of either."""
    objects = parent.objects(project)
    held, more = new_name(), new_name()
    driver.create(held)
    used = sum(
        quantities.parse(claim["spec"]["resources"]["requests"]["storage"])
        for claim in objects.all(resources.CLAIMS)
    )
    hard = {"requests.storage": str(used + GIB // 2)}
    objects.make(QUOTA, "storage", spec={"hard": hard})
    try:
        parent.wait(
            "the quota is in force",
            lambda: (objects.get(QUOTA, "storage") or {}).get("status", {}).get("used"),
        )
        code, message = refused(lambda: driver.create(more))
        print(f"CreateVolume: {code}: {message}")
        assert code == "RESOURCE_EXHAUSTED"
        assert "exceeded quota: storage" in message
        for expected in ("INTERNAL", "RESOURCE_EXHAUSTED"):
            code, message = refused(lambda: driver.expand(held, 3 * GIB))
            print(f"ControllerExpandVolume: {code}: {message}")
            assert code == expected
        # The first call has asked for it; external-resizer repeats it.
        assert "exceeded quota: storage" in message
        parent.wait("nothing of it remains", lambda: objects.get(DISKS, more) is None)
        hard = {"requests.storage": str(used + 4 * GIB)}
        objects.patch(QUOTA, "storage", spec={"hard": hard})
        waiting.until("it is created", lambda: created(driver, more))
        waiting.until("it is expanded", lambda: expanded(driver, held, 3 * GIB))
    finally:
        objects.delete(QUOTA, "storage")
        for name in (held, more):
            driver.delete(name)


def created(driver: csi_dvp.CsiDvp, name: str) -> bool:
    """Create a volume, as external-provisioner repeats it; report whether it exists."""
    try:
        driver.create(name)
    except grpc.RpcError as error:
        print("not yet:", error)
        return False
    return True


def expanded(driver: csi_dvp.CsiDvp, name: str, size: int) -> bool:
    """Expand a volume, as external-resizer repeats it."""
    try:
        return driver.expand(name, size) == size
    except grpc.RpcError as error:
        print("not yet:", error)
        return False


def test_each_rpc_waits_for_both_sides(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """Each RPC ends when the parent is done, and not before; a table is printed."""
    name, objects = new_name(), parent.objects(project)
    title = attachment_of(name)

    def phase(kind: resources.Resource, of: str) -> str:
        return str((objects.get(kind, of) or {}).get("status", {}).get("phase", "gone"))

    rows: Sequence[tuple[str, str, Callable[[], object], Callable[[], bool]]] = (
        (
            "CreateVolume: until the disk is Ready",
            f"disk-ready {name}",
            lambda: driver.create(name),
            lambda: phase(DISKS, name) == "Provisioning",
        ),
        (
            "ControllerPublishVolume: until it is Attached",
            f"attachment-attached {title}",
            lambda: driver.publish(name, NODE),
            lambda: phase(ATTACHMENTS, title) == "InProgress",
        ),
        (
            "ControllerExpandVolume: until the resize ended",
            f"disk-expanded {name}",
            lambda: driver.expand(name, 2 * GIB),
            lambda: phase(DISKS, name) == "Resizing",
        ),
        (
            "ControllerUnpublishVolume: until the attachment is deleted",
            f"attachment-gone {title}",
            lambda: driver.unpublish(name, NODE),
            lambda: phase(ATTACHMENTS, title) == "Terminating",
        ),
        (
            "ControllerUnpublishVolume: until the disk does not list the VM",
            f"disk-released {name}",
            lambda: driver.unpublish(name, NODE),
            lambda: phase(ATTACHMENTS, title) == "gone",
        ),
        (
            "DeleteVolume: until the disk is deleted",
            f"disk-gone {name}",
            lambda: driver.delete(name),
            lambda: phase(DISKS, name) == "Terminating",
        ),
    )
    for what, held, call, is_reached in rows:
        if "does not list" in what:
            driver.publish(name, NODE)
        parent.configure({"hold": held})
        with beside(call) as rpc:
            try:
                waiting.until(f"{held} is due", is_reached)
                rpc.still_waits()
            finally:
                parent.reset()
            rpc.result()
        print(f"{what:64} waits while held: {held.split()[0]}")
    assert phase(DISKS, name) == "gone"


def test_a_failed_attachment_is_deleted_before_the_next_attempt(
    driver: csi_dvp.CsiDvp,
    parent: DvpParent,
    project: Project,
    recorded: recorder.Recorder,
) -> None:
    """The second attempt succeeds with another object; there are never two."""
    name = new_name()
    title = attachment_of(name)
    driver.create(name)
    with parent.failing(
        f"attachment-attached {title} DeviceNotAvailableOnNode no disk"
    ):
        code, message = refused(lambda: driver.publish(name, NODE))
    print(f"first attempt: {code}: {message}")
    assert code == "INTERNAL"
    assert "DeviceNotAvailableOnNode" in message
    driver.publish(name, NODE)
    waiting.until(
        "the second is recorded",
        lambda: recorded.phases(ATTACHMENTS, title)[-1] != "gone",
    )
    versions = recorded.versions(ATTACHMENTS, title)
    uids = list(dict.fromkeys(item.uid for item in versions if item is not None))
    print("objects of the attachment:", len(uids))
    assert len(uids) == 2
    between = [item is None for item in versions]
    assert True in between
    driver.unpublish(name, NODE)
    driver.delete(name)


def test_static_disks_take_slots_of_the_sixteen_devices(
    driver: csi_dvp.CsiDvp, parent: DvpParent, project: Project
) -> None:
    """The VM has fifteen: one volume is attached; the parent is not asked for two."""
    objects = parent.objects(project)
    first, second = new_name(), new_name()
    for name in (first, second):
        driver.create(name)
    driver.publish(first, FULL)
    code, message = refused(lambda: driver.publish(second, FULL))
    print(f"{code}: {message}")
    assert code == "RESOURCE_EXHAUSTED"
    assert f"virtual machine {FULL} has 16 block devices" in message
    assert objects.get(ATTACHMENTS, attachment_of(second, FULL)) is None
    driver.unpublish(first, FULL)
    driver.publish(second, FULL)
    attached = objects.get(ATTACHMENTS, attachment_of(second, FULL)) or {}
    assert attached["status"]["phase"] == "Attached"
    driver.unpublish(second, FULL)
    for name in (first, second):
        driver.delete(name)
