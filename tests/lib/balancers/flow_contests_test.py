"""Another controller changes what the flow writes on a Service, each time."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.balancers import model
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason
from lib.kube import resources

Change = Callable[[dict[str, Any]], None]
STEP_S = 0.5


def other_address(service: dict[str, Any]) -> None:
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}


def no_address(service: dict[str, Any]) -> None:
    service["status"] = {"loadBalancer": {}}


def no_note(service: dict[str, Any]) -> None:
    service["metadata"]["annotations"].pop(keys.LOAD_BALANCER_ADDRESS, None)


def other_note(service: dict[str, Any]) -> None:
    service["metadata"]["annotations"][keys.LOAD_BALANCER_ADDRESS] = "198.51.100.7"


def no_notes(service: dict[str, Any]) -> None:
    service["metadata"]["annotations"] = {}


def no_finalizer(service: dict[str, Any]) -> None:
    service["metadata"]["finalizers"] = []


def finalizer_again(service: dict[str, Any]) -> None:
    service["spec"]["type"] = "ClusterIP"
    service["metadata"]["finalizers"] = [model.FINALIZER]


ADDRESS: dict[str, Any] = {f"f:{keys.LOAD_BALANCER_ADDRESS}": {}}
MANAGED: dict[str, Any] = {
    "status.loadBalancer": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}},
    keys.LOAD_BALANCER_ADDRESS: {"f:metadata": {"f:annotations": ADDRESS}},
    model.FINALIZER: {"f:metadata": {"f:finalizers": {f'v:"{model.FINALIZER}"': {}}}},
}


class Other:
    """A controller that reacts to each change of the Service."""

    def __init__(self, scene: Any, change: Change, managed: dict[str, Any]) -> None:
        self.scene = scene
        self.change = change
        self.managed = managed
        self.is_running = True

    def react(self) -> None:
        service, before = self.scene.ground.get("web"), self.scene.ground.get("web")
        self.change(service)
        entries = [
            {"manager": "ours", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}},
            {
                "manager": "metallb",
                "time": "2026-01-01T00:00:01Z",
                "fieldsV1": self.managed,
            },
        ]
        service["metadata"]["managedFields"] = entries
        if self.is_running and service != before:
            self.scene.ground.api.put(resources.SERVICES, service)

    def pass_(self, seconds: float) -> tuple[int, int]:
        """Advance the time; return the writes of the Service, and the cloud calls."""
        scene, process = self.scene, self.scene.process
        calls, cloud_calls = len(scene.ground.api.calls), len(scene.cloud.calls)
        end_s = scene.ground.now_s + seconds
        while scene.ground.now_s < end_s:
            self.react()
            process.services.relist()
            process.turn()
            process.services.relist()
            scene.ground.now_s += STEP_S
        process.say()
        api_calls = scene.ground.api.calls[calls:]
        writes = [c for c in api_calls if c.is_write and "services" in str(c)]
        return len(writes), len(scene.cloud.calls) - cloud_calls

    def events(self) -> list[str]:
        events = self.scene.ground.events()
        return [event for event in events if CommonReason.CONTESTED in event]

    def count(self) -> int:
        problems = self.scene.process.flow.problems()
        return int(problems[CommonReason.CONTESTED])


def other_of(make_scene: Callable[..., Any], change: Change, field: str) -> Other:
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    return Other(scene, change, MANAGED[field])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param(other_address, "status.loadBalancer", id="its own address"),
        pytest.param(no_address, "status.loadBalancer", id="no address"),
        pytest.param(no_note, keys.LOAD_BALANCER_ADDRESS, id="a note removed"),
        pytest.param(other_note, keys.LOAD_BALANCER_ADDRESS, id="a note changed"),
        pytest.param(no_notes, keys.LOAD_BALANCER_ADDRESS, id="all notes removed"),
        pytest.param(no_finalizer, model.FINALIZER, id="the finalizer removed"),
    ],
)
def test_a_field_that_another_client_changes_back_is_left_to_it_for_a_while(
    make_scene: Callable[..., Any], change: Change, field: str
) -> None:
    """The Service has one Event of it, and gets its field once the other has ended."""
    other = other_of(make_scene, change, field)
    right = other.scene.ground.get("web")
    writes, cloud_calls = other.pass_(60.0)
    assert 3 <= writes <= 12
    assert cloud_calls <= 40
    (event,) = (event for event in other.events() if field in event)
    assert "metallb" in event
    assert other.count() == 1
    writes, cloud_calls = other.pass_(1200.0)
    assert 2 <= writes <= 6
    assert cloud_calls <= 24
    other.is_running = False
    other.pass_(601.0)
    service = other.scene.ground.get("web")
    assert service["status"] == right["status"]
    assert service["metadata"]["annotations"] == right["metadata"]["annotations"]
    assert service["metadata"]["finalizers"] == right["metadata"]["finalizers"]
    assert other.count() == 0
    assert other.pass_(600.0) == (0, 0)


def test_a_finalizer_that_another_client_sets_again_is_left_for_a_while(
    make_scene: Callable[..., Any],
) -> None:
    """A deletion is not kept waiting by that."""
    other = other_of(make_scene, finalizer_again, model.FINALIZER)
    other.pass_(60.0)
    writes, cloud_calls = other.pass_(60.0)
    assert writes <= 3
    assert cloud_calls <= 20
    assert any("metallb" in event for event in other.events())
    assert other.count() == 1
    other.is_running = False
    other.scene.ground.delete("web")
    other.scene.process.settle(5.0)
    assert other.scene.ground.get("web") is None


def test_what_a_user_asks_for_meanwhile_is_written_at_once(
    make_scene: Callable[..., Any],
) -> None:
    """Only the same value is left to the other client."""
    other = other_of(make_scene, no_address, "status.loadBalancer")
    other.pass_(60.0)
    asked = {keys.HOSTNAME: "web.example"}
    other.scene.ground.service("web", 80, annotations=asked)
    other.is_running = False
    other.scene.process.settle(5.0)
    service = other.scene.ground.get("web")
    assert service["status"]["loadBalancer"]["ingress"] == [{"hostname": "web.example"}]


def test_the_last_other_writer_is_named_of_a_field_that_is_no_longer_there(
    make_scene: Callable[..., Any],
) -> None:
    """Source: Kubernetes, managedFields: a removed field has no manager."""
    other = other_of(make_scene, no_note, keys.LOAD_BALANCER_ADDRESS)
    other.managed = {"f:spec": {}}
    other.pass_(60.0)
    (event,) = other.events()
    assert "metallb" in event


def test_repairs_now_and_then_are_no_contest(make_scene: Callable[..., Any]) -> None:
    """Somebody who edits the status by hand a few times."""
    other = other_of(make_scene, no_address, "status.loadBalancer")
    for _ in range(10):
        other.is_running = True
        other.react()
        other.is_running = False
        other.pass_(20.0)
        assert other.scene.address("web")
    assert not other.events()
