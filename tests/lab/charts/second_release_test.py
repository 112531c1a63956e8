"""A second release of an umbrella chart, which adopts the objects of the first one."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lib.lab.charts import charts
from tests.lab.charts import installing, openstack_umbrella, umbrellas

DRIVER = ("CSIDriver", "", "csi.dvp.deckhouse.io")
OPENSTACK = openstack_umbrella.CASE
DVP = dataclasses.replace(
    OPENSTACK,
    chart=charts.DVP_UMBRELLA,
    kept={DRIVER: f"/apis/storage.k8s.io/v1/csidrivers/{DRIVER[2]}"},
)
VALUES: Mapping[str, str] = {OPENSTACK.chart: "defaults", DVP.chart: "child"}
Objects = Mapping[installing.Name, tuple[str, Any]]
"""Uid and spec."""


@pytest.mark.parametrize("case", [OPENSTACK, DVP], ids=lambda case: case.chart)
def test_helm_4_keeps_adopted_objects(
    ground: installing.Ground, case: installing.Case
) -> None:
    _adopted_and_returned(ground, case, is_kept=True)


def test_helm_3_deletes_adopted_objects(old: installing.GroundOfHelm3) -> None:
    """An upgrade creates them again; the documented command deletes records alone."""
    _adopted_and_returned(old, OPENSTACK, is_kept=False)


def _adopted_and_returned(
    ground: installing.Ground, case: installing.Case, *, is_kept: bool
) -> None:
    """By a release of another name, then by one of the former name; prints both.

    is_kept: helm uninstall keeps objects that another release has adopted.
    """
    before = installing.until(ground.everything)
    snapshot = charts.of(case.chart)[VALUES[case.chart]]
    place = ("--namespace", case.home)
    words = (*place, "--values", str(snapshot.values(installing.ROOT)))
    folder = charts.folder(installing.ROOT, case.chart)
    first = umbrellas.release(ground, case, case.home)
    first.run("install", snapshot)
    documents = first.manifest()
    created = _of_release(first, documents, case.chart)

    umbrellas.install(ground, case, umbrellas.SECOND, *words, "--take-ownership")
    _assert_same(created, _of_release(first, documents, umbrellas.SECOND))
    umbrellas.remove_records(ground, case.home, case.chart)
    assert case.chart not in ground.helm("list", "--short", *place).split()
    ground.helm("upgrade", umbrellas.SECOND, folder, *words)
    _assert_same(created, _of_release(first, documents, umbrellas.SECOND))

    umbrellas.install(ground, case, case.chart, *words, "--take-ownership")
    ground.helm("uninstall", umbrellas.SECOND, *place)
    if is_kept:
        _assert_same(created, _of_release(first, documents, case.chart))
    else:
        deleted = created.keys() - case.kept.keys()
        print(f"{len(deleted)} of {len(created)} objects are deleted")
        installing.until_none(lambda: ground.everything() & deleted)
        first.run("upgrade", snapshot)
    first.check()
    first.uninstall(before)


def _of_release(
    first: installing.Release, documents: Sequence[installing.Document], release: str
) -> Objects:
    """Return the objects of a manifest; each belongs to the release."""
    objects = {}
    for document in documents:
        live = first.ground.live(document, first.kinds)
        about = live["metadata"]
        assert about["annotations"]["meta.helm.sh/release-name"] == release
        objects[installing.name_of(document)] = (about["uid"], live.get("spec"))
    return objects


def _assert_same(created: Objects, observed: Objects) -> None:
    """None was recreated or changed: no pod was restarted."""
    same = [name for name in created if observed[name] == created[name]]
    print(f"{len(same)} of {len(created)} objects are the same")
    assert observed == created
