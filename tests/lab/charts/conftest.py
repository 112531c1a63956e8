"""Fixtures of the tests of charts: helm alone, and helm on a control plane."""

import sys

import pytest

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm, helm3
from lib.lab.kube import cluster, control_plane
from lib.lab.run import progress
from tests.harness.kube import definitions
from tests.lab.charts import installing


@pytest.fixture(scope="module")
def ground(apart: places.Places) -> installing.Ground:
    """Return a control plane of our own: nothing of the charts is there yet."""
    programs.build(apart, [helm.GROUP], progress.Lines(sys.stderr))
    control_plane.apply_manifests(apart, installing.NEEDS)
    api = cluster.connect(control_plane.admin_kubeconfig(apart))
    return installing.Ground(apart, api)


@pytest.fixture(scope="module")
def old(ground: installing.Ground) -> installing.GroundOfHelm3:
    """Return the same control plane with helm 3."""
    helm3.PROGRAM.build(ground.where, progress.Lines(sys.stderr))
    return installing.GroundOfHelm3(ground.where, ground.api)


@pytest.fixture(scope="module")
def operators(ground: installing.Ground) -> None:
    """Have the kinds of Prometheus' operator and of the autoscaler served.

    They stay: the tests that want a cluster without them stand before the others.
    """
    text = definitions.manifest(ground.where, progress.Lines(sys.stderr))
    control_plane.apply_manifests(ground.where, text)
    installing.until(
        lambda: set(ground.kinds()) >= installing.FOREIGN and bool(ground.everything())
    )


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> places.Places:
    """Return the places of a lab of which only helm is there."""
    place = places.Places(places.default().cache, tmp_path_factory.mktemp("helm"))
    programs.build(place, [helm.GROUP], progress.Lines(sys.stderr))
    return place
