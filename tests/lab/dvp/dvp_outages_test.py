"""A parent that is away loses no Node, Service or volume; all is done afterwards.

During each outage a Service is created, one changed, one deleted; a volume is created
and attached, one detached and expanded, one deleted. The table has a row for each
outage and flow.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.dvp.project import Project
from tests.harness.dvp import three_flows
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.dvp.faulty_parent import FaultyParent
from tests.harness.dvp.three_flows import ThreeFlows

FAULT_S = 10.0
SHORT_S = 20.0
"""Longer than the two reads that confirm an absence are apart, and than the API server
accepts a revoked token: ten seconds."""
LONG_S = 120.0


Stage = tuple[ThreeFlows, FaultyParent]


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent,
    project: Project,
    where: places.Places,
    api: client.Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    state = tmp_path_factory.mktemp("csi")
    with parent.proxied(project) as (proxy, kubeconfig):
        reached = dataclasses.replace(project, kubeconfig=kubeconfig)
        faulty = FaultyParent(parent, project, proxy, kubeconfig)
        with three_flows.running(parent, reached, where, api, state) as flows:
            yield flows, faulty


Outage = Callable[[FaultyParent], AbstractContextManager[None]]
OUTAGES: dict[str, tuple[Outage, float]] = {
    "no connection": (FaultyParent.shut, FAULT_S),
    "silent": (FaultyParent.silent, SHORT_S),
    "frozen": (lambda faulty: faulty.parent.frozen(), SHORT_S),
    "token revoked, rotated": (FaultyParent.revoked, SHORT_S),
    "restarted": (lambda faulty: faulty.parent.stopped(), FAULT_S),
    "down for 2 minutes": (lambda faulty: faulty.parent.stopped(), LONG_S),
}


@pytest.mark.parametrize("outage", OUTAGES)
def test_nothing_is_lost(stage: Stage, outage: str) -> None:
    """Objects keep their UID, another child's stay; neither daemon restarts."""
    flows, faulty = stage
    asked = flows.prepare()
    breaks, lasts_s = OUTAGES[outage]
    with breaks(faulty):
        time.sleep(1.0)
        flows.ask(asked)
        time.sleep(lasts_s)
        flows.check()
    flows.wait(outage, asked)
    uid = flows.in_parent(asked.service("kept"))["metadata"]["uid"]
    assert uid == asked.uid


def test_each_outage_has_a_row_for_each_flow(
    stage: tuple[ThreeFlows, FaultyParent],
) -> None:
    stage[0].table.check(list(OUTAGES))
