"""`mooring doctor --cloud=dvp` on the objects of the umbrella chart, child and parent.

The Deployments are those of the chart's snapshot. Each mistake is a row: what is
changed, and the sentence with field, value and what would be valid.
"""

import base64
import contextlib
import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import click.testing
import pytest
import yaml

from lib.kube import client, errors, resources
from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, control_plane, kube_objects
from lib.lab.run import waiting
from mooring.commands import main
from tests.harness.dvp import parent_fixtures
from tests.harness.dvp.dvp_parent import CLUSTER, DvpParent
from tests.harness.machines.dvp_child import TEMPLATES, DvpChild

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

CHART = pathlib.Path("charts/cloud-provider-dvp")
SPACE, SECRET = "dvp-system", "parent"
UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
"""Of the snapshot."""
PLATFORM = "d8-cloud-provider-dvp"
SHAPES = Resource(
    "deckhouse.io", "v1alpha1", "dvpinstanceclasses", "DVPInstanceClass", False
)
KINDS = (resources.NAMESPACES, resources.DEFINITIONS, resources.DEPLOYMENTS)
COMPONENTS = ("capdvp", "cloud-data-discoverer-dvp", "csi-controller-dvp", "dvp-ccm")
FIRST = f"Deployment {SPACE}/dvp-ccm"
TITLE = f"{FIRST}: Secret {SPACE}/{SECRET}, key kubeconfig"
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Stage:
    """A child with the Deployments of the chart. objects: of their namespace."""

    where: places.Places
    project: Project
    objects: kube_objects.Objects

    def doctor(self) -> list[str]:
        """Run the tool as an administrator; return the lines about the chart."""
        admin = control_plane.admin_kubeconfig(self.where)
        words = ("doctor", "ccm", "--cloud=dvp", f"--kubeconfig={admin}")
        env = {"NO_COLOR": "1", "COLUMNS": "400"}
        result = click.testing.CliRunner().invoke(main.commands, words, env=env)
        assert "Traceback" not in result.output, result.output
        rows = [line.split(maxsplit=2) for line in result.output.splitlines()]
        return [f"{row[0]} {row[2]}" for row in rows if row[1] == "chart"]

    def write_secret(self, **texts: str) -> None:
        """Write the Secret with other keys."""
        self.objects.delete(resources.SECRETS, SECRET, grace_s=None)
        data = {
            key: base64.b64encode(text.encode()).decode() for key, text in texts.items()
        }
        self.objects.make(resources.SECRETS, SECRET, data=data)

    def valid(self) -> str:
        return self.project.kubeconfig.read_text()


@pytest.fixture(scope="module")
def stage(
    where: places.Places, api: client.Api, project: Project, parent: DvpParent
) -> Stage:
    DvpChild(where, api, project).install()
    definition = yaml.safe_load((CHART / "crds/dvpinstanceclasses.yaml").read_text())
    text = (CHART / "snapshots/child.yaml").read_text()
    text = text.replace('"project"', f'"{project.namespace}"').replace(UUID, CLUSTER)
    deployments = [
        document
        for document in yaml.safe_load_all(text)
        if document and document["kind"] == "Deployment"
    ]
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (SPACE, PLATFORM)
    ]
    by_name = {kind.kind: kind for kind in KINDS}
    cluster.create_documents(api, (*spaces, definition, *deployments), by_name)
    names = {document["metadata"]["labels"]["app"] for document in deployments}
    assert names == set(COMPONENTS)
    opened = Stage(where, project, kube_objects.Objects(api, SPACE))
    waiting.until("the kind is served", lambda: is_served(api))
    opened.write_secret(kubeconfig=opened.valid())
    return opened


def is_served(api: client.Api) -> bool:
    """Report whether the version of this release is served."""
    try:
        path = f"/apis/{SHAPES.api_version}"
        document = json.loads(api.request("GET", path, timeout_s=10))
    except errors.NotFound:
        return False
    return any(row["name"] == SHAPES.plural for row in document["resources"])


