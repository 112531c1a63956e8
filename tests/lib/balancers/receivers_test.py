"""Which Nodes may receive traffic, and when it is worth another look."""

import datetime

import pytest

from lib.balancers import receivers
from lib.cloud.model import Address, AddressType
from lib.kube import objects
from lib.kube.nodes import (
    Node,
    NodeAddress,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    Taint,
)

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
LABEL = receivers.EXCLUDED_LABEL


def node(
    name: str = "n1",
    labels: dict[str, str] | None = None,
    taints: tuple[str, ...] = (),
    deleted: datetime.datetime | None = None,
    ready: str = "True",
    address: str = "10.0.0.1",
) -> Node:
    meta = objects.ObjectMeta(
        name=name, labels=labels or {}, deletion_timestamp=deleted
    )
    addresses = (
        NodeAddress("InternalIP", address),
        NodeAddress("Odd", "x"),
        NodeAddress("Hostname", name),
    )
    return Node(
        meta,
        NodeSpec("openstack:///1", tuple(Taint(key, "NoSchedule") for key in taints)),
        NodeStatus(addresses, (NodeCondition("Ready", ready),)),
    )


@pytest.mark.parametrize(
    ("node", "receives"),
    [
        (node(), True),
        (node(ready="False"), True),
        (node(labels={LABEL: "false"}), True),
        (node(labels={LABEL: "F"}), True),
        (node(labels={LABEL: "0"}), True),
        (node(labels={LABEL: "true"}), False),
        (node(labels={LABEL: "1"}), False),
        (node(labels={LABEL: ""}), False),
        (node(labels={LABEL: "no"}), False),
        (node(taints=("other",)), True),
        (node(taints=("other", receivers.TO_BE_DELETED_TAINT)), False),
        (node(deleted=NOON), False),
    ],
)
def test_who_receives_traffic(node: Node, receives: bool) -> None:
    """As in the reference: readiness is ignored, unreadable Nodes are excluded."""
    assert (receivers.of(node) is not None) is receives


def test_a_receiver_carries_what_members_are_made_of() -> None:
    """Name, provider id, addresses of known types in order, labels by key."""
    observed = receivers.of(node(labels={"b": "2", "a": "1"}))
    assert observed is not None
    assert (observed.name, observed.provider_id) == ("n1", "openstack:///1")
    assert observed.addresses == (
        Address(AddressType.INTERNAL_IP, "10.0.0.1"),
        Address(AddressType.HOSTNAME, "n1"),
    )
    assert observed.labels == (("a", "1"), ("b", "2"))


def test_only_a_change_that_counts_is_told() -> None:
    """A heartbeat of a Node is none; an address, a label and an exclusion are."""
    messages: list[None] = []
    followed = receivers.Receivers(lambda: messages.append(None))
    steps: list[tuple[Node | None, int, int]] = [
        (node(), 1, 1),
        (node(ready="False"), 1, 1),
        (node(taints=("other",)), 1, 1),
        (node(address="10.0.0.2"), 2, 1),
        (node(address="10.0.0.2", labels={"zone": "a"}), 3, 1),
        (node(labels={LABEL: "true"}), 4, 0),
        (node(labels={LABEL: "true"}, address="10.0.0.3"), 4, 0),
        (node(), 5, 1),
        (None, 6, 0),
        (None, 6, 0),
    ]
    for new, count, existing in steps:
        followed.follow("n1", None, new)
        assert (len(messages), len(followed.all())) == (count, existing)


def test_receivers_are_ordered_by_name() -> None:
    """The same Nodes have the same result in any order."""
    followed = receivers.Receivers(lambda: None)
    for name in ("c", "a", "b"):
        followed.follow(name, None, node(name))
    assert [node.name for node in followed.all()] == ["a", "b", "c"]
