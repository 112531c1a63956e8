"""What a doctor is told of the router: subnets, routes, or why it cannot be used."""

import pytest

from lib.cloud import errors
from lib.cloud.openstack.routes import checkup
from tests.harness.routing import memory


def test_a_router_is_counted() -> None:
    ground = memory.Ground()
    (hop, _) = ground.port("server-a")
    ground.put_route("192.0.2.0/24", hop)
    routing = checkup.read(ground.cloud.client(), ground.router_id)
    assert (routing.interfaces, routing.routes, routing.error) == (2, 1, None)


@pytest.mark.parametrize(
    ("has_routes", "router_id", "expected"),
    [(True, "absent", errors.NotFound), (False, "", errors.Unsupported)],
    ids=["absent", "without the extension"],
)
def test_a_router_that_cannot_be_used_says_why(
    has_routes: bool, router_id: str, expected: type[errors.CloudError]
) -> None:
    ground = memory.Ground()
    ground.neutron.l3.has_routes = has_routes
    routing = checkup.read(ground.cloud.client(), router_id or ground.router_id)
    assert isinstance(routing.error, expected)
    assert (routing.interfaces, routing.routes) == (0, 0)
