"""Fixtures of the OpenStack operator: one control plane with simulated workloads."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.osdpl import chart_sources, lab
from lib.lab.run import processes
from lib.lab.slots import leases
from tests.harness import testing

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
