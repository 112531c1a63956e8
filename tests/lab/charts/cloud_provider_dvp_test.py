"""The umbrella chart for DVP: as that for OpenStack, and both in one cluster."""

import base64
import contextlib
import dataclasses
import json
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.kube import resources
from lib.lab import errors, places
from lib.lab.charts import charts
from lib.lab.kube import control_plane
from lib.migration import reference as migrated
from lib.migration.dvp import dvp_changeover
from tests.lab.charts import (
    installing,
    reference_of_dvp,
    reference_state_of_dvp,
    rendering,
    umbrellas,
    union,
)

CHART = "cloud-provider-dvp"
CSI_DRIVER = ("CSIDriver", "", "csi.dvp.deckhouse.io")
CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    rights=lambda values: "",
    readers=frozenset(),
    replicas=0,
    plain="",
    kept={CSI_DRIVER: f"/apis/storage.k8s.io/v1/csidrivers/{CSI_DRIVER[2]}"},
)
UUID = "f49dd1c3-a63a-4565-a06c-625e35587eab"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: project
contexts: [{name: project, context: {cluster: parent, user: child}}]
clusters: [{name: parent, cluster: {server: "https://parent.example:6443"}}]
users: [{name: child, user: {token: s3cret-token}}]
"""
KEYS = {
    "kubernetesConfigBase64": KUBECONFIG,
    "namespace": "project",
    "clusterUUID": UUID,
}
"""Of a Secret of the reference."""
STATE: Mapping[str, Mapping[str, str]] = {
    "empty": {"kubeconfig": ""},
    "malformed": {"kubeconfig": "apiVersion: v1\nusers: s3cret-token\n"},
    "no-key": {"config": KUBECONFIG},
    "other-project": {"kubeconfig": KUBECONFIG, "namespace": "other"},
    "other-cluster": {"kubeconfig": KUBECONFIG, "clusterUUID": "other"},
    "no-ids": {"kubeconfig": KUBECONFIG},
}
"""Secrets with a mistake."""
BAD_KUBECONFIG = "must be a kubeconfig with clusters, users and contexts"
PARENT = "global.parent.secretName"
MISTAKES = [
    ("unknown key", "global.registry=x", "additional properties 'registry'"),
    ("no registry", "global.imageRegistry=", "'/global/imageRegistry': minLength"),
    ("not a name", f"{PARENT}=A_B", "'/global/parent/secretName': 'A_B'"),
    ("not a key", "global.parent.key=a/b", "'/global/parent/key'"),
    ("not a project", "global.parent.namespace=a/b", "'/global/parent/namespace'"),
    ("cloud.conf", "global.cloudConfig.secretName=x", "'cloudConfig' not allowed"),
    (
        "Secret of csi-node",
        "global.parent.secretNames.csi-node=x",
        "'/global/parent/secretNames': additional properties 'csi-node' not allowed",
    ),
    (
        "both forms of credentials",
        "global.parent.kubeconfig=x",
        "'/global/parent/kubeconfig': maxLength",
    ),
    (
        "a kubeconfig that is none",
        f"{PARENT}=,global.parent.kubeconfig=s3cret",
        f"global.parent.kubeconfig: invalid value [redacted]: {BAD_KUBECONFIG}",
    ),
    ("cluster id empty", "global.clusterID=", "global.clusterID: not set: must be"),
    ("cluster id no label", "global.clusterID=a b", "'/global/clusterID': 'a b'"),
    (
        "project empty",
        "global.parent.namespace=",
        "global.parent.namespace: not set: must be the namespace of the project",
    ),
    ("Secret without the key", f"{PARENT}=no-key", "which has config"),
    (
        "Secret empty",
        f"{PARENT}=empty",
        f"key kubeconfig: invalid value [redacted]: {BAD_KUBECONFIG}",
    ),
    ("Secret malformed", f"{PARENT}=malformed", BAD_KUBECONFIG),
    (
        "Secret of another project",
        f"{PARENT}=other-project",
        'global.parent.namespace: invalid value "project": must be "other"',
    ),
    (
        "Secret of another cluster",
        f"{PARENT}=other-cluster",
        f'global.clusterID: invalid value "{UUID}": must be "other"',
    ),
    (
        "Secret without ids",
        f"{PARENT}=no-ids,global.clusterID=",
        "unless the Secret kube-system/no-ids has the key clusterUUID",
    ),
    ("zones twice", "global.zones={a,a}", "'/global/zones': items at 0 and 1"),
    ("not a zone", "global.zones={a b}", "'/global/zones/0': 'a b'"),
    *umbrellas.PROXY_MISTAKES,
    ("negative number", "global.controlPlaneNodes=-1", "'/global/controlPlane"),
    ("text as switch", "global.deckhouse.enabled=yes", "'/global/deckhouse/enabled'"),
    ("no such component", "components.openstack-ccm=true", "'openstack-ccm' not"),
    ("another cloud", "csi-controller.cloud=openstack", "'/csi-controller/cloud'"),
    ("zero replicas", "dvp-ccm.replicas=0", "'/replicas': minimum"),
    ("image without version", "capdvp.image=r/capdvp", "'/image': 'r/capdvp'"),
    (
        "port in use",
        "dvp-ccm.securePort=9829",
        'csi-node.httpEndpoint: invalid value "9829"',
    ),
    (
        "invalid exclude expression",
        "cloud-data-discoverer.storageClasses.exclude={[}",
        "'/storageClasses/exclude/0': '[' is not valid regex",
    ),
    (
        "class without one of the parent",
        "csi-controller.storageClasses[0].name=a",
        "'/storageClasses/0': missing property 'dvpStorageClass'",
    ),
    (
        "binding mode",
        "csi-controller.storageClasses[0].name=a,"
        "csi-controller.storageClasses[0].dvpStorageClass=b,"
        "csi-controller.storageClasses[0].volumeBindingMode=Immediate",
        "'/storageClasses/0/volumeBindingMode'",
    ),
    ("credentials on Nodes", "csi-node.cloudConfig.secretName=x", "'/cloudConfig/secr"),
    (
        "nothing at all",
        ",".join(f"components.{name}=false" for name in charts.UMBRELLAS[CHART]),
        "components: invalid value: must enable at least one component",
    ),
]
"""What is wrong, what is set, what helm must name."""
SETS = ("child", "production", "deckhouse", "defaults")
"""Values of the releases; those of own-secrets are of another cluster."""


def snapshot(name: str) -> charts.Snapshot:
    return charts.of(CHART)[name]


CHILD = snapshot("child")


def values(name: str) -> tuple[str, str]:
    return ("--values", str(snapshot(name).values(installing.ROOT)))


@contextlib.contextmanager
def secrets(
    ground: installing.Ground, every: Mapping[str, Mapping[str, str]]
) -> Iterator[None]:
    """Have Secrets while the block runs."""
    path = f"/api/v1/namespaces/{CASE.home}/secrets"
    for name, texts in every.items():
        data = {
            key: base64.b64encode(text.encode()).decode() for key, text in texts.items()
        }
        body = json.dumps({"metadata": {"name": name}, "data": data}).encode()
        ground.api.request("POST", path, body=body, timeout_s=installing.TIMEOUT_S)
    try:
        yield
    finally:
        for name in every:
            ground.delete(f"{path}/{name}")


@pytest.fixture()
def reference(ground: installing.Ground) -> Iterator[None]:
    """Both Secrets of the reference."""
    with secrets(
        ground, dict.fromkeys(("dvp-credentials", "dvp-credentials-capdvp"), KEYS)
    ):
        yield


@pytest.mark.parametrize("name", charts.of(CHART))
def test_a_snapshot_is_what_helm_renders(renderer: places.Places, name: str) -> None:
    rendering.check_snapshot(renderer, snapshot(name))


@pytest.mark.parametrize("name", charts.of(CHART))
def test_it_renders_the_union_of_its_components(
    renderer: places.Places, tmp_path: pathlib.Path, name: str
) -> None:
    union.check(renderer, charts.of(CHART)[name], tmp_path)


def test_it_renders_without_values(renderer: places.Places) -> None:
    """The same as the snapshot of no values; its ids are keys of the Secret."""
    assert snapshot("defaults").values(installing.ROOT).read_text() == "{}\n"
    rendered = charts.render(renderer, installing.ROOT, snapshot("defaults"))
    assert rendered == snapshot("defaults").file(installing.ROOT).read_text()


def test_mistakes_are_rejected_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    mistakes = [umbrellas.Mistake(*row) for row in MISTAKES]
    with secrets(ground, STATE):
        umbrellas.mistakes_are_rejected(ground, CASE, mistakes, *values("child"))


REFERENCE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: cloud-controller-manager, namespace: d8-cloud-provider-dvp}
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: x, image: x}]}
"""


