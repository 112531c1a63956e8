"""What load balancers cost: the PEX, a real API server, and a cloud over HTTP that
takes 100 ms a call and has Octavia's state machine. Calls and writes are asserted;
seconds and megabytes are printed, and asserted only where they are far from what they
should be.

Each change takes half a second, and a new load balancer two. So one Node added to 20
ports is 20 writes, a poll after each, and 12 calls to look.
"""

import functools
import pathlib
import typing

from lib.lab import places
from tests.bench import scenes
from tests.harness import waiting
from tests.harness.daemons import measured

if typing.TYPE_CHECKING:
    from tests.bench import conftest

FEW, MANY = 10, 1000
"""Nodes."""
SERVICES, PORTS, WIDE_PORTS = 100, 10, 20
MANY_PORTS = 2
"""Of each Service where there are many Nodes: so there are 200,000 members."""
DRIFT_S = 10.0
DAY_S = 86400.0
USUAL_DRIFT_S = 600.0
LOOKS = 6
"""One of so many looks for drift is a deep one."""
MOST_MIB = 150
RESTART_S = 30.0
PATIENCE = 5
"""So many times slower than it should be is a failure, on whatever machine."""
OFTEN = f"--lb-drift-period={DRIFT_S:g}s"


def test_a_hundred_services(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """Of ten ports, ten Nodes: from the first Service to an idle day."""
    scene = scenes.scene_of(ground, cloud, pex)
    scenes.each(scene.boot, range(FEW))
    scenes.run(scene, (one_node_added, created_at_once, restart, tried, idle_day))


def test_a_thousand_nodes(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """And a hundred Services: memory, and what changes of Nodes cost."""
    scene = scenes.scene_of(ground, cloud, pex)
    scenes.run(scene, (managed_groups, crowd, crowd_restart))


def one_node_added(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        scene.create("wide", WIDE_PORTS)
        waiting.until("it is served", lambda: scene.served() == 1, 60)
        what = f"create a Service of {WIDE_PORTS} ports, {FEW} Nodes"
        scene.table.spent(what, meter.until_quiet())
        meter.again()
        scene.boot(FEW)
        waiting.until("members", lambda: scene.members() == WIDE_PORTS * (FEW + 1), 300)
        added = meter.until_quiet()
        scene.table.spent("one Node added to it", added, "65 calls")
        meter.again()
        scene.delete("wide")
        scene.table.spent("delete it", meter.until_quiet())
    assert added.calls <= 65


def created_at_once(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        scenes.each(
            lambda number: scene.create(f"s-{number:03}", PORTS), range(SERVICES)
        )
        waiting.until("all are served", lambda: scene.served() == SERVICES, 600)
        spent = meter.until_quiet()
        what = f"create {SERVICES} Services of {PORTS} ports at once"
        scene.table.spent(what, spent)
        scene.table.row("  resident memory", f"{daemon.rss_mib():.0f} MiB")
        failed = scenes.ended(daemon, "failure") + scenes.ended(
            daemon, "unexpected_error"
        )
        scene.table.row("  passes that failed", str(failed))
        assert spent.writes <= 2 * SERVICES  # the load balancer, the floating IP


def restart(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        spent = scenes.until_started(scene, daemon, SERVICES).spent()
        what = f"restart, until all {SERVICES} are known well"
        scene.table.spent(what, spent, f"120 calls, {RESTART_S:g} s")
        lines = [line for line in daemon.lines() if scenes.CONTROLLER in line]
        scene.table.row("  lines logged of it", str(len(lines)), "0")
    assert spent.calls <= 120
    assert spent.writes == 0
    assert spent.seconds <= RESTART_S * PATIENCE
    assert not lines


def tried(scene: scenes.Scene) -> None:
    """A dry run upon what is well has nothing to say."""
    with scene.running(scenes.NEVER, "--dry-run") as daemon:
        scenes.until_started(scene, daemon, SERVICES)
        lines = [line for line in daemon.lines() if "action skipped" in line]
        scene.table.row("actions that a dry run skips", str(len(lines)), "0")
    assert not lines


def idle_day(scene: scenes.Scene) -> None:
    usual: list[scenes.Spent] = []
    with scene.running(OFTEN) as daemon:
        meter = scenes.until_started(scene, daemon, SERVICES)
        while (deep := scenes.look(meter, daemon, SERVICES)).calls < SERVICES * PORTS:
            usual.append(deep)
            assert len(usual) < 2 * LOOKS
    for check in usual:
        scene.table.spent("a drift check", check, "120 calls, no write")
    scene.table.spent("a deep check", deep, "no write")
    deep_day = DAY_S / USUAL_DRIFT_S / LOOKS
    day = (usual[-1].calls * (LOOKS - 1) + deep.calls) * deep_day
    scene.table.row("calls of an idle day", f"{day:,.0f}")
    assert max(check.calls for check in usual) <= 120
    assert sum(check.writes for check in (*usual, deep)) == 0


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
            waiting.until(
                "it is guarded", functools.partial(is_guarded, scene, last), 600
            )
            scene.meter(daemon).until_quiet()
        scene.cloud.latency_s = 0.1
        with scene.running(OFTEN, manages_groups=True) as daemon:
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
        daemon.ready_s()
        meter = scene.meter(daemon)
        scenes.each(
            lambda number: scene.create(f"s-{number:03}", MANY_PORTS), range(SERVICES)
        )
        waiting.until("all are served", lambda: scene.served() == SERVICES, 600)
        what = f"create {SERVICES} Services of {MANY_PORTS} ports, {MANY} Nodes"
        scene.table.spent(what, meter.until_quiet())
        scene.table.row("  resident memory", f"{daemon.rss_mib():.0f} MiB")


def crowd_restart(scene: scenes.Scene) -> None:
    rss: dict[str, float] = {}
    with scene.running(OFTEN) as daemon:
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
        desired = SERVICES * MANY_PORTS * (MANY + 1)
        waiting.until("members", lambda: scene.members() == desired, 600)
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
        "all are looked at", lambda: scenes.ended(daemon) - before >= SERVICES, 60, 0.5
    )
    spent = meter.spent()
    scene.table.spent("one label of one Node", spent, "no call, 1 CPU s")
    assert not spent.calls
    assert spent.cpu_s <= PATIENCE


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
