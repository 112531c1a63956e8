"""The chart's alerts ask for series that there are."""

import pathlib
import re

import prometheus_client
import yaml

from lib.discoverer import metrics
from lib.discovery.model import DiscoveryStep

ALERTS = pathlib.Path("charts/cloud-data-discoverer/files/alerts.yaml")
REFERENCE = {
    "D8OpenstackCloudDataDiscovererCloudRequestError",
    "D8OpenstackCloudDataDiscovererSaveError",
}


def test_every_series_of_an_alert_is_one_of_ours() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics.DiscoveryMetrics(registry, DiscoveryStep)
    owned = {family.name for family in registry.collect()}
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    for rule in group["rules"]:
        named = set(re.findall(r"(?:cloud_data|mooring)_discovery_\w+", rule["expr"]))
        print(f"{rule['alert']:50} {', '.join(sorted(named))}")
        assert named, rule["alert"]
        assert named <= owned
    assert {rule["alert"] for rule in group["rules"]} > REFERENCE
