"""What the node plugin reports of its node: identity, topology and attach limit."""

import pathlib

import prometheus_client
import pytest

from lib.csi import node_driver, node_flags
from lib.kernel.fake.kernel import FakeKernel
from lib.kernel.linux import commands, kernel
from lib.kernel.protocol import Kernel
from lib.process import flags

ID = "11111111-2222-3333-4444-555555555555"
KEY = "topology.example/zone"
STAGED = "/k/plugins/kubernetes.io/csi/driver.example/1/globalmount"
GIB = 2**30
FLAGS = (*node_flags.WORKING, *node_flags.INERT)


def plugin(
    machine: Kernel, *words: str, configured: int | None = None, zone: str = "a"
) -> node_driver.NodePlugin:
    """Return a plugin of a node in a zone; configured: limit of its configuration."""
    program = node_driver.NodeDriverProgram(
        "node-test",
        "1",
        "driver.example",
        KEY,
        lambda volume_id, _: volume_id,
        lambda needs_zone: node_driver.NodePlace("node-1", zone),
        volumes_max=configured,
    )
    values = flags.parse(FLAGS, ("--endpoint=unix:///s", *words))
    registry = prometheus_client.CollectorRegistry()
    return node_driver.NodePlugin(program, machine, values, registry)


@pytest.mark.parametrize(
    ("words", "configured", "expected"),
    [
        pytest.param(("--max-volumes=7",), 12, 7, id="--max-volumes first"),
        pytest.param((), 12, 12, id="then the configuration"),
        pytest.param((), None, 25, id="then the bus without its other disk"),
        pytest.param((), 0, 25, id="0 in the configuration: the bus"),
    ],
)
def test_the_attach_limit_has_three_sources(
    words: tuple[str, ...], configured: int | None, expected: int
) -> None:
    kernel = FakeKernel()
    kernel.plug("vda", "", GIB)
    assert plugin(kernel, *words, configured=configured).info().volumes_max == expected


def test_the_attach_limit_is_computed_for_each_call() -> None:
    """Disks of others take a place; a disk that this driver has mounted does not."""
    kernel = FakeKernel()
    kernel.plug("vda", "", GIB)
    node_plugin = plugin(kernel, "--kubelet-directory=/k")
    assert node_plugin.info().volumes_max == 25
    other = kernel.plug("vdb", ID, GIB)
    assert node_plugin.info().volumes_max == 24
    kernel.make_directory(STAGED)
    kernel.make_file_system(other.disk.path, "xfs", ())
    kernel.mount(other.disk.path, STAGED, "xfs", ())
    assert node_plugin.info().volumes_max == 25
    kernel.unmount(STAGED)
    kernel.unplug(other)
    assert node_plugin.info().volumes_max == 25


@pytest.mark.parametrize(
    ("words", "zone", "expected"),
    [
        pytest.param((), "a", {KEY: "a"}, id="the zone"),
        pytest.param((), "", {}, id="a cloud without zones"),
        pytest.param(("--with-topology=false",), "a", {}, id="no topology"),
        pytest.param(
            ("--additional-topology=rack=r1,row=2",),
            "a",
            {KEY: "a", "rack": "r1", "row": "2"},
            id="further segments",
        ),
        pytest.param(
            ("--additional-topology=rack=r1", "--with-topology=false"),
            "a",
            {"rack": "r1"},
            id="further segments alone",
        ),
        pytest.param(
            (f"--additional-topology={KEY}=b",), "a", {KEY: "a"}, id="the zone wins"
        ),
    ],
)
def test_the_topology_of_the_node(
    words: tuple[str, ...], zone: str, expected: dict[str, str]
) -> None:
    info = plugin(FakeKernel(), *words, zone=zone).info()
    assert (info.id, dict(info.segments)) == ("node-1", expected)


def test_a_kubelet_directory_may_be_a_link(tmp_path: pathlib.Path) -> None:
    """Mounts have its real path, wherever the link is."""
    real = tmp_path / "data/kubelet"
    real.mkdir(parents=True)
    (tmp_path / "var").symlink_to(tmp_path / "data")
    (tmp_path / "kubelet").symlink_to(tmp_path / "var/kubelet")
    linux = kernel.LinuxKernel(commands.Commands({}), tmp_path, tmp_path)
    flag = f"--kubelet-directory={tmp_path / 'kubelet'}"
    node_plugin = plugin(linux, flag)
    assert node_plugin._root == str(real)
    assert node_plugin._kubelet == str(real)
