"""What the chart renders, by its snapshots, fits the program and what the lab runs.

tests/lab/charts holds them to what helm renders.
"""

import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from csi_controller import main
from lib.csi import options
from lib.lab.charts import charts
from lib.lab.daemons import csi
from lib.process import flags
from tests.harness import deckhouse_names

ROOT = pathlib.Path()
CHART = charts.folder(ROOT, "csi-controller")
SNAPSHOTS = charts.of("csi-controller")
DVP = "dvp"
OPENSTACK = tuple(name for name in SNAPSHOTS if name != DVP)
USUAL = "own-secret"
"""Has the chart's own values, where the lab has them too."""
CONTAINERS = ("provisioner", "attacher", "resizer", "livenessprobe", "controller")
"""In the reference's order, which has the snapshotter before livenessprobe."""

OTHERWISE = {
    "csi-address": "the lab's socket lies in its own folder",
    "v": "how much is logged; the reference's number",
    "leader-election-lease-duration": "the reference's; the lab has the default",
    "leader-election-renew-deadline": "the reference's; the lab has the default",
    "leader-election-retry-period": "the reference's; 5s is the default, too",
}
"""Why the chart tells a sidecar something that the lab does not."""
NOT_HERE = {"retry-interval-max": "a test does not wait five minutes for another try"}
"""Why the lab tells a sidecar something that the chart does not."""
NEVER_RUN = {
    "--csi-address=/csi/csi.sock": "the socket of the driver",
    "--probe-timeout=5s": "the reference's",
    "--http-endpoint=127.0.0.1:9818": "loopback of the host, which the kubelet probes",
}
"""All of livenessprobe, which the lab does not run; each with its purpose."""


def rendered(name: str, kind: str) -> list[dict[str, Any]]:
    return SNAPSHOTS[name].objects(ROOT, kind)


def pod(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].pod(ROOT)


def container(name: str, which: str) -> dict[str, Any]:
    (observed,) = (item for item in pod(name)["containers"] if item["name"] == which)
    assert isinstance(observed, dict)
    return observed


def flag(word: str) -> str:
    return word.lstrip("-").partition("=")[0]


def values(name: str) -> dict[str, Any]:
    return SNAPSHOTS[name].all_values(ROOT)


def judge(values_: Mapping[str, Any]) -> list[str]:
    """Return the fields that the schema refuses."""
    return charts.refused(ROOT, "csi-controller", values_)


@pytest.mark.parametrize("name", OPENSTACK)
def test_every_container_of_the_reference_is_there(name: str) -> None:
    assert tuple(item["name"] for item in pod(name)["containers"]) == CONTAINERS


@pytest.mark.parametrize("name", OPENSTACK)
def test_arguments_are_taken_by_the_program(name: str, tmp_path: pathlib.Path) -> None:
    """And each of them does something."""
    args = container(name, "controller")["args"]
    file = tmp_path / "cloud-config"
    file.touch()
    here = [argument.replace("/etc/config", str(tmp_path)) for argument in args]
    observed = flags.parse(main.FLAGS, here)
    assert observed.without_effect() == ()
    read = options.read(observed)
    arguments = values(name)
    assert read.cloud_configs == (str(file),)
    assert read.cluster == arguments["clusterUUID"]
    assert read.reads_claims == arguments["pvcAnnotations"]
    assert (read.http is None) == (arguments["httpEndpoint"] == "")


@pytest.mark.parametrize("name", OPENSTACK)
def test_cloud_conf_is_where_the_program_looks(name: str) -> None:
    args = container(name, "controller")["args"]
    (path,) = (pathlib.Path(a.partition("=")[2]) for a in args if "cloud-config" in a)
    mounts = {m["mountPath"]: m for m in container(name, "controller")["volumeMounts"]}
    volumes = {item["name"]: item for item in pod(name)["volumes"]}
    secret = volumes[mounts[str(path.parent)]["name"]]["secret"]["secretName"]
    own = {item["metadata"]["name"]: item["data"] for item in rendered(name, "Secret")}
    expected = values(name)["cloudConfig"]["secretName"]
    assert own.keys() == (set() if expected else {secret})
    assert secret == (expected or "csi-controller")
    assert all(path.name in data for data in own.values())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_all_containers_share_the_socket(name: str) -> None:
    (endpoint,) = (
        item.removeprefix("--endpoint=unix://")
        for item in container(name, "controller")["args"]
        if flag(item) == "endpoint"
    )
    for item in pod(name)["containers"]:
        mounts = {m["mountPath"]: m["name"] for m in item["volumeMounts"]}
        assert mounts[str(pathlib.Path(endpoint).parent)] == "socket", item["name"]
        if item["name"] != "controller":
            assert f"--csi-address={endpoint}" in item["args"]


