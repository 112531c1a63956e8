"""Doctor and plan judge a FILE before anything is installed, not even the CRDs."""

import pathlib
from typing import Any

import pytest

from lib.doctor.model import CheckResult, CheckState
from lib.helm import cache
from lib.kube.fake import api as fake_api
from lib.kube.resources import ResourcePath
from lib.migration.osdpl import rockoon_changeover
from lib.osdpl.api import model
from lib.osdpl.doctor import diagnosis, findings
from lib.osdpl.reconcile import planning
from lib.process import config
from tests.lib.osdpl import ground
from tests.lib.osdpl import planted_secret as planted
from tests.lib.osdpl.ground import RELEASES, Cluster


class WithoutDefinitions(fake_api.FakeApi):
    """An API server without the operator's CustomResourceDefinitions."""

    def serves(self, target: ResourcePath) -> bool:
        """Report whether the kind is of Kubernetes itself."""
        return target.group != model.GROUP


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    bare = Cluster(tmp_path)
    bare.api = WithoutDefinitions(bare.clock.now)
    return bare


def file_of(cluster: Cluster) -> dict[str, Any]:
    return {
        "apiVersion": "lcm.mirantis.com/v1alpha1",
        "kind": "OpenStackDeployment",
        "metadata": {"name": "osh-dev", "namespace": ground.NAMESPACE},
        "spec": ground.spec(cluster.url),
    }


def examine(cluster: Cluster, file: dict[str, Any] | None) -> list[CheckResult]:
    charts = cache.Charts(cluster.folder / "doctor")
    settings = diagnosis.Settings(ground.NAMESPACE, "osdpl-controller", 5.0)
    return list(
        diagnosis.Diagnosis(
            cluster.api, charts, settings, cluster.clock.now, file
        ).examine()
    )


def test_doctor_judges_the_file(cluster: Cluster) -> None:
    lines = examine(cluster, file_of(cluster))
    print(*lines, sep="\n")
    assert not [line for line in lines if diagnosis.NOTHING in line.text]
    (charts,) = (line for line in lines if line.check == findings.CHARTS)
    assert charts.state is CheckState.OK
    failed = {line.check for line in lines if line.state is CheckState.FAILED}
    assert findings.SECRETS not in failed
    assert not [line for line in lines if "404" in line.text]
    definitions = [line for line in lines if line.check == findings.DEFINITIONS]
    assert len(definitions) == len(ground.DEFINED)
    assert all("charts/osdpl-controller/crds" in line.remedy for line in definitions)


def test_doctor_without_a_file(cluster: Cluster) -> None:
    lines = examine(cluster, None)
    assert [line for line in lines if diagnosis.NOTHING in line.text]
    assert not [line for line in lines if "404" in line.text]


@pytest.mark.parametrize(
    "path",
    ["node_selector_key", "node_selector_value"],
)
def test_a_value_of_a_secret_is_in_no_line(tmp_path: pathlib.Path, path: str) -> None:
    """Also where it becomes a label of Nodes that pods need."""
    cluster = Cluster(tmp_path)
    planted.secret(cluster)
    values = {"labels": {"api": {path: planted.REFERENCE}}}
    cluster.create(services={"identity": {"keystone": {"values": values}}})
    lines = examine(cluster, None)
    nodes = [line for line in lines if line.check == findings.NODES]
    print(*nodes, sep="\n")
    assert any(line.state is CheckState.FAILED for line in nodes)
    assert planted.TEXT not in repr(lines)


def planner(cluster: Cluster) -> planning.Planner:
    charts = cache.Charts(cluster.folder / "plan")
    return planning.Planner(cluster.api, cluster.helm, charts)


def test_the_plan_of_a_file(cluster: Cluster) -> None:
    plan = planner(cluster).plan(file_of(cluster))
    assert {row.name: row.action.value for row in plan.rows} == dict.fromkeys(
        RELEASES, "install"
    )


def test_the_plan_without_a_file_names_what_is_missing(cluster: Cluster) -> None:
    with pytest.raises(config.ConfigError) as caught:
        planner(cluster).plan(None)
    text = str(caught.value)
    assert "CustomResourceDefinitions" in text
    assert "kubectl apply --server-side -f charts/osdpl-controller/crds" in text


def test_the_migration_finds_no_object(cluster: Cluster) -> None:
    arguments = (ground.NAMESPACE, ("gazpacho",), "owner", 5.0)
    assert rockoon_changeover.read(cluster.api, *arguments) is None
