"""Metrics of helm runs and releases: labels are closed sets, values those of now."""

import contextlib
import datetime

import prometheus_client
import pytest

from lib.helm import errors, model
from lib.osdpl.reconcile import metrics
from lib.osdpl.values import graph

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def revision(name: str, status: model.Status, age_s: float) -> model.Revision:
    return model.Revision(
        name=name,
        namespace="openstack",
        number=1,
        status=status,
        labels={},
        secret_name=f"sh.helm.release.v1.{name}.v1",
        secret_uid=name,
        resource_version="1",
        modified_at=NOW - datetime.timedelta(seconds=age_s),
    )


class Running:
    def running(self) -> frozenset[str]:
        return frozenset({"openstack-nova", "etcd"})


def test_each_error_of_helm_has_a_result() -> None:
    kinds = {
        var
        for var in vars(errors).values()
        if isinstance(var, type) and issubclass(var, errors.HelmError)
    } - {errors.HelmError}
    print(f"results: success, unexpected, {', '.join(metrics.RESULTS.values())}")
    assert kinds == set(metrics.RESULTS)
    assert metrics.RESULTS[errors.TimedOut] == "timed_out"
    assert len(set(metrics.RESULTS.values())) == len(metrics.RESULTS)


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (None, "success"),
        (errors.TimedOut("late"), "timed_out"),
        (errors.DoesNotRender("no"), "does_not_render"),
        (RuntimeError("a bug"), "unexpected_error"),
    ],
)
def test_a_run_is_counted_and_measured_by_chart(
    error: Exception | None, result: str
) -> None:
    helm_error = Exception if error is None else type(error)
    registry = prometheus_client.CollectorRegistry()
    runs = metrics.HelmRuns(registry)
    for release in ("openstack-keystone", "not-of-this-version"):
        with contextlib.suppress(helm_error), runs.measured("upgrade", release):
            if error is not None:
                raise error
    for chart in ("keystone", "other"):
        labels = {"operation": "upgrade", "chart": chart}
        count = registry.get_sample_value(
            "mooring_osdpl_helm_runs_total", {**labels, "result": result}
        )
        name = "mooring_osdpl_helm_run_duration_seconds_count"
        assert (count, registry.get_sample_value(name, labels)) == (1, 1)


def test_each_chart_of_the_graph_has_a_label() -> None:
    charts = {chart for pairs in graph.CHARTS.values() for chart in pairs}
    assert set(metrics.CHARTS.values()) == charts


def test_releases_are_counted_by_status_and_pending_ones_have_an_age() -> None:
    pending = (model.Status.PENDING_UPGRADE, model.Status.UNINSTALLING)
    revisions = {
        "a": revision("a", model.Status.DEPLOYED, 9000),
        "b": revision("b", model.Status.DEPLOYED, 10),
        "c": revision("c", pending[0], 700),
        "d": revision("d", pending[1], 30),
    }
    registry = prometheus_client.CollectorRegistry()
    kept = dict(revisions)
    registry.register(metrics.Releases(lambda: kept, Running(), 4, lambda: NOW))
    counts = {
        status: registry.get_sample_value("mooring_osdpl_releases", {"status": status})
        for status in model.Status
    }
    print(counts)
    expected = {model.Status.DEPLOYED: 2, **dict.fromkeys(pending, 1)}
    assert counts == {status: expected.get(status, 0) for status in model.Status}
    age = "mooring_osdpl_oldest_pending_release_age_seconds"
    assert registry.get_sample_value(age) == 700
    assert registry.get_sample_value("mooring_osdpl_helm_slots") == 4
    assert registry.get_sample_value("mooring_osdpl_helm_slots_in_use") == 2
    del kept["c"], kept["d"]
    assert registry.get_sample_value(age) == 0
    kept.clear()
    assert registry.get_sample_value(age) == 0
