"""Each situation of a creation ends with a code after which nothing leaks.

A stand-in for external-provisioner repeats CreateVolume as the real one does by the
code; then the claim is deleted, and in the end the cloud holds nothing.
"""

import dataclasses
import math
from collections.abc import Callable

import pytest

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.volumes import VolumePlace, VolumeSpec
from lib.csi import sidecars
from lib.csi.sidecars import Next
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import NOT_FINAL, Code, RefusedCall

SPEC = VolumeSpec("pvc-1", volume_rules.GIB, "c", zones=("z1",))
TIMEOUT_S = 60.0


class World:
    """One driver, one cloud, and a claim that is deleted after the first failure."""

    def __init__(self) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        effects = callers.CallEffects(self.clock, self.clock.wait)
        self.process = flow.VolumesFlow(lambda: self.cloud, effects, -math.inf)
        self.codes: list[str] = []

    def create(self, spec: VolumeSpec) -> Code | None:
        call = callers.Caller(self.clock() + TIMEOUT_S)
        try:
            volume = self.process.settle(model.Make(spec), call)
        except RefusedCall as refused:
            self.codes.append(refused.code.value)
            return refused.code
        assert volume is not None
        self.codes.append("OK")
        # The claim is gone: the provisioner deletes what it was given.
        self.process.settle(
            model.RemoveVolume(volume.id, "c"), callers.Caller(self.clock() + 600)
        )
        return None

    def provision(self, spec: VolumeSpec) -> Code | None:
        """Repeat as the provisioner does for a claim that is deleted meanwhile."""
        while True:
            code = self.create(spec)
            if code is None or sidecars.provisioner(code) is not Next.RETRY:
                return code
            self.clock.move(10)


Prepare = Callable[[World], None]


def _refuse(*kinds: type[errors.CloudError] | None) -> Prepare:
    def prepare(world: World) -> None:
        world.cloud.faults.refusals[:] = [
            None if kind is None else kind("words", operation="op") for kind in kinds
        ]

    return prepare


def _late(world: World) -> None:
    world.cloud.faults.late["create volume"] = fake.Late(30.0)


def _slow(world: World) -> None:
    world.cloud.operation_s = 200


def _fails(world: World) -> None:
    world.cloud.faults.failing.extend(["create"] * 2)


def _fails_slowly(world: World) -> None:
    world.cloud.operation_s = 100
    world.cloud.faults.failing.extend(["create"] * 2)


def _full(world: World) -> None:
    world.cloud.rules.full = ("z1", "z2")


def _quota(world: World) -> None:
    world.cloud.rules.quota_bytes = 0


SITUATIONS: dict[str, tuple[Prepare, str]] = {
    "the answer is lost, it is created 30 s later": (
        _late,
        "a volume of the name exists or may appear",
    ),
    "it takes longer than the call": (
        _slow,
        "a volume of the name exists or may appear",
    ),
    "the credentials end while it is created": (
        _refuse(None, None, *[errors.Unauthenticated] * 20),
        "a volume of the name exists or may appear",
    ),
    "the credentials end before the look": (
        _refuse(errors.Forbidden),
        "a volume of the name exists or may appear",
    ),
    "it fails": (_fails, "it failed and was deleted"),
    "it fails after the first call": (
        _fails_slowly,
        "a volume of the name exists or may appear",
    ),
    "no zone can hold it": (_full, "no zone of the topology can hold it"),
    "no quota": (_quota, "the quota is used up"),
    "the cloud refuses it": (
        _refuse(None, errors.InvalidRequest),
        "the request can't be fulfilled, nothing exists",
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_after_each_situation_nothing_is_left(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare, situation = SITUATIONS[name]
    world = World()
    prepare(world)
    spec = dataclasses.replace(SPEC, places=(VolumePlace(("z2",)),))
    world.provision(spec)
    world.clock.move(1000)
    with capsys.disabled():
        print(f"\n{name:46} {' '.join(world.codes)}", end="")
    assert Code[world.codes[0]] in sidecars.CREATION[situation]
    assert not world.cloud.volumes()


def test_each_situation_has_codes_and_each_code_a_consequence() -> None:
    tested = {situation for _, situation in SITUATIONS.values()}
    elsewhere = {"an incompatible volume of the name exists", "too many calls"}
    assert tested | elsewhere == set(sidecars.CREATION)
    for code in Code:
        is_open = sidecars.provisioner(code) is Next.RETRY
        assert is_open == (code in NOT_FINAL)
        assert sidecars.attacher(code) is Next.DETACH
        if code in NOT_FINAL:
            assert sidecars.resizer(code) is Next.RETRY


def test_only_an_invalid_request_is_not_retried_for_minutes() -> None:
    infeasible = [
        code for code in Code if sidecars.provisioner(code) is Next.INFEASIBLE
    ]
    assert infeasible == [Code.INVALID_ARGUMENT]


def test_a_volume_that_needs_to_be_detached_first_is_expanded_offline() -> None:
    assert sidecars.resizer(Code.FAILED_PRECONDITION) is Next.OFFLINE
    assert sidecars.resizer(Code.UNIMPLEMENTED) is Next.FINAL
    assert sidecars.resizer(Code.OUT_OF_RANGE) is Next.INFEASIBLE
