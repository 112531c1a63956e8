"""An Octavia that reports what exists as absent costs no address."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.balancers.model import Topic
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason

SERVICES = 10


def is_read_of_balancers(call: wire.Call) -> bool:
    return call.method == "GET" and call.parts[1:2] == ("loadbalancers",)


def lie(call: wire.Call) -> session.Fault | None:
    """Answer 404 to each read by ID; lists lack what is hidden."""
    is_direct = is_read_of_balancers(call) and len(call.parts) == 3
    return session.Fault(404) if is_direct else None


def run(scene: Any, seconds: float) -> None:
    """Run the daemon for some time, with a drift check every minute."""
    end = scene.ground.now_s + seconds
    while scene.ground.now_s < end:
        if scene.ground.now_s % 60 == 0:
            scene.again(Topic.DRIFT)
        scene.process.services.relist()
        scene.process.turn()
        scene.ground.now_s += 0.5


def addresses(scene: Any) -> dict[str, str]:
    return {f"web-{at}": scene.address(f"web-{at}") for at in range(SERVICES)}


@pytest.mark.parametrize("lasts_s", [10, 20, 30, 60, 600])
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("floating", [True, False], ids=["floating", "internal"])
def test_no_address_is_lost_while_octavia_finds_nothing(
    make_scene: Callable[..., Any], lasts_s: float, restarts: bool, floating: bool
) -> None:
    """Ten Services; lists lack all load balancers, and each read by ID is a 404."""
    scene = make_scene()
    octavia = scene.cloud.octavia
    internal = {} if floating else {keys.INTERNAL: "true"}
    for at in range(SERVICES):
        scene.ground.service(f"web-{at}", 80, annotations=internal)
    scene.process.settle(60.0)
    before = addresses(scene), set(octavia.load_balancers)
    writes = len(scene.cloud.writes)
    octavia.hidden.update(octavia.load_balancers)
    scene.cloud.fault = lie
    if restarts:
        scene.start()
    scene.again(Topic.DRIFT)
    run(scene, lasts_s)
    if lasts_s >= 60:
        assert scene.process.flow.problems()[CommonReason.MASS_ABSENCE] == SERVICES
        scene.process.say()
        assert any(
            "are absent at the same time" in event for event in scene.ground.events()
        )
    octavia.hidden.clear()
    scene.cloud.fault = session.nothing
    run(scene, 700)
    assert len(scene.cloud.writes) == writes
    assert (addresses(scene), set(octavia.load_balancers)) == before
    assert set(scene.process.flow.problems().values()) == {0}
