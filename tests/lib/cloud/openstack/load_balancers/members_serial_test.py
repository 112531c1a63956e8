"""Members that the reference made one by one, for providers that need it so."""

import dataclasses

import pytest

from lib.cloud.load_balancers import Depth
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.spec import annotations as keys

PORT = 30080


def named(node: int) -> str:
    return f"member_node-{node}_10.0.0.{node}_{PORT}"


@pytest.fixture()
def driven() -> driver.Driver:
    """Return a Service whose members have the reference's names, and no subnet."""
    on = driver.ground()
    config = settings.LoadBalancer(provider_requires_serial_api_calls=True)
    facts = driver.service((on.node(1), on.node(2)))
    created = driver.Driver(on, facts, config)
    created.settle()
    for node, member in enumerate(created.members, 1):
        member.update(name=named(node), subnet_id=None)
    created.restart()
    return created


@pytest.mark.parametrize("depth", list(Depth))
def test_they_are_left_alone(driven: driver.Driver, depth: Depth) -> None:
    """Neither names nor subnets are written for their own sake."""
    driven.depth = depth
    assert driven.settle() == []
    assert [member["name"] for member in driven.members] == [named(1), named(2)]


def test_what_must_be_changed_leaves_name_and_subnet(driven: driver.Driver) -> None:
    """A weight is put right, and a Node that joins changes no other."""
    driven.depth = Depth.FULL
    driven.members[0]["weight"] = 7
    node = driven.ground.node(3)
    driven.change(nodes=(*driven.facts.nodes, node))
    driven.settle()
    first, second, third = driven.members
    assert (first["name"], first["weight"], first["subnet_id"]) == (named(1), 1, None)
    assert (second["name"], second["subnet_id"]) == (named(2), None)
    assert (third["name"], third["subnet_id"]) == ("node-3", driven.ground.subnet_id)
    assert driven.settle() == []


def test_another_node_at_the_address_takes_over_the_name(driven: driver.Driver) -> None:
    """A name that means another Node is put right."""
    first, second = driven.facts.nodes
    other = dataclasses.replace(first, name="node-9")
    driven.annotate({keys.ENABLE_MONITOR: "false"})
    driven.change(nodes=(other, second))
    driven.settle()
    assert {member["name"] for member in driven.members} == {"node-9", named(2)}
