import pathlib

import pytest

from lib.lab import places
from lib.lab.kube import node_host

MOUNTINFO = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:7 - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
50 23 8:1 /x /lab/node/kubelet rw shared:1 - ext4 /dev/sda1 rw
51 50 0:50 / /lab/node/kubelet/pods/a\\040b rw - tmpfs tmpfs rw
52 23 8:1 /y /lab/node-of-another rw - ext4 /dev/sda1 rw
"""


def test_hierarchies_of_both_versions_are_found() -> None:
    """No cgroup of the lab is forgotten on a host that has both."""
    assert [str(folder) for folder in node_host.hierarchies(MOUNTINFO)] == [
        "/sys/fs/cgroup/cpu",
        "/sys/fs/cgroup/unified",
    ]


def test_only_own_mounts_are_found_inner_ones_first() -> None:
    """A folder that merely begins alike is not ours to unmount."""
    mounts = node_host.mounts_below(pathlib.Path("/lab/node"), MOUNTINFO)
    assert mounts == ("/lab/node/kubelet/pods/a b", "/lab/node/kubelet")


def test_bridge_name_fits_an_interface() -> None:
    """Linux allows 15 characters."""
    last = places.Places(pathlib.Path("/c"), pathlib.Path("/s"), 65000)
    assert len(node_host.bridge(last)) <= 15


def test_node_without_root_tools_says_which(tmp_path: pathlib.Path) -> None:
    """Whoever cannot have a node learns why, in one sentence."""
    reason = node_host.unavailable({"PATH": str(tmp_path)})
    assert reason is not None
    assert reason.startswith("a node needs ")


@pytest.mark.parametrize(
    ("mask", "may_mount"),
    [("000001ffffffffff", True), ("00000000a80425fb", False), ("0" * 16, False)],
)
def test_mounts_need_a_capability(mask: str, may_mount: bool) -> None:
    """All of root's, the usual ones of a container, none."""
    status = f"Name:\tpython\nCapPrm:\t000001ffffffffff\nCapEff:\t{mask}\n"
    assert node_host.may_mount(status) is may_mount
