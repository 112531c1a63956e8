"""Two discoverers in one cluster, each of its own cloud; and states of the cluster."""

import base64
import copy
import dataclasses
from typing import Any

import prometheus_client
import pytest

from lib.cloud import catalog
from lib.discovery import model, storage_classes
from lib.discovery.provider import DATA_SECRET, Provider, Signal
from lib.kube import resources

OTHER_SECRET = "discovery-data-of-the-other"


@pytest.fixture()
def gauges() -> dict[Signal, prometheus_client.Gauge]:
    """Metrics of the other cloud."""
    return {
        signal: prometheus_client.Gauge(signal.name.lower(), "State.", registry=None)
        for signal in Signal
    }


@pytest.fixture()
def other(ground: Any, gauges: dict[Signal, prometheus_client.Gauge]) -> Any:
    """Return a second cloud on the same cluster."""
    second = copy.copy(ground)
    second.cloud = copy.deepcopy(ground.cloud)
    second.cloud.storage_types = (
        catalog.StorageType("replicated", "replicated", is_default=True),
        catalog.StorageType("local", "local"),
    )
    provider = Provider(
        "csi.other.example",
        "class",
        data_secret=OTHER_SECRET,
        signals=lambda registry: gauges,
    )
    second.settings = dataclasses.replace(ground.settings, provider=provider)
    return second


def value(gauge: prometheus_client.Gauge) -> float:
    """Return the value of a gauge without labels."""
    return float(next(iter(gauge.collect())).samples[0].value)


def snapshot(ground: Any) -> Any:
    """Return StorageClasses and Secrets, as they are stored."""
    return copy.deepcopy((ground.classes(), list(ground.api.all(resources.SECRETS))))


def test_each_changes_only_what_is_of_its_cloud(ground: Any, other: Any) -> None:
    """Classes by provisioner, and a Secret each; further cycles change nothing."""
    assert ground.process().cycle() == {}
    assert sorted(ground.classes()) == ["fast", "ssd-r1"]
    assert other.process().cycle() == {}
    by_provisioner = {
        name: item["provisioner"] for name, item in ground.classes().items()
    }
    print(by_provisioner)
    assert by_provisioner == {
        "fast": "cinder.csi.openstack.org",
        "ssd-r1": "cinder.csi.openstack.org",
        "local": "csi.other.example",
        "replicated": "csi.other.example",
    }
    names = {item["metadata"]["name"] for item in ground.api.all(resources.SECRETS)}
    assert names == {DATA_SECRET, OTHER_SECRET}
    stored = snapshot(ground)
    for process in (ground.process(), other.process()):
        for _ in range(3):
            assert process.cycle() == {}
            ground.clock.pass_by(ground.settings.period_s)
    assert snapshot(ground) == stored


def test_a_default_of_the_cloud_that_changes_is_shown(
    other: Any, gauges: dict[Signal, prometheus_client.Gauge]
) -> None:
    """The cluster keeps its default class; the metric is 1 until both are equal."""
    process = other.process()
    drift = gauges[Signal.DEFAULT_CLASS_DRIFTED]
    named = storage_classes.StorageClassRules(default="replicated")
    rows = []
    for default, rules in (
        ("replicated", other.settings.rules),
        ("local", other.settings.rules),
        ("none", other.settings.rules),
        ("local", named),
        ("replicated", other.settings.rules),
    ):
        other.cloud.storage_types = tuple(
            dataclasses.replace(item, is_default=item.name == default)
            for item in other.cloud.storage_types
        )
        other.settings = dataclasses.replace(other.settings, rules=rules)
        process = other.process()
        process.cycle()
        process.cycle()
        rows.append(value(drift))
        print(f"default of the cloud: {default:12} {rules.default:12} {rows[-1]:g}")
    assert rows == [0, 1, 0, 0, 0]


def test_a_configuration_of_the_installer_is_shown(
    other: Any, gauges: dict[Signal, prometheus_client.Gauge]
) -> None:
    """With the key alone; the metric follows the Secret."""
    pending = gauges[Signal.INSTALLER_CONFIGURATION]
    process = other.process()
    metadata = {"name": model.INPUT_SECRET, "namespace": model.NAMESPACE}
    text = base64.b64encode(b"kind: X").decode()
    for data, expected in (
        ({model.INPUT_CONFIGURATION: text}, 1),
        ({model.INPUT_KEY: base64.b64encode(b"{}").decode()}, 0),
    ):
        other.api.put(resources.SECRETS, {"metadata": metadata, "data": data})
        assert process.cycle() == {}
        assert value(pending) == expected
