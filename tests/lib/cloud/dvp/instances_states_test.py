"""From any state of child and parent, Nodes converge, and none is lost."""

import copy
import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import hypothesis
from hypothesis import strategies

from lib.cloud.dvp import ownership
from lib.cloud.dvp.instances import translate
from lib.kube import nodes as kube_nodes
from tests.harness.dvp import parent_api
from tests.harness.nodes import walk
from tests.lib.cloud.dvp.child_and_parent import NAMESPACE, UUID, VMS, ZONE, Ground

Json = dict[str, Any]
HOSTS = ("node-0", "node-1", "node-2")
PHASES = (*sorted(translate.PHASES), "Quantum", "")
OTHER_UUID = "uuid-b"
GONE = "dvp://vm-gone"
FOREIGN = "static://rack/1"


@dataclasses.dataclass(frozen=True)
class State:
    """VMs of the parent, and Nodes of the child: arguments of `put_node` by name."""

    vms: tuple[Json, ...]
    nodes: Mapping[str, tuple[tuple[Mapping[str, str], ...], str, str]]


def vm(name: str, labels: Mapping[str, str], status: Json) -> Json:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": parent_api.vm_spec(nodeSelector={ZONE: "zone-1"}),
        "status": status,
    }


STATUSES = strategies.fixed_dictionaries(
    {"phase": strategies.sampled_from(PHASES)},
    optional={"ipAddress": strategies.sampled_from(["10.0.0.1", "10.0.0.2", "", " "])},
)


@strategies.composite
def states(draw: strategies.DrawFn) -> State:
    """Draw VMs with any labels, also several of a hostname, and Nodes in any state."""
    vms: list[Json] = []
    nodes: dict[str, tuple[tuple[Mapping[str, str], ...], str, str]] = {}
    for host in HOSTS:
        names = [f"vm-{host}", f"{host}-5f2c", host]
        chosen = draw(strategies.sets(strategies.sampled_from(names), max_size=2))
        for name in sorted(chosen):
            labels = {
                ownership.CLUSTER: draw(
                    strategies.sampled_from([UUID, UUID, UUID, OTHER_UUID, ""])
                ),
                ownership.HOSTNAME: draw(strategies.sampled_from([host, host, ""])),
            }
            known = {key: value for key, value in labels.items() if value}
            vms.append(vm(name, known, draw(STATUSES)))
        if draw(strategies.booleans()):
            new = (walk.NEW,) if draw(strategies.booleans()) else ()
            taints = (*new, *((walk.SHUT,) if draw(strategies.booleans()) else ()))
            ready = draw(strategies.sampled_from(["True", "False", "Unknown"]))
            ids = [f"dvp://{name}" for name in names]
            own = draw(strategies.sampled_from([*ids, GONE, FOREIGN]))
            nodes[host] = (taints, ready, own)
    return State(tuple(vms), nodes)


def ground_of(state: State) -> Ground:
    ground = Ground()
    for document in state.vms:
        ground.parent.put_impossible(VMS, document)
    for name, (taints, ready, provider_id) in state.nodes.items():
        walk.put_node(ground.api, name, taints, ready, provider_id)
    return ground


def may_be_deleted(state: State, name: str) -> bool:
    """Report whether no VM in the parent can be that of a Node that is not Ready."""
    taints, ready, provider_id = state.nodes[name]
    if ready == "True" or provider_id == FOREIGN and walk.NEW not in taints:
        return False
    if walk.NEW not in taints:
        names = {document["metadata"]["name"] for document in state.vms}
        return provider_id.removeprefix("dvp://") not in names
    return not any(is_of_node(document, name) for document in state.vms)


def is_of_node(document: Json, name: str) -> bool:
    """Report whether a VM may be that of a new Node: by its label, or by its name."""
    metadata = document["metadata"]
    labels = metadata["labels"]
    is_ours = labels.get(ownership.CLUSTER, UUID) == UUID
    return is_ours and name in (metadata["name"], labels.get(ownership.HOSTNAME))


def stopped(state: State, provider_id: str) -> bool:
    return any(
        f"dvp://{document['metadata']['name']}" == provider_id
        and document["status"]["phase"] == "Stopped"
        for document in state.vms
    )


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(state=states())
def test_any_state_converges_and_loses_no_node(state: State) -> None:
    """Nodes of others stay, addresses are never empty, the parent is only read."""
    ground = ground_of(state)
    before = ground.state()
    vms = copy.deepcopy(ground.parent.all(VMS))
    try:
        walk.settle(ground, walk.SETTINGS)
    finally:
        end(ground)
    after = ground.state()
    for name in before.keys() - after.keys():
        assert may_be_deleted(state, name), name
    for name, node in after.items():
        check(state, name, before[name], node)
    assert ground.parent.all(VMS) == vms
    verbs = {call.verb for call in ground.parent.calls}
    assert verbs <= {"get", "list", "watch"}


def end(ground: Ground) -> None:
    """End a process and its watch, which must not run while states are drawn."""
    ground.end()
    for thread in threading.enumerate():
        if thread.name == f"parent {VMS.plural}":
            thread.join(10)


def check(state: State, name: str, old: Json, new: Json) -> None:
    """Check one Node that is left."""
    taints, ready, provider_id = state.nodes[name]
    if provider_id == FOREIGN and walk.NEW not in taints:
        assert new == old
        return
    assert all(row["address"].strip() for row in new["status"]["addresses"])
    keys = {taint["key"] for taint in new["spec"].get("taints", ())}
    was_shut = walk.SHUT in taints
    own = new["spec"].get("providerID", "")
    is_shut = kube_nodes.SHUTDOWN_TAINT in keys
    if is_shut and not was_shut:
        assert ready != "True"
        assert stopped(state, own) or kube_nodes.UNINITIALIZED_TAINT in keys
    assert not (is_shut and ready == "True")
    if walk.NEW not in taints:
        assert own == provider_id, "a provider ID never changes"
        return
    matching = [
        document["metadata"]["name"]
        for document in state.vms
        if document["metadata"]["labels"].get(ownership.CLUSTER) == UUID
        and document["metadata"]["labels"].get(ownership.HOSTNAME) == name
    ]
    is_new = kube_nodes.UNINITIALIZED_TAINT in keys
    assert is_new is (len(matching) != 1)
    assert own == ("" if is_new else f"dvp://{matching[0]}")
