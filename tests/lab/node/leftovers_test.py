"""What a killed test process leaves on the machine: nothing."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from lib.lab.run import waiting
from tests.harness.node import hanging_disks

KILLED = """\
import pathlib, signal, sys, tempfile
from lib.lab.storage import loop_disks
loop_disks.enter_private_mounts()
with loop_disks.machine(pathlib.Path(sys.argv[1])) as machine:
    disk = machine.plug("serial", 64 * 2**20)
    import subprocess
    device, target = machine.dev / disk.name, machine.kubelet / "mounted"
    target.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, target], check=True)
    print(disk.name, flush=True)
    signal.pause()
"""


HANGING = """\
import pathlib, signal, subprocess, sys
from lib.lab.storage import loop_disks
from tests.harness.node import hanging_disks
loop_disks.enter_private_mounts()
folder = pathlib.Path(sys.argv[1])
(folder / "m").mkdir()
(folder / "fuse").mkdir()
with (
    loop_disks.machine(folder / "m") as machine,
    hanging_disks.plugged(machine, folder / "fuse", ["serial"]) as disks,
):
    device, target = machine.dev / disks.disks[0].name, machine.kubelet / "mounted"
    target.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, target], check=True)
    disks.hold("writes")
    subprocess.Popen(["umount", target])
    disks.wait_until_held(0)
    print(disks.disks[0].name, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("script", [KILLED, HANGING], ids=["mounted", "hanging"])
def test_a_killed_run_leaves_nothing(tmp_path: pathlib.Path, script: str) -> None:
    """Neither a loop device nor a mount nor a file, even when a disk hangs."""
    if reason := hanging_disks.unavailable():
        pytest.skip(reason)
    path = os.pathsep.join([*filter(None, sys.path), os.getcwd()])
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert name.startswith("loop")
        backing = pathlib.Path(f"/sys/block/{name}/loop/backing_file")
        assert backing.exists()
        process.send_signal(signal.SIGKILL)
    waiting.until("the loop device is free", lambda: not backing.exists())
    assert str(tmp_path) not in pathlib.Path("/proc/self/mountinfo").read_text()
    # The folders under the mounts were there before.
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
