"""From any state of VMs and Nodes, Nodes converge, and none of a VM is lost."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import hypothesis
from hypothesis import strategies

from lib.cloud.zvirt.instances import translate
from lib.kube import nodes as kube_nodes
from lib.lab.zvirt import seed
from tests.harness.nodes import walk
from tests.lib.cloud.zvirt.instances.engine_and_child import GONE, Ground

NAMES = ("node-0", "node-1", "node-2")
STATUSES = (*sorted(translate.PHASES), "")
FOREIGN = "static://rack/1"
OWN = "own"


@dataclasses.dataclass(frozen=True)
class Vm:
    """A VM of a name. status: empty: the engine shows none."""

    status: str
    has_agent: bool
    is_twice: bool


@dataclasses.dataclass(frozen=True)
class Node:
    """A Node. owner: its provider ID: OWN, GONE or FOREIGN; a new one has none."""

    is_new: bool
    is_shut: bool
    ready: str
    owner: str


@dataclasses.dataclass(frozen=True)
class State:
    """VMs and Nodes by name. hides: the cluster is hidden from the user."""

    vms: Mapping[str, Vm]
    nodes: Mapping[str, Node]
    hides: bool


VMS = strategies.builds(
    Vm,
    strategies.sampled_from(STATUSES),
    strategies.booleans(),
    strategies.sampled_from([False, False, True]),
)
NODES = strategies.builds(
    Node,
    strategies.booleans(),
    strategies.booleans(),
    strategies.sampled_from(["True", "False", "Unknown"]),
    strategies.sampled_from([OWN, OWN, GONE, FOREIGN]),
)
NAMED = strategies.sampled_from(NAMES)
STATES = strategies.builds(
    State,
    strategies.dictionaries(NAMED, VMS),
    strategies.dictionaries(NAMED, NODES),
    strategies.sampled_from([False, False, False, True]),
)


def ground_of(state: State) -> tuple[Ground, dict[str, str]]:
    """Return the ground, and the IDs of the first VM of each name."""
    ground = Ground()
    silent = [name for name, vm in state.vms.items() if not vm.has_agent]
    rules = [f"without-agent {name}" for name in silent]
    ground.stage.engine.settings.replace(rules)
    ids = {name: ground.vms.boot(name) for name in state.vms}
    for name, vm in state.vms.items():
        ground.stage.set("vm", name, status=vm.status)
        if vm.is_twice:
            ground.vms.create(name)
    hidden = [f"hide {seed.CLUSTER}"] if state.hides else []
    ground.stage.engine.settings.replace([*rules, *hidden])
    for name, node in state.nodes.items():
        own = f"zvirt://{ids[name]}" if name in ids else GONE
        taints = ((walk.NEW,) if node.is_new else ()) + (
            (walk.SHUT,) if node.is_shut else ()
        )
        owner = own if node.owner == OWN else node.owner
        ground.node(name, *taints, ready=node.ready, provider_id=owner)
    return ground, ids


def may_be_deleted(state: State, name: str, ids: Mapping[str, str]) -> bool:
    """Report whether no VM can be that of a Node that is not Ready."""
    node = state.nodes[name]
    if node.ready == "True":
        return False
    if node.is_new:
        return name not in ids
    return node.owner == GONE or (node.owner == OWN and name not in ids)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(state=STATES)
def test_any_state_converges_and_loses_no_node(state: State) -> None:
    """Nodes of others stay, addresses are never empty, the engine is only read."""
    ground, ids = ground_of(state)
    before = ground.state()
    ground.stage.service.counts.clear()
    walk.settle(ground, walk.SETTINGS)
    after = ground.state()
    for name in before.keys() - after.keys():
        assert may_be_deleted(state, name, ids), name
    for name, node in after.items():
        check(state, name, before[name], node, ids)
    assert not [kind for kind in ground.requests if not kind.startswith("GET ")]


def check(
    state: State,
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    ids: Mapping[str, str],
) -> None:
    """Check one Node that is left."""
    node, vm = state.nodes[name], state.vms.get(name)
    if node.owner == FOREIGN and not node.is_new:
        assert new == old
        return
    assert all(row["address"].strip() for row in new["status"]["addresses"])
    keys = {taint["key"] for taint in new["spec"].get("taints", ())}
    own = new["spec"].get("providerID", "")
    is_shut = kube_nodes.SHUTDOWN_TAINT in keys
    if is_shut and not node.is_shut:
        assert node.ready != "True"
        assert vm is not None
        assert vm.status == "down"
    if not node.is_new:
        assert own == old["spec"]["providerID"], "a provider ID never changes"
        return
    is_new = kube_nodes.UNINITIALIZED_TAINT in keys
    can_be_initialised = (
        vm is not None and vm.has_agent and not vm.is_twice and not state.hides
    )
    if not can_be_initialised:
        assert is_new, "no VM, two of them, no address, or no cluster"
    assert own == ("" if is_new else f"zvirt://{ids[name]}")
