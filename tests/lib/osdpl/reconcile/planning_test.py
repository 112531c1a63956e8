"""The plan says what the flow then does, writes nothing and shows no secret."""

import pathlib
import threading
from typing import Any

import pytest

from lib.helm import cache
from lib.helm import model as helm
from lib.kube import resources
from lib.osdpl.reconcile import planning, states
from lib.process import config
from tests.lib.osdpl.ground import RELEASES, Cluster


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def plan(cluster: Cluster, file: dict[str, Any] | None = None) -> planning.Plan:
    """Return the plan; nothing may be written for it."""
    cluster.api.calls.clear()
    charts = cache.Charts(cluster.folder / "plan")
    created = planning.Planner(cluster.api, cluster.helm, charts).plan(file)
    assert [call for call in cluster.api.calls if call.is_write] == []
    return created


def actions(created: planning.Plan) -> dict[str, str]:
    return {row.name: row.action.value for row in created.rows}


def test_before_the_first_install(cluster: Cluster) -> None:
    cluster.create()
    created = plan(cluster)
    assert actions(created) == dict.fromkeys(RELEASES, "install")
    assert all(row.state is states.State.PENDING for row in created.rows)


def test_everything_in_sync(installed: Cluster) -> None:
    created = plan(installed)
    assert actions(created) == dict.fromkeys(RELEASES, "skip")
    assert {row.state.value for row in created.rows} == {"InSync"}
    assert not any(row.diff for row in created.rows)


def test_a_file_in_the_place_of_the_object(installed: Cluster) -> None:
    held = installed.deployment()
    values = {"keystone": {"values": {"conf": {"keystone": {"DEFAULT": {"debug": 1}}}}}}
    spec = {**held["spec"], "services": {"identity": values}}
    created = plan(installed, {**held, "spec": spec})
    observed = {row.name: row for row in created.rows if row.action.value != "skip"}
    assert set(observed) == {"openstack-keystone"}
    row = observed["openstack-keystone"]
    assert row.action is states.Step.UPGRADE
    assert row.reason == "values or chart have changed"
    text = "\n".join(row.diff)
    assert "Secret/openstack-keystone: changed" in text
    assert "ConfigMap/openstack-keystone" in text
    for secret in installed.documents(resources.SECRETS):
        if secret.get("type") == "Opaque":
            for value in secret["data"].values():
                assert value not in text
    assert "password" not in text


def test_a_release_of_another_program(cluster: Cluster) -> None:
    run = helm.Upgrade(
        "etcd", "openstack", pathlib.Path("x"), {}, {}, timeout_s=1, limit_s=1
    )
    cluster.helm.upgrade(run, threading.Event())
    cluster.create()
    row = next(row for row in plan(cluster).rows if row.name == "etcd")
    assert (row.state.value, row.action.value) == ("Invalid", "refused")
    assert "owned by another program" in row.reason


def test_fields_without_effect(cluster: Cluster) -> None:
    cluster.create()
    assert plan(cluster).ignored == ()
    cluster.change(migration={"ingress": {"state": "absent"}})
    (ignored,) = plan(cluster).ignored
    assert ignored.startswith("spec.migration: ")


def test_an_invalid_spec(cluster: Cluster) -> None:
    cluster.create(size="huge")
    created = plan(cluster)
    assert created.rows == ()
    assert created.refused.startswith("InvalidSpec: spec.size")


def test_no_object_at_all(cluster: Cluster) -> None:
    with pytest.raises(config.ConfigError, match="must be an OpenStackDeployment"):
        plan(cluster)


def test_a_source_that_does_not_answer(cluster: Cluster) -> None:
    cluster.url = "http://127.0.0.1:9"
    cluster.create()
    created = plan(cluster)
    assert all("cannot connect" in row.reason for row in created.rows)
