"""`mooring doctor osdpl` on a real API server: each check good, and broken."""

import base64
import contextlib
import dataclasses
import gzip
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click.testing as testing_click
import pytest
import yaml

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.kube import control_plane
from lib.lab.osdpl import chart_sources, controller, deployment
from lib.lab.run import waiting
from lib.osdpl.doctor import findings
from lib.osdpl.webhook import webhook
from mooring.commands import main
from tests.harness import testing
from tests.harness.osdpl import stage
from tests.harness.osdpl.stage import TIMEOUT_S, OperatorStage

Spec = dict[str, Any]
ACCOUNT = "--service-account=" + "/".join(controller.ACCOUNT)
GATEWAY = "openstack-gateway"
BUNDLES = "helmbundles.lcm.mirantis.com"
LEVEL = "pod-security.kubernetes.io/enforce"


@dataclasses.dataclass(frozen=True)
class Row:
    """What is broken.

    change: of the spec, in a file. broken: of the cluster, until the block ends. words:
    in the line. remedy: in its remedy.
    """

    name: str
    check: str
    state: str
    words: str
    remedy: str
    change: Callable[[Spec], object] | None = None
    broken: Callable[[OperatorStage], Any] | None = None


def merge(site: OperatorStage, kind: resources.Resource, name: str, body: Any) -> None:
    space = deployment.NAMESPACE if kind.namespaced else None
    text = json.dumps(body).encode()
    site.api.patch(kind, name, text, space, timeout_s=TIMEOUT_S)


@contextlib.contextmanager
def label(
    site: OperatorStage,
    kind: resources.Resource,
    names: tuple[str, ...],
    key: str,
    value: Any,
) -> Iterator[None]:
    """Set another label on objects, and restore the former one."""
    former = {name: labels_of(site, kind, name).get(key) for name in names}
    try:
        for name in names:
            merge(site, kind, name, {"metadata": {"labels": {key: value}}})
        yield
    finally:
        for name, old in former.items():
            merge(site, kind, name, {"metadata": {"labels": {key: old}}})


def labels_of(
    site: OperatorStage, kind: resources.Resource, name: str
) -> Mapping[str, str]:
    body = site.api.read(kind, name, timeout_s=TIMEOUT_S)
    return dict(json.loads(body)["metadata"].get("labels") or {})


@contextlib.contextmanager
def without_right(site: OperatorStage) -> Iterator[None]:
    """Take the permission for Jobs away."""
    role = site.get(resources.ROLES, controller.NAME) or {}
    rules = [rule for rule in role["rules"] if rule["apiGroups"] != ["batch"]]
    assert len(rules) < len(role["rules"])
    try:
        merge(site, resources.ROLES, controller.NAME, {"rules": rules})
        yield
    finally:
        merge(site, resources.ROLES, controller.NAME, {"rules": role["rules"]})


@contextlib.contextmanager
def pending(site: OperatorStage) -> Iterator[None]:
    """Create the Secret of a release that was left pending; its labels are old."""
    name = "sh.helm.release.v1.left-over.v1"
    labels = {
        **{"owner": "helm", "name": "left-over", "version": "1"},
        **{"status": "pending-install", "modifiedAt": "1700000000"},
    }
    packed = gzip.compress(json.dumps({"name": "left-over", "version": 1}).encode())
    body = {
        "metadata": {"name": name, "labels": labels},
        "type": "helm.sh/release.v1",
        "data": {"release": base64.b64encode(base64.b64encode(packed)).decode()},
    }
    try:
        create(site, resources.SECRETS, body)
        yield
    finally:
        site.delete(resources.SECRETS, name)


def create(site: OperatorStage, kind: resources.Resource, body: Any) -> None:
    site.api.create(
        kind, json.dumps(body).encode(), deployment.NAMESPACE, timeout_s=TIMEOUT_S
    )


@contextlib.contextmanager
def stopped(site: OperatorStage) -> Iterator[None]:
    site.stop()
    try:
        yield
    finally:
        site.start()
        settle(site)


@contextlib.contextmanager
def without_webhook(site: OperatorStage) -> Iterator[None]:
    controller.remove_webhook(site.api)
    try:
        yield
    finally:
        controller.install_webhook(site.where)
        settle(site)


@contextlib.contextmanager
def without_certificate(site: OperatorStage) -> Iterator[None]:
    with stopped(site):
        site.delete(resources.SECRETS, webhook.SECRET)
        yield


