"""Fixtures of the tests of openstack-ccm's Services."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.openstack import accounts
from tests.harness.openstack import fixtures, testing
from tests.harness.services import balancing, stages

pytest.register_assert_rewrite("tests.contract.load_balancers")


shares_lab = fixtures.shares_lab
where = fixtures.where
project = fixtures.project


@pytest.fixture(scope="session")
def ccm_pex() -> pathlib.Path:
    """Return the PEX file of openstack-ccm."""
    return pexes.beside("openstack-ccm")


@pytest.fixture(scope="session")
def kubernetes(where: places.Places, ccm_pex: pathlib.Path) -> stages.Cluster:
    """Return the lab's control plane with openstack-ccm's own ServiceAccount."""
    return stages.cluster_of(where, ccm_pex)


@pytest.fixture(scope="module")
def open_stage(
    where: places.Places, kubernetes: stages.Cluster, project: testing.MakeProject
) -> stages.Open:
    """Return a way to have Services served from a project of their own."""

    def opened(name: str) -> contextlib.AbstractContextManager[stages.Stage]:
        account, mine = project(name)
        return stages.opened(
            kubernetes, mine, accounts.cloud_conf(where, account), name
        )

    return opened


@pytest.fixture(scope="module")
def open_room(
    where: places.Places, kubernetes: stages.Cluster, project: testing.MakeProject
) -> Iterator[balancing.Open]:
    """Return a factory of rooms in which calls are counted, refused and held back."""
    with contextlib.ExitStack() as stack:

        def opened(name: str, nodes: int) -> balancing.Room:
            account, _ = project(name)
            room = balancing.room(
                where, kubernetes.pex, kubernetes.kubeconfig, account, nodes
            )
            return stack.enter_context(room)

        yield opened
