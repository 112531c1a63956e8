"""Each built PEX starts, and answers bad input with one clear line and no traceback."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence

import pytest

OPENSTACK = "lib/cloud/openstack"
DVP = "lib/cloud/dvp"
ZVIRT = "lib/cloud/zvirt"
OTHERS = {
    "openstack-ccm": {f"{OPENSTACK}/volumes", "lib/volumes", "lib/csi", DVP, ZVIRT},
    "dvp-ccm": {OPENSTACK, f"{DVP}/volumes", "lib/volumes", "lib/csi", ZVIRT},
    "zvirt-ccm": {OPENSTACK, DVP, f"{ZVIRT}/volumes", "lib/volumes", "lib/csi"},
    "capdvp": {
        OPENSTACK,
        f"{DVP}/volumes",
        f"{DVP}/load_balancers",
        "lib/nodes",
        "lib/volumes",
        "lib/csi",
    },
    "capz": {
        OPENSTACK,
        DVP,
        f"{ZVIRT}/volumes",
        "lib/nodes",
        "lib/volumes",
        "lib/csi",
    },
    "csi-controller": {f"{OPENSTACK}/load_balancers", "lib/balancers", "lib/nodes"},
    "csi-node": {
        f"{OPENSTACK}/load_balancers",
        f"{OPENSTACK}/volumes",
        "lib/balancers",
        "lib/kernel/fake",
        "lib/kube",
        "lib/nodes",
    },
    "cloud-data-discoverer": {
        f"{OPENSTACK}/load_balancers",
        f"{OPENSTACK}/volumes",
        "lib/nodes",
        "lib/volumes",
    },
}
"""Rooms of which a component contains nothing: their changes leave it as it is."""
PEXES = (
    "openstack-ccm",
    "dvp-ccm",
    "capdvp",
    "capz",
    "zvirt-ccm",
    "csi-controller",
    "csi-node",
    "cloud-data-discoverer",
    "osdpl-controller",
    "mooring",
)

TABLE = [
    pytest.param("openstack-ccm", ["--help"], 0, "--cloud-config", id="ccm --help"),
    pytest.param("openstack-ccm", ["--version"], 0, "openstack-ccm 0.", id="--version"),
    pytest.param(
        "openstack-ccm",
        ["--no-such-flag"],
        2,
        "openstack-ccm: --no-such-flag: unknown flag",
        id="ccm, an unknown flag",
    ),
    pytest.param(
        "openstack-ccm",
        ["--cloud-provider=openstack", "--node-monitor-period=soon"],
        2,
        '--node-monitor-period: invalid value "soon": must be a duration',
        id="ccm, a bad value",
    ),
    pytest.param(
        "openstack-ccm",
        ["--cloud-provider=aws"],
        2,
        '--cloud-provider: invalid value "aws": must be openstack',
        id="ccm, another cloud",
    ),
    pytest.param(
        "openstack-ccm",
        ["--cloud-provider=openstack"],
        2,
        "--cloud-config: not set: must be the path of a cloud.conf",
        id="ccm, no cloud.conf named",
    ),
    pytest.param(
        "openstack-ccm",
        ["--cloud-provider=openstack", "--cloud-config=/nonexistent/cloud.conf"],
        2,
        "--cloud-config: /nonexistent/cloud.conf: no such file",
        id="ccm, cloud.conf missing",
    ),
    pytest.param("dvp-ccm", ["--help"], 0, "--parent-kubeconfig", id="dvp --help"),
    pytest.param("dvp-ccm", ["--version"], 0, "dvp-ccm 0.", id="dvp-ccm --version"),
    pytest.param(
        "dvp-ccm",
        ["--cloud-provider=dvp"],
        2,
        "--parent-kubeconfig: not set: must be the path of the parent's kubeconfig",
        id="dvp-ccm, no parent named",
    ),
    pytest.param("zvirt-ccm", ["--help"], 0, "--topology-labels", id="zvirt --help"),
    pytest.param("zvirt-ccm", ["--version"], 0, "zvirt-ccm 0.", id="zvirt-ccm -V"),
    pytest.param(
        "zvirt-ccm",
        ["--cloud-provider=zvirt"],
        2,
        "ZVIRT_API_URL: not set: must be the URL of the engine",
        id="zvirt-ccm, no engine named",
    ),
    pytest.param("capdvp", ["--help"], 0, "--deletion-timeout", id="capdvp --help"),
    pytest.param("capdvp", ["--version"], 0, "capdvp 0.", id="capdvp --version"),
    pytest.param(
        "capdvp",
        ["--leader-election-namespace=x"],
        2,
        "CLUSTER_UUID: not set: must be the UUID of this cluster",
        id="capdvp, no cluster named",
    ),
    pytest.param("capz", ["--help"], 0, "--cluster-uuid", id="capz --help"),
    pytest.param("capz", ["--version"], 0, "capz 0.", id="capz --version"),
    pytest.param(
        "capz",
        ["--leader-election-namespace=x"],
        2,
        "ZVIRT_VM_TAGS: not set: must be a tag cluster-UUID",
        id="capz, no cluster named",
    ),
    pytest.param("csi-controller", ["--help"], 0, "--endpoint", id="csi --help"),
    pytest.param("csi-controller", ["--version"], 0, "csi-controller 0.", id="csi -V"),
    pytest.param(
        "csi-controller",
        ["--endpoint=unix:///csi/csi.sock"],
        2,
        "--cloud-config: not set: must be the path of a cloud.conf",
        id="csi, no cloud.conf named",
    ),
    pytest.param(
        "csi-controller",
        ["--endpoint=csi.sock", "--provide-controller-service=false"],
        2,
        '--endpoint: invalid value "csi.sock": must be unix:///path/of/a/socket or tcp://host:port',
        id="csi, no endpoint",
    ),
    pytest.param("csi-node", ["--help"], 0, "--endpoint", id="csi-node --help"),
    pytest.param("csi-node", ["--version"], 0, "csi-node 0.", id="csi-node --version"),
    pytest.param(
        "csi-node",
        ["--endpoint=csi.sock"],
        2,
        '--endpoint: invalid value "csi.sock": must be unix:///path/of/a/socket or tcp://host:port',
        id="csi-node, no endpoint",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--help"],
        0,
        "--discovery-period",
        id="discoverer --help",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--version"],
        0,
        "cloud-data-discoverer 0.",
        id="discoverer --version",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--cloud=openstack", "--discovery-periods=1h"],
        2,
        "--discovery-periods: unknown flag: did you mean --discovery-period?",
        id="discoverer, an unknown flag",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--cloud=openstack", "--discovery-period=soon"],
        2,
        '--discovery-period: invalid value "soon": must be a duration',
        id="discoverer, a bad value",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--cloud=openstack", "--listen-address=0.0.0.0:9000"],
        2,
        '--listen-address: invalid value "0.0.0.0:9000": must be a loopback address',
        id="discoverer, plain HTTP for everybody",
    ),
    pytest.param(
        "cloud-data-discoverer",
        [],
        2,
        "--cloud: not set: must be one of openstack",
        id="discoverer, no cloud",
    ),
    pytest.param(
        "cloud-data-discoverer",
        ["--cloud=openstack"],
        2,
        "OS_REGION: not set",
        id="discoverer, no environment",
    ),
    pytest.param("mooring", ["--help"], 0, "lab", id="mooring --help"),
    pytest.param("mooring", ["--version"], 0, "mooring", id="mooring --version"),
    pytest.param(
        "mooring", ["--no-such-flag"], 2, "--no-such-flag", id="mooring, unknown flag"
    ),
    pytest.param("osdpl-controller", ["--help"], 0, "--chart-source", id="osdpl -h"),
    pytest.param("osdpl-controller", ["--version"], 0, "osdpl-controller 0.", id="-V"),
    pytest.param(
        "osdpl-controller",
        ["--helm-slots=0"],
        2,
        '--helm-slots: invalid value "0": must be a whole number from 1 to 64',
        id="osdpl, no slot",
    ),
    pytest.param("mooring", ["lab", "upp"], 2, "upp", id="mooring, unknown command"),
    # It gets as far as this only with the chart's rbac.yaml inside.
    pytest.param(
        "mooring",
        ["doctor", "--cloud-config=/nonexistent", "--kubeconfig=/nonexistent"],
        1,
        "FAIL API server load configuration: /nonexistent: no such file",
        id="mooring doctor, nothing to look at",
    ),
]


def find(name: str) -> pathlib.Path:
    """Return the PEX that Pants put beside this test."""
    return pathlib.Path.cwd() / f"{name}.pex"


def run(name: str, words: Sequence[str], root: pathlib.Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, find(name), *words],
        env={**os.environ, "PEX_ROOT": str(root), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="session")
def pex_root() -> Iterator[pathlib.Path]:
    """Yield a folder where Pants' sandboxes are, which may be in memory.

    Each program is unpacked into it: thousands of files.
    """
    with tempfile.TemporaryDirectory(dir=".", prefix="pex-root-") as folder:
        yield pathlib.Path(folder).resolve()


@pytest.mark.parametrize(("name", "words", "code", "message"), TABLE)
def test_answer(
    pex_root: pathlib.Path, name: str, words: list[str], code: int, message: str
) -> None:
    got, output = run(name, words, pex_root)
    print(f"{name} {' '.join(words)} -> {got}")
    assert got == code, output
    assert message in " ".join(output.split())
    assert "Traceback" not in output


@pytest.mark.parametrize("name", PEXES)
def test_pdb_can_be_imported_inside(pex_root: pathlib.Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, find(name), "-c", "import pdb, cmd; print(cmd.__file__)"],
        env={**os.environ, "PEX_ROOT": str(pex_root), "PEX_INTERPRETER": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("/cmd.py")


@pytest.mark.parametrize("name", OTHERS)
def test_a_component_contains_nothing_of_others(name: str) -> None:
    files = zipfile.ZipFile(find(name)).namelist()
    rooms = {file.rpartition("/")[0] for file in files if file.startswith("lib/")}
    print(f"{name}: {', '.join(sorted(rooms))}")
    assert "lib/cloud" in rooms
    assert rooms & OTHERS[name] == set()


def test_every_component_is_in_the_table() -> None:
    """Pants puts PEX files of its own here as well; those have no entry point."""
    built = set()
    for file in filter(pathlib.Path.is_file, pathlib.Path.cwd().glob("*.pex")):
        info = json.loads(zipfile.ZipFile(file).read("PEX-INFO"))
        if (info.get("entry_point") or "").endswith(":main"):
            built.add(file.stem)
    assert built == set(PEXES)
    for name in PEXES:
        asked = [row.values[1] for row in TABLE if row.values[0] == name]
        assert ["--help"] in asked
        assert ["--version"] in asked


def requirements(name: str) -> set[str]:
    """Return the names of the distributions that a PEX file contains."""
    return {
        file.split("/")[1].partition("-")[0].lower()
        for file in zipfile.ZipFile(find(name)).namelist()
        if file.startswith(".deps/") and file != ".deps/"
    }


def test_a_manager_of_dvp_contains_no_sdk_of_another_cloud() -> None:
    for name in ("dvp-ccm", "capdvp"):
        present = requirements(name)
        print(f"{name}.pex: {', '.join(sorted(present))}")
        assert {"kubernetes", "urllib3", "msgspec"} <= present
        assert present & {"openstacksdk", "keystoneauth1", "grpcio"} == set()
    for name in ("zvirt-ccm", "capz"):
        present = requirements(name)
        assert {"kubernetes", "urllib3", "ovirt_engine_sdk_python"} <= present
        assert present & {"openstacksdk", "keystoneauth1", "grpcio"} == set()
    assert requirements("openstack-ccm") >= {"openstacksdk", "keystoneauth1"}


NODE_REQUIREMENTS = {
    "grpcio",
    "msgspec",
    "prometheus_client",
    "protobuf",
    "pyyaml",
    "structlog",
    "typing_extensions",
}
NODE_PEX_BYTES_MAX = 15 * 10**6


def test_the_node_plugin_contains_no_sdk_and_is_small() -> None:
    """No cloud SDK, no client of Kubernetes, no cryptography: it runs on every node."""
    names = requirements("csi-node")
    size = find("csi-node").stat().st_size
    print(f"csi-node.pex: {size / 10**6:.1f} MB with {', '.join(sorted(names))}")
    assert names == NODE_REQUIREMENTS
    assert size <= NODE_PEX_BYTES_MAX
