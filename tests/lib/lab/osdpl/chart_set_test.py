"""The lab's chart set: complete, reproducible, without defaults for computed values."""

import gzip
import io
import json
import pathlib
import tarfile

import pytest
import yaml

from lib.lab.osdpl import chart_objects, chart_set, contract, nodes
from lib.lab.osdpl.contract import Chart

NAMES = {
    *("mariadb", "rabbitmq", "memcached", "etcd", "keystone", "glance"),
    *("placement", "neutron", "openvswitch", "nova", "libvirt", "horizon"),
}


def test_the_set_holds_the_charts_of_preset_core() -> None:
    assert {chart.name for chart in chart_set.CHARTS} >= NAMES


def test_archives_are_reproducible_and_hold_their_library() -> None:
    for chart in chart_set.CHARTS:
        archive = chart_set.pack(chart)
        assert archive.content == chart_set.pack(chart).content
        plain = io.BytesIO(gzip.decompress(archive.content))
        with tarfile.open(fileobj=plain) as packed:
            names = packed.getnames()
        assert f"{chart.name}/Chart.yaml" in names
        assert f"{chart.name}/charts/helm-toolkit/templates/_lab.tpl" in names


def test_the_index_lists_each_archive_with_its_digest() -> None:
    archives = chart_set.pack_all()
    entries = json.loads(chart_set.index(archives))["entries"]
    assert {(name, rows[0]["digest"]) for name, rows in entries.items()} == {
        (archive.name, archive.digest) for archive in archives
    }


@pytest.mark.parametrize("chart", chart_set.CHARTS, ids=lambda chart: chart.name)
def test_computed_values_have_no_default(chart: Chart) -> None:
    values = chart_set.values(chart)
    for path in chart.required:
        assert _leaf(values, path) is None, path
    for path, secret in chart.public.items():
        assert _leaf(values, path) == secret


@pytest.mark.parametrize("chart", chart_set.CHARTS, ids=lambda chart: chart.name)
def test_a_chart_is_consistent(chart: Chart) -> None:
    jobs = {job.name for job in chart.jobs}
    node_labels = {label for labels in nodes.NODES.values() for label in labels}
    absent = {"linuxbridge", "sriov"}
    for workload in chart.workloads:
        assert set(workload.images) <= set(chart.images), workload.name
        assert chart.labels[workload.label] in node_labels | absent
        assert workload.replicas or workload.kind is contract.WorkloadKind.DAEMON_SET
        assert set(workload.needs.jobs) <= jobs, workload.name
    for job in chart.jobs:
        assert job.image in chart.images
        assert set(job.needs.jobs) <= jobs, job.name


def test_each_pod_and_service_waited_for_is_in_the_set() -> None:
    workloads = [
        (chart, workload) for chart in chart_set.CHARTS for workload in chart.workloads
    ]
    pods = {(chart.name, workload.component) for chart, workload in workloads}
    services = {workload.service for _, workload in workloads}
    for chart in chart_set.CHARTS:
        for waiting in chart.parts:
            assert set(waiting.needs.pods) <= pods, waiting.name
            hosts = {contract.SERVICES[name] for name in waiting.needs.services}
            assert hosts <= services, waiting.name
            assert set(waiting.needs.services) <= set(chart.endpoints), waiting.name


def test_a_folder_is_written_as_a_checkout_has_it(tmp_path: pathlib.Path) -> None:
    chart_set.write(tmp_path)
    head = yaml.safe_load((tmp_path / "nova" / "Chart.yaml").read_text())
    assert head["dependencies"][0]["repository"] == "file://../helm-toolkit"
    assert (tmp_path / "helm-toolkit" / "Chart.yaml").exists()


def test_an_action_in_a_template_is_no_text() -> None:
    (chart,) = (chart for chart in chart_set.CHARTS if chart.name == "memcached")
    text = chart_objects.templates(chart)
    replicas = '{{ include "lab.value" (list $ "pod.replicas.server" "") }}'
    assert f'"replicas": {replicas}' in text
    assert "<<" not in text


def _leaf(tree: object, path: str) -> object:
    for key in path.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
