"""Writes the contracts of a new generation of charts from a checkout.

Usage: python -m lib.osdpl.values.contract_source CHECKOUT GENERATION. The files are
written below lib/osdpl/values/contracts; review their difference to the generation
before.
"""

import json
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from lib.osdpl.values import graph

FOLDER = pathlib.Path(__file__).parent / "contracts"

_NAMELESS = frozenset(
    {
        "cluster_domain_suffix",
        "fluentd",
        "ingress",
        "kube_dns",
        "ldap",
        "local_image_registry",
        "monitoring",
        "oci_image_registry",
    }
)
"""Endpoints that are not of OpenStack."""

_RELEASED = re.compile(
    r"(quay\.io/airshipit/[\w-]+):(20\d\d\.\d-ubuntu_\w+|stein[\w.-]*)"
)
"""Images whose tag names an OpenStack release; some lag behind."""
_DEP_CHECK = "quay.io/airshipit/kubernetes-entrypoint:latest-ubuntu_noble"


def contract(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contract of the default values of a chart."""
    endpoints = values["endpoints"]
    accounts = endpoints.get("identity", {}).get("auth", {})
    bus = endpoints.get("oslo_messaging", {}).get("auth", {})
    cache = endpoints.get("oslo_cache", {}).get("auth") or {}
    pod = values["pod"]
    lifecycle = pod.get("lifecycle", {})
    return {
        "images": {
            key: _image(image)
            for key, image in sorted(values["images"]["tags"].items())
        },
        "replicas": sorted(pod.get("replicas") or {}),
        "disruption_budgets": sorted(lifecycle.get("disruption_budget") or {}),
        "labels": _labels(values["labels"]),
        "accounts": {
            name: account.get("role")
            for name, account in accounts.items()
            if name not in ("admin", "test", "mariadb")
        },
        "databases": {
            name: sorted(user for user in endpoint["auth"] if user != "admin")
            for name, endpoint in endpoints.items()
            if name.startswith("oslo_db") and endpoint.get("auth")
        },
        "messaging": "admin" in bus,
        "cache_key": "memcache_secret_key" in cache,
        "endpoints": sorted(
            name
            for name, endpoint in endpoints.items()
            if isinstance(endpoint, dict)
            and name not in _NAMELESS
            and "exporter" not in name
        ),
        "manifests": sorted(
            name
            for name, switch in values["manifests"].items()
            if not isinstance(switch, dict)
        ),
    }


def write(checkout: pathlib.Path, generation: str) -> list[pathlib.Path]:
    """Write the contracts of every chart; return the files."""
    written = []
    folder = FOLDER / generation
    folder.mkdir(parents=True, exist_ok=True)
    for charts in graph.CHARTS.values():
        for chart in charts:
            text = (checkout / chart / "values.yaml").read_text(encoding="utf-8")
            facts = contract(yaml.safe_load(text))
            file = folder / f"{chart}.json"
            content = json.dumps(facts, indent=1, sort_keys=True) + "\n"
            file.write_text(content, encoding="utf-8")
            written.append(file)
    return written


def _image(reference: str) -> str:
    if "kubernetes-entrypoint" in reference:
        return _DEP_CHECK
    match = _RELEASED.fullmatch(reference)
    return f"{match[1]}:{{release}}" if match else reference


def _labels(tree: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Return the default label by component, such as agent.dhcp."""
    labels: dict[str, str] = {}
    for name, below in tree.items():
        if "node_selector_key" in below:
            labels[above + name] = below["node_selector_key"]
        else:
            labels |= _labels(below, f"{above}{name}.")
    return labels


if __name__ == "__main__":
    for path in write(pathlib.Path(sys.argv[1]), sys.argv[2]):
        sys.stdout.write(f"{path}\n")
