"""Fixtures of tests on the core of Cluster API; conftest.py names those it uses."""

from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.capi import core as core_manager
from lib.lab.capi import core_program
from tests.harness import testing


@pytest.fixture(scope="session")
def core(where: places.Places) -> Iterator[places.Places]:
    """Run the core of Cluster API beside the control plane of `where`."""
    core_program.build(where, testing.shown())
    core_manager.up(where, testing.shown())
    yield where
    core_manager.down(where)
