"""The program that runs one OpenStack service, without OpenStack."""

import pathlib
import subprocess
import sys

from lib.lab.openstack import resources

PROGRAM = """
import resource, sys, threading
import service

mode, calls = sys.argv[1:]
if mode == "kept":
    service.keep_room_for_frames()

def leaf():
    pass

leaf.__code__ = leaf.__code__.replace(co_stacksize=40)

def faults_at(depth):
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(int(calls)):
        leaf()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before

def run():
    print(max(map(faults_at, range(400))))

thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
CALLS = 1000


def faults(folder: pathlib.Path, mode: str) -> int:
    """Return the most page faults that CALLS calls take, of all depths of calls."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode, str(CALLS)],
        env={"PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=900,
    )
    return int(run.stdout)


def test_no_depth_of_calls_maps_memory_for_each(tmp_path: pathlib.Path) -> None:
    """Without the room, some depth does: then the room is not needed any more."""
    resources.unpack_guest(tmp_path)
    usual, kept = faults(tmp_path, "usual"), faults(tmp_path, "kept")
    print(f"page faults of {CALLS} calls: {usual}, with room for frames {kept}")
    assert usual >= CALLS
    assert kept < CALLS / 10