def test_states_of_the_cluster_are_rejected(ground: installing.Ground) -> None:
    """The reference still runs; a kind of a newer release. Prints both messages."""
    before = installing.until(ground.everything)
    folder = charts.folder(installing.ROOT, CHART)
    words = ("install", CHART, folder, "--namespace", CASE.home, "--skip-crds")
    deployments = f"/apis/apps/v1/namespaces/{charts.PLATFORM_OF_DVP}/deployments"
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    kind = yaml.safe_load((folder / "crds/dvpinstanceclasses.yaml").read_text())
    kind["spec"]["versions"][0]["name"] = "v1"
    rows = (
        (
            REFERENCE,
            f"{deployments}/cloud-controller-manager",
            "components.dvp-ccm: invalid value true: the Deployment"
            " d8-cloud-provider-dvp/cloud-controller-manager of the reference must not",
        ),
        (
            yaml.safe_dump(kind),
            f"{crds}/{kind['metadata']['name']}",
            "CustomResourceDefinition dvpinstanceclasses.deckhouse.io: served versions"
            " v1: must include v1alpha1",
        ),
    )
    for manifest, path, named in rows:
        control_plane.apply_manifests(ground.where, manifest)
        with pytest.raises(errors.LabError) as caught:
            ground.helm(*words, *values("child"))
        print(str(caught.value)[-220:])
        assert named in str(caught.value)
        ground.delete(path)
    # The next test compares all objects: those of the Deployment are deleted later.
    installing.until(lambda: ground.everything() == before)


