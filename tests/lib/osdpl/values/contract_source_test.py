"""Contracts that are written from the default values of a chart."""

import json
from typing import Any

from lib.osdpl.values import contract, contract_source
from lib.process import decoding

VALUES: dict[str, Any] = {
    "images": {
        "tags": {
            "api": "quay.io/airshipit/nova:2025.1-ubuntu_noble",
            "old": "quay.io/airshipit/neutron:stein-18.04-sriov",
            "dep_check": "quay.io/airshipit/kubernetes-entrypoint:latest-ubuntu_jammy",
            "bus": "docker.io/rabbitmq:3.13-management",
        }
    },
    "labels": {
        "api": {"node_selector_key": "control", "node_selector_value": "enabled"},
        "agent": {
            "dhcp": {"node_selector_key": "control", "node_selector_value": "enabled"}
        },
    },
    "pod": {
        "replicas": {"osapi": 1, "api": 2},
        "lifecycle": {"disruption_budget": {"api": {"min_available": 0}}},
    },
    "endpoints": {
        "cluster_domain_suffix": "cluster.local",
        "oci_image_registry": {"auth": {"nova": {"password": "password"}}},
        "identity": {
            "auth": {"admin": {}, "test": {}, "nova": {"role": "admin"}, "cinder": {}}
        },
        "oslo_db": {"auth": {"admin": {}, "nova": {}}},
        "oslo_messaging": {"auth": {"admin": {}, "nova": {}}},
        "oslo_cache": {"auth": {"memcache_secret_key": None}},
    },
    "manifests": {"job_db_sync": True, "monitoring": {"prometheus": {}}},
}


def test_contract_of_values() -> None:
    facts = contract_source.contract(VALUES)

    assert facts["images"] == {
        "api": "quay.io/airshipit/nova:{release}",
        "old": "quay.io/airshipit/neutron:{release}",
        "dep_check": "quay.io/airshipit/kubernetes-entrypoint:latest-ubuntu_noble",
        "bus": "docker.io/rabbitmq:3.13-management",
    }
    assert facts["replicas"] == ["api", "osapi"]
    assert facts["disruption_budgets"] == ["api"]
    assert facts["labels"] == {"api": "control", "agent.dhcp": "control"}
    assert facts["accounts"] == {"nova": "admin", "cinder": None}
    assert facts["databases"] == {"oslo_db": ["nova"]}
    assert (facts["messaging"], facts["cache_key"]) == (True, True)
    assert facts["endpoints"] == [
        "identity",
        "oslo_cache",
        "oslo_db",
        "oslo_messaging",
    ]
    assert facts["manifests"] == ["job_db_sync"]


def test_contract_can_be_read() -> None:
    text = json.dumps(contract_source.contract(VALUES))

    read = decoding.decode(text, contract.Contract)
    assert read.databases == {"oslo_db": ("nova",)}