@pytest.mark.parametrize("name", OPENSTACK)
def test_the_probe_asks_livenessprobe(name: str) -> None:
    asked = container(name, "controller")["livenessProbe"]["httpGet"]
    port = values(name)["sidecars"]["livenessprobe"]["port"]
    assert asked == {"host": "127.0.0.1", "path": "/healthz", "port": port}
    served = container(name, "livenessprobe")["args"]
    assert f"--http-endpoint=127.0.0.1:{port}" in served
    declared = container(name, "livenessprobe")["ports"]
    assert declared == [{"name": "healthz", "containerPort": port}]
    assert pod(name)["hostNetwork"]


def test_sidecars_are_told_what_the_lab_tells_them() -> None:
    """Or the table says why not, for each argument, both ways."""
    table = list(_told())
    for row in table:
        print(*row, sep=" | ")
    assert [row for row in table if not row[2]] == []
    reasons = {row[2] for row in table}
    spoken = {**OTHERWISE, **NOT_HERE, **NEVER_RUN}
    assert [name for name, why in spoken.items() if why not in reasons] == []


def _told() -> Iterator[tuple[str, str, str]]:
    """Yield container, argument and why it is right; empty: nobody knows."""
    for program in csi.SIDECARS:
        which = program.removeprefix("csi-")
        owned = container(USUAL, which)["args"]
        labs = (*csi.arguments(program), *csi.ELECTION)
        for word in owned:
            known = "the lab runs it" if word in labs else OTHERWISE.get(flag(word), "")
            yield which, word, known
        for word in (lab for lab in labs if lab not in owned):
            yield which, word, NOT_HERE.get(flag(word), "")
    for word in container(USUAL, "livenessprobe")["args"]:
        yield "livenessprobe", word, NEVER_RUN.get(word, "")


def test_other_values_change_no_flags() -> None:
    """They change values of flags. Only without topology one flag has no use."""
    other = next(name for name in OPENSTACK if name != USUAL)
    for which in CONTAINERS[:-1]:
        mine, not_owned = (container(n, which)["args"] for n in (USUAL, other))
        without = {"strict-topology"} if which == "provisioner" else set()
        arguments = [flag(item) for item in mine]
        assert without <= set(arguments)
        expected = [argument for argument in arguments if argument not in without]
        assert [flag(item) for item in not_owned] == expected


def test_topology_is_the_fourth_argument() -> None:
    """Source: Deckhouse's own tests, which look for it there."""
    observed = {n: container(n, "provisioner")["args"][3] for n in SNAPSHOTS}
    assert observed == {
        "own-secret": "--feature-gates=Topology=true",
        "shared-secret": "--feature-gates=Topology=false",
        DVP: "--feature-gates=Topology=false",
    }


def test_the_versions_are_those_of_the_lab() -> None:
    """livenessprobe's is the reference's."""
    locks = pathlib.Path("lib/lab/artifacts/modules").glob("csi*/go.mod")
    text = "".join(lock.read_text() for lock in locks)
    sidecars = yaml.safe_load((CHART / "values.yaml").read_text())["sidecars"]
    for program in csi.SIDECARS:
        which = program.removeprefix("csi-")
        (observed,) = re.findall(rf"kubernetes-csi/external-{which}/v\d+ (v\S+)", text)
        assert sidecars[which]["version"] == observed


@pytest.mark.parametrize("name", OPENSTACK)
def test_images_are_those_of_the_values(name: str) -> None:
    arguments = values(name)
    for which in CONTAINERS[:-1]:
        sidecar = arguments["sidecars"][which]
        separator = "@" if sidecar["version"].startswith("sha256:") else ":"
        expected = f"{sidecar['image']}{separator}{sidecar['version']}"
        assert container(name, which)["image"] == expected
    assert container(name, "controller")["image"] == arguments["image"]


