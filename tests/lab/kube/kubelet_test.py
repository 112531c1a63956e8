"""One real node beside one real control plane."""

import pathlib
import sys
from collections.abc import Iterator

import pytest

from lib.lab import errors, places
from lib.lab.kube import control_plane, kubelet, node_host
from lib.lab.run import processes, progress


@pytest.fixture()
def where(elsewhere: places.Places) -> Iterator[places.Places]:
    """An own lab, with the programs built for everybody; nothing of it stays."""
    if reason := kubelet.unavailable(elsewhere):
        pytest.skip(reason)
    kubelet.build(elsewhere, progress.Lines(sys.stderr))
    yield elsewhere
    kubelet.down(elsewhere)
    control_plane.down(elsewhere)
    processes.stop(elsewhere, processes.names(elsewhere))


def settings() -> dict[str, str]:
    names = ("vm/overcommit_memory", "kernel/panic", "net/ipv4/ip_forward")
    folder = pathlib.Path("/proc/sys")
    return {name: (folder / name).read_text() for name in names}


def test_node_becomes_ready_and_leaves_no_trace(where: places.Places) -> None:
    """It registers, is Ready, and afterwards the machine is as it was."""
    before = settings()
    with pytest.raises(errors.LabError, match="needs the lab's own control plane"):
        kubelet.up(where, progress.Silent())
    control_plane.up(where, progress.Silent())
    kubelet.up(where, progress.Silent(), "boat")
    assert [program.ready for program in kubelet.status(where)] == [True, True]
    kubelet.down(where)
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    assert str(where.state) not in mounts
    assert not (pathlib.Path("/sys/class/net") / node_host.bridge(where)).exists()
    assert not any(
        (hierarchy / node_host.cgroup(where)).exists()
        for hierarchy in node_host.hierarchies(mounts)
    )
    assert settings() == before
    assert [program.pid for program in kubelet.status(where)] == [None, None]
    assert processes.find(where, "etcd") is not None
