"""What `mooring plan routes` shows is what the daemon then does."""

from lib.ccm import previews_routes
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from tests.harness.routing import memory


def preview(ground: memory.Ground) -> previews_routes.RoutesPreview:
    tables = NeutronRoutes(ground.cloud.client(), ground.config_router)
    return previews_routes.routes(ground.api, tables, ground.cluster_id, memory.PODS)


def test_rows_are_what_the_daemon_does() -> None:
    """And nothing is written by looking."""
    ground = memory.Ground()
    ground.node("node-1", "10.100.1.0/24", "fd00:100:1::/64")
    ground.node("bad", "10.9.0.0/24")
    before = len(ground.cloud.writes), ground.state()
    plan = preview(ground)
    assert (len(ground.cloud.writes), ground.state()) == before
    shown = [(row.subject.split()[0], row.action) for row in plan.rows]
    assert shown == [
        ("ConfigMap", "write record"),
        ("router", "create"),
        ("port", "change"),
        ("Node", "set condition"),
        ("Node", "set condition"),
        ("Node", "problem"),
    ]
    assert plan.rows[-1].reason.startswith("PodCIDROutsideClusterCIDR: ")
    assert (plan.nodes, plan.unread, plan.table) == (2, "", ground.router_id)
    memory.Process(ground).settle()
    left = preview(ground).rows
    assert [row.action for row in left] == ["problem"]
    ground.delete("node-1")
    gone = [(row.subject.split()[0], row.action) for row in preview(ground).rows]
    assert gone == [("port", "change"), ("router", "delete"), ("Node", "problem")]


def test_a_router_that_is_absent_is_a_problem() -> None:
    ground = memory.Ground()
    ground.node("node-1", "10.100.1.0/24")
    ground.neutron.l3.routers.clear()
    (row,) = preview(ground).rows
    assert (row.subject, row.action) == ("table", "problem")
    assert "not found" in row.reason


def test_a_table_that_cannot_be_read_says_why() -> None:
    ground = memory.Ground()
    ground.neutron.l3.has_routes = False
    plan = preview(ground)
    assert plan.rows == ()
    assert "extraroute" in plan.unread
