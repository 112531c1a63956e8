"""Each action that decide knows has its words in a plan."""

import dataclasses
import typing
from collections.abc import Callable

from lib.cloud import errors
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    Instance,
    NotManaged,
    Observation,
    Phase,
    Seen,
    Unknown,
)
from lib.kube import nodes as kube_nodes
from lib.nodes import deletion_budget, model, preview

MakeNode = Callable[..., kube_nodes.Node]
MakeInstance = Callable[..., Instance]
NEW = (kube_nodes.UNINITIALIZED_TAINT,)
SHUT = (kube_nodes.SHUTDOWN_TAINT,)
ONCE = model.NodeSettings(confirm_after_s=0.0)
MANY = deletion_budget.DeletionBudget(
    nodes=20, deleted=0, pending={f"n{n}": n for n in range(20)}
)
SILENT = errors.Unavailable("silent", operation="list servers")
TWINS = errors.Ambiguous("2 servers have this name", operation="find server")
OTHER = (Address(AddressType.INTERNAL_IP, "10.0.0.2"),)


def snapshot(
    node: kube_nodes.Node, instance: Observation[Instance] | None, **more: typing.Any
) -> model.Snapshot:
    return model.Snapshot(
        node, frozenset(model.Topic), age_s=3600, instance=instance, **more
    )


def shown(observed: model.Snapshot) -> list[tuple[str, str]]:
    return [(row.action, row.reason) for row in preview.rows(observed, ONCE)]


def test_every_action_is_told(make_node: MakeNode, make_instance: MakeInstance) -> None:
    """A table, situation x rows; an action of the flow without a row fails."""
    present = Seen(make_instance())
    stopped = Seen(make_instance(phase=Phase.STOPPED))
    moved = Seen(make_instance(addresses=OTHER))
    off = make_node(ready="False")
    old = {"beta.kubernetes.io/instance-type": "m1.small"}
    table = {
        "all is well": (snapshot(make_node(), present), []),
        "new": (
            snapshot(make_node(taints=NEW, provider_id="", addresses=()), present),
            ["set addresses", "initialize"],
        ),
        "moved": (snapshot(make_node(), moved), ["set addresses"]),
        "old label only": (snapshot(make_node(labels=old), present), ["set labels"]),
        "stopped": (snapshot(off, stopped), ["add shutdown taint"]),
        "stopped and moved": (
            snapshot(off, Seen(dataclasses.replace(stopped.value, addresses=OTHER))),
            ["add shutdown taint", "set addresses"],
        ),
        "back": (
            snapshot(make_node(taints=SHUT), present),
            ["remove shutdown taint"],
        ),
        "gone": (snapshot(off, Absent(True), gone_for_s=0.0), ["delete"]),
        "gone with many": (snapshot(off, Absent(True), budget=MANY), ["keep"]),
        "gone by the list only": (snapshot(off, Absent(True)), ["wait"]),
        "new and not there": (
            snapshot(make_node(taints=NEW), Absent(True)),
            ["record event"],
        ),
        "new and of another cloud": (
            snapshot(make_node(taints=NEW), NotManaged("of another cloud")),
            ["record event"],
        ),
    }
    for name, (observed, expected) in table.items():
        rows = shown(observed)
        print(f"{name:25} {rows}")
        assert [action for action, _ in rows] == expected, name
        assert all(why for _, why in rows)
    kinds = {kind.__name__ for kind in typing.get_args(model.Action)}
    assert kinds == {
        "SetAddresses",
        "InitialiseNode",
        "SetLabels",
        "AddShutdownTaint",
        "RemoveShutdownTaint",
        "DeleteNode",
        "HoldNodeBack",
        "RecordEvent",
    }, "each of them has to be in the table above"


def test_the_reasons_name_what_changes(
    make_node: MakeNode, make_instance: MakeInstance
) -> None:
    moved = snapshot(make_node(), Seen(make_instance(addresses=OTHER)))
    assert shown(moved)[0][1] == (
        "observed: InternalIP 10.0.0.1; desired: InternalIP 10.0.0.2"
    )
    new = make_node(taints=NEW, provider_id="")
    why = shown(snapshot(new, Seen(make_instance(zone="z"))))[0][1]
    assert "provider id openstack:///id-1" in why
    assert "topology.kubernetes.io/zone=z" in why
    gone = snapshot(make_node(ready="False"), Absent(True), gone_for_s=0.0)
    assert "a second direct read after 15 s must confirm it" in shown(gone)[0][1]


def test_what_could_not_be_read_is_said(
    make_node: MakeNode, make_instance: MakeInstance
) -> None:
    """An outage is no plan; a doubtful name is a fact."""
    blind = dataclasses.replace(make_instance(addresses=()), addresses_known=False)
    table: list[tuple[Observation[Instance], str]] = [
        (Unknown(SILENT), "list servers: silent"),
        (Seen(blind), "its addresses cannot be read"),
        (Unknown(TWINS), ""),
        (Seen(make_instance()), ""),
        (NotManaged("of another cloud"), ""),
    ]
    for instance, why in table:
        assert preview.unread(snapshot(make_node(), instance)) == why


def test_a_node_of_another_cloud_is_counted(make_node: MakeNode) -> None:
    assert preview.is_not_managed(snapshot(make_node(), NotManaged("of another cloud")))
    assert not preview.is_not_managed(snapshot(make_node(), Absent(True)))
