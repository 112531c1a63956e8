"""The policy isolates the VMs of one cluster, and is absent where it is not asked."""

import dataclasses
from typing import Any

import pytest

from lib.discovery.dvp import model, network_policy

PROJECT = model.Project(namespace="fleet", ingress_ports=(22, 6443))
CLUSTER = model.ClusterFacts("uuid-1", "sea")
OWN = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "fleet"}}}


def test_the_policy_of_a_cluster() -> None:
    """Its own VMs alone, ports from anywhere, DNS and the namespaces of the parent."""
    policy: Any = network_policy.isolated(PROJECT, CLUSTER)
    assert policy["metadata"] == {"name": "isolated-sea", "namespace": "fleet"}
    spec = policy["spec"]
    labels = {"dvp.deckhouse.io/cluster-uuid": "uuid-1"}
    assert spec["podSelector"] == {"matchLabels": labels}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"][0] == {"from": [OWN]}
    assert spec["ingress"][1] == {
        "from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}],
        "ports": [{"port": 22, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}],
    }
    named = [str(rule) for rule in (*spec["ingress"], *spec["egress"])]
    for namespace, count in (("d8-ingress-nginx", 2), ("d8-metallb", 2)):
        assert sum(namespace in rule for rule in named) == count
    assert spec["egress"][3]["ports"] == [{"port": 53, "protocol": "UDP"}]


def test_without_ports_nothing_is_open() -> None:
    """An empty list of ports would be all ports."""
    project = dataclasses.replace(PROJECT, ingress_ports=())
    policy: Any = network_policy.isolated(project, CLUSTER)
    assert "0.0.0.0/0" not in str(policy["spec"]["ingress"])


@pytest.mark.parametrize(
    ("policy", "prefix"),
    [(model.NetworkPolicy.NONE, "sea"), (model.NetworkPolicy.ISOLATED, "")],
)
def test_no_policy(policy: model.NetworkPolicy, prefix: str) -> None:
    project = dataclasses.replace(PROJECT, network_policy=policy)
    assert network_policy.isolated(project, model.ClusterFacts("u", prefix)) is None
