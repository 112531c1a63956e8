"""Settings, configuration and discovery become one, by the reference's rules."""

import dataclasses

import pytest

from lib.discovery.openstack import merge, model

OURS = model.Connection(auth_url="https://ours", password="s3cr3t")
THEIRS = model.Connection(
    "https://theirs", "Default", "captain", "s3cr3t", "north", "fleet"
)
CONFIGURATION = model.ClusterConfiguration(
    "Simple", THEIRS, external_network_dhcp=False, tags={"a": "configured"}
)
DISCOVERED = model.Discovered(
    internal_network_names=("y", "x", "y"),
    external_network_names=("out", "in"),
    pod_network_mode=model.PodNetworkMode.VXLAN,
    zones=("b", "a"),
    instances=model.InstanceDefaults(image_name="found", main_network="x"),
    load_balancer=model.LoadBalancerPlace("found-subnet", "found-net"),
)
NONE = model.ModuleSettings()
ROWS: list[tuple[str, model.ModuleSettings, str, object]] = [
    ("connection", NONE, "connection", THEIRS),
    ("connection", model.ModuleSettings(connection=OURS), "connection", OURS),
    ("tags", NONE, "tags", {"a": "configured"}),
    ("tags", model.ModuleSettings(tags={"b": "set"}), "tags", {"b": "set"}),
    ("internal", NONE, "internal_network_names", ("x", "y")),
    (
        "internal",
        model.ModuleSettings(internal_network_names=("z", "a")),
        "internal_network_names",
        ("a", "z"),
    ),
    ("external", NONE, "external_network_names", ("in", "out")),
    (
        "external",
        model.ModuleSettings(external_network_names=("z",)),
        "external_network_names",
        ("z",),
    ),
    (
        "additional",
        model.ModuleSettings(additional_external_network_names=("more", "in")),
        "external_network_names",
        ("in", "more", "out"),
    ),
    (
        "both",
        model.ModuleSettings(
            external_network_names=("z",), additional_external_network_names=("more",)
        ),
        "external_network_names",
        ("more", "z"),
    ),
    ("zones", NONE, "zones", ("a", "b")),
    ("zones", model.ModuleSettings(zones=("c", "c")), "zones", ("c",)),
    ("instances", NONE, "instances", DISCOVERED.instances),
    (
        "instances",
        model.ModuleSettings(instances=model.InstanceDefaults(ssh_key_pair_name="key")),
        "instances",
        model.InstanceDefaults(ssh_key_pair_name="key"),
    ),
    ("mode", NONE, "pod_network_mode", model.PodNetworkMode.VXLAN),
    (
        "mode",
        model.ModuleSettings(pod_network_mode=model.PodNetworkMode.DIRECT),
        "pod_network_mode",
        model.PodNetworkMode.DIRECT,
    ),
    ("balancer", NONE, "load_balancer", DISCOVERED.load_balancer),
    (
        "balancer",
        model.ModuleSettings(load_balancer=model.LoadBalancerPlace(disabled=True)),
        "load_balancer",
        model.LoadBalancerPlace(disabled=True),
    ),
    ("dhcp", NONE, "external_network_dhcp", False),
    ("hybrid", NONE, "hybrid", False),
]


@pytest.mark.parametrize(("name", "settings", "field", "expected"), ROWS)
def test_each_rule(
    name: str, settings: model.ModuleSettings, field: str, expected: object
) -> None:
    """A setting wins as a whole; names and zones are sorted, each once."""
    merged = merge.merge(settings, CONFIGURATION, DISCOVERED)
    assert getattr(merged, field) == expected, name


def test_each_field_of_the_provider_has_a_row() -> None:
    """A field that joins needs a rule."""
    fields = {field.name for field in dataclasses.fields(model.ProviderSettings)}
    assert fields == {row[2] for row in ROWS}


def test_a_hybrid_cluster_has_settings_only() -> None:
    """Without a configuration everything comes from elsewhere."""
    merged = merge.merge(
        model.ModuleSettings(connection=THEIRS), None, model.Discovered()
    )
    assert merged.hybrid
    assert merged.external_network_dhcp
    assert (merged.tags, merged.zones) == ({}, ())


def test_what_readers_would_miss_is_named() -> None:
    """A connection set in part is not mended from another source."""
    merged = merge.merge(
        model.ModuleSettings(connection=OURS), CONFIGURATION, model.Discovered()
    )
    messages = [str(problem) for problem in merge.problems(merged)]
    assert messages == [
        "connection.domainName: not set",
        "connection.username: not set",
        "connection.region: not set",
        "connection: must set exactly one of tenantName, tenantID",
        (
            "internalNetworkNames: not set: must be at least one name, from the"
            " settings or from the discovery data"
        ),
    ]
    assert merge.problems(merge.merge(NONE, CONFIGURATION, DISCOVERED)) == ()


def test_two_tenants_are_refused() -> None:
    """The registration must name exactly one."""
    both = dataclasses.replace(THEIRS, tenant_id="7")
    merged = merge.merge(model.ModuleSettings(connection=both), None, DISCOVERED)
    (problem,) = merge.problems(merged)
    assert "exactly one of tenantName, tenantID" in str(problem)
