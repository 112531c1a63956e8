"""After the loss of a cluster: `mooring adopt load-balancer`, then the daemon."""

from collections.abc import Callable
from typing import Any

import pytest

from lib.ccm import adopting
from lib.cloud import errors
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import resources

PORTS = (80, 443)


def lose_cluster(scene: Any, *, is_noted: bool) -> str:
    """Replace the cluster by one into which the Service was restored.

    Returns the ID of the load balancer of the lost cluster.
    """
    (id_,) = scene.cloud.octavia.load_balancers
    service = scene.ground.get("web")
    annotations = service["metadata"]["annotations"] if is_noted else {}
    scene.ground.get("web")
    for stored in list(scene.ground.api.all(resources.SERVICES)):
        about = dict(stored["metadata"])
        about["finalizers"] = []
        scene.ground.api.put(resources.SERVICES, {**stored, "metadata": about})
        scene.ground.api.remove(resources.SERVICES, about["name"], about["namespace"])
    scene.ground.service("web", *PORTS, annotations=annotations)
    scene.start()
    return str(id_)


def plan(
    scene: Any, id_: str, service: str = "default/web", name: str = "kubernetes"
) -> adopting.Planned:
    """name: of the cluster, as the command was given it."""
    request = adopting.AdoptionRequest(id_, service, "cluster-id", name)
    return adopting.plan(scene.ground.api, scene.ground.cloud, request)


def adopt(scene: Any, id_: str, name: str = "kubernetes") -> list[str]:
    clock = scene.cloud.clock
    planned = plan(scene, id_, name=name)
    api, cloud = scene.ground.api, scene.ground.cloud
    return [*adopting.carry_out(api, cloud, planned, clock, clock.sleep)]


