"""kill -9 of a test process, or of the Pants above it, leaves nothing of a lab.

tests/lib/lab/slots has the table of who is killed when; this is the lab itself: etcd,
Kubernetes, OpenStack, and where the machine allows it a kubelet with its mounts. The
default tier starts two of OpenStack's services, the long tier all of them.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.kube import node_host
from lib.lab.openstack import layout
from lib.lab.run import ports, processes
from lib.lab.slots import keeper, leases
from tests.harness import testing

WITHIN_S = 120.0
PORT_BASE = 16000
"""Not the slots of other test processes: one of them would take the slot at once."""
PANTS = '#!/bin/sh\n"$@" &\nwait\n'
SERVICES = testing.by_tier((layout.KEYSTONE, layout.GLANCE), layout.SERVICES)
USER = """
import sys, time
from lib.lab.artifacts import programs
from lib.lab.kube import control_plane, kubelet
from lib.lab.openstack import lab
from lib.lab.run import progress
from lib.lab.slots import leases, slots

slots.PORT_BASE, slots.of_this_machine = int(sys.argv[1]), lambda: 1
shown = progress.Lines(sys.stderr)
with leases.held(shown) as lease:
    programs.build(lease.where, [control_plane.GROUP], shown)
    control_plane.up(lease.where, shown)
    lab.up(lease.where, shown, sys.argv[2:])
    if kubelet.unavailable(lease.where) is None:
        kubelet.build(lease.where, shown)
        kubelet.up(lease.where, shown)
    print(lease.slot.folder, flush=True)
    time.sleep(600)
"""


def leftovers(slot: pathlib.Path) -> list[str]:
    """Return what is left of processes, ports, mounts, cgroups, locks and data."""
    where = places.Places(slot, slot, PORT_BASE)
    left = [f"process {pid}" for pid in sorted(keeper.belonging(slot))]
    left += [
        f"{name}'s port" for name, at in where.ports().items() if not ports.free(at)
    ]
    left += [f"mount {point}" for point in keeper.mounts(slot)]
    for hierarchy in node_host.hierarchies(
        pathlib.Path("/proc/self/mountinfo").read_text()
    ):
        left += [str(path) for path in hierarchy.glob(node_host.cgroup(where))]
    for file in slot.glob("*lock"):
        lock = keeper.hold(file)
        if lock is None:
            left.append(f"lock {file.name}")
        else:
            os.close(lock)
    return left + [name for name in (keeper.LAB, keeper.RUNS) if (slot / name).exists()]


@pytest.fixture()
def state() -> Iterator[pathlib.Path]:
    """Return a folder with a short name: the path of a socket has 107 characters."""
    with tempfile.TemporaryDirectory(prefix="lab-") as folder:
        yield pathlib.Path(folder)
        # Without their files the keepers would know nothing of what still runs.
        for slot in leases.root({"XDG_STATE_HOME": folder}).glob("[0-9]"):
            keeper.end(slot)


@pytest.mark.parametrize("victim", testing.by_tier(("Pants",), ("pytest", "Pants")))
def test_nothing_is_left_of_a_lab_whose_user_is_killed(
    victim: str, tmp_path: pathlib.Path, state: pathlib.Path
) -> None:
    script = tmp_path / "user.py"
    script.write_text(USER)
    pants = tmp_path / "pants"
    pants.write_text(PANTS)
    pants.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env["XDG_STATE_HOME"] = str(state)
    parent = subprocess.Popen(
        [str(pants), sys.executable, str(script), str(PORT_BASE), *SERVICES],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    assert parent.stdout is not None
    try:
        slot = pathlib.Path(parent.stdout.readline().strip())
        assert slot.is_relative_to(leases.root(env))
        lab = places.Places(slot, slot / keeper.LAB, PORT_BASE)
        running = [name for name in processes.names(lab) if processes.find(lab, name)]
        mounts = len(keeper.mounts(slot))
        assert {layout.DATABASE, *SERVICES, "etcd", "kube-apiserver"} <= {*running}
        user = json.loads((slot / keeper.LEASE).read_text())["pid"]
        os.kill(user if victim == "pytest" else parent.pid, signal.SIGKILL)
        began = time.monotonic()
        while (left := leftovers(slot)) and time.monotonic() - began < WITHIN_S:
            time.sleep(0.5)
        print(
            f"{victim} killed: {len(running)} programs and {mounts} mounts gone after"
            f" {time.monotonic() - began:.1f} s"
        )
        assert left == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
