"""Each OpenStackDeployment of docs/examples/osdpl is accepted by schema and rules."""

import pathlib

import pytest

from lib.osdpl.api import schema
from tests.harness.daemons import tool

FOLDER = pathlib.Path("docs/examples/osdpl")
CHARTS = {
    "etcd",
    "glance",
    "horizon",
    "keystone",
    "libvirt",
    "mariadb",
    "memcached",
    "neutron",
    "nova",
    "openvswitch",
    "placement",
    "rabbitmq",
}


def test_each_size_has_an_example() -> None:
    """Prints size and file; a missing and a surplus one fail."""
    files = {path.stem for path in FOLDER.glob("*.yaml")}
    for name in sorted(files | set(schema.SIZES)):
        print(f"{name:8} {'docs/examples' if name in files else 'MISSING'}")
    assert files == set(schema.SIZES)


@pytest.mark.parametrize("size", schema.SIZES)
def test_an_example_renders_but_for_its_charts(
    size: str, tmp_path: pathlib.Path
) -> None:
    """What is missing is each chart, in a source of charts that is an empty folder."""
    text = (FOLDER / f"{size}.yaml").read_text()
    url = "https://charts.example.com/openstack-helm"
    assert url in text
    assert f"size: {size}\n" in text
    file, charts = tmp_path / "cloud.yaml", tmp_path / "charts"
    charts.mkdir()
    file.write_text(text.replace(url, str(charts)))
    words = ("--output-dir", str(tmp_path / "out"), "--helm", "/nonexistent/helm")
    ended = tool.mooring("render", "osdpl", str(file), *words)
    print(ended.stderr)
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert {line.partition(": chart ")[2].partition(":")[0] for line in lines} == CHARTS
    assert all(line.endswith(f"not found in {charts}") for line in lines)
