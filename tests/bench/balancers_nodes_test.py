"""What load balancers cost with a thousand Nodes: as `balancers_test.py`."""

import functools
import typing

from lib.lab import places
from lib.lab.run import waiting
from tests.bench import scenes
from tests.harness.daemons import measured

if typing.TYPE_CHECKING:
    import pathlib

    from tests.bench import conftest

MANY = 1000
"""Nodes."""
SERVICES, PORTS = 100, 2
"""So there are 200,000 members."""
MOST_MIB = 150


def test_a_thousand_nodes(
    ground: places.Places, cloud: "conftest.Cloud", pex: "pathlib.Path"
) -> None:
    """And a hundred Services of two ports: memory, and what changes of Nodes cost."""
    scene = scenes.scene_of(ground, cloud, pex)
    scenes.run(scene, (managed_groups, crowd, crowd_restart))


def is_guarded(scene: scenes.Scene, nodes: int) -> bool:
    return scene.served() == 1 and scene.carry() == nodes


def managed_groups(scene: scenes.Scene) -> None:
    """A sync costs the same, however many Nodes have the group on their ports."""
    costs: list[scenes.Spent] = []
    for first, last in ((0, 2), (2, MANY)):
        scenes.each(scene.boot, range(first, last))
        scene.cloud.latency_s = 0.0  # the group gets to each port by a write of its own
        with scene.running(scenes.NEVER, manages_groups=True) as daemon:
            if not first:
                scene.create("guarded", 1)
            waiting.until("it is guarded", functools.partial(is_guarded, scene, last))
            scene.meter(daemon).until_quiet()
        scene.cloud.latency_s = 0.1
        with scene.running(scenes.OFTEN, manages_groups=True) as daemon:
            meter = scenes.until_started(scene, daemon, 1)
            costs.append(scenes.look(meter, daemon, 1))
        scene.table.spent(f"a sync with managed groups, {last} Nodes", costs[-1])
    with scene.running(scenes.NEVER, manages_groups=True) as daemon:
        scene.cloud.latency_s = 0.0
        daemon.ready_s()
        scene.delete("guarded")
        scene.cloud.latency_s = 0.1
    assert costs[0].calls == costs[1].calls
    assert sum(cost.writes for cost in costs) == 0


def crowd(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        meter = scene.create_at_once(daemon, SERVICES, PORTS)
        what = f"create {SERVICES} Services of {PORTS} ports, {MANY} Nodes"
        scene.table.spent(what, meter.until_quiet())
        scene.table.row("  resident memory", f"{daemon.rss_mib():.0f} MiB")


def crowd_restart(scene: scenes.Scene) -> None:
    rss: dict[str, float] = {}
    with scene.running(scenes.OFTEN) as daemon:
        meter = scenes.until_started(scene, daemon, SERVICES)
        scene.table.spent("restart", meter.spent(), "120 calls")
        rss["after the start"] = daemon.rss_mib()
        check = scenes.look(meter, daemon, SERVICES)
        scene.table.spent("a drift check", check, "120 calls")
        rss["after a drift check"] = daemon.rss_mib()
    with scene.running(scenes.NEVER) as daemon:
        meter = scenes.until_started(scene, daemon, SERVICES)
        meter.until_quiet()
        label(scene, daemon)
        heartbeats(scene, daemon)
        meter.again()
        scene.boot(MANY)
        desired = SERVICES * PORTS * (MANY + 1)
        waiting.until("members", lambda: scene.members() == desired)
        scene.table.spent(f"one Node added to all {SERVICES}", meter.until_quiet())
        rss["after a Node for all"] = daemon.rss_mib()
    for when, mib in rss.items():
        scene.table.row(f"resident memory {when}", f"{mib:.0f} MiB", f"{MOST_MIB} MB")
    assert max(rss.values()) <= MOST_MIB


def label(scene: scenes.Scene, daemon: measured.MeasuredDaemon) -> None:
    """A label that no selector names costs no call, and little of the processor."""
    meter, before = scene.meter(daemon), scenes.ended(daemon)
    scene.patch_node(7, {"metadata": {"labels": {"irrelevant": "yes"}}})
    waiting.until(
        "a pass of each Service",
        lambda: scenes.ended(daemon) - before >= SERVICES,
        poll_s=0.5,
    )
    spent = meter.spent()
    scene.table.spent("one label of one Node", spent, "no call, 1 CPU s")
    assert not spent.calls
    assert spent.cpu_s <= scenes.PATIENCE


def heartbeats(scene: scenes.Scene, daemon: measured.MeasuredDaemon) -> None:
    """What kubelets say of themselves all the time brings no Service in."""
    meter, before = scene.meter(daemon), scenes.ended(daemon)
    beat = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }
    body = {"status": {"conditions": [beat]}}
    scenes.each(lambda number: scene.patch_node(number, body, "status"), range(MANY))
    spent = meter.until_quiet()
    passes = scenes.ended(daemon) - before
    scene.table.spent(f"heartbeats of {MANY} Nodes", spent, "no call")
    scene.table.row("  passes of it", str(passes), "0")
    assert not spent.calls
    assert not passes