def test_a_missing_kind_is_reported_before_anything_is_created(
    ground: installing.Ground,
) -> None:
    umbrellas.a_missing_kind_is_reported(ground, CASE)


def _fields(kind: Any) -> Any:
    """Return the fields of the spec of a kind."""
    schema = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema["properties"]["spec"]["properties"]


def test_kinds_are_updated_by_the_documented_procedure(
    ground: installing.Ground, tmp_path: pathlib.Path
) -> None:
    """An upgrade keeps an older kind; it is applied from `helm show crds`."""
    folder, older = charts.folder(installing.ROOT, CHART), tmp_path / "chart"
    shutil.copytree(folder, older)
    file = "crds/dvpinstanceclasses.yaml"
    kind = yaml.safe_load((folder / file).read_text())
    name, expected = kind["metadata"]["name"], set(_fields(kind))
    del _fields(kind)["additionalDisks"]
    (older / file).write_text(yaml.safe_dump(kind))
    at = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    before = installing.until(ground.everything)
    words = ("--namespace", CASE.home, *values("child"))
    rows = []
    for title, change in (
        ("install", lambda: ground.helm("install", CHART, older, *words)),
        ("upgrade", lambda: ground.helm("upgrade", CHART, folder, *words)),
        (
            "apply",
            lambda: control_plane.apply_manifests(
                ground.where, ground.helm("show", "crds", folder)
            ),
        ),
    ):
        change()
        rows.append(set(_fields(ground.get(at))))
        print(f"{title:12} {sorted(rows[-1])}")
    assert rows == [expected - {"additionalDisks"}] * 2 + [expected]
    umbrellas.release(ground, CASE, CASE.home).uninstall(before)