@contextlib.contextmanager
def changed(stage: Stage, name: str, change: Callable[[Json], Json]) -> Iterator[None]:
    """Change the container of a Deployment while the block runs."""
    live = stage.objects.get(resources.DEPLOYMENTS, name)
    assert live is not None
    spec = live["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    def write(desired: Json) -> None:
        template = {"template": {"spec": {**spec, "containers": [desired]}}}
        stage.objects.patch(resources.DEPLOYMENTS, name, spec=template)

    write({**container, **change(container)})
    try:
        yield
    finally:
        write(container)


@contextlib.contextmanager
def secret(stage: Stage, **texts: str) -> Iterator[None]:
    stage.write_secret(**texts)
    try:
        yield
    finally:
        stage.write_secret(kubeconfig=stage.valid())


@contextlib.contextmanager
def no_secret(stage: Stage) -> Iterator[None]:
    stage.objects.delete(resources.SECRETS, SECRET, grace_s=None)
    try:
        yield
    finally:
        stage.write_secret(kubeconfig=stage.valid())


def variable(
    stage: Stage, name: str, value: str
) -> contextlib.AbstractContextManager[None]:
    """Set a variable of dvp-ccm."""

    def change(container: Json) -> Json:
        others = [row for row in container["env"] if row["name"] != name]
        return {"env": [*others, {"name": name, "value": value}]}

    return changed(stage, "dvp-ccm", change)


@contextlib.contextmanager
def existing(
    stage: Stage, kind: Resource, name: str, space: str = SPACE, **fields: object
) -> Iterator[None]:
    objects = kube_objects.Objects(stage.objects.api, space)
    meta = fields.pop("metadata", {})
    assert isinstance(meta, dict)
    objects.make(kind, name, meta, **fields)
    try:
        yield
    finally:
        objects.delete(kind, name, grace_s=None)


def storage_class(stage: Stage) -> contextlib.AbstractContextManager[None]:
    parameters = {"dvpStorageClass": "gold"}
    return existing(
        stage,
        resources.STORAGE_CLASSES,
        "fast",
        provisioner="csi.dvp.deckhouse.io",
        parameters=parameters,
    )


def shape(
    stage: Stage, machine_class: str = projects.CLASS, **more: object
) -> contextlib.AbstractContextManager[None]:
    machine = {
        "virtualMachineClassName": machine_class,
        "cpu": {"cores": 1},
        "memory": {"size": "1Gi"},
    }
    image = {"kind": "ClusterVirtualImage", "name": projects.IMAGE}
    root = {"size": "1Gi", "image": image}
    spec: Json = {"virtualMachine": machine, "rootDisk": root, **more}
    return existing(stage, SHAPES, "worker", spec=spec)


def template(stage: Stage) -> contextlib.AbstractContextManager[None]:
    spec = {
        "vmClassName": "huge",
        "cpu": {"cores": 1},
        "memory": "256Mi",
        "rootDiskSize": "1Gi",
        "rootDiskStorageClass": projects.STORAGE,
        "bootDiskImageRef": {"kind": "ClusterVirtualImage", "name": projects.IMAGE},
    }
    return existing(stage, TEMPLATES, "worker", spec={"template": {"spec": spec}})


@contextlib.contextmanager
def newer_definition(stage: Stage) -> Iterator[None]:
    """The CRD of a newer release; no object of the kind exists."""
    name = f"{SHAPES.plural}.{SHAPES.group}"
    live = stage.objects.get(resources.DEFINITIONS, name)
    assert live is not None
    newer = [{**live["spec"]["versions"][0], "name": "v1"}]
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": live["kind"]}
    rest = {**about, "metadata": {"name": name}}
    by_name = {resources.DEFINITIONS.kind: resources.DEFINITIONS}

    def replace(versions: list[Json]) -> None:
        stage.objects.delete(resources.DEFINITIONS, name, grace_s=None)
        waiting.until(
            "the kind is deleted",
            lambda: stage.objects.get(resources.DEFINITIONS, name) is None,
        )
        spec = {**live["spec"], "versions": versions}
        document = {**rest, "spec": spec}
        cluster.create_documents(stage.objects.api, [document], by_name)

    replace(newer)
    try:
        yield
    finally:
        replace(live["spec"]["versions"])
        waiting.until("the kind is served", lambda: is_served(stage.objects.api))


def of_reference(stage: Stage) -> contextlib.AbstractContextManager[None]:
    app = {"app": "cloud-controller-manager"}
    labels = {**app, "heritage": "deckhouse", "module": "cloud-provider-dvp"}
    pod = {"containers": [{"name": app["app"], "image": "x:1"}]}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": app},
        "template": {"metadata": {"labels": app}, "spec": pod},
    }
    about = {"labels": labels}
    name = app["app"]
    return existing(
        stage, resources.DEPLOYMENTS, name, PLATFORM, metadata=about, spec=spec
    )


