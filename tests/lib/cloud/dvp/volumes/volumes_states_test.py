"""From any state of the parent, each request is fulfilled or refused, without a loop.

Time is that of the test: each pause of a call moves the parent's objects one phase.
"""

import contextlib
import copy
import json
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.quantity_bytes import size_bytes as size_of
from lib.cloud.dvp.volumes import cloud, disk_names, translate
from lib.cloud.volumes import Volume, VolumeId, VolumeSpec
from lib.lab.run import waiting
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import RefusedCall
from tests.lib.cloud.dvp.volumes import disks
from tests.lib.cloud.dvp.volumes.disks import NODE, OTHER

Json = dict[str, Any]
GIB = 2**30
ID = VolumeId("pvc-0f0e0d0c-0000-4000-8000-000000000001")
SPEC = VolumeSpec(ID, GIB, disks.UUID, type=disks.CLASS, least_bytes=GIB)
OTHER_UUID = "uuid-b"
THEIRS = "their-node-1"
DEADLINE_S = 600.0
MOST_WRITES = 12
"""Of one call within ten minutes: each step at most TRIES times."""
REQUESTS: tuple[model.Request, ...] = (
    model.Make(SPEC),
    model.PublishVolume(ID, NODE),
    model.UnpublishVolume(ID, NODE),
    model.Expand(ID, 2 * GIB),
    model.RemoveVolume(ID, disks.UUID),
)
KINDS = (kinds.VIRTUAL_DISKS, kinds.DISK_ATTACHMENTS, kinds.VIRTUAL_MACHINES)


class SteppedParent(disks.ParentInMemory):
    """A parent whose clock is that of the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.access: parent.Parent | None = None

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        """Advance the time, and each object by a phase; return when watches show it."""
        condition.release()
        try:
            self.now_s += seconds
            self.step()
            waiting.until("the watches", self._is_shown, poll_s=0.002)
        finally:
            condition.acquire()

    def _is_shown(self) -> bool:
        assert self.access is not None
        return all(self._shown(kind) == self._stored(kind) for kind in KINDS)

    def _shown(self, kind: kinds.ParentKind[Any]) -> set[tuple[str, str]]:
        assert self.access is not None
        items = self.access.items(kind).values()
        return {(i.metadata.name, i.metadata.resource_version) for i in items}

    def _stored(self, kind: kinds.ParentKind[Any]) -> set[tuple[str, str]]:
        return {
            (document["metadata"]["name"], document["metadata"]["resourceVersion"])
            for document in self.all(kind.resource)
            if not kind.is_of_cluster
            or document["metadata"]["labels"].get(ownership.CLUSTER) == disks.UUID
        }

    def writes(self) -> list[str]:
        reads = ("get", "list", "watch")
        return [call.verb for call in self.api.calls if call.verb not in reads]


@contextlib.contextmanager
def process(world: SteppedParent) -> Iterator[flow.VolumesFlow]:
    """Open the flow of a process that was started long ago."""
    others = set(threading.enumerate())
    access = parent.Parent(
        world.api, disks.NAMESPACE, disks.UUID, clock=lambda: world.now_s
    )
    world.access = access
    volumes = cloud.DvpVolumes(access, held_s=0.05)
    volumes.listing()  # the watches are open
    effects = callers.CallEffects(lambda: world.now_s, world.wait)
    try:
        yield flow.VolumesFlow(lambda: volumes, effects, started=float("-inf"))
    finally:
        access.close()
        world.api.break_watches()
        for thread in set(threading.enumerate()) - others:
            if thread.name.startswith("parent "):
                thread.join(10)  # it must not run while states are drawn


def settle(
    process_: flow.VolumesFlow, world: SteppedParent, request: model.Request
) -> Volume | RefusedCall | None:
    caller = callers.Caller(world.now_s + DEADLINE_S)
    try:
        return process_.settle(request, caller)
    except RefusedCall as refused:
        return refused


def _label(document: Json, **labels: str) -> Json:
    document["metadata"]["labels"] |= labels
    return document


CLUSTERS = strategies.sampled_from([disks.UUID, disks.UUID, disks.UUID, OTHER_UUID])
REASONS = strategies.sampled_from(
    [None, *sorted(translate.TERMINAL_REASONS), "NotYet", ""]
)


@strategies.composite
def parents(draw: strategies.DrawFn) -> SteppedParent:
    """Draw disks and attachments in any phase, of this cluster, another, or none."""
    world = SteppedParent()
    world.api.put(disks.MACHINES, disks.machine(THEIRS, NODE, cluster=OTHER_UUID))
    if draw(strategies.integers(0, 9)):
        world.put_impossible(_disk(draw))
    for host in draw(strategies.sets(strategies.sampled_from([NODE, OTHER, "gone"]))):
        world.put_impossible(_attachment(draw, host))
    if draw(strategies.booleans()):
        others = disks.attachment(ID, NODE, vm=THEIRS)
        others["metadata"]["name"] = "theirs"
        world.put(_label(others, **{ownership.CLUSTER: OTHER_UUID}))
    world.is_growing = draw(strategies.booleans())
    world.refusing = draw(strategies.booleans())
    if draw(strategies.booleans()):
        world.failing = {"reason": draw(REASONS) or "NotYet", "message": "no"}
    return world


def _disk(draw: strategies.DrawFn) -> Json:
    document = disks.disk(
        ID,
        phase=draw(strategies.sampled_from([*sorted(translate.PHASES), "Quantum"])),
        cluster=draw(CLUSTERS),
        host=draw(strategies.sampled_from(["", "", "", NODE])),
        size=draw(strategies.sampled_from(["1Gi", "1Gi", "2Gi", "512Mi"])),
        capacity=draw(strategies.sampled_from(["1Gi", "1Gi", "2Gi", "", "x"])),
        attachedToVirtualMachines=draw(
            strategies.lists(
                strategies.sampled_from([{"name": NODE}, {"name": OTHER}]), max_size=1
            )
        ),
    )
    if reason := draw(REASONS):
        document["status"]["conditions"] = [disks.condition("Ready", reason, "no")]
    return document


def _attachment(draw: strategies.DrawFn, host: str) -> Json:
    phases = [*sorted(translate.ATTACHMENT_PHASES), "Quantum"]
    document = disks.attachment(ID, host, draw(strategies.sampled_from(phases)))
    if draw(strategies.booleans()):
        _label(document, **{disk_names.PUBLISHED: disk_names.PUBLISHER})
    return _label(document, **{ownership.CLUSTER: draw(CLUSTERS)})


def kept(world: SteppedParent, request: model.Request) -> list[Json]:
    """Return all that no call may change: others' objects, other nodes' attachments."""
    documents = [*world.all(disks.DISKS), *world.all(disks.ATTACHMENTS)]
    return [written(d) for d in documents if is_kept(d, request)]


def is_kept(document: Json, request: model.Request) -> bool:
    labels = document["metadata"]["labels"]
    if labels.get(ownership.CLUSTER) != disks.UUID:
        return True
    if "blockDeviceRef" in document["spec"]:
        is_here = labels.get(ownership.HOSTNAME) == NODE
        attaches = isinstance(request, model.PublishVolume | model.UnpublishVolume)
        return not (is_here and attaches)
    return bool(labels.get(ownership.HOSTNAME))


def written(document: Json) -> Json:
    """Return what users write of an object; its status is the parent's."""
    metadata = copy.deepcopy(document["metadata"])
    for key in ("resourceVersion", "finalizers", "generation"):
        metadata.pop(key, None)
    return {"metadata": metadata, "spec": copy.deepcopy(document["spec"])}


