"""Choosing Nodes once for many Services."""

import dataclasses
import time

from lib.cloud.load_balancers import IpFamily, Node
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.load_balancers.spec import backends

WISH = backends.MemberWish((), IpFamily.IPV4, ())


def node(number: int, **labels: str) -> Node:
    address = Address(AddressType.INTERNAL_IP, f"10.0.0.{number}")
    return Node(f"node-{number}", "", (address,), tuple(labels.items()))


def test_who_wishes_the_same_of_the_same_nodes_gets_the_very_same() -> None:
    """However many Services there are, one choice is held."""
    chooser, nodes = backends.Chooser(), (node(1), node(2))
    first = chooser(nodes, WISH)
    assert first == backends.choose(nodes, WISH)
    assert chooser(nodes, WISH) is first


def test_other_nodes_are_chosen_anew() -> None:
    """Also back and forth, as passes over older Nodes may do."""
    chooser = backends.Chooser()
    few, many = (node(1),), (node(1), node(2))
    for nodes in (few, many, few, many):
        assert chooser(nodes, WISH) == backends.choose(nodes, WISH)


def test_a_change_that_does_not_matter_gives_the_very_choice_of_before() -> None:
    """So that comparing it with what was settled costs nothing."""
    chooser = backends.Chooser()
    first = chooser((node(1), node(2)), WISH)
    assert chooser((node(1), node(2, irrelevant="yes")), WISH) is first


def test_each_wish_is_kept_apart() -> None:
    """By labels, family and addresses."""
    chooser = backends.Chooser()
    nodes = (node(1, role="edge"), node(2))
    wishes = (
        WISH,
        dataclasses.replace(WISH, selector=(("role", "edge"),)),
        dataclasses.replace(WISH, family=IpFamily.IPV6),
    )
    for _ in range(2):
        found = [chooser(nodes, wish) for wish in wishes]
        assert found == [backends.choose(nodes, wish) for wish in wishes]
    assert len(set(found)) == len(wishes)


def test_more_wishes_than_are_kept_are_still_served() -> None:
    """Only not from memory."""
    chooser, nodes = backends.Chooser(), (node(1), node(2, role="edge"))
    for number in range(2 * backends.MOST_KEPT):
        wish = dataclasses.replace(WISH, selector=(("role", f"r{number}"),))
        assert chooser(nodes, wish).members == ()
    edge = dataclasses.replace(WISH, selector=(("role", "edge"),))
    assert [one.name for one in chooser(nodes, edge).members] == ["node-2"]


def test_many_selectors_cost_little_when_nothing_changed() -> None:
    """Sixty different ones in a large cluster, again and again."""
    chooser = backends.Chooser()
    nodes = tuple(node(number, role=f"r{number % 60}") for number in range(1, 2001))
    wishes = [
        dataclasses.replace(WISH, selector=(("role", f"r{number}"),))
        for number in range(60)
    ]
    first = [chooser(nodes, wish) for wish in wishes]
    began = time.process_time()
    for _ in range(10):
        again = [chooser(nodes, wish) for wish in wishes]
    assert time.process_time() - began < 0.1
    assert all(one is other for one, other in zip(first, again, strict=True))