@pytest.mark.parametrize("name", OPENSTACK)
def test_the_rights_and_the_driver_are_those_of_the_tests(name: str) -> None:
    """The lab runs all of them with files/; the chart moves only the namespace.

    Permissions to read Secrets by name are added, and claims only where they are read.
    """
    arguments = values(name)
    text = csi.manifest(reads_claims=arguments["pvcAnnotations"])
    home = SNAPSHOTS[name].namespace
    every = list(
        yaml.safe_load_all(text.replace("namespace: kube-system", f"namespace: {home}"))
    )
    if arguments["deckhouse"]["enabled"]:
        every = [deckhouse_names.CSI.renamed(item) for item in every]
    kinds = {item["kind"] for item in every} - {"CSIDriver"}
    observed = [
        deckhouse_names.without_labels(item)
        for kind in kinds
        for item in rendered(name, kind)
    ]
    assert all(item in observed for item in every if item["kind"] in kinds)
    more = [item["metadata"] for item in observed if item not in every]
    assert {item["name"] for item in more} <= {"csi-controller:secrets"}
    read = {
        (item["metadata"]["namespace"], secret)
        for item in observed
        if item["kind"] == "Role" and item not in every
        for rule in item["rules"]
        for secret in rule["resourceNames"]
    }
    assert read == {
        (s["namespace"], s["name"]) for s in arguments["storageClassSecrets"]
    }
    (account,) = rendered(name, "ServiceAccount")
    assert pod(name)["serviceAccountName"] == account["metadata"]["name"]


