"""Fixtures of every part with a parent of DVP; conftest.py names those it uses.

See `dvp_parent.py` for their use.
"""

import re
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane
from lib.lab.run import processes
from lib.lab.slots import leases
from tests.harness import testing
from tests.harness.dvp import dvp_parent as dvp
from tests.harness.dvp.dvp_parent import DvpParent

OFFSET = 300
"""Of the ports of child and parent, from those of the slot."""


@pytest.fixture(scope="session")
def parent(lease: leases.Lease) -> Iterator[DvpParent]:
    """Run a parent cluster; its child need not run."""
    place = lease.apart("dvp", OFFSET)
    programs.build(place, [control_plane.GROUP], testing.shown())
    place.state.mkdir(parents=True, exist_ok=True)
    with dvp.running(place, testing.shown()) as opened:
        yield opened


@pytest.fixture(scope="session")
def where(lease: leases.Lease) -> Iterator[places.Places]:
    """Run the control plane of a child, beside the parent."""
    place = lease.apart("c", OFFSET)
    programs.build(place, [control_plane.GROUP], testing.shown())
    place.state.mkdir(parents=True, exist_ok=True)
    try:
        control_plane.up(place, testing.shown())
        yield place
    finally:
        processes.stop(place, processes.names(place), patience_s=2)


@pytest.fixture(scope="module")
def project(parent: DvpParent, request: pytest.FixtureRequest) -> Project:
    """Create a project of this module alone."""
    parent.reset()
    return parent.project(name_of(request.module.__name__))


def name_of(module: str) -> str:
    """Return the name of a module's project."""
    return re.sub("[^a-z0-9]+", "-", module.rpartition(".")[2].lower()).strip("-")