def claim(disk: Json) -> str:
    return str(disk["spec"]["persistentVolumeClaim"]["size"])


def is_fulfilled(world: SteppedParent, request: model.Request) -> bool:
    """Report whether the parent is as the request asks."""
    owned = [
        document
        for document in world.all(disks.DISKS)
        if document["metadata"]["labels"][ownership.CLUSTER] == disks.UUID
        and not document["metadata"]["labels"][ownership.HOSTNAME]
    ]
    here = [
        document
        for document in world.all(disks.ATTACHMENTS)
        if document["spec"]["virtualMachineName"] == NODE
        and document["metadata"]["labels"][ownership.CLUSTER] == disks.UUID
    ]
    # A disk has no capacity yet while it is created.
    sizes = [size_of(d["status"]["capacity"]) or size_of(claim(d)) for d in owned]
    match request:
        case model.RemoveVolume():
            return not owned
        case model.UnpublishVolume():
            is_no_volume = bool(world.all(disks.DISKS)) and not owned
            return is_no_volume or not here
        case model.PublishVolume():
            phases = [document["status"]["phase"] for document in here]
            holders = [d["status"]["attachedToVirtualMachines"] for d in owned]
            return phases == ["Attached"] or holders == [[{"name": NODE}]]
        case model.Expand():
            return all(size >= 2 * GIB for size in sizes)
    return len(owned) == 1


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
@hypothesis.settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
@hypothesis.given(world=parents())
def test_any_state_fulfils_or_refuses(
    request_: model.Request, world: SteppedParent
) -> None:
    """Others' objects stay; a repeated call sends nothing, and says the same."""
    before = kept(world, request_)
    for document in (*world.all(disks.DISKS), *world.all(disks.ATTACHMENTS)):
        hypothesis.note(json.dumps(document))
    with process(world) as volumes:
        result = settle(volumes, world, request_)
        count = len(world.writes())
        assert count <= MOST_WRITES, world.writes()
        now = kept(world, request_)
        assert [document for document in before if document not in now] == []
        if isinstance(result, RefusedCall):
            assert result.message
            return
        assert is_fulfilled(world, request_)
        again = settle(volumes, world, request_)
        assert not isinstance(again, RefusedCall), again.message
        assert len(world.writes()) == count
