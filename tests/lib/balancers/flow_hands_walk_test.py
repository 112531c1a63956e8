"""A Service changes hands at random: nothing leaks, hangs, or changes others.

In the long tier 1,000 walks.
"""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.kube import resources

WALKS = 1000 if os.environ.get("MOORING_TIER") == "long" else 40
STEPS = 12


def edit(scene: Any, change: Callable[[dict[str, Any]], None]) -> None:
    service = scene.ground.get("web")
    if service is not None and "deletionTimestamp" not in service["metadata"]:
        change(service)
        scene.ground.api.put(resources.SERVICES, service)


def to_cluster_ip(scene: Any, chance: random.Random) -> None:
    def change(service: dict[str, Any]) -> None:
        service["spec"]["type"] = "ClusterIP"
        service["spec"].pop("loadBalancerClass", None)

    edit(scene, change)


def to_load_balancer(scene: Any, chance: random.Random) -> None:
    """Without a class, or with one: only when the type was another."""

    def change(service: dict[str, Any]) -> None:
        if service["spec"]["type"] == "ClusterIP" and chance.random() < 0.5:
            service["spec"]["loadBalancerClass"] = "x.example/y"
        service["spec"]["type"] = "LoadBalancer"

    edit(scene, change)


def without_notes(scene: Any, chance: random.Random) -> None:
    """As `kubectl replace` or a restored manifest does."""

    def change(service: dict[str, Any]) -> None:
        notes = service["metadata"]["annotations"]
        for key in (keys.LOAD_BALANCER_ID, keys.OWNED_ID, keys.LOAD_BALANCER_ADDRESS):
            if chance.random() < 0.5:
                notes.pop(key, None)

    edit(scene, change)


def deleted(scene: Any, chance: random.Random) -> None:
    if scene.ground.get("web") is not None:
        scene.ground.delete("web")


def created(scene: Any, chance: random.Random) -> None:
    if scene.ground.get("web") is None:
        scene.ground.service("web", 80)


def copied(scene: Any, chance: random.Random) -> None:
    """With all annotations, as `kubectl get -o yaml` writes it."""
    service = scene.ground.get("web")
    if service is None or scene.ground.get("copy") is not None:
        return
    for key in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
        service["metadata"].pop(key, None)
    service["metadata"].pop("deletionTimestamp", None)
    service["metadata"]["name"] = "copy"
    service.pop("status", None)
    scene.ground.api.put(resources.SERVICES, service)


def restored(scene: Any, chance: random.Random) -> None:
    """Under its own name, while the original is not there."""
    service = scene.ground.get("web")
    deleted(scene, chance)
    scene.process.settle(60.0)
    if service is None or scene.ground.get("web") is not None:
        return
    for key in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
        service["metadata"].pop(key, None)
    service["metadata"].pop("deletionTimestamp", None)
    service.pop("status", None)
    scene.ground.api.put(resources.SERVICES, service)


def restarted(scene: Any, chance: random.Random) -> None:
    scene.start()


MOVES = (
    *(to_cluster_ip, to_load_balancer) * 3,
    without_notes,
    deleted,
    created,
    copied,
    restored,
    restarted,
)


def foreign(scene: Any) -> str:
    """Return the ID of a load balancer of another Service."""
    scene.calls(lambda: scene.ground.service("other", 80))
    (id_,) = scene.cloud.octavia.load_balancers
    other = scene.ground.get("other")
    assert other is not None
    return str(id_)


@pytest.mark.parametrize("seed", range(WALKS))
def test_no_walk_of_a_service_leaves_anything(
    make_scene: Callable[..., Any], seed: int
) -> None:
    """Each move comes before, or after, the one before it has been served."""
    chance = random.Random(seed)  # noqa: S311 # a walk, no secret
    scene = make_scene()
    other_id = foreign(scene)
    before = repr(scene.cloud.octavia.load_balancers[other_id])
    scene.ground.service("web", 80)
    moves = []
    for _ in range(STEPS):
        move = chance.choice(MOVES)
        moves.append(move.__name__)
        move(scene, chance)
        for _ in range(chance.choice((0, 0, 1, 3, 60))):
            scene.process.services.relist()
            scene.process.turn()
            scene.ground.now_s += 0.5
    for name in ("web", "copy"):
        if scene.ground.get(name) is not None:
            scene.ground.delete(name)
    scene.process.settle(60.0)
    scene.start()
    scene.process.settle(700.0)
    scene.cloud.octavia.finish()
    names = [s["metadata"]["name"] for s in scene.ground.api.all(resources.SERVICES)]
    assert names == ["other"], moves
    assert list(scene.cloud.octavia.load_balancers) == [other_id], moves
    assert repr(scene.cloud.octavia.load_balancers[other_id]) == before, moves
