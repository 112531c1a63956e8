"""Bad input of Nodes: one message names it, and other Nodes are served. Prints all."""

from collections.abc import Callable, Mapping

import pytest

from lib.cloud.model import InstanceRef, Seen, Unknown
from lib.cloud.zvirt.instances import cloud
from lib.lab.zvirt import seed
from tests.harness.nodes import walk
from tests.lib.cloud.zvirt.instances.engine_and_child import Ground

GOOD, BAD = "good-1", "bad-1"
Make = Callable[[Ground], object]


def twice(ground: Ground) -> None:
    ground.vms.boot(BAD)
    ground.vms.create(BAD)


def silent(ground: Ground) -> None:
    ground.stage.engine.settings.replace([f"without-agent {BAD}"])
    ground.vms.boot(BAD)


def without_nic(ground: Ground) -> None:
    ground.vms.boot(BAD, nics=0)


CASES: Mapping[str, tuple[Make, str]] = {
    "a VM name in two data centers": (twice, "2 VMs have this name"),
    "a VM without guest agent": (silent, "the guest agent of VM bad-1"),
    "a VM without NIC": (without_nic, "the guest agent of VM bad-1"),
}


def messages(ground: Ground) -> Mapping[str, str]:
    """Return what is reported of each new Node; empty: nothing."""
    refs = [InstanceRef(GOOD), InstanceRef(BAD)]
    observed = ground.open().observe(refs, ground.now_s)
    texts = {}
    for ref, observation in observed.items():
        match observation:
            case Seen(instance):
                texts[ref.node_name] = instance.no_addresses_reason
            case Unknown(error):
                texts[ref.node_name] = str(error)
            case _:
                texts[ref.node_name] = "absent"
    return texts


@pytest.mark.parametrize("case", CASES)
def test_a_bad_node_waits_and_others_are_served(case: str) -> None:
    make, expected = CASES[case]
    ground = Ground(cloud.InstanceRules(topology=True))
    make(ground)
    ground.vms.boot(GOOD)
    for name in (GOOD, BAD):
        ground.node(name, walk.NEW)
    walk.settle(ground, walk.SETTINGS)
    texts = messages(ground)
    print(f"{case:32} {texts[BAD]}")
    assert expected in texts[BAD]
    assert texts[GOOD] == ""
    state = ground.state()
    assert "providerID" in state[GOOD]["spec"]
    assert "providerID" not in state[BAD]["spec"]


MISSING: Mapping[str, tuple[str, str]] = {
    "VMs may not be listed": ("forbid GET api/vms", "User is not authorized"),
    "clusters may not be listed": ("forbid GET api/clusters", "list clusters: "),
    "the cluster is hidden": (f"hide {seed.CLUSTER}", "does not show cluster"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_permission_is_named_and_nothing_is_written(case: str) -> None:
    rule, expected = MISSING[case]
    ground = Ground(cloud.InstanceRules(topology=True))
    ground.vms.boot(GOOD)
    ground.node(GOOD, walk.NEW)
    ground.stage.engine.settings.replace([rule])
    walk.settle(ground, walk.SETTINGS)
    text = messages(ground)[GOOD]
    print(f"{case:32} {text}")
    assert expected in text
    assert not set(ground.actions) & walk.kinds_of_writes()
