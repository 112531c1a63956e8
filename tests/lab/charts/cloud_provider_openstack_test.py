"""The umbrella chart: rendered, installed, changed, rolled back and removed by helm."""

import json
import os
import pathlib

import pytest

from lib.kube import resources
from lib.lab import places
from lib.lab.charts import charts, helm
from tests.harness import testing
from tests.lab.charts import (
    installing,
    linked,
    openstack_umbrella,
    rendering,
    umbrellas,
    union,
)

CHART = "cloud-provider-openstack"
CASE = openstack_umbrella.CASE
LEASES = ("kube-system/cloud-controller-manager",)


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, charts.of(CHART)[name])


@pytest.mark.parametrize("name", charts.of(CHART))
def test_it_renders_the_union_of_its_components(
    renderer: places.Places, tmp_path: pathlib.Path, name: str
) -> None:
    union.check(renderer, charts.of(CHART)[name], tmp_path)


def test_links_of_a_checkout_are_followed(
    renderer: places.Places, tmp_path: pathlib.Path
) -> None:
    def run(*words: str | os.PathLike[str]) -> str:
        return helm.run(renderer, words)

    linked.check(run, charts.of(CHART)["production"], tmp_path)


def test_it_renders_without_values(renderer: places.Places) -> None:
    """The same as the snapshot of no values."""
    snapshot = charts.of(CHART)["defaults"]
    assert snapshot.values(installing.ROOT).read_text() == "{}\n"
    rendered = charts.render(renderer, installing.ROOT, snapshot)
    assert rendered == snapshot.file(installing.ROOT).read_text()


def test_mistakes_are_rejected_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    """By helm install, which names the field; prints the table."""
    mistakes = [umbrellas.Mistake(*row) for row in openstack_umbrella.MISTAKES]
    umbrellas.mistakes_are_rejected(ground, CASE, mistakes)


def test_a_missing_kind_is_reported_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    umbrellas.a_missing_kind_is_reported(ground, CASE)


@pytest.mark.parametrize("version", umbrellas.VERSIONS)
def test_installed_upgraded_rolled_back_and_removed(
    ground: installing.Ground, operators: None, version: str
) -> None:
    """With three sets of values; every object is stored as it was rendered."""
    del operators
    umbrellas.changed_rolled_back_and_removed(
        ground, CASE, openstack_umbrella.SETS, version
    )


@pytest.mark.parametrize(
    "name", testing.by_tier(("defaults",), ("defaults", "deckhouse"))
)
def test_the_notes_name_a_lease_that_is_held(
    ground: installing.Ground, operators: None, name: str
) -> None:
    del operators
    umbrellas.held_leases_are_named(ground, charts.of(CHART)[name], LEASES)


def test_pods_of_all_components_are_admitted(ground: installing.Ground) -> None:
    """Also those of the DaemonSet, on a host of the control plane; notes name what is
    missing."""
    installing.make_node(ground, "host", is_control_plane=True)
    labels = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
    body = json.dumps(labels).encode()
    ground.api.patch(resources.NODES, "host", body, timeout_s=installing.TIMEOUT_S)
    before = installing.until(ground.everything)
    deployed = umbrellas.release(ground, CASE, CASE.home)
    deployed.run("install", charts.of(CHART)["defaults"])
    expected = dict.fromkeys(charts.COMPONENTS, 1) | {"openstack-ccm": 2}
    installing.until(lambda: umbrellas.pods(ground, CASE.home) == expected)
    notes = ground.helm("get", "notes", CHART, "--namespace", CASE.home)
    assert "this Secret does not exist" in notes
    assert "cloud-data-discoverer.moduleConfig.instances is not set" in notes
    deployed.uninstall(before)
    ground.delete("/api/v1/nodes/host")