DISKS = [{"size": "1Gi", "storageClass": "gold"}]
OFFERED = f".*{projects.STORAGE}.*, the StorageClass objects of the cloud"
ROWS: dict[
    str, tuple[Callable[[Stage], contextlib.AbstractContextManager[None]], str]
] = {
    "Secret missing": (no_secret, f"FAIL {TITLE}: not found"),
    "Secret without the key": (
        lambda stage: secret(stage, config="x"),
        f"FAIL {FIRST}: Secret {SPACE}/{SECRET}: key kubeconfig not found: the Secret"
        " has config",
    ),
    "Secret empty": (
        lambda stage: secret(stage, kubeconfig=""),
        f"FAIL {TITLE}: empty: must be a kubeconfig",
    ),
    "Secret malformed": (
        lambda stage: secret(stage, kubeconfig="clusters: s3cret-token"),
        f"FAIL {TITLE}: clusters: malformed: expected",
    ),
    "Secret of another project": (
        lambda stage: secret(stage, kubeconfig=stage.valid(), namespace="other"),
        f"FAIL {FIRST}: DVP_NAMESPACE: invalid value .*: must be .other., the key"
        f" namespace of the Secret {SPACE}/{SECRET}",
    ),
    "Secret of another cluster": (
        lambda stage: secret(stage, kubeconfig=stage.valid(), clusterUUID="other"),
        f"FAIL {FIRST}: CLUSTER_UUID: invalid value .{CLUSTER}.: must be .other.",
    ),
    "project that the user may not use": (
        lambda stage: variable(stage, "DVP_NAMESPACE", "default"),
        f"FAIL {TITLE}: user .*, project default: .*virtualmachines",
    ),
    "cluster id empty": (
        lambda stage: variable(stage, "CLUSTER_UUID", ""),
        f"FAIL {FIRST}: CLUSTER_UUID: not set: must be the UUID of this cluster",
    ),
    "both forms of credentials": (
        lambda stage: variable(stage, "DVP_KUBERNETES_CONFIG_BASE64", "s3cret-token"),
        f"FAIL {FIRST}: DVP_KUBERNETES_CONFIG_BASE64: must not be set together with the"
        f" file of Secret {SPACE}/{SECRET}, key kubeconfig",
    ),
    "storage class": (
        storage_class,
        "FAIL StorageClass fast: parameters.dvpStorageClass: unsupported value .gold.:"
        f" must be one of {OFFERED}",
    ),
    "storage class of a disk": (
        lambda stage: shape(stage, additionalDisks=DISKS),
        r"FAIL DVPInstanceClass worker: spec.additionalDisks\[0\].storageClass:"
        f" unsupported value .gold.: must be one of {OFFERED}",
    ),
    "VM class": (
        lambda stage: shape(stage, "huge"),
        "FAIL DVPInstanceClass worker: spec.virtualMachine.virtualMachineClassName:"
        f" unsupported value .huge.: must be one of {projects.CLASS}, the"
        " VirtualMachineClass objects of the cloud",
    ),
    "VM class of a template": (
        template,
        f"FAIL DeckhouseMachineTemplate {SPACE}/worker: spec.template.spec.vmClassName:"
        " unsupported value .huge.",
    ),
    "CRD of a newer release": (
        newer_definition,
        "FAIL CRD dvpinstanceclasses.deckhouse.io: served versions v1: must include"
        " v1alpha1",
    ),
    "the reference runs": (
        of_reference,
        f"FAIL Deployment {PLATFORM}/cloud-controller-manager of the reference runs:"
        " must be stopped beside cloud-provider-dvp",
    ),
}


def test_a_release_without_mistakes_has_no_failure(stage: Stage) -> None:
    with shape(stage):
        lines = stage.doctor()
    print(*lines, sep="\n")
    assert [line for line in lines if not line.startswith("OK ")] == []
    for name in COMPONENTS:
        title = f"Deployment {SPACE}/{name}: Secret {SPACE}/{SECRET}, key kubeconfig"
        user = f"user system:serviceaccount:{stage.project.namespace}:"
        assert any(f"{title}: {user}" in line for line in lines), name
    assert "OK 2 names in objects of the cluster exist" in lines


@pytest.mark.parametrize("zones", ["", "default"])
def test_zones_that_constrain_nothing_are_a_warning(stage: Stage, zones: str) -> None:
    def change(container: Json) -> Json:
        others = [word for word in container["args"] if "--zones" not in word]
        return {"args": [*others, *([f"--zones={zones}"] if zones else [])]}

    with changed(stage, "capdvp", change):
        lines = stage.doctor()
    (warning,) = (line for line in lines if line.startswith("WARN "))
    print(warning)
    problem = f'invalid value "{zones}"' if zones else "not set"
    title = f"WARN Deployment {SPACE}/capdvp: --zones: {problem}: must be values of"
    assert warning.startswith(title)


@pytest.mark.parametrize("row", ROWS)
def test_each_mistake_is_one_sentence(stage: Stage, row: str) -> None:
    change, expected = ROWS[row]
    with change(stage):
        lines = stage.doctor()
    failed = [line for line in lines if line.startswith("FAIL ")]
    print(f"{row:34}", failed[-1] if failed else lines)
    assert any(re.match(expected, line) for line in failed), failed
    assert "s3cret-token" not in "".join(lines)


def test_a_revoked_token_is_reported(stage: Stage, parent: DvpParent) -> None:
    parent.revoke(stage.project)
    try:
        lines = waiting_for_refusal(stage)
    finally:
        parent.rotate(stage.project)
        stage.write_secret(kubeconfig=stage.valid())
    print(*lines, sep="\n")
    assert any(line.startswith(f"FAIL {TITLE}: ") for line in lines)


def waiting_for_refusal(stage: Stage) -> list[str]:
    """Return the lines once the parent rejects the token; it may cache the answer."""
    lines: list[str] = []

    def is_refused() -> bool:
        lines[:] = stage.doctor()
        return any(line.startswith("FAIL") for line in lines)

    waiting.until("the token is rejected", is_refused)
    return lines
