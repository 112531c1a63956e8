"""A node-selector that no label can have is refused; one without a Node is reported."""

import pytest

from lib.cloud.load_balancers import Cluster, Facts, Node, Reason
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import backends

NODE = Node(
    "node-1",
    "",
    (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
    (("env", "prod"), ("node-role.kubernetes.io/worker", "")),
)
REFUSED = (
    "env==prod",
    "env!=prod",
    "!env",
    "env in (prod)",
    "env=prod;role=edge",
    "env:prod",
    "env=a b",
    "env='prod'",
    '"env"="prod"',
    "env=-prod",
    "env=prod-",
    f"env={'x' * 64}",
    f"{'x' * 64}=a",
    "a/b/c=d",
    "/env=prod",
    "Upper.Prefix/env=prod",
    f"{'x' * 254}/env=prod",
    "env=prod,=",
    "\u0435nv=prod",
    "env=prod\u200b",
)


def selected(
    text: str, nodes: tuple[Node, ...] = (NODE,), default: str = ""
) -> tuple[backends.Chosen, keys.AnnotationReader]:
    annotations = {keys.NODE_SELECTOR: text} if text else {}
    facts = Facts(Cluster("c", "k"), "default", "web", "uid", nodes=nodes)
    reader = keys.AnnotationReader(annotations)
    config = settings.LoadBalancer(node_selector=default)
    return backends.select(facts, reader, config, backends.choose), reader


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_label_can_be_is_refused(text: str) -> None:
    _, reader = selected(text)
    (problem,) = reader.problems
    assert (problem.reason, problem.is_fatal) == (Reason.INVALID_ANNOTATION, True)
    assert keys.NODE_SELECTOR in problem.message
    assert "key=value or key, separated by commas" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "env=prod",
        " env = prod , node-role.kubernetes.io/worker",
        "node-role.kubernetes.io/worker=",
        "env",
        "env=prod,",
        ",",
    ],
)
def test_valid_selectors_match(text: str) -> None:
    chosen, reader = selected(text)
    assert [member.name for member in chosen.members] == ["node-1"]
    assert reader.problems == []


@pytest.mark.parametrize("text", ["env=test", "role", "env=prod,role=edge", "ENV=prod"])
def test_a_selector_that_matches_no_node_is_reported(text: str) -> None:
    chosen, reader = selected(text)
    assert chosen.members == ()
    (problem,) = reader.problems
    assert (problem.reason, problem.is_fatal) == (Reason.NO_NODES, False)
    assert f'annotation {keys.NODE_SELECTOR}: "{text}" matches none of the 1 Nodes' in (
        problem.message
    )


def test_the_setting_is_named_where_the_selector_is_of_cloud_conf() -> None:
    _, reader = selected("", default="role=edge")
    assert reader.problems[0].message.startswith("[LoadBalancer] node-selector: ")
    _, reader = selected("", default="role==edge")
    assert reader.problems[0].message.startswith("[LoadBalancer] node-selector: ")


def test_members_stay_while_the_selector_is_refused() -> None:
    on = driver.ground()
    on.cloud.neutron.add_port(on.subnet_id, "10.0.0.1", "server-1")
    driven = driver.Driver(
        on, driver.service((NODE,)), settings.LoadBalancer(subnet_id=on.subnet_id)
    )
    driven.settle()
    before = repr(on.cloud.octavia.members)
    assert "10.0.0.1" in before
    driven.annotate({keys.NODE_SELECTOR: "env==prod"})
    driven.settle()
    assert repr(on.cloud.octavia.members) == before
    assert [problem.reason for problem in driven.problems] == [
        Reason.INVALID_ANNOTATION
    ]