@pytest.mark.parametrize("version", umbrellas.VERSIONS)
def test_installed_upgraded_rolled_back_and_removed(
    ground: installing.Ground, operators: None, reference: None, version: str
) -> None:
    """With four sets of values; every object is stored as it was rendered."""
    del operators, reference
    umbrellas.changed_rolled_back_and_removed(ground, CASE, SETS, version)


def test_own_secrets_are_created_and_removed(ground: installing.Ground) -> None:
    """The fifth set; an upgrade to the id of another cluster is rejected."""
    before = installing.until(ground.everything)
    deployed = umbrellas.release(ground, CASE, CASE.home)
    deployed.run("install", snapshot("own-secrets"))
    names = deployed.check()
    created = {name for kind, _, name in names if kind == "Secret"}
    assert created == {"dvp-credentials", "dvp-credentials-capdvp"}
    with pytest.raises(errors.LabError) as caught:
        deployed.run("upgrade", snapshot("own-secrets"), "--set", "global.clusterID=b")
    print(caught.value)
    assert 'clusterUUID: invalid value "b": must be "edge-1"' in str(caught.value)
    assert "example-of-a-token" not in str(caught.value)
    deployed.uninstall(before)


IDS: Mapping[str, Mapping[str, str]] = {
    "one": {**KEYS, "kubeconfig": KUBECONFIG, "clusterUUID": "one"},
    "two": {**KEYS, "kubeconfig": KUBECONFIG, "clusterUUID": "two"},
    "none": {"kubeconfig": KUBECONFIG, "namespace": "project"},
}
"""Secrets, by name: the UUID of a cluster, or no key of one."""
CHANGES = (
    ("", "one", ""),
    ("", "two", "two"),
    ("two", "none", "two"),
    ("one", "none", ""),
    ("", "two", "two"),
)
"""Cluster ID and Secret of a release and of upgrades; the ID that is rejected."""


def test_a_changed_cluster_id_is_rejected_in_each_form(
    ground: installing.Ground,
) -> None:
    """By value or by the key of a Secret; prints the table."""
    before = installing.until(ground.everything)
    deployed = umbrellas.release(ground, CASE, CASE.home)
    with secrets(ground, IDS):
        for number, (uuid, secret, rejected) in enumerate(CHANGES):
            texts = (f"global.clusterID={uuid}", f"global.parent.secretName={secret}")
            words = ("--set", ",".join(texts))
            message = ""
            try:
                deployed.run("upgrade" if number else "install", CHILD, *words)
            except errors.LabError as error:
                message = str(error)
            print(f"{uuid:4} {secret:5} {message[-170:] or 'accepted'}")
            expected = f'clusterUUID: invalid value "{rejected}": must be "one"'
            assert expected in message if rejected else not message
    deployed.uninstall(before)


NOTED = (
    ("child", charts.SYSTEM, "dvp-cloud-controller-manager"),
    ("deckhouse", charts.PLATFORM_OF_DVP, "cloud-controller-manager"),
)
"""Values of a release, its namespace, and the name of the Lease of dvp-ccm."""


@pytest.mark.parametrize(("name", "home", "manager"), NOTED)
def test_the_notes_name_leases_that_are_held(
    ground: installing.Ground, operators: None, name: str, home: str, manager: str
) -> None:
    """That of dvp-ccm, and in the namespace of the release that of capdvp."""
    del operators
    leases = (f"kube-system/{manager}", f"{home}/70c82521.cluster.x-k8s.io")
    rendered = dataclasses.replace(snapshot(name), namespace=home)
    ids = "global.parent.namespace=project,global.clusterID=edge-1"
    umbrellas.held_leases_are_named(ground, rendered, leases, "--set", ids)