def settle(site: OperatorStage) -> None:
    """Wait until the API server asks the webhook."""

    def is_denied() -> bool:
        document = deployment.manifest("https://x", "asks")
        document["spec"]["nodes"] = {"rack": {}}
        try:
            site.api.create(
                deployment.DEPLOYMENTS,
                json.dumps(document).encode(),
                deployment.NAMESPACE,
                query={"dryRun": "All"},
                timeout_s=TIMEOUT_S,
            )
        except kube_errors.KubeError as error:
            return "denied the request" in error.message
        return False

    waiting.until("the webhook is asked", is_denied, poll_s=0.5)


def source(url: str) -> Callable[[Spec], object]:
    return lambda spec: spec["common"]["charts"]["repositories"][0].update(url=url)


def digest(spec: Spec) -> None:
    releases = {**spec["common"]["infra"]["releases"]}
    pinned = {"version": releases["version"], "digest": f"sha256:{'0' * 64}"}
    spec["common"]["infra"] = {
        **spec["common"]["infra"],
        "releases": {**releases, "etcd": pinned},
    }


def reference(spec: Spec) -> None:
    texts = {"api_cert": "x", "api_key": "x"}
    absent = {"value_from": {"secret_key_ref": {"name": "absent", "key": "x"}}}
    spec["features"]["ssl"] = {"public_endpoints": {**texts, "ca_cert": absent}}


def gateways(site: OperatorStage) -> Any:
    names = tuple(
        node["metadata"]["name"]
        for node in site.items(resources.NODES)
        if GATEWAY in (node["metadata"].get("labels") or {})
    )
    assert names
    return label(site, resources.NODES, names, GATEWAY, None)


ROWS = (
    Row(
        "definition of another controller",
        findings.DEFINITIONS,
        "FAIL",
        f"{BUNDLES} belongs to another controller",
        "label the definition",
        broken=lambda site: label(
            site,
            resources.DEFINITIONS,
            (BUNDLES,),
            "app.kubernetes.io/managed-by",
            "other",
        ),
    ),
    Row(
        "missing permission",
        findings.RIGHTS,
        "FAIL",
        " jobs.batch in namespace openstack",
        "apply charts/osdpl-controller/files/rbac.yaml",
        broken=without_right,
    ),
    Row(
        "Pod Security",
        findings.POD_SECURITY,
        "FAIL",
        "privileged",
        f"kubectl label --overwrite namespace openstack {LEVEL}=privileged",
        broken=lambda site: label(
            site, resources.NAMESPACES, (deployment.NAMESPACE,), LEVEL, "baseline"
        ),
    ),
    Row(
        "role without Nodes",
        findings.NODES,
        "FAIL",
        f"no Node has the label {GATEWAY}=enabled",
        f"kubectl label node NAME {GATEWAY}=enabled",
        broken=gateways,
    ),
    Row(
        "StorageClass",
        findings.STORAGE,
        "FAIL",
        "spec.local_volume_storage_class: absent does not exist",
        f"name one that exists: {deployment.STORAGE_CLASS}",
        change=lambda spec: spec.update(local_volume_storage_class="absent"),
    ),
    Row(
        "source that does not answer",
        findings.CHARTS,
        "FAIL",
        "http://127.0.0.1:9",
        "repositories",
        change=source("http://127.0.0.1:9"),
    ),
    Row(
        "digest of another chart",
        findings.CHARTS,
        "FAIL",
        f"sha256:{'0' * 64}",
        "digest",
        change=digest,
    ),
    Row(
        "Lease",
        findings.LEASE,
        "WARN",
        "openstack/osdpl-controller is not held: it was released",
        "see that osdpl-controller runs",
        broken=stopped,
    ),
    Row(
        # Of a Secret that is new; FAIL for an old one is a row of findings_test.py.
        "pending release",
        findings.RELEASES,
        "WARN",
        "left-over has been pending-install for",
        "sh.helm.release.v1.left-over.v1",
        broken=pending,
    ),
    Row(
        "missing Secret",
        findings.SECRETS,
        "FAIL",
        "absent",
        "create the Secret",
        change=reference,
    ),
    Row(
        "no webhook",
        findings.WEBHOOK,
        "WARN",
        "no ValidatingWebhookConfiguration",
        "webhook.enabled",
        broken=without_webhook,
    ),
    Row(
        "webhook that does not answer",
        findings.WEBHOOK,
        "FAIL",
        "an invalid object was admitted",
        "pods of osdpl-controller",
        broken=stopped,
    ),
    Row(
        "no certificate",
        findings.WEBHOOK,
        "FAIL",
        "the Secret with its certificate does not exist",
        "see that osdpl-controller runs",
        broken=without_certificate,
    ),
)