def granted(name: str) -> set[tuple[str, ...]]:
    """Return role, namespace, resource, name and verb of all permissions."""
    return {
        (role["metadata"]["name"].partition(":")[2], resource, of, verb)
        for role in (*rendered(name, "Role"), *rendered(name, "ClusterRole"))
        for rule in role["rules"]
        for resource in rule["resources"]
        for of in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def test_permissions_for_dvp_are_those_without_zones() -> None:
    """Leases have the name of the driver; prints what is not granted."""
    driver = rendered(DVP, "CSIDriver")[0]["metadata"]["name"]
    openstack = rendered(USUAL, "CSIDriver")[0]["metadata"]["name"]
    renamed = {
        tuple(
            word.replace(openstack.replace(".", "-"), driver.replace(".", "-"))
            for word in row
        )
        for row in granted(USUAL)
        if row[0] != "driver"  # of pvcAnnotations
    }
    missing = sorted(renamed - granted(DVP))
    print(*missing, sep="\n")
    assert granted(DVP) < renamed
    assert missing == [
        ("external-provisioner", resource, "", verb)
        for resource in ("csinodes", "nodes")
        for verb in ("list", "watch")
    ]
    subjects = {
        subject["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in rendered(DVP, kind)
        for subject in binding["subjects"]
    }
    assert subjects == {pod(DVP)["serviceAccountName"]} == {"csi-controller-dvp"}


WIDE = [
    ("secrets", {"list", "watch"}, "the sidecars read single Secrets"),
    ("persistentvolumes", {"update"}, "they patch"),
    ("volumeattachments", {"update"}, "they patch"),
    ("csistoragecapacities", {"*"}, "no --enable-capacity"),
    ("pods", {"*"}, "no --enable-capacity, no --handle-volume-inuse-error"),
    ("replicasets", {"*"}, "no --enable-capacity"),
    ("leases", {"list", "watch", "patch", "delete"}, "elections get and update"),
    ("events", {"list", "watch", "update"}, "they create and patch"),
]


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_no_permission_is_wider_than_what_is_used(name: str) -> None:
    """Source: the code of the sidecars at the versions of values.yaml."""
    roles = [*rendered(name, "Role"), *rendered(name, "ClusterRole")]
    rules = [rule for role in roles for rule in role["rules"]]
    for resource, verbs, why in WIDE:
        granted = {v for r in rules if resource in r["resources"] for v in r["verbs"]}
        print(f"{resource:24} {', '.join(sorted(granted)):44} {why}")
        assert not (granted if "*" in verbs else granted & verbs), resource
    for rule in rules:
        if {"secrets"} & set(rule["resources"]):
            assert rule["resourceNames"]
        if rule["resources"] == ["leases"] and rule["verbs"] != ["create"]:
            assert len(rule["resourceNames"]) == len(csi.SIDECARS)


def test_the_csi_driver_by_its_values() -> None:
    """The node plugin needs the object when the release is removed."""
    (usual,) = rendered(USUAL, "CSIDriver")
    (documented,) = yaml.safe_load_all((CHART / "files/csidriver.yaml").read_text())
    assert usual["spec"] == documented["spec"]
    assert usual["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (other,) = rendered("shared-secret", "CSIDriver")
    assert other["spec"]["fsGroupPolicy"] == "File"
    assert other["spec"]["podInfoOnMount"] is False


def test_templates_values_and_schema_know_the_same_keys() -> None:
    usual = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    texts = "".join(item.read_text() for item in (CHART / "templates").iterdir())
    shared = "".join(charts.library(pathlib.Path()).values())
    own, library = (
        set(re.findall(r"\.Values\.(\w+)", text)) for text in (texts, shared)
    )
    assert own <= set(usual) <= own | library
    assert set(schema["properties"]) == {*usual, "global", "library"}
    inner = schema["properties"]["sidecars"]["properties"]
    assert set(inner) == set(usual["sidecars"])
    assert set(re.findall(r"\$sidecars\.(\w+)", texts)) == set(usual["sidecars"])


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_values_of_the_snapshots_are_good(name: str) -> None:
    assert judge(values(name)) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"image": ""}, "image", id="no image"),
        pytest.param({"clusterUUID": ""}, "clusterUUID", id="no mark of volumes"),
        pytest.param(
            {"cloudConfig": {"text": ""}}, "cloudConfig", id="no cloud.conf at all"
        ),
        pytest.param(
            {"cloudConfig": {"secretName": "x"}}, "cloudConfig", id="two cloud.confs"
        ),
        pytest.param(
            {"clusterUUID": "x" * 256}, "clusterUUID", id="longer than Cinder takes"
        ),
        pytest.param({"image": "a\nb"}, "image", id="an image of two lines"),
        pytest.param(
            {"sidecars": {"attacher": {"image": "a\nb"}}},
            "sidecars.attacher.image",
            id="an image of a sidecar of two lines",
        ),
        pytest.param(
            {"priorityClassName": "a\nb"}, "priorityClassName", id="two lines"
        ),
        pytest.param(
            {"imagePullSecrets": ["a\nb"]}, "imagePullSecrets.0", id="a bad name"
        ),
        pytest.param(
            {"csiDriver": {"fsGroupPolicy": "Always"}},
            "csiDriver.fsGroupPolicy",
            id="unknown policy",
        ),
        pytest.param(
            {"csiDriver": {"volumeLifecycleModes": []}},
            "csiDriver.volumeLifecycleModes",
            id="no mode",
        ),
        pytest.param(
            {"storageClassSecrets": [{"name": "x"}]},
            "storageClassSecrets.0",
            id="a Secret of no namespace",
        ),
        pytest.param({"deckhouse": {"on": True}}, "deckhouse", id="unknown switch"),
        pytest.param({"httpEndpoint": "8080"}, "httpEndpoint", id="no host:port"),
        pytest.param(
            {"sidecars": {"attacher": {"image": ""}}},
            "sidecars.attacher.image",
            id="no image of a sidecar",
        ),
        pytest.param(
            {"sidecars": {"resizer": {"version": ""}}},
            "sidecars.resizer.version",
            id="no version of a sidecar",
        ),
        pytest.param(
            {"sidecars": {"timeout": "180"}}, "sidecars.timeout", id="no unit"
        ),
        pytest.param({"sidecars": {"snapshotter": {}}}, "sidecars", id="unknown key"),
    ],
)
def test_bad_values_are_refused(change: dict[str, Any], field: str) -> None:
    assert judge(charts.merged(values(USUAL), change)) == [field]