def test_pods_of_all_components_are_admitted(ground: installing.Ground) -> None:
    """Also those of the DaemonSet; notes name what is missing."""
    installing.make_node(ground, "host", is_control_plane=True)
    labels = {"metadata": {"labels": {"kubernetes.io/os": "linux"}}}
    body = json.dumps(labels).encode()
    ground.api.patch(resources.NODES, "host", body, timeout_s=installing.TIMEOUT_S)
    before = installing.until(ground.everything)
    deployed = umbrellas.release(ground, CASE, CASE.home)
    deployed.run("install", snapshot("child"), "--set", "global.zones={default}")
    expected = {
        "capdvp": 2,
        "cloud-data-discoverer-dvp": 1,
        "csi-controller-dvp": 1,
        "csi-node-dvp": 1,
        "dvp-ccm": 2,
    }
    installing.until(lambda: umbrellas.pods(ground, CASE.home) == expected)
    notes = ground.helm("get", "notes", CHART, "--namespace", CASE.home)
    for warning in (
        "this Secret does not exist",
        "topology.kubernetes.io/zone=default",
        "the CRDs of Cluster API are not installed",
    ):
        assert warning in notes
    deployed.uninstall(before)
    ground.delete("/api/v1/nodes/host")


def test_the_state_of_the_reference_stays_as_it_is(
    ground: installing.Ground, tmp_path: pathlib.Path
) -> None:
    """The chart is installed over it with the values of `mooring migrate dvp`.

    Prints object, and resource version before, with the chart, and after its removal.
    """
    folder = charts.folder(installing.ROOT, CHART)
    control_plane.apply_manifests(ground.where, ground.helm("show", "crds", folder))
    state = reference_state_of_dvp.create(ground)
    documents, kinds = state.documents, state.kinds

    def observed() -> dict[str, Any]:
        return {
            " ".join(installing.name_of(item)): ground.live(item, kinds)
            for item in documents
        }

    planned = dvp_changeover.plan(
        migrated.read(ground.api, installing.TIMEOUT_S, dvp_changeover.REFERENCE)
    )
    assert planned is not None
    assert planned.namespace == reference_of_dvp.HOME
    assert all(planned.values["components"].values())
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(planned.values))
    states = [observed()]
    place = ("--namespace", planned.namespace)
    more = ("--values", file, "--skip-crds", "--take-ownership")
    ground.helm("install", CHART, folder, *place, *more)
    states.append(observed())
    ground.helm("uninstall", CHART, *place)
    states.append(observed())
    changed = set()
    for name in states[0]:
        versions = [state[name]["metadata"]["resourceVersion"] for state in states]
        print(f"{name:76} {versions}")
        if len(set(versions)) > 1:
            changed.add(name)
            assert len({json.dumps(state[name].get("spec")) for state in states}) == 1
    assert changed == {" ".join(CSI_DRIVER)}
    assert len(states[0]) == len(documents) >= 38
    state.delete()


def test_both_clouds_in_one_cluster(ground: installing.Ground) -> None:
    """In one namespace: each is installed and removed, the other's objects stay."""
    driver = ("CSIDriver", "", "cinder.csi.openstack.org")
    path = f"/apis/storage.k8s.io/v1/csidrivers/{driver[2]}"
    other = dataclasses.replace(CASE, chart=charts.UMBRELLA, kept={driver: path})
    before = installing.until(ground.everything)
    openstack = umbrellas.release(ground, other, CASE.home)
    openstack.run("install", charts.of(other.chart)["defaults"])
    owned = openstack.check()
    between = installing.until(ground.everything)
    dvp = umbrellas.release(ground, CASE, CASE.home)
    dvp.run("install", snapshot("child"))
    both = dvp.check()
    assert owned & both == set()
    openstack.check()
    dvp.uninstall(between)
    assert openstack.check() == owned
    openstack.uninstall(before)
