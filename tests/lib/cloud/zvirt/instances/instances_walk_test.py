"""Nodes converge to the VMs of an engine, through death at every request."""

import pytest

from lib.kube import nodes as kube_nodes
from lib.lab.zvirt import seed
from tests.harness.nodes import walk
from tests.lib.cloud.zvirt.instances.engine_and_child import Ground, everything


@pytest.fixture(scope="module")
def undisturbed() -> Ground:
    ground = everything()
    walk.settle(ground, walk.SETTINGS)
    return ground


def test_every_node_ends_as_its_vm_says(undisturbed: Ground) -> None:
    state = undisturbed.state()
    keys = {name: [t["key"] for t in n["spec"]["taints"]] for name, n in state.items()}
    assert keys == {
        "new-1": ["mine"],
        "new-2": [],
        "steady": ["mine"],
        "off": ["mine", kube_nodes.SHUTDOWN_TAINT],
        "back": [],
        "static": [],
    }
    (vm,) = undisturbed.vms.ids("new-1")
    new = state["new-1"]
    assert new["spec"]["providerID"] == f"zvirt://{vm}"
    labels = new["labels"]
    assert labels["topology.kubernetes.io/zone"] == seed.CLUSTER
    assert labels["topology.kubernetes.io/region"] == seed.DATA_CENTER
    assert labels["node.kubernetes.io/instance-type"] == seed.TEMPLATE
    types = [address["type"] for address in new["status"]["addresses"]]
    assert types == ["ExternalIP", "InternalIP", "Hostname"]
    assert state["static"] == everything().state()["static"]


def test_nothing_of_the_engine_is_written(undisturbed: Ground) -> None:
    print(dict(undisturbed.requests))
    assert all(kind.startswith("GET ") for kind in undisturbed.requests)


def test_death_at_every_call_ends_the_same(undisturbed: Ground) -> None:
    """Before and after each request to the engine, and to the API server."""
    table = walk.converges(everything, undisturbed.state())
    assert table == {"reading", *walk.kinds_of_writes()} - {"SetLabels"}


def test_two_processes_end_the_same(undisturbed: Ground) -> None:
    ground = everything()
    processes = [walk.NodesProcess(ground, walk.SETTINGS) for _ in range(2)]
    for _ in range(walk.ROUNDS_MAX):
        for process in processes:
            process.round()
    assert ground.state() == undisturbed.state()


def test_a_migration_and_edits_of_others_change_no_node(undisturbed: Ground) -> None:
    """Labels and addresses stay: the host of a VM is not read."""
    ground = everything()
    walk.settle(ground, walk.SETTINGS)
    (vm,) = ground.vms.ids("new-1")
    ground.vms.request("POST", f"vms/{vm}/migrate", "<action/>")
    body = "<vm><description>edited</description><comment>c</comment></vm>"
    ground.vms.request("PUT", f"vms/{vm}", body)
    walk.settle(ground, walk.SETTINGS)
    assert ground.state() == undisturbed.state()
    ground.vms.advance(10)
    walk.settle(ground, walk.SETTINGS)
    assert ground.state() == undisturbed.state()
