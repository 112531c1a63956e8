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


def plan(scene: Any, id_: str, service: str = "default/web") -> adopting.Planned:
    request = adopting.AdoptionRequest(id_, service, "cluster-id")
    return adopting.plan(scene.ground.api, scene.ground.cloud, request)


def adopt(scene: Any, id_: str) -> list[str]:
    clock = scene.cloud.clock
    planned = plan(scene, id_)
    api, cloud = scene.ground.api, scene.ground.cloud
    return [*adopting.carry_out(api, cloud, planned, clock, clock.sleep)]


@pytest.mark.parametrize("is_noted", [True, False], ids=["with notes", "without"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("version", [(2, 30), (2, 4)], ids=["tags", "descriptions"])
def test_a_service_of_a_lost_cluster_gets_its_address_again(
    make_scene: Callable[..., Any],
    is_noted: bool,
    is_late: bool,
    version: tuple[int, int],
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
    assert adopt(scene, id_)
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
    assert adopt(scene, id_) == [f"annotate Service default/web: {NOTES}"]
    scene.calls(lambda: scene.ground.delete("web"))
    scene.cloud.octavia.finish()
    assert scene.cloud.octavia.load_balancers == scene.cloud.octavia.listeners == {}
    ips = scene.cloud.neutron.floating_ips.values()
    addresses = [ip["floating_ip_address"] for ip in ips]
    assert address not in addresses


NOTES = ", ".join(sorted((keys.LOAD_BALANCER_ID, keys.OWNED_ID)))


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
    with pytest.raises(errors.InvalidRequest, match="must be ACTIVE"):
        plan(scene, id_)
    balancer |= {
        "provisioning_status": "ACTIVE",
        "tags": [*balancer["tags"], "mooring-user:cluster-id:other"],
    }
    with pytest.raises(errors.InvalidRequest, match="several Services"):
        plan(scene, id_)
    with pytest.raises(errors.NotFound):
        plan(scene, "00000000-0000-4000-8000-0000000000aa")
