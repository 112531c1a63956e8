"""Each answer about an instance is counted by what it says."""

import prometheus_client
import pytest

from lib.ccm import counting, metrics
from lib.cloud import errors
from lib.cloud.fake import instances as fake
from lib.cloud.model import Instance, InstanceId, InstanceRef, Phase

HERE = InstanceRef("", fake.provider_id("here"))
GONE = InstanceRef("", fake.provider_id("gone"))
ELSEWHERE = InstanceRef("", "static://elsewhere")
REFS = (HERE, GONE, ELSEWHERE)


@pytest.fixture()
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture()
def cloud() -> fake.FakeInstances:
    made = fake.FakeInstances()
    made.put(
        Instance(InstanceId("here"), "here", Phase.RUNNING, fake.provider_id("here"))
    )
    return made


def counts(registry: prometheus_client.CollectorRegistry) -> list[float | None]:
    return [
        registry.get_sample_value("instance_observations_total", {"result": result})
        for result in ("seen", "absent", "foreign", "unknown")
    ]


def test_lists_and_looks_are_counted_by_what_they_say(
    registry: prometheus_client.CollectorRegistry, cloud: fake.FakeInstances
) -> None:
    counted = counting.Counted(cloud, metrics.InstanceMetrics(registry))
    assert counts(registry) == [0, 0, 0, 0]
    counted.observe(REFS, 0.0)
    counted.look(REFS)
    assert counts(registry) == [2, 2, 2, 0]


def test_what_could_not_be_read_is_unknown_for_each_ref(
    registry: prometheus_client.CollectorRegistry, cloud: fake.FakeInstances
) -> None:
    cloud.faults.append(errors.Unavailable("away", operation="list servers"))
    counted = counting.Counted(cloud, metrics.InstanceMetrics(registry))
    counted.observe((HERE, GONE), 0.0)
    assert counts(registry) == [0, 0, 0, 2]


def test_a_direct_look_passes_through_uncounted(
    registry: prometheus_client.CollectorRegistry, cloud: fake.FakeInstances
) -> None:
    counted = counting.Counted(cloud, metrics.InstanceMetrics(registry))
    assert counted.confirm_absent(GONE)
    assert not counted.confirm_absent(HERE)
    assert counts(registry) == [0, 0, 0, 0]