@pytest.mark.parametrize("is_noted", [True, False], ids=["with notes", "without"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("version", [(2, 30), (2, 4)], ids=["tags", "descriptions"])
@pytest.mark.parametrize("name", ["kubernetes", "other"], ids=["name", "wrong name"])
def test_a_service_of_a_lost_cluster_gets_its_address_again(
    make_scene: Callable[..., Any],
    is_noted: bool,
    is_late: bool,
    version: tuple[int, int],
    name: str,
) -> None:
    """Whether the daemon runs already or not; nothing of the old cluster is left."""
    scene = make_scene()
    scene.cloud.octavia.version = version
    scene.calls(lambda: scene.ground.service("web", *PORTS))
    address = scene.address("web")
    id_ = lose_cluster(scene, is_noted=is_noted)
    if is_late:
        scene.process.settle(60.0)
        assert scene.address("web") != address
    assert adopt(scene, id_, name)
    scene.process.settle(60.0)
    scene.process.settle(60.0)
    assert scene.address("web") == address
    if is_late:
        (other,) = set(scene.cloud.octavia.load_balancers) - {id_}
        confirmed = {"mooring.io/confirm-deletion": other}
        scene.ground.service("web", *PORTS, annotations=confirmed)
        scene.process.settle(60.0)
        scene.process.settle(60.0)
        scene.cloud.octavia.finish()
    assert list(scene.cloud.octavia.load_balancers) == [id_]
    assert adopt(scene, id_, name) == [f"annotate Service default/web: {NOTES}"]
    scene.calls(lambda: scene.ground.delete("web"))
    scene.cloud.octavia.finish()
    assert scene.cloud.octavia.load_balancers == scene.cloud.octavia.listeners == {}
    ips = scene.cloud.neutron.floating_ips.values()
    addresses = [ip["floating_ip_address"] for ip in ips]
    assert address not in addresses


NOTES = ", ".join(sorted((keys.LOAD_BALANCER_ID, keys.OWNED_ID)))


@pytest.mark.parametrize("has_own", [False, True], ids=["first", "after another"])
def test_a_service_takes_over_a_load_balancer_that_it_shares(
    make_scene: Callable[..., Any], has_own: bool
) -> None:
    """Its owner is lost: the use of the same Service is no other user."""
    scene = make_scene()
    ground, octavia = scene.ground, scene.cloud.octavia
    scene.calls(lambda: ground.service("web", 80))
    address = scene.address("web")
    id_ = lose_cluster(scene, is_noted=False)
    if has_own:
        scene.process.settle(60.0)
    shared: dict[str, str | None] = {keys.LOAD_BALANCER_ID: id_}
    ground.service("web", 81, annotations=shared)
    scene.process.settle(60.0)
    scene.process.settle(60.0)
    tags = octavia.load_balancers[id_]["tags"]
    assert [tag for tag in tags if tag.startswith("mooring-user:")]
    assert adopt(scene, id_)
    scene.process.settle(60.0)
    assert adopt(scene, id_) == [f"annotate Service default/web: {NOTES}"]
    scene.process.settle(60.0)
    assert scene.address("web") == address
    scene.calls(lambda: ground.delete("web"))
    octavia.finish()
    assert octavia.load_balancers == octavia.listeners == {}


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
def test_what_served_the_service_meanwhile_is_left_to_a_person(
    make_scene: Callable[..., Any], is_restarted: bool
) -> None:
    """Also an internal one, without a floating IP: its address was in the status."""
    scene = make_scene()
    internal: dict[str, str | None] = {keys.INTERNAL: "true"}
    scene.calls(lambda: scene.ground.service("web", 80, annotations=internal))
    address, octavia = scene.address("web"), scene.cloud.octavia
    id_ = lose_cluster(scene, is_noted=True)
    if is_restarted:
        octavia.load_balancers[id_]["created_at"] = "2001-01-01T00:00:00"
    until_served(scene)
    (other,) = set(octavia.load_balancers) - {id_}
    assert adopt(scene, id_)
    if is_restarted:
        until_served(scene)
        scene.start()
    scene.process.settle(60.0)
    assert scene.address("web") == address
    assert set(octavia.load_balancers) == {id_, other}
    scene.process.say()
    (event,) = {e for e in scene.ground.events() if "CleanupIncomplete" in e}
    assert other in event
    confirmed = {"mooring.io/confirm-deletion": other}
    scene.ground.service("web", 80, annotations=confirmed)
    scene.process.settle(60.0)
    scene.process.settle(60.0)
    octavia.finish()
    assert set(octavia.load_balancers) == {id_}


def until_served(scene: Any) -> None:
    """Run the process until the status is written, and no longer."""
    before = scene.ground.get("web").get("status")
    for _ in range(100):
        scene.process.services.relist()
        scene.process.turn()
        if scene.ground.get("web").get("status") != before:
            return
        scene.ground.now_s += 0.5
    raise AssertionError("it is not served")


def test_reading_an_adoption_writes_nothing(make_scene: Callable[..., Any]) -> None:
    scene = make_scene()
    scene.calls(lambda: scene.ground.service("web", 80))
    id_ = lose_cluster(scene, is_noted=True)
    writes = len(scene.cloud.writes)
    planned = plan(scene, id_)
    assert planned.adoption.steps
    assert len(planned.adoption.owners) == 1
    assert len(scene.cloud.writes) == writes


def test_what_is_not_to_be_taken_over_is_refused(
    make_scene: Callable[..., Any],
) -> None:
    """A load balancer of a Service that exists, of several, or being changed."""
    scene = make_scene()
    ground, octavia = scene.ground, scene.cloud.octavia
    scene.calls(lambda: ground.service("web", 80))
    scene.calls(lambda: ground.service("second", 80))
    id_ = ground.get("web")["metadata"]["annotations"][keys.OWNED_ID]
    for service, match in (
        ("default/second", "owned by Service default/web, which exists"),
        ("default/absent", "no such Service"),
    ):
        with pytest.raises(errors.InvalidRequest, match=match):
            plan(scene, id_, service)
    balancer = octavia.load_balancers[id_]
    balancer["provisioning_status"] = "PENDING_UPDATE"
    with pytest.raises(errors.InvalidRequest, match="default/web, which exists"):
        plan(scene, id_, "default/second")
    assert plan(scene, id_).adoption.steps == (), "nothing has to be changed"
    lost = ["mooring:lost:uid"]
    balancer["tags"] = lost
    with pytest.raises(errors.InvalidRequest, match="must be ACTIVE"):
        plan(scene, id_, "default/second")
    other = "mooring-user:cluster-id:other"
    balancer |= {"provisioning_status": "ACTIVE", "tags": [*lost, other]}
    with pytest.raises(errors.InvalidRequest, match=other):
        plan(scene, id_, "default/second")
    with pytest.raises(errors.NotFound):
        plan(scene, "00000000-0000-4000-8000-0000000000aa")
