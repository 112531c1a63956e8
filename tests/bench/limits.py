"""What the benches at Kubernetes' own limits share.

Source: Kubernetes, "Considerations for large clusters": 5,000 Nodes.
"""

import contextlib
from collections.abc import Iterator

from lib.lab.daemons import metrics
from tests.bench import scenes
from tests.harness.daemons import measured

NODES = 5000
MOST_MB = 300
TURN_S, LATE_TURN_S = 5.0, 10.0
"""Between two heartbeats of a loop: what it should be at most, and what is a failure on
whatever machine."""
CONTROLLERS = ("nodes", "balancers")
QUIETLY = "--node-status-update-frequency=1h"
PATIENCE_S = 600.0


@contextlib.contextmanager
def watched(scene: scenes.Scene, *words: str) -> Iterator[measured.MeasuredDaemon]:
    """Run a daemon; in the end, its memory and heartbeats are asserted."""
    with scene.running(*words) as daemon:
        yield daemon
        megabytes = daemon.rss_mib() * 2**20 / 1e6
        scene.table.row("  resident memory", f"{megabytes:.0f} MB", f"{MOST_MB} MB")
        late = {
            controller: late_turns(daemon, controller, TURN_S)
            for controller in CONTROLLERS
        }
        scene.table.row(f"  turns of more than {TURN_S:.0f} s", str(late), "0")
        later = {
            controller: late_turns(daemon, controller, LATE_TURN_S)
            for controller in CONTROLLERS
        }
    assert megabytes <= MOST_MB
    assert set(later.values()) == {0}


def late_turns(daemon: measured.MeasuredDaemon, controller: str, seconds: float) -> int:
    """Count the heartbeats that came later. seconds: a bucket of the metric."""
    text = daemon.get("/metrics")[1]
    all_, timely = (
        metrics.total(
            text, "mooring_loop_turn_seconds_bucket", controller=controller, le=le
        )
        for le in ("+Inf", f"{seconds}")
    )
    assert all_ > 0
    return int(all_ - timely)
