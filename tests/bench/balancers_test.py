"""What load balancers cost: the PEX, a real API server, and a cloud over HTTP that
takes 100 ms a call and has Octavia's state machine. Calls and writes are asserted;
seconds and megabytes are printed, and asserted only where they are far from what they
should be.

Each change takes half a second, and a new load balancer two. So one Node added to 20
ports is 20 writes, a poll after each, and 12 calls to look.
"""

import pathlib
import typing

from lib.lab import places
from lib.lab.run import waiting
from tests.bench import scenes

if typing.TYPE_CHECKING:
    from tests.bench import conftest

FEW = 10
"""Nodes."""
SERVICES, PORTS, WIDE_PORTS = 100, 10, 20
DAY_S = 86400.0
USUAL_DRIFT_S = 600.0
LOOKS = 6
"""One of so many looks for drift is a deep one."""
RESTART_S = 30.0


def test_a_hundred_services(
    ground: places.Places, cloud: "conftest.Cloud", pex: pathlib.Path
) -> None:
    """Of ten ports, ten Nodes: from the first Service to an idle day."""
    scene = scenes.scene_of(ground, cloud, pex)
    scenes.each(scene.boot, range(FEW))
    scenes.run(scene, (one_node_added, created_at_once, restart, tried, idle_day))


def one_node_added(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        daemon.ready_s()
        meter = scene.meter(daemon)
        scene.create("wide", WIDE_PORTS)
        waiting.until("it is served", lambda: scene.served() == 1)
        what = f"create a Service of {WIDE_PORTS} ports, {FEW} Nodes"
        scene.table.spent(what, meter.until_quiet())
        meter.again()
        scene.boot(FEW)
        waiting.until("members", lambda: scene.members() == WIDE_PORTS * (FEW + 1))
        added = meter.until_quiet()
        scene.table.spent("one Node added to it", added, "65 calls")
        meter.again()
        scene.delete("wide")
        scene.table.spent("delete it", meter.until_quiet())
    assert added.calls <= 65


def created_at_once(scene: scenes.Scene) -> None:
    with scene.running(scenes.NEVER) as daemon:
        meter = scene.create_at_once(daemon, SERVICES, PORTS)
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
    assert spent.seconds <= RESTART_S * scenes.PATIENCE
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
    with scene.running(scenes.OFTEN) as daemon:
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
