"""cinder-csi-plugin and csi-node replace each other while volumes are mounted."""

from collections.abc import Iterator, Mapping

import pytest

from lib.lab.storage import loop_disks
from tests.harness.node import node_plugins
from tests.harness.node.node_plugins import (
    OURS,
    REFERENCE,
    MountedVolume,
    NodePluginProcess,
    OpenFiles,
    each,
    mounts,
)

MIB = 2**20
SIZE, EXPANDED = 320 * MIB, 512 * MIB
VOLUMES = {
    "xfs": "11111111-2222-3333-4444-555555555555",
    "ext4": "22222222-2222-3333-4444-555555555555",
    "ext2": "44444444-2222-3333-4444-555555555555",
    "block": "33333333-2222-3333-4444-555555555555",
}


@pytest.fixture()
def plugins(
    machine: loop_disks.Machine,
    tools: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, NodePluginProcess]]:
    """Return both programs; neither runs yet."""
    folder = tmp_path_factory.mktemp("r")
    with node_plugins.both(machine, tools, folder) as plugins:
        yield plugins


@pytest.fixture()
def volumes(machine: loop_disks.Machine) -> list[MountedVolume]:
    """Return a volume of each kind, with its disk."""
    for volume_id in VOLUMES.values():
        machine.plug(volume_id[:20], SIZE, f"virtio-{volume_id[:20]}")
    return [MountedVolume(id_, kind, machine.kubelet) for kind, id_ in VOLUMES.items()]


@pytest.mark.parametrize(("before", "after"), [(REFERENCE, OURS), (OURS, REFERENCE)])
def test_replaced_while_volumes_are_mounted(
    plugins: Mapping[str, NodePluginProcess],
    machine: loop_disks.Machine,
    volumes: list[MountedVolume],
    before: str,
    after: str,
) -> None:
    """Nothing is unmounted, and writers of open files do not notice."""
    first, second = plugins[before], plugins[after]
    first.start()
    each(f"mounted by {before}", volumes, lambda volume: volume.mount(first))
    files = OpenFiles(volumes)
    shown = mounts(machine.kubelet)
    assert len(shown) == 7  # the raw disk is staged without a mount
    first.kill()
    second.start()
    assert mounts(machine.kubelet) == shown
    files.finish()
    # Called again, the reference binds a raw disk once more.
    again = [v for v in volumes if after == OURS or v.kind != "block"]
    each(f"mounted again by {after}: no change", again, lambda v: v.mount(second))
    assert mounts(machine.kubelet) == shown
    xfs, *_ = volumes  # ext4 requires CAP_SYS_RESOURCE
    machine.disk(xfs.id[:20]).grow(EXPANDED)
    each(f"expanded by {after}", [xfs], lambda v: v.expand(second, EXPANDED))
    assert xfs.total_bytes(second) > SIZE
    each(f"unmounted by {after}", volumes, lambda volume: volume.unmount(second))
    assert mounts(machine.kubelet) == []
    each(f"mounted by {after}", volumes, lambda volume: volume.mount(second))
    assert files.read() == [b"first.second"] * len(volumes)
    each(f"unmounted by {after}", volumes, lambda volume: volume.unmount(second))
    assert mounts(machine.kubelet) == []
