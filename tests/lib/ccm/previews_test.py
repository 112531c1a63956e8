"""A plan of all Nodes says what a dry run would log, and sends reads only."""

from lib.ccm import previews
from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import nodes as kube_nodes
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.nodes import deletion_budget, model

NEW = {"key": kube_nodes.UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}


def ground(
    gone: int = 1,
) -> tuple[fake_api.FakeApi, fake_instances.FakeInstances]:
    """Return Nodes: to initialise, to taint, of another cloud, to delete."""
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    address = (Address(AddressType.INTERNAL_IP, "10.0.0.1"),)
    for name, phase in (("new", Phase.RUNNING), ("off", Phase.STOPPED)):
        id = InstanceId(name)
        provider_id = fake_instances.provider_id(name)
        cloud.put(Instance(id, name, phase, provider_id, address, "m1.small"))
    specs: dict[str, dict[str, object]] = {
        "new": {"taints": [NEW]},
        "off": {"providerID": fake_instances.provider_id("off")},
        "static": {"providerID": "static://x"},
    }
    for n in range(gone):
        specs[f"gone-{n}"] = {"providerID": fake_instances.provider_id(f"gone-{n}")}
    for name, spec in specs.items():
        listed = [{"type": "InternalIP", "address": "10.0.0.1"}]
        conditions = [{"type": "Ready", "status": "False"}]
        api.put(
            resources.NODES,
            {
                "metadata": {"name": name},
                "spec": spec,
                "status": {"addresses": listed, "conditions": conditions},
            },
        )
    return api, cloud


def test_a_plan_is_what_would_be_done() -> None:
    """In the order of the names; nothing is written, and the cloud is listed once."""
    api, cloud = ground()
    plan = previews.nodes(api, cloud, model.NodeSettings())
    assert [(row.node, row.action) for row in plan.rows] == [
        ("gone-0", "delete"),
        ("new", "initialize"),
        ("off", "add shutdown taint"),
    ]
    assert (plan.nodes, plan.not_managed, plan.unread) == (4, 1, ())
    assert [call for call in api.calls if call.is_write] == []
    assert cloud.calls == ["list instances", "get instance"]


def test_too_many_deletions_are_planned_as_none() -> None:
    """As the limit says for a process that has just started."""
    api, cloud = ground(gone=4)
    rows = previews.nodes(api, cloud, model.NodeSettings()).rows
    assert [row.action for row in rows if row.node.startswith("gone")] == ["keep"] * 4
    more = model.NodeSettings(limit=deletion_budget.Limit(count=4))
    rows = previews.nodes(api, cloud, more).rows
    assert [row.action for row in rows if row.node.startswith("gone")] == ["delete"] * 4


def test_without_deletion_nothing_is_planned_for_what_is_gone() -> None:
    api, cloud = ground()
    rows = previews.nodes(api, cloud, model.NodeSettings(deletes=False)).rows
    assert not [row for row in rows if row.node.startswith("gone")]


def test_a_silent_cloud_is_no_plan_without_change() -> None:
    """Each Node that was not judged is named, with the reason."""
    api, cloud = ground()
    cloud.faults = [errors.Unavailable("silent", operation="list servers")]
    plan = previews.nodes(api, cloud, model.NodeSettings())
    assert [name for name, _ in plan.unread] == ["gone-0", "new", "off", "static"]
    assert plan.unread[0][1] == "list servers: silent"
