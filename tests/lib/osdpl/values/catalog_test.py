"""Records of services agree with each other, the schema and the contracts."""

import pytest

from lib.osdpl.api import schema, schema_features
from lib.osdpl.values import catalog, contract, graph, presets
from lib.osdpl.values.service import SIZES, Service

SCHEMA = schema.spec()["properties"]["features"]["properties"]


def known(path: str) -> bool:
    """Report whether a path below spec.features is in the schema."""
    node = {"properties": SCHEMA}
    for key in path.split(".")[1:]:
        if key not in node.get("properties", {}):
            return bool(node.get("additionalProperties"))
        node = node["properties"][key]
    return True


@pytest.mark.parametrize("service", catalog.SERVICES, ids=lambda service: service.name)
def test_a_record_names_what_exists(service: Service) -> None:
    assert service.name in schema_features.SERVICES
    assert service.name in graph.UPGRADE_ORDER or not service.user
    assert set(service.features) | set(service.defaults) <= set(SCHEMA)
    assert set(service.node_features) <= set(SCHEMA)
    assert [path for path in service.unsupported if not known(path)] == []
    for chart in service.charts:
        assert chart.name in (*schema.INFRA_CHARTS, *schema.OPENSTACK_CHARTS)
        assert all(catalog.BY_NAME[name].workload for name in chart.needs)
        assert set(chart.counted) <= set(chart.budgets)
        assert {chart.counted.get(name, name) for name in chart.budgets} <= set(
            chart.replicas
        )


def test_names_are_unique_and_needs_come_first() -> None:
    order = [service.name for service in catalog.SERVICES]
    releases = [chart.release for chart in catalog.CHARTS.values()]
    count = sum(len(service.charts) for service in catalog.SERVICES)
    assert len(catalog.BY_NAME) == len(order)
    assert len(catalog.CHARTS) == len(set(releases)) == count
    for service in catalog.SERVICES:
        for chart in service.charts:
            assert all(
                order.index(name) < order.index(service.name) for name in chart.needs
            )


def test_each_chart_has_a_contract_in_each_generation() -> None:
    for name in catalog.CHARTS:
        for generation in contract.GENERATIONS:
            assert contract.load(name, (generation,))


def test_sizes_and_presets_are_those_of_the_schema() -> None:
    assert SIZES == schema.SIZES
    for name in schema.PRESETS:
        services = presets.preset(name)["features"]["services"]
        assert set(services) <= set(schema_features.SERVICES)
        assert len(services) == len(set(services))
