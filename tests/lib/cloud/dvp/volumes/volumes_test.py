"""Volumes of a parent: one request for each operation, and which state is what."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.dvp.volumes import cloud, disk_names, disk_serial
from lib.cloud.model import InstanceId
from lib.cloud.volumes import (
    AttachmentPhase,
    ById,
    ByName,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
)
from lib.kube.fake.calls import Call
from lib.lab.run import waiting
from lib.volumes import model
from lib.volumes.csi_codes import Code, RefusedCall
from tests.lib.cloud.dvp.volumes import disks
from tests.lib.cloud.dvp.volumes.disks import NODE, OTHER

GIB = 2**30
ID = VolumeId("pvc-0f0e0d0c-0000-4000-8000-000000000001")
SPEC = VolumeSpec(ID, GIB, disks.UUID, type=disks.CLASS)


@pytest.fixture()
def world() -> disks.ParentInMemory:
    return disks.ParentInMemory()


@pytest.fixture()
def volumes(world: disks.ParentInMemory) -> Iterator[cloud.DvpVolumes]:
    with disks.opened(world) as opened:
        opened.listing()
        yield opened


def requests(world: disks.ParentInMemory) -> list[str]:
    """Return the requests so far, without those of watches."""
    return [
        f"{call.verb} {call.resource}"
        for call in world.api.calls
        if call.verb not in ("list", "watch")
    ]


def read(volumes: cloud.DvpVolumes, volume_id: str = ID) -> Volume | None:
    ref = ById(VolumeId(volume_id))
    answer = volumes.observe([ref]).by_ref[ref]
    assert isinstance(answer, tuple), answer
    return answer[0] if answer else None


def test_each_operation_is_one_request(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """Create, publish, expand, unpublish: waiting costs nothing; a table is printed."""
    disk_kind, attachment_kind = "virtualdisks", disks.ATTACHMENTS.plural
    expected: list[tuple[model.Request, list[str]]] = [
        (model.Make(SPEC), [f"create {disk_kind}"]),
        (model.PublishVolume(ID, NODE), [f"create {attachment_kind}"]),
        (model.Expand(ID, 2 * GIB), [f"patch {disk_kind}"]),
        (model.UnpublishVolume(ID, NODE), [f"delete {attachment_kind}"]),
        (
            model.RemoveVolume(ID, disks.UUID),
            [f"delete {disk_kind}", f"get {disk_kind}"],
        ),
    ]
    with world.moving():
        for request, calls in expected:
            before = len(requests(world))
            result = disks.settle(volumes, request)
            sent = requests(world)[before:]
            print(f"{type(request).__name__:16} {', '.join(sent)}")
            assert sent == calls
            if isinstance(request, model.PublishVolume):
                uid = world.all(disks.DISKS)[0]["metadata"]["uid"]
                (attachment,) = result.attachments
                assert dict(attachment.publish_context) == {disk_serial.DISK_UID: uid}
            if isinstance(request, model.Expand):
                assert result.size_bytes == 2 * GIB


def test_a_repeated_operation_sends_nothing(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    with world.moving():
        for request in (
            model.Make(SPEC),
            model.PublishVolume(ID, NODE),
            model.Expand(ID, 2 * GIB),
        ):
            disks.settle(volumes, request)
            before = len(requests(world))
            disks.settle(volumes, request)
            assert requests(world)[before:] == []


def test_the_objects_are_those_of_the_reference(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    with world.moving():
        disks.settle(volumes, model.Make(SPEC))
        disks.settle(volumes, model.PublishVolume(ID, NODE))
    (disk,) = world.all(disks.DISKS)
    (attachment,) = world.all(disks.ATTACHMENTS)
    labels = {"deckhouse.io/managed-by": "deckhouse"}
    labels |= {"dvp.deckhouse.io/cluster-uuid": disks.UUID}
    assert disk["metadata"]["labels"] == labels | {
        "dvp.deckhouse.io/hostname": "",
        "virtualDiskName": ID,
        "mooring.io/owner-uid": ID.removeprefix("pvc-"),
    }
    assert disk["spec"] == {
        "persistentVolumeClaim": {"storageClassName": "fast", "size": str(GIB)}
    }
    assert attachment["metadata"]["name"] == f"vmbda-{ID}-{NODE}"
    assert attachment["metadata"]["labels"] == labels | {
        "dvp.deckhouse.io/hostname": NODE,
        "virtualMachineDiskName": ID,
        "virtualMachineName": NODE,
        "mooring.io/owner-uid": disk["metadata"]["uid"],
        "mooring.io/published-by": "csi-controller",
    }
    (owner,) = attachment["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("VirtualMachine", NODE)


def test_state_of_the_reference_is_adopted_by_a_label(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """Not listed as published before: so external-attacher publishes it again.

    Nothing is detached; the disk stays as it is.
    """
    world.put(disks.disk(ID), disks.attachment(ID, NODE))
    waiting.until("the watch", lambda: volumes.listing())
    disk = world.all(disks.DISKS)[0]
    known = read(volumes)
    assert known is not None
    assert [a.is_published for a in known.attachments] == [False]
    volume = disks.settle(volumes, model.PublishVolume(ID, NODE))
    assert requests(world) == [f"patch {disks.ATTACHMENTS.plural}"]
    (attachment,) = volume.attachments
    expected_uid = disk["metadata"]["uid"]
    assert dict(attachment.publish_context) == {disk_serial.DISK_UID: expected_uid}
    assert world.all(disks.DISKS) == [disk]
    (stored,) = world.all(disks.ATTACHMENTS)
    expected = disks.attachment(ID, NODE)
    added = set(stored["metadata"]["labels"]) - set(expected["metadata"]["labels"])
    assert added == {"mooring.io/owner-uid", "mooring.io/published-by"}
    assert stored["spec"] == expected["spec"]


def test_a_vm_with_another_name_is_found_by_its_label(
    world: disks.ParentInMemory,
) -> None:
    """Terraform's VMs have a hash in their names."""
    world.api.put(disks.MACHINES, disks.machine("node-9-abcdef", "node-9"))
    world.put(disks.disk(ID))
    with world.moving(), disks.opened(world) as volumes:
        volume = disks.settle(volumes, model.PublishVolume(ID, InstanceId("node-9")))
    assert [a.instance_id for a in volume.attachments] == ["node-9"]
    (attachment,) = world.all(disks.ATTACHMENTS)
    assert attachment["spec"]["virtualMachineName"] == "node-9-abcdef"


