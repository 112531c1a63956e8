"""Fixtures of the tests of pod routes."""

import contextlib
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from tests.harness.openstack import fixtures, testing
from tests.harness.routing import real

pytest.register_assert_rewrite("tests.contract.routes")


shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project


@pytest.fixture(scope="module")
def open_room(
    where: places.Places, project: testing.MakeProject
) -> Iterator[real.Open]:
    """Return a factory of rooms, each with a router of its own."""
    with contextlib.ExitStack() as stack:

        def opened(name: str) -> real.RoutingRoom:
            account, _ = project(name)
            pex = pexes.beside("openstack-ccm")
            return stack.enter_context(real.room(where, pex, account, name))

        yield opened


@pytest.fixture(scope="session")
def token(where: places.Places) -> str:
    """Return the token of an account that may read /metrics."""
    api, _ = real.cluster_of(where)
    return ccm.reader_token(api)
