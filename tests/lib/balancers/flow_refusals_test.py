"""A write that Octavia or Neutron refuses does not stop the others of the Service."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.balancers.model import Topic
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import resources

QUOTA = session.Fault(403, message="Quota exceeded for resources: ['listener'].")
INVALID = session.Fault(400, message="Invalid input")


def members(scene: Any) -> dict[int, list[str]]:
    """Return the addresses behind each port."""
    octavia = scene.cloud.octavia
    return {
        int(str(listener["protocol_port"])): sorted(
            str(member["address"])
            for member in octavia.members.get(
                str(listener["default_pool_id"]), {}
            ).values()
        )
        for listener in octavia.listeners.values()
    }


def replace_nodes(scene: Any) -> None:
    """Replace both Nodes by others."""
    scene.ground.nodes = (scene.node(8), scene.node(9))
    scene.again(Topic.NODES)


def is_to(method: str, path: str) -> Callable[[wire.Call], bool]:
    return lambda call: (call.method, call.path.rsplit("/", 1)[0]) == (method, path)


@pytest.mark.parametrize(
    ("ports", "annotations", "refused", "fault"),
    [
        pytest.param(
            (443, 80),
            {},
            lambda call: call.method == "POST" and call.path == "lbaas/listeners",
            QUOTA,
            id="a new port in front of the others is refused",
        ),
        pytest.param(
            (80,),
            {keys.TIMEOUT_CLIENT_DATA: "70000"},
            is_to("PUT", "lbaas/listeners"),
            INVALID,
            id="a setting of the listener is refused",
        ),
        pytest.param(
            (80,),
            {keys.METHOD: "SOURCE_IP"},
            is_to("PUT", "lbaas/pools"),
            INVALID,
            id="a setting of the pool is refused",
        ),
    ],
)
def test_members_follow_the_nodes_while_something_else_is_refused(
    make_scene: Callable[..., Any],
    ports: tuple[int, ...],
    annotations: dict[str, str | None],
    refused: Callable[[wire.Call], bool],
    fault: session.Fault,
) -> None:
    """Else an unchanged port has no member any more."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    scene.cloud.fault = lambda call: fault if refused(call) else None
    scene.ground.service("web", *ports, annotations=annotations)
    scene.process.settle(60.0)
    replace_nodes(scene)
    for _ in range(8):
        scene.process.settle(60.0)
    assert members(scene)[80] == ["10.0.0.8", "10.0.0.9"]
    scene.process.say()
    events = scene.ground.api.all(resources.EVENTS)
    # Once, and after nine minutes again, in the words of the topics of that time.
    assert sum(event["count"] for event in events if event["type"] == "Warning") == 2
    scene.cloud.fault = session.nothing
    scene.process.settle(400.0)
    assert set(members(scene)) == set(ports)
    assert set(scene.process.flow.problems().values()) == {0}


def test_the_other_ports_are_created_when_one_is_refused(
    make_scene: Callable[..., Any],
) -> None:
    """Whatever the order; each refusal is reported once, and tried again."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))

    def refuse(call: wire.Call) -> session.Fault | None:
        if (call.method, call.path) != ("POST", "lbaas/listeners"):
            return None
        port = wire.part(call.body, "listener")["protocol_port"]
        return QUOTA if port in (443, 8444) else None

    scene.cloud.fault = refuse
    scene.ground.service("web", 443, 8443, 8444, 80, 8445)
    for _ in range(10):
        scene.process.settle(60.0)
    assert set(members(scene)) == {80, 8443, 8445}
    scene.process.say()
    warnings = [event for event in scene.ground.events() if "Warning" in event]
    assert len(warnings) == 2, warnings
    scene.cloud.fault = session.nothing
    scene.process.settle(400.0)
    assert set(members(scene)) == {80, 443, 8443, 8444, 8445}
    assert set(scene.process.flow.problems().values()) == {0}


def test_a_port_whose_deletion_is_refused_keeps_no_other_on_a_shared_one(
    make_scene: Callable[..., Any],
) -> None:
    """And the Service stays until its last listener is deleted."""
    scene = make_scene()
    ground, octavia = scene.ground, scene.cloud.octavia
    scene.calls(lambda: ground.service("web", 80))
    id_ = ground.get("web")["metadata"]["annotations"][keys.LOAD_BALANCER_ID]
    shared = {keys.LOAD_BALANCER_ID: id_}
    scene.calls(lambda: ground.service("second", 81, 82, 83, annotations=shared))
    (kept,) = (x["id"] for x in octavia.listeners.values() if x["protocol_port"] == 81)
    scene.cloud.fault = lambda call: (
        INVALID if (call.method, call.parts[-1]) == ("DELETE", kept) else None
    )
    ground.delete("second")
    scene.process.settle(120.0)
    assert set(members(scene)) == {80, 81}
    assert ground.get("second") is not None
    scene.cloud.fault = session.nothing
    scene.process.settle(400.0)
    assert set(members(scene)) == {80}
    assert ground.get("second") is None