def test_a_failed_attachment_is_deleted_before_the_next_attempt(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    world.put(disks.disk(ID))
    waiting.until("the watch", lambda: volumes.listing())
    with world.moving():
        world.refusing = True
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, model.PublishVolume(ID, NODE))
        assert refused.value.code is Code.INTERNAL
        assert "Conflict: no" in refused.value.message
        world.refusing = False
        before = len(requests(world))
        disks.settle(volumes, model.PublishVolume(ID, NODE))
    plural = disks.ATTACHMENTS.plural
    assert requests(world)[before:] == [f"delete {plural}", f"create {plural}"]


def test_a_detach_waits_for_both_sides(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """The object of the attachment is deleted, and the disk does not list the VM."""
    world.put(disks.disk(ID, attachedToVirtualMachines=[{"name": NODE}]))
    waiting.until("the watch", lambda: volumes.listing())
    known = read(volumes)
    assert known is not None
    assert known.phase is VolumePhase.DETACHING
    assert [a.phase for a in known.attachments] == [AttachmentPhase.DETACHING]
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.UnpublishVolume(ID, NODE), patience_s=1.0)
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    world.put(disks.disk(ID))
    disks.settle(volumes, model.UnpublishVolume(ID, NODE))


def test_an_expansion_waits_for_the_resize(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """The spec alone is not enough; the disk can be used in the meantime."""
    world.put(disks.disk(ID, size="3Gi"))
    waiting.until("the watch", lambda: volumes.listing())
    known = read(volumes)
    assert known is not None
    assert (known.size_bytes, known.expanding_to_bytes) == (GIB, 3 * GIB)
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.Expand(ID, 2 * GIB), patience_s=1.0)
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert "being resized" in refused.value.message
    assert requests(world) == []
    world.is_growing = False
    with world.moving():
        disks.settle(volumes, model.PublishVolume(ID, NODE))
        world.is_growing = True
        volume = disks.settle(volumes, model.Expand(ID, 2 * GIB))
    assert volume.size_bytes == 3 * GIB


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("forbidden: exceeded quota: storage, requested: 1Gi", Code.RESOURCE_EXHAUSTED),
        ("the storage class is not ready", Code.ABORTED),
    ],
)
def test_a_refused_expansion_names_the_reason(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes, message: str, code: Code
) -> None:
    """Without a request; once the parent has expanded the disk, the call succeeds."""
    held = disks.disk(ID, size="2Gi")
    resizing = disks.condition("Resizing", "NotAvailable", message)
    held["status"]["conditions"] = [resizing]
    world.put(held)
    waiting.until("the watch", lambda: volumes.listing())
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.Expand(ID, 2 * GIB), patience_s=4.0)
    assert refused.value.code is code
    assert f"NotAvailable: {message}" in refused.value.message
    assert requests(world) == []
    world.put(disks.disk(ID, size="2Gi", capacity="2Gi"))
    waiting.until("the watch", lambda: volumes.listing()[0].size_bytes == 2 * GIB)
    assert disks.settle(volumes, model.Expand(ID, 2 * GIB)).size_bytes == 2 * GIB


