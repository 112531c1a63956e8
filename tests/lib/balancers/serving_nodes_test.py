"""On which Nodes endpoints of a Service are ready, and when that has changed."""

import pytest

from lib.balancers import serving_nodes
from lib.balancers.serving_nodes import (
    EndpointConditions,
    EndpointSlice,
    SliceEndpoint,
)
from lib.kube import objects

READY = EndpointConditions(ready=True)
NOT_READY = EndpointConditions(ready=False)


def slice_of(name: str, service: str, *rows: SliceEndpoint) -> EndpointSlice:
    labels = {serving_nodes.SERVICE_LABEL: service}
    meta = objects.ObjectMeta(name=name, namespace="default", labels=labels)
    return EndpointSlice(meta, rows)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (SliceEndpoint("n1", READY), {"n1"}),
        (SliceEndpoint("n1"), {"n1"}),
        (SliceEndpoint("n1", NOT_READY), set()),
        (SliceEndpoint(None, READY), set()),
    ],
    ids=["ready", "unknown counts as ready", "not ready", "on no Node"],
)
def test_a_ready_endpoint_serves_on_its_node(
    endpoint: SliceEndpoint, expected: set[str]
) -> None:
    assert serving_nodes.ready_nodes(slice_of("a", "web", endpoint)) == expected


def test_a_slice_without_endpoints_serves_nowhere() -> None:
    meta = objects.ObjectMeta(name="a", namespace="default")
    assert serving_nodes.ready_nodes(EndpointSlice(meta)) == frozenset()


def test_only_other_nodes_are_a_change() -> None:
    """Another Pod on the same Node, and a second slice of it, are none."""
    changed: list[str] = []
    serving = serving_nodes.ServingNodes(changed.append)
    first = slice_of("a", "web", SliceEndpoint("n1"))
    more = slice_of("a", "web", SliceEndpoint("n1"), SliceEndpoint("n1"))
    not_ready = SliceEndpoint("n2", NOT_READY)
    second = slice_of("b", "web", SliceEndpoint("n1"), not_ready)
    serving.follow("default/a", None, first)
    serving.follow("default/a", first, more)
    serving.follow("default/b", None, second)
    assert changed == ["default/web"]
    assert serving.of("default/web") == {"n1"}
    serving.follow("default/a", more, None)
    assert serving.of("default/web") == {"n1"}, "the second slice has it"
    serving.follow("default/b", second, slice_of("b", "web", SliceEndpoint("n2")))
    assert serving.of("default/web") == {"n2"}
    assert changed == ["default/web"] * 2


def test_a_slice_that_moves_to_another_service_changes_both() -> None:
    changed: list[str] = []
    serving = serving_nodes.ServingNodes(changed.append)
    before, after = (slice_of("a", of, SliceEndpoint("n1")) for of in ("web", "api"))
    serving.follow("default/a", None, before)
    serving.follow("default/a", before, after)
    assert sorted(changed) == ["default/api", "default/web", "default/web"]
    assert serving.of("default/web") == frozenset()
    assert serving.of("default/api") == {"n1"}
