"""mountinfo is parsed as the kernel writes it."""

import pytest

from lib.kernel import mountinfo
from lib.kernel.model import DeviceNumber, is_below, top_mount

TEXT = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 254:16 / /kubelet/a\\040b rw,noatime shared:5 master:1 - xfs /dev/vdb rw,nouuid
41 22 254:16 /sub /pod ro,noatime - xfs /dev/vdb rw,nouuid
42 22 0:6 /vdc /pod/block rw - devtmpfs udev rw,size=4k
43 22 0:6 /vdd /pod/block ro - devtmpfs udev rw,size=4k

not a line of mountinfo
"""


def test_fields_and_escapes_are_read() -> None:
    mounts = mountinfo.parse(TEXT)
    assert [m.target for m in mounts] == [
        "/",
        "/kubelet/a b",
        "/pod",
        "/pod/block",
        "/pod/block",
    ]
    xfs = mounts[1]
    assert (xfs.number, xfs.root, xfs.fs_type) == (DeviceNumber(254, 16), "/", "xfs")
    assert xfs.options == {"rw", "noatime"}
    assert xfs.super_options == {"rw", "nouuid"}
    assert (mounts[2].root, mounts[2].is_read_only) == ("/sub", True)
    assert not mounts[1].is_read_only


def test_the_latest_mount_of_a_target_is_visible() -> None:
    mounts = mountinfo.parse(TEXT)
    assert top_mount(mounts, "/pod/block") is mounts[4]
    assert top_mount(mounts, "/pod/bloc") is None


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        pytest.param("/a/b", "/a", True, id="inside"),
        pytest.param("/a", "/a", True, id="itself"),
        pytest.param("/ab", "/a", False, id="the same beginning of the name"),
        pytest.param("/b", "/", True, id="the root"),
    ],
)
def test_a_path_is_below_a_folder(path: str, folder: str, expected: bool) -> None:
    assert is_below(path, folder) is expected