def test_disks_of_machines_and_of_other_clusters_are_no_volumes(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """Nothing deletes them, also not by their names; the JSON stays the same."""
    world.put(
        disks.disk("node-1-boot", host="node-1"),
        disks.disk("theirs", cluster="uuid-b"),
        disks.disk(ID),
    )
    waiting.until("the watch", lambda: volumes.listing())
    assert [volume.id for volume in volumes.listing()] == [ID]
    before = world.all(disks.DISKS)
    disks.settle(volumes, model.RemoveVolume(VolumeId("node-1-boot"), disks.UUID))
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.RemoveVolume(VolumeId("theirs"), disks.UUID))
    assert refused.value.code is Code.FAILED_PRECONDITION
    for name in ("node-1-boot", "theirs"):
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, model.Make(dataclasses.replace(SPEC, name=name)), 5.0)
        assert refused.value.code is Code.ALREADY_EXISTS
    assert world.all(disks.DISKS) == before


@pytest.mark.parametrize(
    ("size_bytes", "phase", "code"),
    [(2 * GIB, "Ready", Code.ALREADY_EXISTS), (GIB, "PVCLost", Code.ABORTED)],
    ids=["another size", "data lost"],
)
def test_a_disk_that_another_process_creates_is_not_deleted(
    world: disks.ParentInMemory,
    volumes: cloud.DvpVolumes,
    size_bytes: int,
    phase: str,
    code: Code,
) -> None:
    """It creates the disk between this process's read and its own creation."""
    spec = dataclasses.replace(SPEC, size_bytes=size_bytes, least_bytes=size_bytes)
    assert volumes.listing() == ()

    def create(call: Call) -> None:
        if call.verb == "create" and not world.all(disks.DISKS):
            world.put(disks.disk(ID, phase=phase))

    world.api.before_call = create
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.Make(spec), 10.0)
    assert refused.value.code is code
    assert len(world.all(disks.DISKS)) == 1
    assert [row for row in requests(world) if row.startswith("delete")] == []


