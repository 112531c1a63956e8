"""helm processes end with the daemon that started them, however it ends."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

import psutil
import pytest

from lib.helm import child
from lib.lab.run import waiting

DAEMON = """
import contextlib, pathlib, sys, threading
import prometheus_client
from lib.daemon import daemon
from lib.helm import command, errors, model
from lib.osdpl.daemon import controller
from lib.process import shutdown
from lib.reconcile import jobs

folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:]
stop = threading.Event()

def start(name, pool):
    helm = command.Command(str(folder / name), folder / "home", None, {})
    run = model.Upgrade(
        release=name, namespace="x", chart=folder, values={}, labels={},
        timeout_s=300, limit_s=300, secrets=frozenset(),
    )

    def job(cancel):
        with contextlib.suppress(errors.HelmError):
            helm.upgrade(run, cancel)

    pool.start(name, job)

with shutdown.on_signal(stop):
    pool = jobs.Jobs(len(names), lambda name: None)
    registry = prometheus_client.CollectorRegistry()
    life = daemon.Daemon(registry, stop, controller.GRACE)
    life.drain(pool.stop)
    for name in names:
        start(name, pool)
    code = life.run([])
shutdown.end_now(code)
"""
BEGIN = f"""#!{sys.executable}
import os, pathlib, signal, subprocess, sys, time
me = pathlib.Path(__file__)
def begun(pid=None):
    me.with_suffix(".part").write_text(str(pid or os.getpid()))
    me.with_suffix(".part").rename(me.with_suffix(".pid"))
def asked(*_):
    me.with_suffix(".asked").touch()
"""
SLEEP = "begun(); time.sleep(300)\n"
IGNORES = "signal.signal(signal.SIGTERM, asked)\n"
HELMS: Mapping[str, str] = {
    "ends when asked": "def end(*_):\n    asked(); sys.exit(1)\n"
    f"signal.signal(signal.SIGTERM, end)\n{SLEEP}",
    "ends by default": SLEEP,
    "ignores SIGTERM": f"{IGNORES}begun()\nwhile True: time.sleep(300)\n",
    "is stopped": "begun(); os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(300)\n",
    "closed its output": f"os.close(1); os.close(2)\n{SLEEP}",
    "writes without end": "begun()\nwhile True: print('x' * 4096)\n",
}
GRANDCHILD = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
    "begun(child.pid); child.wait()\n"
)
"""helm starts none; with SIGKILL, only what the daemon itself started ends."""


@dataclasses.dataclass(frozen=True)
class Row:
    """How the daemon ends. asked: the helm processes that notice it in time."""

    end: signal.Signals
    helms: Mapping[str, str]
    asked: frozenset[str]
    code: int


ROWS = (
    Row(
        signal.SIGTERM,
        {**HELMS, "has a child": GRANDCHILD},
        frozenset({"ends when asked", "ignores SIGTERM"}),
        0,
    ),
    Row(signal.SIGKILL, HELMS, frozenset(), -signal.SIGKILL),
)


def write(folder: pathlib.Path, helms: Mapping[str, str]) -> None:
    for name, code in helms.items():
        program = folder / name
        program.write_text(BEGIN + code)
        program.chmod(0o755)


def started(folder: pathlib.Path, helms: Mapping[str, str]) -> dict[str, int]:
    """Return the PID of each program, once all have begun."""
    waiting.until(
        "each helm runs",
        lambda: all((folder / f"{name}.pid").exists() for name in helms),
    )
    return {name: int((folder / f"{name}.pid").read_text()) for name in helms}


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.end.name)
def test_no_helm_outlives_the_daemon(row: Row, tmp_path: pathlib.Path) -> None:
    write(tmp_path, row.helms)
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path), *row.helms],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        pids = started(tmp_path, row.helms)
        began = time.monotonic()
        daemon.send_signal(row.end)
        code = daemon.wait(180)
        took_s = time.monotonic() - began
        waiting.until(
            "no helm runs any more", lambda: not any(map(runs, pids.values()))
        )
    finally:
        daemon.kill()
    asked = {name for name in row.helms if (tmp_path / f"{name}.asked").exists()}
    print(f"{row.end.name}: exit code {code} after {took_s:.1f} s")
    for name in row.helms:
        print(f"  helm {name:20} {'asked' if name in asked else '':6} ended")
    assert code == row.code
    assert asked == set(row.asked)
    assert child.GRACE_S == 5.0
