"""Choosing Nodes once for many Services."""

import dataclasses
import time
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.load_balancers import IpFamily, Node
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.load_balancers.spec import backends

WISH = backends.MemberRequest((), IpFamily.IPV4, ())


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
    requests = (
        WISH,
        dataclasses.replace(WISH, selector=(("role", "edge"),)),
        dataclasses.replace(WISH, family=IpFamily.IPV6),
    )
    for _ in range(2):
        chosens = [chooser(nodes, request) for request in requests]
        assert chosens == [backends.choose(nodes, request) for request in requests]
    assert len(set(chosens)) == len(requests)


def test_more_wishes_than_are_kept_are_still_served() -> None:
    """Only not from memory."""
    chooser, nodes = backends.Chooser(), (node(1), node(2, role="edge"))
    for number in range(2 * backends.MOST_KEPT):
        request = dataclasses.replace(WISH, selector=(("role", f"r{number}"),))
        assert chooser(nodes, request).members == ()
    edge = dataclasses.replace(WISH, selector=(("role", "edge"),))
    assert [member.name for member in chooser(nodes, edge).members] == ["node-2"]


def test_many_selectors_cost_little_when_nothing_changed() -> None:
    """Sixty different ones in a large cluster, again and again."""
    chooser = backends.Chooser()
    nodes = tuple(node(number, role=f"r{number % 60}") for number in range(1, 2001))
    member_wishs = [
        dataclasses.replace(WISH, selector=(("role", f"r{number}"),))
        for number in range(60)
    ]
    first = [chooser(nodes, request) for request in member_wishs]
    began = time.process_time()
    for _ in range(10):
        again = [chooser(nodes, request) for request in member_wishs]
    assert time.process_time() - began < 0.1
    assert all(chosen is other for chosen, other in zip(first, again, strict=True))


class Labels(tuple[tuple[str, str], ...]):
    """Labels of a Node that count how often they are read."""

    reads = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        Labels.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("form", ["one key", "a key each", "a common label first"])
def test_labels_are_read_once_for_all_selectors(form: str) -> None:
    """A selector that matches few Nodes costs no scan of all, however many differ."""
    count, selectors = 5000, 2000

    def labels(number: int) -> Labels:
        own = f"r{number % selectors}"
        pairs = {"os": "linux", "role": own, f"role-{own}": "x"}
        return Labels(tuple(pairs.items()))

    def request(number: int) -> backends.MemberRequest:
        selector = {
            "one key": (("role", f"r{number}"),),
            "a key each": ((f"role-r{number}", ""),),
            "a common label first": (("os", "linux"), ("role", f"r{number}")),
        }[form]
        return dataclasses.replace(WISH, selector=selector)

    nodes = tuple(
        Node(
            f"node-{n}",
            "",
            (Address(AddressType.INTERNAL_IP, f"10.0.{n // 256}.{n % 256}"),),
            labels(n),
        )
        for n in range(count)
    )
    chooser, Labels.reads = backends.Chooser(), 0
    for number in range(selectors):
        chosen = chooser(nodes, request(number))
        expected = sorted(f"node-{n}" for n in range(number, count, selectors))
        assert [member.name for member in chosen.members] == expected
    assert Labels.reads == count


TEXTS = strategies.sampled_from(["", "a", "b"])
PAIRS = strategies.dictionaries(strategies.sampled_from(["x", "y", "z"]), TEXTS)


@hypothesis.given(strategies.lists(PAIRS, max_size=8), PAIRS)
def test_the_nodes_with_all_labels_are_chosen(
    labelled: list[dict[str, str]], selector: dict[str, str]
) -> None:
    """Without a value any value fits."""
    nodes = tuple(node(n, **labels) for n, labels in enumerate(labelled, start=1))
    request = dataclasses.replace(WISH, selector=tuple(selector.items()))
    expected = [
        f"node-{number}"
        for number, labels in enumerate(labelled, start=1)
        if all(k in labels and v in ("", labels[k]) for k, v in selector.items())
    ]
    chosen = backends.Chooser()(nodes, request)
    assert [member.name for member in chosen.members] == expected
    assert chosen == backends.choose(nodes, request)
