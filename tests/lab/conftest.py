"""Fixtures of every part; those of one part are in the conftest.py of its folder.

`where` is the part's own: the lab of the test process.
"""

import pathlib
from collections.abc import Iterator

import pytest

from lib.kube import client
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.slots import leases
from tests.harness import testing


@pytest.fixture(scope="session")
def api(where: places.Places) -> client.Api:
    """Return a client of the lab's control plane with all rights."""
    return cluster.connect(control_plane.admin_kubeconfig(where))


@pytest.fixture(scope="session")
def shares_lab() -> bool:
    """Whether the lab may run already; the parts with OpenStack say so."""
    return False


@pytest.fixture(scope="session")
def lease(request: pytest.FixtureRequest, shares_lab: bool) -> Iterator[leases.Lease]:
    """Hold a slot: a block of ports and a folder that no other process uses now."""
    with leases.held(testing.shown(), shares_lab=shares_lab) as held:
        yield held
        if request.session.testsfailed:
            # Its logs are removed with it.
            capture = request.config.pluginmanager.getplugin("capturemanager")
            with capture.global_and_fixture_disabled():
                print("", *testing.errors_logged(held.where), sep="\n")
            leases.mark_damaged(held.where, "a test failed in it")


@pytest.fixture()
def elsewhere(lease: leases.Lease, tmp_path: pathlib.Path) -> places.Places:
    """Return places for a control plane of one test, with its programs built."""
    return testing.second(lease, tmp_path.name)


@pytest.fixture(scope="module")
def apart(
    lease: leases.Lease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[places.Places]:
    """Run a control plane for one module that breaks it, or reads its audit log."""
    name = tmp_path_factory.mktemp("apart").name
    with testing.second_control_plane(lease, name) as place:
        yield place
