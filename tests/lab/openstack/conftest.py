"""Fixtures of the tests of the lab's own OpenStack."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.slots import leases
from tests.harness.openstack import testing


@pytest.fixture(scope="session")
def where(lease: leases.Lease) -> Iterator[places.Places]:
    """Run a control plane and OpenStack."""
    with testing.running(lease) as place:
        yield place
