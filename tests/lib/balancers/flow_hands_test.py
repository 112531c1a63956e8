"""A Service changes hands: type, class, finalizer, notes; nothing leaks or hangs."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.balancers import model
from lib.cloud.openstack.fake import session
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import CommonReason
from lib.kube import resources

NOTES = {keys.LOAD_BALANCER_ID, keys.OWNED_ID, keys.LOAD_BALANCER_ADDRESS}


def edit(scene: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the Service as a client of the API server does."""
    service = scene.ground.get("web")
    change(service)
    scene.ground.api.put(resources.SERVICES, service)


def with_type(type_: str) -> Callable[[dict[str, Any]], None]:
    def change(service: dict[str, Any]) -> None:
        service["spec"]["type"] = type_
        service["spec"].pop("loadBalancerClass", None)

    return change


def with_class(service: dict[str, Any]) -> None:
    service["spec"] |= {"type": "LoadBalancer", "loadBalancerClass": "x.example/y"}


def without_finalizer(service: dict[str, Any]) -> None:
    service["metadata"]["finalizers"] = []


def is_empty(scene: Any) -> bool:
    scene.cloud.octavia.finish()
    return not scene.cloud.octavia.load_balancers and not (
        scene.cloud.neutron.floating_ips
    )


@pytest.mark.parametrize("deletes", ["never", "with the class", "later"])
@pytest.mark.parametrize("restarts", [False, True], ids=["running", "down meanwhile"])
@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "notes removed"])
def test_a_class_after_the_type_leaves_nothing(
    make_scene: Callable[..., Any], deletes: str, restarts: bool, is_noted: bool
) -> None:
    """The usual way to another controller, however late this one looks."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    if restarts:
        edit(scene, with_type("ClusterIP"))
    if not is_noted:
        edit(scene, lambda service: service["metadata"].update(annotations={}))
    edit(scene, with_class)
    if restarts:
        scene.start()
    if deletes == "with the class":
        scene.ground.delete("web")
    scene.process.settle(60.0)
    assert is_empty(scene)
    service = scene.ground.get("web")
    if deletes == "with the class":
        assert service is None
        return
    assert service["metadata"]["finalizers"] == []
    assert not NOTES & service["metadata"]["annotations"].keys()
    if deletes == "later":
        scene.ground.delete("web")
        scene.process.settle(60.0)
        assert scene.ground.get("web") is None


def test_the_status_of_another_controller_stays(make_scene: Callable[..., Any]) -> None:
    """It has set its own address and class before this one looks."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    edit(scene, with_class)
    foreign_status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
    edit(scene, lambda service: service.update(status=foreign_status))
    scene.process.settle(60.0)
    assert is_empty(scene)
    status = scene.ground.get("web").get("status")
    assert status == foreign_status, status


def test_notes_go_with_the_load_balancer(make_scene: Callable[..., Any]) -> None:
    """Turned back, the Service is like a new one: no drift is reported."""
    scene = make_scene()
    shared = {keys.TIMEOUT_CLIENT_DATA: "70000"}
    scene.calls(lambda: scene.ground.service("web", 80, annotations=shared))
    scene.calls(lambda: edit(scene, with_type("ClusterIP")))
    assert is_empty(scene)
    assert scene.ground.get("web")["metadata"]["annotations"] == shared
    scene.calls(lambda: edit(scene, with_type("LoadBalancer")))
    assert scene.address("web")
    scene.process.say()
    assert not any(CommonReason.DRIFT in event for event in scene.ground.events())


def test_leftovers_of_the_reference_do_not_keep_a_service_from_being_served(
    make_scene: Callable[..., Any],
) -> None:
    """It leaves its notes on a Service that was ClusterIP for a time."""
    scene = make_scene()
    notes = {
        keys.LOAD_BALANCER_ID: "00000000-0000-4000-8000-0000000000aa",
        keys.LOAD_BALANCER_ADDRESS: "198.51.100.9",
    }
    scene.ground.service("web", 80, annotations=notes)
    scene.process.settle(60.0)
    assert scene.address("web")
    assert set(scene.process.flow.problems().values()) == {0}


def test_a_finalizer_that_others_removed_is_put_back(
    make_scene: Callable[..., Any],
) -> None:
    """Without waiting for a drift check: a deletion in between would leak."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    scene.calls(lambda: edit(scene, without_finalizer), quiet_s=5.0)
    assert scene.ground.get("web")["metadata"]["finalizers"] == [model.FINALIZER]
    calls = scene.calls(lambda: None)
    assert calls == 0


def restored(scene: Any, name: str) -> None:
    """Apply what `kubectl get -o yaml` wrote of a Service, under another name."""
    service = scene.ground.get("web")
    about = service["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
        about.pop(key, None)
    about["name"] = name
    service.pop("status", None)
    scene.ground.api.put(resources.SERVICES, service)


def test_a_copied_service_gets_its_own_load_balancer(
    make_scene: Callable[..., Any],
) -> None:
    """The original keeps its own; the message names the command that takes it over."""
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    (original,) = scene.cloud.octavia.load_balancers
    scene.calls(lambda: restored(scene, "copy"))
    assert scene.address("copy") != scene.address("web")
    notes = scene.ground.get("copy")["metadata"]["annotations"]
    assert notes[keys.OWNED_ID] == notes[keys.LOAD_BALANCER_ID] != original
    scene.process.say()
    assert any(
        "mooring adopt load-balancer" in event for event in scene.ground.events()
    )
    assert set(scene.process.flow.problems().values()) == {0}
    scene.calls(lambda: scene.ground.delete("copy"))
    scene.cloud.octavia.finish()
    assert list(scene.cloud.octavia.load_balancers) == [original]


def test_a_service_restored_into_another_project_says_what_to_remove(
    make_scene: Callable[..., Any],
) -> None:
    """The load balancer of the first cluster answers 403."""
    scene = make_scene()
    id_ = "00000000-0000-4000-8000-0000000000aa"
    scene.cloud.fault = lambda call: (
        session.Fault(403) if call.parts[-1:] == (id_,) else None
    )
    notes = {keys.LOAD_BALANCER_ID: id_, keys.OWNED_ID: id_}
    scene.ground.service("web", 80, annotations=notes)
    scene.process.settle(60.0)
    scene.process.say()
    event = next(event for event in scene.ground.events() if "403" in event)
    assert keys.OWNED_ID in event
    assert keys.LOAD_BALANCER_ID in event
    scene.ground.service("web", 80, annotations=dict.fromkeys(notes))
    scene.process.settle(400.0)
    assert scene.address("web")
