"""What csi-node costs on a node, and cinder-csi-plugin beside it.

Processes are counted by wrappers of the programs that both start.
"""

import concurrent.futures
import os
import pathlib
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping

import psutil
import pytest

from lib.lab import places
from lib.lab.storage import file_system_tools, loop_disks
from tests.harness import testing
from tests.harness.node import node_plugins
from tests.harness.node.node_plugins import (
    OURS,
    REFERENCE,
    MountedVolume,
    NodePluginProcess,
)

MIB = 2**20
VOLUMES = 100
FEW = 4
"""Calls at a time where they are not measured."""
SIZE = 32 * MIB
IDLE_MB_MAX, FULL_MB_MAX = 55, 70
STAGE_MAX, PUBLISH_MAX = 3, 1
WRAPPED = ("blkid", "fsck", "mount", "umount", "mkfs.ext4", "resize2fs", "udevadm")


@pytest.fixture(scope="module")
def tools() -> Mapping[str, str]:
    """Return an environment with the programs of file systems."""
    if reason := loop_disks.unavailable():
        pytest.skip(reason)
    where = places.default()
    with testing.shown().step("File system tools") as step:
        file_system_tools.ensure(where, os.environ, step)
    loop_disks.enter_private_mounts()
    return file_system_tools.environment(where, os.environ)


def wrapped(env: Mapping[str, str], folder: pathlib.Path) -> dict[str, str]:
    """Return an environment in which each start of a program adds a line to a file."""
    folder.mkdir()
    for name in WRAPPED:
        real = shutil.which(name, path=env["PATH"])
        if real is None:
            continue
        script = folder / name
        lines = f'#!/bin/sh\necho {name} >> {folder}/started\nexec {real} "$@"\n'
        script.write_text(lines)
        script.chmod(0o755)
    return {**env, "PATH": f"{folder}:{env['PATH']}"}


def started(folder: pathlib.Path) -> list[str]:
    """Return the programs that were started since the last call."""
    file = folder / "started"
    names = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return names


def memory_mb(plugin: NodePluginProcess) -> float:
    """Return the resident memory of a program, in units of 10**6 bytes."""
    assert plugin.process is not None
    resident: int = psutil.Process(plugin.process.pid).memory_info().rss
    return resident / 10**6


@pytest.fixture()
def scene(
    tools: Mapping[str, str],
    tmp_path: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[loop_disks.Machine, Mapping[str, NodePluginProcess], pathlib.Path]]:
    """Return a machine, both programs, and the folder of the wrappers."""
    wrappers = tmp_path_factory.mktemp("w") / "bin"
    env = wrapped(tools, wrappers)
    folder = tmp_path_factory.mktemp("p")
    with (
        loop_disks.machine(tmp_path) as machine,
        node_plugins.both(machine, env, folder) as plugins,
    ):
        yield machine, plugins, wrappers


def measure(
    machine: loop_disks.Machine, plugin: NodePluginProcess, wrappers: pathlib.Path
) -> dict[str, float]:
    """Return figures of one program; its volumes are unmounted in the end."""
    plugin.start()  # the first start of a new PEX unpacks and compiles it
    plugin.kill()
    began = time.monotonic()
    plugin.start()
    figures = {"seconds until it serves": time.monotonic() - began}
    volumes = []
    for _ in range(VOLUMES):
        volume_id = str(uuid.uuid4())
        machine.plug(volume_id[:20], SIZE, f"virtio-{volume_id[:20]}")
        volumes.append(MountedVolume(volume_id, "ext4", machine.kubelet))
    first = volumes[0]
    first.mount(plugin)  # formats it
    first.unmount(plugin)
    figures["MB idle"] = memory_mb(plugin)
    for name, act in (
        ("processes to stage a formatted volume", first.stage),
        ("processes to publish", first.publish),
        ("processes for statistics", first.total_bytes),
        ("processes to unmount", first.unmount),
    ):
        started(wrappers)
        act(plugin)
        figures[name] = len(started(wrappers))
    with concurrent.futures.ThreadPoolExecutor(FEW) as pool:
        list(pool.map(lambda volume: volume.mount(plugin), volumes))
    figures[f"MB with {VOLUMES} volumes"] = memory_mb(plugin)
    with concurrent.futures.ThreadPoolExecutor(FEW) as pool:
        list(pool.map(lambda volume: volume.unmount(plugin), volumes))
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(VOLUMES) as pool:
        list(pool.map(lambda volume: volume.mount(plugin), volumes))
    figures[f"seconds for {VOLUMES} volumes in parallel"] = time.monotonic() - began
    figures["MB after that"] = memory_mb(plugin)
    with concurrent.futures.ThreadPoolExecutor(FEW) as pool:
        list(pool.map(lambda volume: volume.unmount(plugin), volumes))
    plugin.kill()
    return figures


def test_costs_on_a_node(
    scene: tuple[loop_disks.Machine, Mapping[str, NodePluginProcess], pathlib.Path],
) -> None:
    """Counts and memory have limits; seconds are printed."""
    machine, both, wrappers = scene
    reference_costs = measure(machine, both[REFERENCE], wrappers)
    own_costs = measure(machine, both[OURS], wrappers)
    print(f"{'':44} {REFERENCE:>18} {OURS:>10}")
    for name, value in own_costs.items():
        print(f"{name:44} {reference_costs[name]:18.1f} {value:10.1f}")
    assert own_costs["processes to stage a formatted volume"] <= STAGE_MAX
    assert own_costs["processes to publish"] <= PUBLISH_MAX
    assert own_costs["processes for statistics"] == 0
    assert own_costs["MB idle"] <= IDLE_MB_MAX
    assert own_costs[f"MB with {VOLUMES} volumes"] <= FULL_MB_MAX
