"""Whatever calls come in whatever order, and whatever goes wrong with them: a name is
one volume, a volume is where it was put, and in the end nothing is left behind.
"""

import dataclasses

import hypothesis
from hypothesis import strategies as st

from lib.cloud import errors
from lib.cloud.fake import clock, volume_rules
from lib.cloud.fake import volumes as fake
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Volume, VolumeId, VolumePhase, VolumeSpec
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import Code, RefusedCall

NODES = (InstanceId("node-1"), InstanceId("node-2"))
NAMES = ("pvc-1", "pvc-2")
SIZE = volume_rules.GIB


class Died(BaseException):
    """The process ends here."""


@dataclasses.dataclass(frozen=True)
class Step:
    """One call, and what goes wrong with it.

    kind: of the request. trouble: "refused", "lost", "failing", "stuck", "died before",
    "died after", "restart", "server gone" or nothing; at: at which call of the cloud.
    """

    kind: str
    name: int
    node: int
    trouble: str
    at: int


KINDS = ("make", "publish", "unpublish", "expand", "remove")
TROUBLES = (
    "",
    "refused",
    "lost",
    "failing",
    "stuck",
    "died before",
    "died after",
    "restart",
    "server gone",
)
WRITES = {
    "make": ("create", "create volume"),
    "publish": ("attach", "attach volume"),
    "unpublish": ("detach", "detach volume"),
    "expand": ("resize", "resize volume"),
    "remove": ("delete", "delete volume"),
}
steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(KINDS),
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from(TROUBLES),
        st.integers(0, 5),
    ),
    max_size=12,
)


class World:
    """One cloud, one process at a time, and what callers were told."""

    def __init__(self) -> None:
        self.clock = clock.Clock()
        self.cloud = fake.FakeVolumes(self.clock)
        self.cloud.instances = set(NODES)
        self.created_ids: dict[str, VolumeId] = {}
        self.doomed: set[str] = set()
        self.restart()

    def restart(self) -> None:
        effects = callers.CallEffects(self.clock, self.clock.wait)
        self.process = flow.VolumesFlow(lambda: self.cloud, effects)

    def step(self, step: Step) -> None:
        """Make a call; after a deletion is requested no other call follows."""
        name = NAMES[step.name]
        if name in self.doomed:
            step = dataclasses.replace(step, kind="remove")
        self._trouble(step)
        try:
            self.settle(step.kind, name, NODES[step.node])
        except Died:
            self.restart()
        except RefusedCall as refused:
            assert refused.code is not Code.ALREADY_EXISTS, refused  # noqa: PT017
        self._calm(step)

    def _trouble(self, step: Step) -> None:
        short, whole = WRITES[step.kind]
        faults = self.cloud.faults
        match step.trouble:
            case "refused":
                down = errors.Unavailable("no answer", operation="any")
                faults.refusals = [*[None] * step.at, down]
            case "lost":
                faults.lost.append(whole)
            case "failing":
                faults.failing.append(short)
            case "stuck":
                faults.stuck.add(short)
            case "died before" | "died after":
                self._die(step)
            case "restart":
                self.restart()
            case "server gone":
                self.cloud.remove_instance(NODES[step.node])

    def _die(self, step: Step) -> None:
        left = step.at

        def check(operation: str) -> None:
            del operation
            nonlocal left
            left -= 1
            if left < 0:
                raise Died

        if step.trouble == "died before":
            self.cloud.before_call = check
        else:
            self.cloud.after_call = check

    def _calm(self, step: Step) -> None:
        """Nothing goes wrong any more; what was stuck is repaired by somebody."""
        self.cloud.before_call = self.cloud.after_call = lambda operation: None
        self.cloud.instances = set(NODES)
        self.cloud.faults = fake.Faults()
        if step.trouble != "stuck":
            return
        for volume in self.cloud.volumes():
            phase = VolumePhase.IN_USE if volume.attachments else VolumePhase.AVAILABLE
            self.cloud.put(dataclasses.replace(volume, phase=phase, was_ready=True))

    def settle(self, kind: str, name: str, node: InstanceId) -> None:
        volume_id = self.created_ids.get(name, VolumeId("none"))
        requests: dict[str, model.Request] = {
            "make": model.Make(VolumeSpec(name, SIZE, "blue")),
            "publish": model.PublishVolume(volume_id, node),
            "unpublish": model.UnpublishVolume(volume_id, node),
            "expand": model.Expand(volume_id, SIZE),
            "remove": model.RemoveVolume(volume_id),
        }
        call = callers.Caller(self.clock() + 300)
        if kind == "remove" and name in self.created_ids:
            self.doomed.add(name)
        observed = self.process.settle(requests[kind], call)
        if kind == "make":
            assert observed is not None
            assert self.created_ids.setdefault(name, observed.id) == observed.id
        if kind == "remove":
            self.created_ids.pop(name, None)
            self.doomed.discard(name)

    def there(self) -> list[Volume]:
        """Return all that are not on their way out."""
        self.clock.move(10)
        observed = self.cloud.volumes()
        return [item for item in observed if item.phase is not VolumePhase.DELETING]


@hypothesis.settings(deadline=None, max_examples=150)
@hypothesis.given(steps)
def test_a_name_is_one_volume_and_nothing_is_left_behind(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        world.step(step)
    world.restart()
    for name in NAMES:
        for node in NODES:
            world.settle("unpublish", name, node)
        _heal(world, name)
        if name in world.doomed:
            world.settle("remove", name, NODES[0])
        world.settle("make", name, NODES[0])
        world.settle("publish", name, NODES[0])
    volumes = world.there()
    assert sorted(volume.name for volume in volumes) == sorted(NAMES)
    for volume in volumes:
        assert [attachment.instance_id for attachment in volume.attachments] == [
            NODES[0]
        ]
    for name in NAMES:
        world.settle("unpublish", name, NODES[0])
        world.settle("remove", name, NODES[0])
    assert not world.there()


def _heal(world: World, name: str) -> None:
    """Do as an administrator would with a volume that failed after its birth."""
    for volume in world.cloud.volumes():
        if volume.name == name and volume.phase is VolumePhase.FAILED:
            phase = VolumePhase.AVAILABLE
            world.cloud.put(dataclasses.replace(volume, phase=phase, was_ready=True))