@pytest.fixture(scope="module")
def address(where: places.Places) -> str:
    """Return the address of the lab's charts."""
    return chart_sources.serve_repository(where)


@pytest.fixture(scope="module")
def site(where: places.Places, address: str) -> Iterator[OperatorStage]:
    """Run a cluster, controller and webhook; the object is a draft."""
    with stage.opened(where, pexes.beside(pexes.OSDPL), testing.shown()) as opened:
        opened.start()
        controller.install_webhook(where)
        settle(opened)
        document = deployment.manifest(address)
        document["spec"]["draft"] = True
        opened.apply(document)
        yield opened


def doctor(site: OperatorStage, *words: str) -> tuple[int, list[dict[str, str]]]:
    """Return exit code and lines."""
    kubeconfig = control_plane.admin_kubeconfig(site.where)
    result = testing_click.CliRunner().invoke(
        main.commands,
        [
            *("doctor", "osdpl", *words, f"--kubeconfig={kubeconfig}", ACCOUNT),
            "--output=json",
        ],
    )
    start = result.output.index("{\n")
    return result.exit_code, list(json.loads(result.output[start:])["checks"])


def test_each_check_is_good(site: OperatorStage) -> None:
    code, lines = doctor(site)
    for line in lines:
        print(f"{line['state']:4} {line['check']:16} {line['message'][:120]}")
    assert code == 0
    assert {line["check"] for line in lines} == set(findings.CHECKS)
    # The object is a draft: nothing was generated yet.
    warned = [line["check"] for line in lines if line["state"] != "OK"]
    assert warned == [findings.SECRETS]


def test_each_check_has_a_row() -> None:
    """But the API server, without which there is nothing else."""
    assert {row.check for row in ROWS} == set(findings.CHECKS) - {findings.API_SERVER}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_broken_is_named_with_a_remedy(
    site: OperatorStage, address: str, row: Row, tmp_path: pathlib.Path
) -> None:
    words: tuple[str, ...] = ()
    if row.change is not None:
        document = deployment.manifest(address)
        row.change(document["spec"])
        file = tmp_path / "cloud.yaml"
        file.write_text(yaml.safe_dump(document))
        words = (str(file),)
    broken = row.broken(site) if row.broken is not None else contextlib.nullcontext()
    with broken:
        code, lines = doctor(site, *words)
    matching = [line for line in lines if line["check"] == row.check]
    (line,) = [line_ for line_ in matching if row.words in line_["message"]][:1] or [{}]
    print(f"{row.name}: {line}")
    assert line, matching
    assert line["state"] == row.state
    assert row.remedy in line["remedy"]
    assert code == (1 if any(line_["state"] == "FAIL" for line_ in lines) else 0)
    assert {line_["check"] for line_ in lines} == set(findings.CHECKS)
    for line_ in lines:
        assert line_["remedy"] or line_["state"] in ("OK", "SKIP")


def test_without_an_api_server_the_rest_is_skipped(site: OperatorStage) -> None:
    kubeconfig = pathlib.Path(control_plane.admin_kubeconfig(site.where))
    text = yaml.safe_load(kubeconfig.read_text())
    text["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    other = site.where.state / "nowhere.kubeconfig"
    other.write_text(yaml.safe_dump(text))
    result = testing_click.CliRunner().invoke(
        main.commands, ["doctor", "osdpl", f"--kubeconfig={other}", "--timeout=2"]
    )
    print(result.output)
    lines = [line for line in result.output.splitlines() if line[:4] in STATES]
    assert result.exit_code == 1
    assert [line[:4] for line in lines] == ["FAIL", *["SKIP"] * 10]


STATES = ("FAIL", "SKIP", "OK  ", "WARN")


def test_nothing_was_written(site: OperatorStage) -> None:
    """But reviews of permissions, and dry runs."""
    objects = {
        deployment_["metadata"]["name"]
        for deployment_ in site.items(deployment.DEPLOYMENTS)
    }
    assert objects == {deployment.NAME}
    assert [pod["metadata"]["name"] for pod in site.items(resources.PODS)] == []
