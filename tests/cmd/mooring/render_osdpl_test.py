"""`mooring render osdpl` as its users run it: bad input."""

import pathlib

import pytest

from tests.harness.daemons import tool

GOOD = """
apiVersion: lcm.mirantis.com/v1alpha1
kind: OpenStackDeployment
metadata: {name: cloud, namespace: openstack}
spec:
  openstack_version: gazpacho
  preset: core
  size: tiny
  public_domain_name: cloud.example.com
  persistent_volume_storage_class: network
  features: {neutron: {tunnel_interface: ens3}, nova: {live_migration_interface: ens3}}
"""


def render(file: pathlib.Path, *words: str) -> tool.Said:
    """Run the command with an output folder beside the file."""
    output = str(file.parent / "out")
    return tool.mooring("render", "osdpl", str(file), "--output-dir", output, *words)


BAD: list[tuple[str, str, str]] = [
    ("no YAML", "a: [", "must be YAML that can be read"),
    ("no object", "a: b", "one OpenStackDeployment, not 0"),
    ("two objects", f"{GOOD}---{GOOD}", "one OpenStackDeployment, not 2"),
    ("unknown field", GOOD + "  nodez: {}\n", "spec.nodez"),
    ("no images", GOOD.replace("gazpacho", "yoga"), "epoxy, flamingo, gazpacho"),
    (
        "a rule",
        GOOD.replace("ens3}", "ens3, tenant_network_types: [geneve]}", 1),
        "spec.features.neutron.tenant_network_types",
    ),
    ("wrong size", GOOD.replace("tiny", "big"), "single, tiny, small, medium"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_input_is_one_line_each(
    text: str, expected: str, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(text)

    ended = render(file, "--charts", str(tmp_path))

    assert ended.returncode == 1
    assert expected in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()


def test_each_release_without_a_chart_is_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(GOOD)

    ended = render(file, "--charts", str(tmp_path), "--helm", "/nonexistent/helm")

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 12
    assert "openstack-keystone: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_services_that_are_refused_are_named(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "cloud.yaml"
    file.write_text(GOOD)

    ended = render(file, "--helm", "/nonexistent/helm")

    assert ended.returncode == 1
    assert "identity: InvalidValues: spec.common.openstack.repo" in ended.stderr
