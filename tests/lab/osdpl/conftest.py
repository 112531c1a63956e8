"""Fixtures of the OpenStack operator: one control plane with simulated workloads."""

import os
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes, programs
from lib.lab.osdpl import chart_sources, lab
from lib.lab.run import processes
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.osdpl import rendering, stage
from tests.harness.osdpl.rendering import Rendered
from tests.harness.osdpl.stage import OperatorStage

OFFSET = 200
"""Of the ports, from those of the slot."""


@pytest.fixture(scope="session")
def where(lease: leases.Lease) -> Iterator[places.Places]:
    """Return places with all programs built; end what was started there."""
    place = lease.apart("osdpl", OFFSET)
    place.state.mkdir(parents=True, exist_ok=True)
    programs.build(place, (*lab.GROUPS, chart_sources.GROUP), testing.shown())
    try:
        yield place
    finally:
        processes.stop(place, processes.names(place), patience_s=2)


@pytest.fixture(scope="module")
def site(where: places.Places) -> Iterator[OperatorStage]:
    """Run a cluster and the controller until the last test of this file."""
    pex = pexes.beside(pexes.OSDPL)
    with stage.opened(where, pex, testing.shown()) as opened:
        opened.start()
        yield opened


@pytest.fixture(scope="module")
def source(where: places.Places) -> str:
    """Return the address of the charts that are installed."""
    checkout = os.environ.get("MOORING_OPENSTACK_HELM")
    if checkout:
        return checkout
    print("MOORING_OPENSTACK_HELM is not set: only the lab's own charts are used")
    return chart_sources.serve_repository(where)


@pytest.fixture(scope="session", params=["lab", "checkout"])
def rendered(
    request: pytest.FixtureRequest,
    where: places.Places,
    tmp_path_factory: pytest.TempPathFactory,
) -> Rendered:
    """Render one cloud with the lab's charts, and with those of a checkout."""
    source = os.environ.get("MOORING_OPENSTACK_HELM", "")
    if request.param == "lab":
        source = chart_sources.write_folder(where)
    elif not source:
        pytest.skip("MOORING_OPENSTACK_HELM is not set: only the lab's chart set")
    return rendering.render(where, source, tmp_path_factory.mktemp("render"))
