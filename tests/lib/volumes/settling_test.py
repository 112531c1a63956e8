"""What a call does is logged and counted as by any flow, and can be dry-run."""

import dataclasses
import math

import prometheus_client
import pytest
import structlog

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Volume, VolumeId, VolumePhase, VolumeSpec
from lib.reconcile import metrics
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

NODE = InstanceId("node-1")
ID = VolumeId("aaaaaaaa-0000-4000-8000-000000000000")
SIZE = 10 * volume_rules.GIB
VOLUME = Volume(ID, "pvc-1", SIZE, VolumePhase.AVAILABLE, type="slow", cluster="blue")
SPEC = VolumeSpec("pvc-2", SIZE, "blue", type="slow")


class World:
    """One cloud, one process upon it, and what it logs and counts."""

    def __init__(self, *, dry_run: bool = False) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = {NODE}
        self.cloud.put(VOLUME)
        self.registry = prometheus_client.CollectorRegistry()
        self.process = flow.VolumesFlow(
            lambda: self.cloud,
            callers.CallEffects(self.clock, self.clock.wait),
            -math.inf,
            metrics=metrics.ReconcileMetrics(self.registry),
            dry_run=dry_run,
        )

    def settle(self, request: model.Request) -> list[tuple[object, ...]]:
        """Settle a request; return event, key and action of each log entry."""
        merge = structlog.contextvars.merge_contextvars
        with structlog.testing.capture_logs(processors=[merge]) as log:
            self.process.settle(request, callers.Caller(self.clock() + 60.0))
        assert {item["controller"] for item in log} <= {"volumes"}
        return [(item["event"], item["key"], item.get("action")) for item in log]

    def count(self, result: metrics.Result) -> float | None:
        labels = {"controller": "volumes", "outcome": result.value}
        return self.registry.get_sample_value("mooring_reconcile_total", labels)


REQUESTS = {
    "create": (model.Make(SPEC), "name pvc-2", "CreateVolume"),
    "attach": (model.PublishVolume(ID, NODE), ID, "AttachVolume"),
    "resize": (model.Expand(ID, 2 * SIZE), ID, "ResizeVolume"),
    "delete": (model.RemoveVolume(ID), ID, "DeleteVolume"),
}


@pytest.mark.parametrize(
    ("requested", "key", "action"), REQUESTS.values(), ids=REQUESTS.keys()
)
def test_each_action_is_one_entry_of_the_log_when_it_was_carried_out(
    requested: model.Request, key: str, action: str
) -> None:
    """Before the call ends, so that a kill in between leaves its trace."""
    world = World()
    assert world.count(metrics.Result.SUCCESS) == 0
    assert world.settle(requested) == [("action completed", key, action)]
    assert world.count(metrics.Result.SUCCESS) == 1
    assert (world.count(metrics.Result.REQUEUE) or 0) >= 1
    assert world.settle(requested) == []
    assert world.count(metrics.Result.SUCCESS) == 2


@pytest.mark.parametrize(
    ("requested", "key", "action"), REQUESTS.values(), ids=REQUESTS.keys()
)
def test_a_dry_run_changes_nothing_and_refuses_what_it_would_have_to_do(
    requested: model.Request, key: str, action: str
) -> None:
    world = World(dry_run=True)
    before = world.cloud.volumes()
    with structlog.testing.capture_logs() as log:
        for _ in range(2):
            with pytest.raises(
                RefusedCall, match=f"not carried out: {action}"
            ) as refused:
                world.process.settle(requested, callers.Caller(world.clock() + 60.0))
            assert refused.value.code is Code.ABORTED
    assert [(item["event"], item["key"]) for item in log] == [
        ("action skipped (dry run)", key)
    ] * 2
    assert world.cloud.volumes() == before
    assert world.count(metrics.Result.FAILURE) == 2


def test_a_refused_action_is_counted_and_not_logged_as_carried_out() -> None:
    world = World()
    world.cloud.faults.refusals = [
        None,
        errors.QuotaExceeded("no more volumes", operation="create volume"),
    ]
    with pytest.raises(RefusedCall) as refused:
        world.settle(model.Make(dataclasses.replace(SPEC, name="pvc-3")))
    assert refused.value.code is Code.RESOURCE_EXHAUSTED
    assert world.count(metrics.Result.FAILURE) == 1