def test_an_empty_list_detaches_and_loses_nothing(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """What the stores lack is read directly: an attachment by its name, too."""
    world.put(disks.disk(ID, attachedToVirtualMachines=[{"name": NODE}]))
    hidden = disks.attachment(ID, NODE)
    del hidden["metadata"]["labels"]["dvp.deckhouse.io/cluster-uuid"]
    world.put(hidden)
    waiting.until("the watch", lambda: volumes.listing())
    with world.moving(), pytest.raises(RefusedCall):
        disks.settle(volumes, model.UnpublishVolume(ID, NODE), patience_s=1.0)
    assert len(world.all(disks.ATTACHMENTS)) == 1
    world.put(disks.attachment(ID, NODE))
    with world.moving():
        disks.settle(volumes, model.UnpublishVolume(ID, NODE))
    assert world.all(disks.ATTACHMENTS) == []


PHASES = {
    "": VolumePhase.CREATING,
    "Pending": VolumePhase.CREATING,
    "Provisioning": VolumePhase.CREATING,
    "WaitForUserUpload": VolumePhase.CREATING,
    "WaitForFirstConsumer": VolumePhase.AVAILABLE,
    "Ready": VolumePhase.AVAILABLE,
    "Resizing": VolumePhase.RESIZING,
    "Failed": VolumePhase.FAILED,
    "PVCLost": VolumePhase.FAILED,
    "Exporting": VolumePhase.BUSY,
    "Terminating": VolumePhase.DELETING,
    "Migrating": VolumePhase.BUSY,
    "Dreaming": VolumePhase.UNKNOWN,
}


def test_every_phase_of_a_disk_has_a_meaning(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """An unknown one is unknown: it is waited for, and named in the error."""
    for phase in PHASES:
        name = f"disk-{phase.lower() or 'new'}"
        world.put_impossible(disks.disk(name, phase=phase))
    waiting.until("the watch", lambda: len(volumes.listing()) == len(PHASES))
    for phase, meaning in PHASES.items():
        volume = read(volumes, f"disk-{phase.lower() or 'new'}")
        assert volume is not None
        assert volume.phase is meaning, phase
    with pytest.raises(RefusedCall) as refused:
        disks.settle(volumes, model.PublishVolume(VolumeId("disk-dreaming"), NODE), 1.0)
    assert refused.value.code is Code.DEADLINE_EXCEEDED
    assert "Dreaming" in refused.value.message


def test_objects_without_fields_are_read(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """The others are served."""
    bare = disks.disk("bare")
    bare["spec"], bare["status"] = {"persistentVolumeClaim": {}}, {}
    malformed = disks.disk("malformed", capacity="much", size="more")
    lost = disks.attachment("bare", NODE)
    lost["spec"] = {}
    world.put_impossible(bare, malformed, lost)
    world.put(disks.disk(ID))
    waiting.until("the watch", lambda: len(volumes.listing()) == 3)
    for name in ("bare", "malformed"):
        volume = read(volumes, name)
        assert volume is not None
        assert volume.size_bytes == 0
    with world.moving():
        disks.settle(volumes, model.PublishVolume(ID, NODE))


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        ("ProvisioningNotStarted", VolumePhase.CREATING),
        ("Provisioning", VolumePhase.CREATING),
        ("ProvisioningFailed", VolumePhase.FAILED),
        ("ProvisioningFailedTerminally", VolumePhase.FAILED),
    ],
)
def test_the_reason_of_a_failed_disk_decides_before_its_phase(
    world: disks.ParentInMemory,
    volumes: cloud.DvpVolumes,
    reason: str,
    meaning: VolumePhase,
) -> None:
    """The parent shows Failed while an importer Pod is not initialised."""
    held = disks.disk(ID, phase="Failed")
    held["status"]["conditions"] = [disks.condition("Ready", reason, "no")]
    world.put(held)
    waiting.until("the watch", lambda: volumes.listing())
    volume = read(volumes, ID)
    assert volume is not None
    assert volume.phase is meaning


Arrange = Callable[[disks.ParentInMemory], None]


def _quota(world: disks.ParentInMemory) -> None:
    world.failing = {"reason": "QuotaExceeded", "message": "requests.storage: 0 left"}


def _no_class(world: disks.ParentInMemory) -> None:
    reason = "StorageClassIsNotReady"
    world.failing = {"reason": reason, "message": 'StorageClass "fast" not found'}


def _full(world: disks.ParentInMemory) -> None:
    devices = [disks.device(f"disk-{number}") for number in range(16)]
    world.api.put(disks.MACHINES, disks.machine(NODE, blockDeviceRefs=devices))
    world.put(disks.disk(ID))


def _twice(world: disks.ParentInMemory) -> None:
    world.api.put(disks.MACHINES, disks.machine("node-1-copy", NODE))
    world.put(disks.disk(ID))


def _twice_and_held(world: disks.ParentInMemory) -> None:
    _twice(world)
    copy = disks.attachment(ID, NODE, vm="node-1-copy")
    world.put(copy)


def _held(world: disks.ParentInMemory) -> None:
    world.put(disks.disk(ID), disks.attachment(ID, OTHER))


def _one(world: disks.ParentInMemory) -> None:
    world.put(disks.disk(ID))


REFUSALS: dict[str, tuple[Arrange, model.Request, Code, str]] = {
    "quota": (
        _quota,
        model.Make(SPEC),
        Code.RESOURCE_EXHAUSTED,
        "requests.storage: 0 left",
    ),
    "storage class": (
        _no_class,
        model.Make(SPEC),
        Code.INTERNAL,
        'StorageClass "fast" not found',
    ),
    "16 devices": (
        _full,
        model.PublishVolume(ID, NODE),
        Code.RESOURCE_EXHAUSTED,
        "virtual machine node-1 has 16 block devices: must be fewer than 16",
    ),
    "two VMs with one host name": (
        _twice,
        model.PublishVolume(ID, NODE),
        Code.INTERNAL,
        "virtual machines node-1, node-1-copy have the same label",
    ),
    "a detach from one of two VMs with one host name": (
        _twice_and_held,
        model.UnpublishVolume(ID, NODE),
        Code.INTERNAL,
        "virtual machines node-1, node-1-copy have the same label",
    ),
    "no such VM": (
        _one,
        model.PublishVolume(ID, InstanceId("nowhere")),
        Code.NOT_FOUND,
        'node_id: instance "nowhere" not found',
    ),
    "no such volume": (
        lambda world: None,
        model.PublishVolume(ID, NODE),
        Code.NOT_FOUND,
        f'volume_id: volume "{ID}" not found',
    ),
    "another VM": (
        _held,
        model.PublishVolume(ID, NODE),
        Code.FAILED_PRECONDITION,
        f"volume {ID} is attached to node-2",
    ),
    "deleted while attached": (
        _held,
        model.RemoveVolume(ID, disks.UUID),
        Code.FAILED_PRECONDITION,
        f"volume {ID} is attached to node-2; detach it first",
    ),
}


@pytest.mark.parametrize("row", REFUSALS)
def test_a_refusal_names_object_and_reason(row: str) -> None:
    """And nothing that failed remains."""
    arrange, request, code, text = REFUSALS[row]
    world = disks.ParentInMemory()
    arrange(world)
    with disks.opened(world) as volumes, world.moving():
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, request)
        assert refused.value.code is code
        assert text in refused.value.message
        if isinstance(request, model.Make):
            waiting.until("the disk is deleted", lambda: not world.all(disks.DISKS))
    print(f"{row:28} {code.value:20} {refused.value.message}")


PARAMETERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "none": ({}, ["parameter dvpStorageClass"]),
    "empty": ({"parameters": {"dvpStorageClass": ""}}, ["parameter dvpStorageClass"]),
    "malformed": (
        {"parameters": {"dvpStorageClass": "Fast Disks"}},
        ["parameter dvpStorageClass"],
    ),
    "unknown": (
        {"parameters": {"dvpStorageClass": "fast", "type": "gold"}},
        ["parameter type"],
    ),
    "several nodes": (
        {"parameters": {"dvpStorageClass": "fast"}, "is_shared": True},
        ["volume_capabilities.access_mode"],
    ),
    "source": (
        {"parameters": {"dvpStorageClass": "fast"}, "source": ID},
        ["volume_content_source"],
    ),
    "class of attributes": (
        {"parameters": {"dvpStorageClass": "fast"}, "changes": {"type": "gold"}},
        ["mutable parameter type"],
    ),
}


@pytest.mark.parametrize("row", PARAMETERS)
def test_a_request_with_invalid_fields_names_them(
    row: str, volumes: cloud.DvpVolumes
) -> None:
    fields, expected = PARAMETERS[row]
    problems = volumes.parse(VolumeRequest(ID, GIB, disks.UUID, **fields))
    assert not isinstance(problems, VolumeSpec)
    assert [problem.field for problem in problems] == expected
    assert all(problem.allowed for problem in problems)


