"""helm 3 with the umbrella chart: what it renders, rejects, installs and adopts."""

import pathlib
from typing import Any

import pytest
import yaml

from lib.lab import errors
from lib.lab.artifacts import go_modules
from lib.lab.charts import charts
from lib.lab.kube import control_plane
from tests.lab.charts import installing, linked, openstack_umbrella, umbrellas

CASE = openstack_umbrella.CASE
DRIVER = openstack_umbrella.CSI_DRIVER[2]
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
REFERENCE = f"""
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {{name: {DRIVER}}}
spec:
  attachRequired: true
  podInfoOnMount: true
  volumeLifecycleModes: [Persistent, Ephemeral]
"""
"""Source: cloud-provider-openstack, charts/cinder-csi-plugin."""
MODES = "csi-controller.csiDriver.volumeLifecycleModes={Persistent,Ephemeral}"
"""As `mooring migrate openstack` prints them."""
ADOPTIONS = [
    ("without --take-ownership", ("--skip-crds",), "exists and cannot be imported"),
    ("by the printed values", ("--take-ownership", "--set", MODES), ""),
]
"""What is done, more arguments of helm install, and the message."""


def test_it_is_helm_3(old: installing.GroundOfHelm3) -> None:
    shown = old.helm("version", "--short")
    print(shown)
    assert shown.startswith("v3.")


@pytest.mark.parametrize("name", charts.of(openstack_umbrella.CHART))
def test_it_renders_the_objects_of_the_snapshots(
    old: installing.GroundOfHelm3, name: str
) -> None:
    snapshot = charts.of(openstack_umbrella.CHART)[name]
    rendered = old.helm(
        *("template", snapshot.chart, charts.folder(installing.ROOT, snapshot.chart)),
        *("--namespace", snapshot.namespace),
        *("--kube-version", go_modules.KUBERNETES_VERSION),
        *("--values", snapshot.values(installing.ROOT)),
    )
    observed = [x for x in yaml.safe_load_all(rendered) if x]
    expected = snapshot.objects(installing.ROOT)
    print(f"{name}: {len(observed)} objects")
    assert sorted(observed, key=_name) == sorted(expected, key=_name)


def _name(document: dict[str, Any]) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def test_links_of_a_checkout_are_followed(
    old: installing.GroundOfHelm3, tmp_path: pathlib.Path
) -> None:
    production = charts.of(openstack_umbrella.CHART)["production"]
    linked.check(old.helm, production, tmp_path)


def test_mistakes_are_rejected_before_anything_is_created(
    old: installing.GroundOfHelm3,
) -> None:
    mistakes = [umbrellas.Mistake(*row) for row in openstack_umbrella.MISTAKES]
    umbrellas.mistakes_are_rejected(old, CASE, mistakes)


def test_the_csi_driver_of_the_reference_is_adopted(
    old: installing.GroundOfHelm3,
) -> None:
    """By the command of docs/migrate.md; without its option nothing is created."""
    control_plane.apply_manifests(old.where, REFERENCE)
    installing.until(lambda: old.get(f"{DRIVERS}/{DRIVER}"))
    before = installing.until(old.everything)
    deployed = umbrellas.release(old, CASE, CASE.home)
    defaults = charts.of(openstack_umbrella.CHART)["defaults"]
    for title, more, refusal in ADOPTIONS:
        try:
            deployed.run("install", defaults, *more)
            message = ""
        except errors.LabError as error:
            message = " ".join(str(error).split())
        print(f"{title:28} {message[-120:] or 'installed'}")
        if refusal:
            assert refusal in message
            assert installing.until(old.everything) == before
        else:
            assert message == ""
    deployed.check()
    deployed.uninstall(before)
    modes = old.get(f"{DRIVERS}/{DRIVER}")["spec"]["volumeLifecycleModes"]
    assert modes == ["Persistent", "Ephemeral"]
    old.delete(f"{DRIVERS}/{DRIVER}")


def test_installed_upgraded_rolled_back_and_removed(
    old: installing.GroundOfHelm3, operators: None
) -> None:
    """With two sets of values; a second release is rejected."""
    del operators
    sets = openstack_umbrella.SETS[:2]
    umbrellas.changed_rolled_back_and_removed(old, CASE, sets, "1.36")
