"""Several clusters of one engine, and the Nodes that the reference has left behind."""

import copy
from typing import Any

import pytest
from ovirtsdk4 import types

from lib.cloud import provider_id
from lib.cloud.model import Address
from lib.cloud.zvirt.instances import addresses, cloud
from lib.kube import resources
from lib.lab.zvirt import seed
from tests.harness.nodes import walk
from tests.harness.zvirt import vms_of_nodes
from tests.lib.cloud.zvirt.engines import Simulated, engine
from tests.lib.cloud.zvirt.instances.engine_and_child import Ground

NODES = 30
NAMES = ("machine-1", "machine-2", "machine-3")


def in_data_center(name: str) -> cloud.InstanceRules:
    return cloud.InstanceRules(topology=True, data_center=name)


def ids(ground: Ground) -> dict[str, str]:
    return {name: node["spec"]["providerID"] for name, node in ground.state().items()}


def boot_in_other(vms: vms_of_nodes.Vms, name: str) -> str:
    """Create a VM that is up in the other data center; return its ID."""
    vm = vms.boot(f"other-{name}")
    engine_core = vms.service.engine
    with engine_core.lock:
        engine_core.change(vms.of(vm), cluster=types.Cluster(id=vms.other))
        engine_core.records.commit()
    vms.rename(vm, name)
    return vm


def test_two_clusters_with_equal_names_in_two_data_centers() -> None:
    """Each initialises and deletes its own Nodes, by ID and by name."""
    first = Ground(in_data_center(seed.DATA_CENTER))
    second = Ground(in_data_center(vms_of_nodes.OTHER), other=first)
    of_first = {name: first.vms.boot(name) for name in NAMES}
    of_second = {name: boot_in_other(first.vms, name) for name in NAMES}
    for ground, vms in ((first, of_first), (second, of_second)):
        for name in NAMES:
            ground.node(name, walk.NEW)
        walk.settle(ground, walk.SETTINGS)
        assert ids(ground) == {k: provider_id.zvirt(v) for k, v in vms.items()}
    regions = [
        {node["labels"]["topology.kubernetes.io/region"] for node in state.values()}
        for state in (first.state(), second.state())
    ]
    assert regions == [{seed.DATA_CENTER}, {vms_of_nodes.OTHER}]
    first.vms.delete(of_second["machine-2"])
    for ground in (first, second):
        silence(ground, "machine-2")
        walk.settle(ground, walk.SETTINGS)
    assert set(first.state()) == set(NAMES)
    assert set(second.state()) == {"machine-1", "machine-3"}


def test_a_name_in_two_data_centers_initialises_no_node_without_a_choice() -> None:
    ground = Ground()
    ground.vms.boot("machine-1")
    ground.vms.create("machine-1")
    ground.node("machine-1", walk.NEW)
    walk.settle(ground, walk.SETTINGS)
    assert "providerID" not in ground.state()["machine-1"]["spec"]
    assert "DeleteNode" not in ground.actions


def test_two_clusters_of_one_data_center() -> None:
    """A VM of one is none of the other's, whatever happens to it."""
    first = Ground()
    second = Ground(other=first)
    names = {first: ("north-1", "north-2"), second: ("south-1", "south-2")}
    vms = {name: first.vms.boot(name) for some in names.values() for name in some}
    for ground, own in names.items():
        for name in own:
            ground.node(name, walk.NEW)
        walk.settle(ground, walk.SETTINGS)
    before = second.state()
    first.vms.delete(vms["north-1"])
    for ground in names:
        silence(ground, "north-1")
        walk.settle(ground, walk.SETTINGS)
    assert set(first.state()) == {"north-2"}
    assert second.state() == before


def silence(ground: Ground, name: str) -> None:
    """Have the kubelet of a Node, if it is one of this cluster, fall silent."""
    if name in ground.state():
        node = the_node(ground, name)
        node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
        ground.api.put(resources.NODES, node)


def the_node(ground: Ground, name: str) -> dict[str, Any]:
    nodes = [
        dict[str, Any](node) for node in copy.deepcopy(ground.api.all(resources.NODES))
    ]
    return next(node for node in nodes if node["metadata"]["name"] == name)


# The reference's state.


def addresses_of_the_reference(ground: Ground, vm: str) -> tuple[Address, ...]:
    rules = addresses.AddressRules(all_devices=True)
    item = engine(Simulated(ground.stage)).get(f"vms/{vm}", ("reported_devices",))
    assert item is not None
    return addresses.of_vm(item.entity, rules)


def left_behind(rules: cloud.InstanceRules) -> Ground:
    """Return 30 Nodes as the reference initialised them; each fifth VM is down."""
    ground = Ground(rules)
    for number in range(NODES):
        name = f"machine-{number}"
        vm = ground.vms.boot(name)
        shown = addresses_of_the_reference(ground, vm)
        is_down = number % 5 == 4
        if is_down:
            ground.vms.stop(vm)
        taints = (walk.SHUT,) if is_down else (walk.MINE,)
        ground.node(name, *taints, vm=vm, ready="Unknown" if is_down else "True")
        node = the_node(ground, name)
        node["status"]["addresses"] = [
            {"type": address.type.value, "address": address.address}
            for address in shown
        ]
        ground.api.put(resources.NODES, node)
    return ground


@pytest.mark.parametrize("topology", [False, True], ids=["default", "with topology"])
def test_nodes_of_the_reference_do_not_change(topology: bool) -> None:
    ground = left_behind(cloud.InstanceRules(topology=topology))
    before = ground.state()
    assert len(before) == NODES
    walk.settle(ground, walk.SETTINGS)
    assert ground.state() == before
    writes = {kind: count for kind, count in ground.actions.items() if count}
    print(writes)
    assert not set(writes) & walk.kinds_of_writes()
    assert not [kind for kind in ground.requests if not kind.startswith("GET ")]


def test_a_vm_of_the_reference_that_is_deleted_takes_its_node_along() -> None:
    ground = left_behind(cloud.InstanceRules())
    (vm,) = ground.vms.ids("machine-7")
    ground.vms.delete(vm)
    silence(ground, "machine-7")
    walk.settle(ground, walk.SETTINGS)
    assert set(ground.state()) == {f"machine-{n}" for n in range(NODES) if n != 7}