def test_any_name_that_csi_allows_gives_a_disk(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """128 characters, capitals and spaces: the volume keeps the name."""
    with world.moving():
        for name in ("a" * 128, "Some Volume", "größe"):
            spec = dataclasses.replace(SPEC, name=name)
            volume = disks.settle(volumes, model.Make(spec))
            again = disks.settle(volumes, model.Make(spec))
            assert volume.id == again.id
            assert volume.name == name
            assert len(volume.id) <= disk_names.NAME_MAX
            observation = volumes.observe([ByName(name)]).by_ref[ByName(name)]
            assert isinstance(observation, tuple)
            assert [item.id for item in observation] == [volume.id]


def test_a_parent_that_does_not_answer_is_not_absence(
    world: disks.ParentInMemory,
) -> None:
    """403 for one kind: the calls that need it fail; the kind is named."""
    from lib.kube import errors as kube_errors
    from lib.kube.fake import calls

    text = "virtualmachineblockdeviceattachments is forbidden"
    refused = kube_errors.Forbidden(text, operation="LIST", status=403)
    plural = disks.ATTACHMENTS.plural
    world.api.faults += [calls.Fault(refused, "list", plural)] * 200
    world.put(disks.disk(ID))
    with disks.opened(world) as volumes:
        with pytest.raises(RefusedCall) as failed:
            disks.settle(volumes, model.UnpublishVolume(ID, NODE))
        assert failed.value.code is Code.PERMISSION_DENIED
        assert text in failed.value.message
        with pytest.raises(errors.Forbidden):
            volumes.listing()


def test_the_attachment_of_a_deleted_disk_is_deleted_at_an_unpublish(
    world: disks.ParentInMemory, volumes: cloud.DvpVolumes
) -> None:
    """Its disk was deleted by hand; it occupies a device of the VM."""
    world.put(disks.attachment(ID, NODE))
    ref = ById(ID, in_full=True)
    waiting.until("the watch", lambda: volumes.observe([ref]).by_ref[ref])
    with world.moving():
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, model.PublishVolume(ID, OTHER))
        assert refused.value.code is Code.ABORTED
        disks.settle(volumes, model.UnpublishVolume(ID, NODE))
    assert world.all(disks.ATTACHMENTS) == []
    assert requests(world).count(f"delete {disks.ATTACHMENTS.plural}") == 1


def _emptied(*machines: str) -> disks.ParentInMemory:
    """Return a project with these VMs of the cluster, and one of another."""
    world = disks.ParentInMemory()
    for name in (NODE, OTHER):
        world.api.remove(disks.MACHINES, name, disks.NAMESPACE)
    world.api.put(disks.MACHINES, disks.machine("theirs", cluster="uuid-b"))
    for machine in machines:
        world.api.put(disks.MACHINES, disks.machine(machine))
    return world


@pytest.mark.parametrize(
    "request_", [model.RemoveVolume(ID, disks.UUID), model.UnpublishVolume(ID, NODE)]
)
@pytest.mark.parametrize(
    ("content", "counts"),
    [
        pytest.param("nothing", False, id="another project"),
        pytest.param("a VM", True, id="a VM of the cluster is there"),
        pytest.param("a disk", True, id="a disk of the cluster is there"),
        pytest.param("a disk of another cluster", False, id="another cluster is there"),
    ],
)
def test_an_absence_counts_once_an_object_of_the_cluster_was_observed(
    content: str, counts: bool, request_: model.Request
) -> None:
    """A kubeconfig or a namespace of another project must lose no volume."""
    world = _emptied(*([OTHER] if content == "a VM" else []))
    if "disk" in content:
        cluster = "uuid-b" if "another" in content else disks.UUID
        world.put(disks.disk("pvc-other", cluster=cluster))
    with disks.opened(world) as volumes:
        if counts:
            assert disks.settle(volumes, request_) is None
            return
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, request_)
    assert refused.value.code is Code.UNAVAILABLE
    assert "nothing of this cluster was observed in" in refused.value.message


@pytest.mark.parametrize(
    ("cluster", "counts"), [(disks.UUID, True), ("uuid-b", False), ("", False)]
)
def test_a_disk_of_the_same_name_in_another_project_is_none_of_the_cluster(
    cluster: str, counts: bool
) -> None:
    """PersistentVolumes that are written by hand name disks as they like."""
    world = _emptied()
    world.put(disks.disk("data", cluster=cluster))
    with disks.opened(world) as volumes:
        ref = ById(VolumeId("data"))
        assert volumes.observe([ref]).by_ref[ref]
        other = ById(VolumeId("pvc-other"))
        assert (volumes.observe([other]).by_ref[other] == ()) == counts


def test_a_disk_that_was_created_here_is_no_object_of_the_cluster() -> None:
    world = _emptied()
    with disks.opened(world) as volumes, world.moving():
        disks.settle(volumes, model.Make(SPEC))
        with pytest.raises(RefusedCall) as refused:
            disks.settle(volumes, model.RemoveVolume(VolumeId("pvc-other"), disks.UUID))
        # What was created here and is absent here is deleted.
        assert disks.settle(volumes, model.RemoveVolume(ID, disks.UUID)) is None
    assert refused.value.code is Code.UNAVAILABLE
