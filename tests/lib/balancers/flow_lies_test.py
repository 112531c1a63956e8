"""Whatever lists and reads by ID lack for ten minutes, no load balancer is lost."""

import dataclasses
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
from hypothesis import strategies

from lib.balancers.model import Topic
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys

LIES_S = 600.0
STEP_S = 2.0
DRIFT_S = 30.0
KINDS = (
    "loadbalancers",
    "listeners",
    "pools",
    "healthmonitors",
    "floatingips",
    "ports",
    "subnets",
    "networks",
)


@dataclasses.dataclass(frozen=True)
class Lie:
    """What answers lack for some seconds.

    lists: by kind, how lists are changed. hidden: seed of what is absent. restarts:
    the daemon is restarted before.
    """

    seconds: float
    lists: dict[str, str]
    hidden: int
    share: float
    restarts: bool

    def lacks(self, id_: object) -> bool:
        """Report whether an object seems absent."""
        number = zlib.crc32(f"{self.hidden}{id_}".encode())
        return number / 2**32 < self.share

    def forge(self, call: wire.Call, answer: wire.Answer) -> wire.Answer:
        """Change a list, or answer 404 to a read by ID."""
        kind = call.parts[1] if len(call.parts) > 1 else ""
        if call.method != "GET" or kind not in KINDS:
            return answer
        if len(call.parts) == 3:
            is_absent = self.lacks(call.parts[2])
            text = {"faultstring": f"{kind} {call.parts[2]} not found."}
            return wire.Answer(404, dict(text)) if is_absent else answer
        body = answer.body or {}
        if len(call.parts) > 3 or kind not in body:
            return answer
        items = wire.objects(body, kind)
        match self.lists.get(kind, "true"):
            case "empty":
                items = []
            case "partial":
                items = [item for item in items if not self.lacks(item["id"])]
            case "truncated":
                items = items[: len(items) // 2]
            case "doubled":
                items = [*items, *items]
        return dataclasses.replace(answer, body={kind: items})


CHANGES = strategies.sampled_from(["true", "empty", "partial", "truncated", "doubled"])
LIES = strategies.builds(
    Lie,
    seconds=strategies.sampled_from([10.0, 20.0, 60.0, 200.0, 600.0]),
    lists=strategies.fixed_dictionaries(dict.fromkeys(KINDS, CHANGES)),
    hidden=strategies.integers(0, 3),
    share=strategies.sampled_from([0.1, 0.5, 0.9, 1.0]),
    restarts=strategies.booleans(),
)


def shortened(lies: list[Lie]) -> Iterator[Lie]:
    """Yield lies of ten minutes together."""
    left = LIES_S
    for lie in lies:
        yield dataclasses.replace(lie, seconds=min(left, lie.seconds))
        left -= lie.seconds
        if left <= 0:
            return


def run(scene: Any, seconds: float) -> None:
    """Run the daemon for some time, with drift checks twice a minute."""
    end = scene.ground.now_s + seconds
    while scene.ground.now_s < end:
        if (end - scene.ground.now_s) % DRIFT_S < STEP_S:
            scene.again(Topic.DRIFT)
        scene.process.services.relist()
        scene.process.turn()
        scene.ground.now_s += STEP_S


def state(scene: Any, count: int) -> object:
    octavia = scene.cloud.octavia
    octavia.advance()
    return (
        {
            id_: row["provisioning_status"]
            for id_, row in octavia.load_balancers.items()
        },
        [scene.address(f"web-{at}") for at in range(count)],
    )


@hypothesis.given(
    count=strategies.sampled_from([1, 2, 4, 10]),
    lies=strategies.lists(LIES, min_size=1, max_size=6),
    is_internal=strategies.booleans(),
    is_annotated=strategies.booleans(),
)
@hypothesis.settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_no_load_balancer_is_deleted_or_replaced(
    make_scene: Callable[..., Any],
    count: int,
    lies: list[Lie],
    is_internal: bool,
    is_annotated: bool,
) -> None:
    """For lists that are empty, partial, truncated or double, and for 404s."""
    scene = make_scene()
    annotations = {keys.INTERNAL: "true"} if is_internal else {}
    for at in range(count):
        scene.ground.service(f"web-{at}", 80, annotations=annotations)
    scene.process.settle(60.0)
    before = state(scene, count)
    for lie in shortened(lies):
        if not is_annotated:
            ids = (keys.LOAD_BALANCER_ID, keys.OWNED_ID)
            for at in range(count):
                scene.ground.service(
                    f"web-{at}", 80, annotations=dict.fromkeys(ids, None)
                )
        if lie.restarts:
            scene.start()
        scene.cloud.forge = lie.forge
        scene.again(Topic.DRIFT)
        run(scene, lie.seconds)
    scene.cloud.forge = session.genuine
    run(scene, 720.0)
    assert state(scene, count) == before
    assert [call for call in scene.cloud.writes if call.method == "DELETE"] == []
