"""The three kinds of chart sources, on real servers, and what helm makes of them."""

import base64
import hashlib
import json
import os
import pathlib
from collections.abc import Mapping

import pytest
import requests
import yaml

from lib.helm import cache, errors, model, policy, source_access, sources
from lib.helm.source_access import SourceAccess
from lib.lab import errors as lab_errors
from lib.lab import places
from lib.lab.charts import helm
from lib.lab.osdpl import chart_set, chart_sources, contract
from lib.lab.osdpl.contract import Chart
from tests.harness.osdpl import private_registry

KINDS = ("http", "oci", "folder")
BY_NAME: Mapping[str, Chart] = {chart.name: chart for chart in chart_set.CHARTS}


@pytest.fixture(scope="module")
def addresses(where: places.Places) -> Mapping[str, str]:
    """Return the address of each source with the lab's chart set."""
    return {
        "http": chart_sources.serve_repository(where),
        "oci": chart_sources.serve_registry(where),
        "folder": chart_sources.write_folder(where),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_each_source_gives_each_chart(
    kind: str, addresses: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    charts = cache.Charts(tmp_path)
    for name in BY_NAME:
        assert charts.newest(addresses[kind], name) == chart_set.VERSION
        chart = charts.get(addresses[kind], model.Pin(name, chart_set.VERSION))
        again = charts.get(
            addresses[kind], model.Pin(name, chart_set.VERSION, chart.digest)
        )
        assert again == chart


def test_http_and_oci_give_the_same_bytes(
    addresses: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    pin = model.Pin("nova", chart_set.VERSION)
    digests = {
        kind: cache.Charts(tmp_path / kind).get(addresses[kind], pin).digest
        for kind in ("http", "oci")
    }
    expected = f"sha256:{chart_set.pack(BY_NAME['nova']).digest}"
    assert set(digests.values()) == {expected}


def pull(where: places.Places, address: str, access: pathlib.Path) -> str:
    """Have helm itself read a chart with the same accounts; return its digest."""
    target = access / "pulled"
    target.mkdir(exist_ok=True)
    files = {
        "--registry-config": access / source_access.ACCOUNTS,
        "--ca-file": access / source_access.AUTHORITY,
        "--destination": target,
    }
    words = [word for pair in files.items() for word in pair]
    helm.run(where, ("pull", f"{address}/nova", "--version", chart_set.VERSION, *words))
    (archive,) = target.glob("*.tgz")
    return f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
def test_a_private_registry_answers_to_whom_helm_is_answered(
    scheme: str,
    where: places.Places,
    addresses: Mapping[str, str],
    tmp_path: pathlib.Path,
) -> None:
    """TLS and accounts before the real registry; helm judges both."""
    upstream = "http" + addresses["oci"].removeprefix("oci").removesuffix("/charts")

    def content(path: str) -> tuple[int, Mapping[str, str], bytes]:
        answer = requests.get(f"{upstream}{path}", timeout=60)
        return answer.status_code, kept(answer.headers), answer.content

    _, file = private_registry.write_certificate(tmp_path)
    accounts = {"robot": "pa55:word"}
    with private_registry.serving(file, accounts, content, scheme) as (host, _):
        address = f"oci://{host}/charts"
        pin = model.Pin("nova", chart_set.VERSION)
        for password, is_right in (("wrong", False), ("pa55:word", True)):
            auth = base64.b64encode(f"robot:{password}".encode()).decode()
            text = json.dumps({"auths": {host: {"auth": auth}}})
            (tmp_path / source_access.ACCOUNTS).write_text(text)
            opener = sources.opener(policy.TRUSTED, SourceAccess(tmp_path))
            charts = cache.Charts(tmp_path / "cache", opener)
            if is_right:
                digest = charts.get(address, pin).digest
                assert digest == pull(where, address, tmp_path)
                continue
            with pytest.raises(errors.SourceUnreachable, match="the account robot"):
                charts.get(address, pin)
            with pytest.raises(lab_errors.LabError):
                pull(where, address, tmp_path)


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that describe the content."""
    names = ("Content-Type", "Docker-Content-Digest")
    return {name: headers[name] for name in names if name in headers}


@pytest.mark.parametrize("kind", KINDS)
def test_absent_charts_versions_and_digests_are_refused(
    kind: str, addresses: Mapping[str, str], tmp_path: pathlib.Path
) -> None:
    charts = cache.Charts(tmp_path)
    rows: tuple[tuple[model.Pin, type[errors.SourceError], str], ...] = (
        (model.Pin("heat", "2026.1.0"), errors.ChartNotFound, "heat"),
        (model.Pin("nova", "1.0.0"), errors.ChartNotFound, "1.0.0"),
        (
            model.Pin("nova", "2026.1.0", f"sha256:{'0' * 64}"),
            errors.DigestMismatch,
            "pinned",
        ),
    )
    for pin, error, text in rows:
        with pytest.raises(error, match=text):
            charts.get(addresses[kind], pin)


def given(chart: Chart) -> dict[str, object]:
    """Return values that hold all that a chart requires."""
    tree: dict[str, object] = {"manifests": {"job_image_repo_sync": False}}
    for path in chart.required:
        put(tree, path, "1Gi" if path == "volume.size" else "given")
    for path in chart.public:
        put(tree, path, "s3cret")
    for image in chart.images:
        put(tree, f"images.tags.{image}", f"registry/{image}:1")
    for workload in chart.workloads:
        if workload.replicas:
            put(tree, f"pod.replicas.{workload.replicas}", 2)
        if workload.cluster_ip:
            put(tree, workload.cluster_ip, "None")
        if workload.budget:
            budget = f"pod.lifecycle.disruption_budget.{workload.budget}"
            put(tree, f"{budget}.min_available", 1)
    for replicas in chart.replicas:
        put(tree, f"pod.replicas.{replicas}", 0)
    spread = "preferredDuringSchedulingIgnoredDuringExecution"
    put(tree, "pod.affinity.anti.type.default", spread)
    return tree


def put(tree: dict[str, object], path: str, value: object) -> None:
    *above, last = path.split(".")
    for key in above:
        below = tree.setdefault(key, {})
        assert isinstance(below, dict)
        tree = below
    tree[last] = value


def without(tree: dict[str, object], path: str) -> dict[str, object]:
    copied: dict[str, object] = yaml.safe_load(yaml.safe_dump(tree))
    *above, last = path.split(".")
    at = copied
    for key in above:
        below = at[key]
        assert isinstance(below, dict)
        at = below
    del at[last]
    return copied


def render(
    where: places.Places, chart: Chart, values: dict[str, object]
) -> list[dict[str, object]]:
    file = where.state / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    archive = chart_sources.folder(where) / chart_set.pack(chart).file
    words = ("template", "release", archive, "--namespace", "openstack")
    text = helm.run(where, (*words, "--values", os.fspath(file)))
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.mark.usefixtures("addresses")
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_missing_value_fails_with_its_path(name: str, where: places.Places) -> None:
    chart = BY_NAME[name]
    values = given(chart)
    documents = render(where, chart, values)
    kinds = {str(document["kind"]) for document in documents}
    assert {workload.kind.value for workload in chart.workloads} <= kinds
    # Images of other programs than OpenStack's are those of the chart.
    others = contract.OTHER_IMAGES
    own = [f"images.tags.{key}" for key in chart.images if key not in others]
    for path in (*own[:1], *chart.required[:1]):
        with pytest.raises(lab_errors.LabError, match=f"{path} is missing"):
            render(where, chart, without(values, path))
    for path, default in sorted(chart.public.items())[:1]:
        public = without(values, path)
        put(public, path, default)
        with pytest.raises(lab_errors.LabError, match=f"{path} has the public"):
            render(where, chart, public)


def test_pods_that_need_the_host_are_marked(where: places.Places) -> None:
    chart = BY_NAME["libvirt"]
    (workload,) = (
        document
        for document in render(where, chart, given(chart))
        if document["kind"] == contract.WorkloadKind.DAEMON_SET.value
    )
    spec = workload["spec"]
    assert isinstance(spec, dict)
    pod = spec["template"]["spec"]
    assert pod["hostPID"] is True
    assert pod["hostIPC"] is True
    assert pod["nodeSelector"] == {"openstack-compute-node": "enabled"}
