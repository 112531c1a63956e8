"""A parent that fails in each way costs no Node, and is used again afterwards.

One Node is not Ready all the time, so that dvp-ccm reads its VM again and again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.run import processes
from tests.harness.dvp import dvp_manager
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.faulty_parent import FaultyParent

NAMES = {"faulty-1", "faulty-2", "silent-1"}
SHORT_S = 25.0
"""Longer than the two reads that confirm an absence are apart."""
LONG_S = 120.0


class Stage(FaultyParent):
    """A parent behind a proxy, its project, and dvp-ccm that runs."""

    def forbidden(self) -> AbstractContextManager[None]:
        """Take the rights on VMs away from the project's user."""
        return self.ruled(
            lambda rules: [r for r in rules if "virtualmachines" not in r["resources"]]
        )


@pytest.fixture(scope="module")
def nodes(api: client.Api) -> dvp_manager.SeenNodes:
    return dvp_manager.SeenNodes(api)


@pytest.fixture(scope="module")
def kubelets(api: client.Api) -> Iterator[dvp_manager.Kubelets]:
    running = dvp_manager.Kubelets(api)
    yield running
    running.end()


@pytest.fixture(scope="module")
def stage(
    where: places.Places,
    parent: DvpParent,
    project: Project,
    nodes: dvp_manager.SeenNodes,
    kubelets: dvp_manager.Kubelets,
) -> Iterator[Stage]:
    """Run dvp-ccm through a proxy, with three Nodes of which one is not Ready."""
    parent.machines(project, sorted(NAMES))
    with parent.proxied(project) as (proxy, kubeconfig):
        words = dvp_manager.arguments(where, kubeconfig, [dvp_manager.NODES_ONLY])
        env = dvp_manager.environment(project)
        pex = pexes.beside("dvp-ccm")
        with dvp_manager.running(where, pex, words, env):
            kubelets.boot(*NAMES)
            for name in NAMES:
                nodes.until(name, lambda name=name: not nodes.is_new(name))
            kubelets.fall_silent("silent-1")
            nodes.until("not Ready", lambda: not nodes.is_ready("silent-1"))
            yield Stage(parent, project, proxy, kubeconfig)


Fault = Callable[[Stage], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, float]] = {
    "down": (lambda stage: stage.parent.stopped(), LONG_S),
    "frozen": (lambda stage: stage.parent.frozen(), SHORT_S),
    "silent": (Stage.silent, SHORT_S),
    "shut": (Stage.shut, SHORT_S),
    "403 for VMs": (Stage.forbidden, SHORT_S),
    "token revoked": (Stage.revoked, SHORT_S),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_node_is_lost(
    where: places.Places, stage: Stage, nodes: dvp_manager.SeenNodes, fault: str
) -> None:
    """And a change of a VM after the fault reaches its Node without a restart."""
    process = processes.find(where, dvp_manager.NAME)
    assert process is not None
    with FAULTS[fault][0](stage):
        time.sleep(FAULTS[fault][1])
        assert nodes.names() == NAMES
        assert ccm.ask(where, "/healthz")[0] == 200
    number = list(FAULTS).index(fault)
    changed = {"ipAddress": f"10.98.0.{number + 1}"}
    stage.parent.set_status(MACHINES, stage.project, "faulty-1", changed)
    took_s = nodes.until(
        f"{fault}: used again",
        lambda: ("InternalIP", changed["ipAddress"]) in nodes.addresses("faulty-1"),
    )
    print(f"{fault:20} {FAULTS[fault][1]:5.0f} s, used again after {took_s:5.1f} s")
    assert nodes.names() == NAMES
    assert process.is_running(), "restarted"


def test_vms_relabelled_and_replaced_by_hand(
    stage: Stage, nodes: dvp_manager.SeenNodes
) -> None:
    """A hostname label taken away, given to another VM, and given back."""
    objects = stage.parent.objects(stage.project)
    for hostname in ("another", "faulty-2", None, "silent-1"):
        label = {"labels": {"dvp.deckhouse.io/hostname": hostname}}
        objects.patch(MACHINES, "silent-1", metadata=label)
        time.sleep(6)
        assert nodes.names() == NAMES, hostname
    taints = nodes.taints("silent-1")
    assert not {key for key in taints if key.endswith("/shutdown")}
