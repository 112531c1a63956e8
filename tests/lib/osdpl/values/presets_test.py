"""Defaults of the reference's presets that are not applied are named, once."""

import pathlib
from typing import Any

import pytest

from lib.osdpl.values import presets
from tests.lib.osdpl.ground import Cluster, Process

NEUTRON: dict[str, Any] = {
    "neutron": {"tunnel_interface": "ens3"},
    "nova": {"live_migration_interface": "ens3"},
}
DECIDED: dict[str, Any] = {
    "network_policies": {"enabled": False},
    "database": {"cleanup": {"nova": {"enabled": False}}},
    "stacklight": {"enabled": False},
}


@pytest.mark.parametrize(
    ("features", "words"),
    [
        pytest.param(
            {}, ["network policies", "clean-up of Nova's", "StackLight"], id="none"
        ),
        pytest.param(DECIDED, [], id="all are decided"),
        pytest.param(
            {**DECIDED, "stacklight": {}}, ["features.stacklight.enabled"], id="empty"
        ),
        pytest.param(
            {**DECIDED, "database": {"cleanup": {"glance": {"enabled": False}}}},
            ["features.database.cleanup.nova.enabled"],
            id="another one is decided",
        ),
        pytest.param(
            {**DECIDED, "ssl": {"public_endpoints": {"ca_cert": "x"}}},
            ["TLS is terminated by an ingress controller or gateway of your own"],
            id="a certificate",
        ),
    ],
)
def test_what_is_not_applied(features: dict[str, Any], words: list[str]) -> None:
    text = "; ".join(presets.not_applied({"features": features}))
    print(text)
    assert [word for word in words if word not in text] == []
    assert bool(text) is bool(words)


@pytest.mark.parametrize("is_decided", [False, True])
def test_the_condition_names_it(tmp_path: pathlib.Path, is_decided: bool) -> None:
    cluster = Cluster(tmp_path)
    cluster.create(features={**NEUTRON, **(DECIDED if is_decided else {})})
    Process(cluster).settle()
    accepted = cluster.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("True", "Accepted")
    assert ("network policies" in accepted["message"]) is not is_decided
    assert cluster.condition("Applied")["status"] == "True"
