"""A plan of Services on Octavia in memory: each state, few calls, reads only."""

import collections
import dataclasses
import functools
from collections.abc import Mapping

import pytest

from lib.balancers import model
from lib.balancers.preview import Row, State
from lib.ccm import previews
from lib.cloud.load_balancers import (
    Cluster,
    Port,
    PortProtocol,
    Reason,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.explain import explain
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.kube.fake import api as fake_api

WANTED = previews.ServicesRequest(cluster_id=driver.CLUSTER.id)
PORTS = (Port(80, PortProtocol.TCP, 30080, "http"),)


class Ground:
    """A cluster and a cloud; Nodes are the same in both."""

    def __init__(self, config: settings.LoadBalancer | None = None) -> None:
        self.api = fake_api.FakeApi()
        self.on = driver.ground()
        self.config = config or settings.LoadBalancer(subnet_id=self.on.subnet_id)
        self.nodes = (self.on.node(1), self.on.node(2))
        for node in self.nodes:
            shown = [{"type": a.type, "address": a.address} for a in node.addresses]
            document = {"metadata": {"name": node.name}, "status": {"addresses": shown}}
            self.api.put(resources.NODES, document)

    def service(
        self,
        name: str,
        annotations: Mapping[str, str] | None = None,
        ports: tuple[Port, ...] = PORTS,
        **spec: object,
    ) -> driver.Driver:
        """Make a Service that nobody has served yet."""
        shown = [
            {"port": p.port, "protocol": p.protocol, "nodePort": p.node_port}
            for p in ports
        ]
        about = {"name": name, "namespace": "default"}
        document = {
            "metadata": {**about, "annotations": dict(annotations or {})},
            "spec": {"type": "LoadBalancer", "ports": shown, **spec},
        }
        stored = self.api.put(resources.SERVICES, document)
        metadata = stored["metadata"]
        assert isinstance(metadata, dict)
        facts = driver.service(
            self.nodes,
            name=name,
            uid=metadata["uid"],
            ports=ports,
            annotations=dict(annotations or {}),
        )
        return driver.Driver(self.on, facts, self.config)

    def served(self, name: str, ports: tuple[Port, ...] = PORTS) -> driver.Driver:
        """Make a Service that is well: as the flow leaves it."""
        driven = self.service(name, ports=ports)
        driven.settle()
        self.write(driven)
        return driven

    def write(self, driven: driver.Driver, annotations: Mapping[str, str] = {}) -> None:
        """Write on the Service what was found out about it, and what a user adds."""
        (observed,) = (
            dict(each)
            for each in self.api.all(resources.SERVICES)
            if dict(each)["metadata"]["name"] == driven.facts.name  # type: ignore[index]
        )
        metadata = observed["metadata"]
        assert isinstance(metadata, dict)
        metadata["annotations"] = {**driven.facts.annotations, **annotations}
        metadata["finalizers"] = [model.FINALIZER]
        ingress = [
            {"ip": each.ip, "ipMode": each.ip_mode} for each in driven.facts.ingress
        ]
        observed["status"] = {"loadBalancer": {"ingress": ingress}}
        self.api.put(resources.SERVICES, observed)

    def plan(
        self, request: previews.ServicesRequest = WANTED
    ) -> previews.ServicesPreview:
        """Plan as a process that knows nothing, and see that nothing was written."""
        writes = len(self.on.cloud.writes)
        room = OctaviaLoadBalancers(self.on.cloud.client(), self.config)
        explanation = functools.partial(explain.explain, self.config)
        clock = self.on.cloud.clock
        plan = previews.services(self.api, room, explanation, request, clock)
        assert len(self.on.cloud.writes) == writes
        assert [call for call in self.api.calls if call.is_write] == []
        return plan

    def row(self, name: str) -> Row:
        """Plan all, and give one of them."""
        rows = {row.service: row for row in self.plan().rows}
        return rows[f"default/{name}"]


@pytest.fixture()
def ground() -> Ground:
    return Ground()


def leaves(row: Row) -> list[str]:
    """Write each touched thing in a line."""
    return [
        f"{touched.verb} {' / '.join(touched.path)}"
        + (" (later)" if touched.is_later else "")
        for touched in row.touched
    ]


def changes(row: Row, field: str) -> list[tuple[str, str]]:
    return [
        (change.old, change.new)
        for touched in row.touched
        for change in touched.changes
        if change.field == field
    ]


NAME = "kube_service_kubernetes_default_"


def test_each_state_has_its_row(ground: Ground) -> None:
    """A table, state x Service; the tree of what would be done beside it."""
    on = ground.on
    ground.served("well")
    changed = ground.served("changed")
    ground.write(changed, {keys.CONNECTION_LIMIT: "5"})
    ground.served("gone")
    ground.api.remove(resources.SERVICES, "gone", "default")
    busy = ground.service("busy")
    busy.one_pass()
    ground.write(busy)
    ground.service("new")
    ground.service("wrong", {keys.CLASS: "gold"})
    rows_by_name = {
        row.service.removeprefix("default/"): row for row in ground.plan().rows
    }
    on.cloud.fault = lambda call: session.Fault(503)
    unread = {row.state for row in ground.plan().rows if row.service != "default/wrong"}
    for name, row in rows_by_name.items():
        print(f"{name:8} {row.state:16} {row.why}")
        print(*(f"{'':10}{line}" for line in leaves(row)), sep="\n")
    assert {name: row.state for name, row in rows_by_name.items()} == {
        "well": State.IN_SYNC,
        "changed": State.WOULD_CHANGE,
        "gone": State.WOULD_DELETE,
        "busy": State.PENDING,
        "new": State.WOULD_CREATE,
        "wrong": State.INVALID,
    }
    assert unread == {State.UNKNOWN}
    states = {row.state for row in rows_by_name.values()} | unread
    assert states == set(State), "each has a row"


def test_what_is_well_is_told_in_one_line(ground: Ground) -> None:
    driven = ground.served("web")
    row = ground.row("web")
    assert (row.touched, row.problems, row.notices, row.not_owned) == ((), (), (), ())
    assert row.load_balancer == (
        f"load balancer {NAME}web ({driven.balancer['id']}), ACTIVE"
    )


def test_a_new_one_is_shown_whole_and_what_comes_after_it(ground: Ground) -> None:
    """Load balancer, listener, pool, members; floating IP; then the Service."""
    ground.service("web")
    row = ground.row("web")
    assert leaves(row) == [
        f"create load balancer {NAME}web",
        f"create load balancer {NAME}web / listener listener_0_{NAME}web (TCP 80)",
        f"create load balancer {NAME}web / listener listener_0_{NAME}web (TCP 80)"
        f" / pool pool_0_{NAME}web",
        f"create load balancer {NAME}web / listener listener_0_{NAME}web (TCP 80)"
        f" / pool pool_0_{NAME}web / members",
        "create floating IP (later)",
        "change Service / finalizer",
        "change Service / annotations (later)",
        "change Service / status (later)",
    ]
    assert changes(row, "10.0.0.1:30080") == [("", "node-1")]
    assert changes(row, "metadata.finalizers") == [("", model.FINALIZER)]
    (why, *_) = (touched.why for touched in row.touched)
    assert why == "the Service has none"


def test_a_change_is_shown_with_old_and_new_and_what_asks_for_it(
    ground: Ground,
) -> None:
    driven = ground.served("web")
    ground.write(driven, {keys.CONNECTION_LIMIT: "5"})
    (touched,) = ground.row("web").touched
    (change,) = touched.changes
    assert (change.field, change.old, change.new) == ("connection_limit", "-1", "5")
    assert change.by == f"annotation {keys.CONNECTION_LIMIT}, or its default"


def test_what_was_lost_on_the_service_is_shown_as_written_again(
    ground: Ground,
) -> None:
    driven = ground.served("web")
    address = driven.facts.ingress[0].ip
    driven.facts = dataclasses.replace(driven.facts, ingress=())
    ground.write(driven)
    row = ground.row("web")
    assert row.state is State.WOULD_CHANGE
    assert changes(row, "status.loadBalancer") == [("", f"{address} (VIP)")]


def test_a_service_that_leaves_loses_its_finalizer_last(ground: Ground) -> None:
    ground.served("web")
    ground.api.remove(resources.SERVICES, "web", "default")
    row = ground.row("web")
    lines = leaves(row)
    assert lines[1:] == [
        f"delete load balancer {NAME}web",
        "change Service / finalizer (later)",
    ]
    assert lines[0].startswith("delete floating IP 198.51.100.")


def test_what_cannot_be_served_names_value_and_what_is_right(ground: Ground) -> None:
    ground.service("web", {keys.CLASS: "gold"})
    row = ground.row("web")
    (problem,) = row.problems
    assert problem.reason is Reason.UNKNOWN_CLASS
    assert problem.message == (
        f'annotation {keys.CLASS}: invalid value "gold": must be the name of a'
        ' [LoadBalancerClass "..."]: none'
    )
    assert row.touched == ()


def test_a_foreign_one_is_named_and_left_alone(ground: Ground) -> None:
    """Before ours is made beside it, and afterwards."""
    other = driver.service(ground.nodes, name="web", cluster=Cluster("2", "kubernetes"))
    other_driver = driver.Driver(ground.on, other, ground.config)
    other_driver.settle()
    mine = ground.service("web")
    row = ground.row("web")
    (load_balancer,) = row.not_owned
    assert str(other_driver.balancer["id"]) in load_balancer
    assert load_balancer.endswith("; not changed")
    assert [p.reason for p in row.problems] == [Reason.NOT_OWNED]
    distinct = names.distinct(mine.balancers.refer(mine.facts))
    assert leaves(row)[0] == f"create load balancer {distinct}"
    mine.settle()
    ground.write(mine)
    row = ground.row("web")
    assert row.state is State.IN_SYNC
    assert str(other_driver.balancer["id"]) in row.not_owned[0]


def test_filters_and_names(ground: Ground) -> None:
    """A name that is not there is an error before the cloud is asked."""
    for name in ("a", "b"):
        ground.service(name)
    ground.service("theirs", loadBalancerClass="example.com/other")
    ground.service("inside", type="ClusterIP")

    def planned(**request: object) -> tuple[list[str], int]:
        asked = dataclasses.replace(WANTED, **request)  # type: ignore[arg-type]
        plan = ground.plan(asked)
        return [row.service for row in plan.rows], plan.others

    assert planned() == (["default/a", "default/b"], 1)
    assert planned(names=("a",)) == (["default/a"], 0)
    assert planned(names=("default/b",), namespace="default") == (["default/b"], 0)
    assert planned(namespace="elsewhere") == ([], 0)
    assert planned(names=("theirs",)) == ([], 1)
    calls = len(ground.on.cloud.calls)
    for name, sentence in (
        ("c", "find Service c: there is none of that name"),
        ("inside", "find Service inside: there is no load balancer to plan for"),
    ):
        with pytest.raises(kube_errors.NotFound) as caught:
            planned(names=(name,))
        assert str(caught.value) == sentence
    assert len(ground.on.cloud.calls) == calls


def test_the_cluster_is_known_by_the_uid_of_its_namespace(ground: Ground) -> None:
    stored = ground.api.put(resources.NAMESPACES, {"metadata": {"name": "kube-system"}})
    metadata = stored["metadata"]
    assert isinstance(metadata, dict)
    ground.service("web")
    (row,) = ground.plan(previews.ServicesRequest()).rows
    tags = changes(row, "tags")[0][1]
    assert f"mooring:{metadata['uid']}:" in tags
    asked = {(call.verb, call.resource) for call in ground.api.calls}
    assert asked == {("get", "namespaces"), ("list", "nodes"), ("list", "services")}


def test_a_hundred_services_cost_what_a_look_for_drift_costs() -> None:
    """One list of each kind, whatever their number, and one call for each of them."""
    counted: dict[int, collections.Counter[str]] = {}
    ports = tuple(Port(80 + at, PortProtocol.TCP, 30080 + at) for at in range(10))
    for services in (10, 100):
        ground = Ground()
        ground.on.cloud.octavia.build_s = 0.0
        for at in range(services):
            ground.served(f"s-{at}", ports)
        before = len(ground.on.cloud.calls)
        plan = ground.plan()
        assert {row.state for row in plan.rows} == {State.IN_SYNC}
        assert len(plan.rows) == services
        calls = ground.on.cloud.calls[before:]
        counted[services] = collections.Counter(
            "status tree" if call.path.endswith("/status") else call.path
            for call in calls
        )
    for services, call_counts in counted.items():
        print(services, "Services:", call_counts.total(), "calls", dict(call_counts))
    trees = {
        services: call_counts.pop("status tree")
        for services, call_counts in counted.items()
    }
    assert trees == {10: 10, 100: 100}
    assert counted[10] == counted[100], "the lists are the same"
    assert counted[100].total() + trees[100] <= 120
