"""Each row of the contract of Cluster API, on the flow or on the CRDs of capdvp.

Prints the rows; one without a test, or a test without a row, fails.

Source: kubernetes-sigs/cluster-api docs/book/src/developer/providers/contracts.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from lib.cloud.fake import machine_plans
from lib.kube import resources
from lib.machines import kinds, model
from lib.machines.clusters import model as clusters
from lib.machines.clusters import translate
from tests.harness.machines.contract_rows import FIELDS, RULES

Check = Callable[["Case"], str]
CHECKS: dict[str, Check] = {}
CRDS = pathlib.Path("charts/capdvp/crds")
AGGREGATED = "cluster.x-k8s.io/aggregate-to-manager"
Json = dict[str, Any]


class Case:
    """One ground, and the means to run a process on it."""

    def __init__(self, ground: Any, make_process: Callable[[Any], Any]) -> None:
        self.ground = ground
        self._make_process = make_process

    def settle(self) -> Any:
        process = self._make_process(self.ground)
        process.settle()
        return process

    def start(self) -> Any:
        return self._make_process(self.ground)

    def machine(self, name: str = "one") -> Json:
        document: Json = self.ground.get(self.ground.kinds.machine, name)
        return document

    def condition(self, type_: str = "Ready", name: str = "one") -> tuple[str, str]:
        result: tuple[str, str] = self.ground.conditions(name)[type_]
        return result

    def created(self) -> int:
        return len(self.ground.cloud.vms)


def row(name: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        assert name not in CHECKS
        CHECKS[name] = check
        return check

    return register


@functools.cache
def crds() -> dict[str, Json]:
    documents = (yaml.safe_load(path.read_text()) for path in CRDS.glob("*.yaml"))
    return {document["spec"]["names"]["kind"]: document for document in documents}


def schema(kind: str, *path: str) -> Json:
    node: Json = crds()[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        node = node["properties"][name]
    return node


# ------------------------------------------------------------ 6.1, fields


@row("scope, names")
def scope(case: Case) -> str:
    for kind, document in crds().items():
        spec = document["spec"]
        plural = kind.lower() + "s"
        assert spec["scope"] == "Namespaced"
        assert document["metadata"]["name"] == f"{plural}.{spec['group']}"
        assert spec["names"]["listKind"] == f"{kind}List"
        assert spec["group"] == "infrastructure.cluster.x-k8s.io"
    return f"{len(crds())} kinds"


@row("CRD label")
def labels(case: Case) -> str:
    for document in crds().values():
        version = document["spec"]["versions"][0]["name"]
        labels = document["metadata"]["labels"]
        assert labels["cluster.x-k8s.io/v1beta2"] == version
        # Machines are read as v1beta2, which a core before 1.11 does not serve.
        assert "cluster.x-k8s.io/v1beta1" not in labels
    return "v1beta2"


@row("InfraCluster endpoint")
def endpoint(case: Case) -> str:
    part = schema("DeckhouseCluster", "spec", "controlPlaneEndpoint")["properties"]
    assert (part["host"]["minLength"], part["host"]["maxLength"]) == (1, 512)
    assert (part["port"]["minimum"], part["port"]["maximum"]) == (1, 65535)
    return "host, port (field)"


@row("InfraCluster done")
def cluster_done(case: Case) -> str:
    status = schema("DeckhouseCluster", "status")["properties"]
    assert status["initialization"]["properties"]["provisioned"]["type"] == "boolean"
    assert status["ready"]["type"] == "boolean"
    return "initialization.provisioned, ready (fields)"


@row("failure domains")
def domains(case: Case) -> str:
    part = schema("DeckhouseCluster", "status", "failureDomains")
    assert part["x-kubernetes-list-map-keys"] == ["name"]
    assert (part["minItems"], part["maxItems"]) == (1, 100)
    assert set(part["items"]["properties"]) == {"name", "controlPlane", "attributes"}
    return "list by name (field)"


@row("InfraMachine id")
def provider_id(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    value = case.machine()["spec"]["providerID"]
    (vm,) = case.ground.cloud.vms.values()
    assert value == f"{machine_plans.SCHEME}{vm.id}"
    assert schema("DeckhouseMachine", "spec", "providerID")["maxLength"] == 512
    return str(value)


@row("InfraMachine done")
def done(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    (vm,) = case.ground.cloud.vms.values()
    vm.state = machine_plans.VmState.DOWN
    process = case.settle()
    process.drift()
    process.settle()
    status = case.machine()["status"]
    assert case.condition() == ("False", "VMInStoppedState")
    assert status["initialization"]["provisioned"] is True
    assert status["ready"] is True
    return "stays true while the instance is stopped"


@row("placement")
def placement(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    assert case.machine()["status"]["failureDomain"] == "zone-a"
    return "zone-a"


@row("addresses")
def addresses(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    listed = case.machine()["status"]["addresses"]
    types = [address["type"] for address in listed]
    assert types == ["Hostname", "InternalDNS", "InternalIP"]
    part = schema("DeckhouseMachine", "status", "addresses")["items"]["properties"]
    assert set(types) <= set(part["type"]["enum"])
    return ", ".join(types)


@row("conditions")
def conditions(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    machine = case.machine()
    rows = machine["status"]["conditions"]
    needed = {"type", "status", "reason", "message", "lastTransitionTime"}
    for condition in rows:
        assert set(condition) == needed | {"observedGeneration"}
        assert condition["observedGeneration"] == machine["metadata"]["generation"]
        assert condition["reason"]
    types = [condition["type"] for condition in rows]
    assert types == ["Ready", "VirtualMachineReady", "Paused", "DiskReady"]
    return ", ".join(types)


@row("terminal failure")
def failure(case: Case) -> str:
    case.ground.machine("one")
    case.ground.cloud.half = ["clone"] * 50
    process = case.start()
    while "failureReason" not in case.machine().get("status", {}):
        process.relist()
        process.turn()
        case.ground.now_s += 0.5
    assert case.machine()["status"]["failureReason"] == "VMInFailedState"
    case.ground.cloud.half = []
    process.settle(quiet_s=700)
    assert "failureReason" not in case.machine()["status"]
    assert case.condition()[0] == "True"
    return "failureReason, and removed once it is no more"


@row("templates")
def templates(case: Case) -> str:
    machine = schema("DeckhouseMachine", "spec")["properties"]
    template = schema("DeckhouseMachineTemplate", "spec", "template")["properties"]
    of_template = template["spec"]["properties"]
    assert set(template) == {"metadata", "spec"}
    assert {**of_template} == {name: machine[name] for name in of_template}
    assert set(machine) - set(of_template) == {"providerID", "failureDomain"}
    status = schema("DeckhouseMachineTemplate", "status")["properties"]
    assert {"capacity", "nodeInfo"} <= set(status)
    return f"{len(of_template)} fields as in the machine"


@row("cluster template")
def cluster_template(case: Case) -> str:
    """For a ClusterClass; nothing is written on it, and it has no status."""
    cluster = schema("DeckhouseCluster", "spec")["properties"]
    whole = schema("DeckhouseClusterTemplate")["properties"]
    template = whole["spec"]["properties"]["template"]
    assert set(template["properties"]) == {"metadata", "spec"}
    assert template["properties"]["spec"]["properties"] == cluster
    assert template["required"] == ["spec"]
    assert "status" not in whole
    return f"{len(cluster)} field as in the cluster"


@row("order of reading")
def order(case: Case) -> str:
    """When provisioned turns true, the provider ID must be on the object."""
    case.ground.machine("one")
    recorded: list[tuple[bool, bool]] = []

    def note(call: object) -> None:
        machine = case.machine()
        status = machine.get("status", {}).get("initialization", {})
        has_id = bool(machine["spec"].get("providerID"))
        recorded.append((has_id, status.get("provisioned") is True))

    case.ground.api.after_call = note
    case.settle()
    assert (False, True) not in recorded
    assert (True, False) in recorded
    return "provider ID before provisioned"


# ------------------------------------------------------------ 6.2, rules


@row("owner")
def owner(case: Case) -> str:
    reference = case.ground.machine("one")["metadata"]["ownerReferences"]
    kind = case.ground.kinds.machine
    case.ground.put(kind, "one", metadata={"ownerReferences": []})
    case.settle()
    assert (case.created(), "finalizers" in case.machine()["metadata"]) == (0, False)
    case.ground.put(kind, "one", metadata={"ownerReferences": reference})
    case.settle()
    assert case.created() == 1
    return "nothing is written without one"


@row("paused")
def paused(case: Case) -> str:
    case.ground.cluster(paused=True)
    case.ground.machine("one")
    kind = case.ground.kinds.machine
    case.settle()
    assert (case.created(), case.condition("Paused")) == (0, ("True", "Paused"))
    case.ground.cluster()
    annotated = {"annotations": {"cluster.x-k8s.io/paused": "false"}}
    case.ground.put(kind, "one", metadata=annotated)
    case.settle()
    assert (case.created(), case.condition("Paused")) == (0, ("True", "Paused"))
    case.ground.put(kind, "one", metadata={"annotations": {}})
    case.settle()
    assert (case.created(), case.condition("Paused")) == (1, ("False", "NotPaused"))
    case.ground.put(kind, "one", metadata=annotated)
    case.ground.delete("one")
    case.settle()
    assert case.created() == 1
    return "Cluster and annotation of any value, also for a deletion"


@row("watch filter and namespace")
def filtered(case: Case) -> str:
    case.ground.machine("one")
    for settings in ({"watch_filter": "x"}, {"namespace": "elsewhere"}):
        case.ground.settings = settings
        case.settle()
        assert case.created() == 0
    case.ground.settings = {"watch_filter": "x", "namespace": "machines"}
    labels_ = {**case.machine()["metadata"]["labels"]}
    labels_["cluster.x-k8s.io/watch-filter"] = "x"
    case.ground.put(case.ground.kinds.machine, "one", metadata={"labels": labels_})
    case.settle()
    assert case.created() == 1
    return "others are ignored"


@row("waits")
def waits(case: Case) -> str:
    case.ground.cluster(provisioned=False)
    case.ground.machine("one", secret=None)
    steps = []

    def state() -> None:
        process = case.settle()
        assert case.created() == 0
        assert process.turn() == 0
        steps.append(case.condition()[1])

    state()
    case.ground.cluster()
    state()
    case.ground.machine("one", secret="later")
    state()
    for data in ({"value": ""}, {"format": "ignition"}, {"value": "x" * 20_000}):
        case.ground.secret("later", **data)
        state()
    case.ground.secret("later")
    case.settle()
    assert case.created() == 1
    expected = ["WaitingForClusterInfrastructure", "WaitingForBootstrapScript"]
    assert steps == expected + ["InvalidBootstrapData"] * 4
    return ", ".join(dict.fromkeys(steps))


@row("finalizer")
def finalizer(case: Case) -> str:
    """It is on the object before the first write of the cloud."""
    case.ground.machine("one")
    first: list[Any] = []

    def note(operation: str) -> None:
        if not operation.startswith(("list", "read")):
            first.append(case.machine()["metadata"].get("finalizers"))

    case.ground.cloud.before_call = note
    case.settle()
    assert first[0] == [case.ground.kinds.finalizer]
    case.ground.delete("one")
    case.settle()
    assert case.ground.get(case.ground.kinds.machine, "one") is None
    return "before the first step, and removed with the last"


@row("delete without cluster")
def delete(case: Case) -> str:
    """Cluster and Machine are deleted first, and the data with them."""
    case.ground.machine("one")
    case.settle()
    kinds = case.ground.kinds
    case.ground.delete("one")
    case.ground.api.remove(kinds.clusters, "one", "machines")
    case.ground.api.remove(kinds.owners, "one", "machines")
    case.ground.api.remove(resources.SECRETS, "one-bootstrap", "machines")
    case.settle()
    assert case.created() == 0
    assert case.ground.get(kinds.machine, "one") is None
    return "nothing is left"


@row("providerID match")
def match(case: Case) -> str:
    """No two machines have one provider ID."""
    for name in ("one", "two"):
        case.ground.machine(name)
    case.settle()
    ids = {case.machine(name)["spec"]["providerID"] for name in ("one", "two")}
    assert len(ids) == 2
    return "one machine per ID"


@row("status lost by a move")
def moved(case: Case) -> str:
    case.ground.machine("one")
    case.settle()
    before = case.machine()["status"]
    case.ground.put(case.ground.kinds.machine, "one", status=None)
    case.ground.cluster(provisioned=False)
    written = len([c for c in case.ground.cloud.calls if c.startswith("change")])
    case.settle()
    after = case.machine()["status"]
    for status in (before, after):
        for condition in status["conditions"]:
            condition.pop("lastTransitionTime")
    assert after == before
    calls = [c for c in case.ground.cloud.calls if c.startswith("change")]
    assert (len(calls), case.created()) == (written, 1)
    return "rebuilt from the cloud, also in a Cluster that is not provisioned yet"


@row("externally managed")
def managed(case: Case) -> str:
    """The text of the contract says label, the code of Cluster API annotation."""
    del case
    key, finalizer = "cluster.x-k8s.io/managed-by", "f"
    owner = kinds.OwnerCluster(kinds.OwnedMeta(name="one"))
    settings = model.MachineSettings("cluster-1")
    stages = []
    for keys in ({}, {"labels": {key: "x"}}, {"annotations": {key: "x"}}):
        about = kinds.OwnedMeta(name="one", **keys)  # type: ignore[arg-type]
        infrastructure = kinds.ClusterObject(about)
        stages.append(translate.stage(infrastructure, owner, finalizer, settings))
    ignored = clusters.ClusterStage.IGNORED
    assert stages == [clusters.ClusterStage.DESIRED, ignored, ignored]
    return "label or annotation: not changed"


@row("dry run of topology")
def dry_run(case: Case) -> str:
    """No rule compares a template with what it was: a dry run needs no exemption."""
    del case
    rules = {path.stem: path.read_text().count("oldSelf") for path in CRDS.glob("*")}
    immutable = {name for name, count in rules.items() if count}
    assert immutable == {"deckhousemachines"}
    text = (CRDS / "deckhousemachines.yaml").read_text()
    assert text.count("oldSelf") == text.count("oldSelf.providerID") == 3
    return "no field of a template is immutable"


@row("RBAC")
def rbac(case: Case) -> str:
    del case
    text = (CRDS.parent / "files/rbac.yaml").read_text()
    (role,) = (
        document
        for document in yaml.safe_load_all(text)
        if document["metadata"].get("labels", {}).get(AGGREGATED) == "true"
    )
    (rule,) = role["rules"]
    names = {path.stem for path in CRDS.glob("*.yaml")}
    assert role["kind"] == "ClusterRole"
    assert set(rule["resources"]) == names
    assert {"get", "list", "watch", "create", "patch", "delete"} <= set(rule["verbs"])
    return f"{role['metadata']['name']}: {len(names)} kinds"


@row("clusterctl")
def clusterctl(case: Case) -> str:
    del case
    folder = CRDS.parent / "clusterctl"
    series = yaml.safe_load((folder / "metadata.yaml").read_text())["releaseSeries"]
    text = (folder / "infrastructure-components.yaml").read_text()
    documents = [document for document in yaml.safe_load_all(text) if document]
    of_kind = [document["kind"] for document in documents]
    assert {row_["contract"] for row_ in series} == {"v1beta2"}
    assert of_kind.count("Namespace") == 1
    labelled = [
        document["kind"]
        for document in documents
        if (document["metadata"].get("labels") or {}).get("cluster.x-k8s.io/provider")
        == "infrastructure-dvp"
    ]
    assert {"Namespace", "CustomResourceDefinition", "Deployment"} <= set(labelled)
    (program,) = (row_ for row_ in documents if row_["kind"] == "Deployment")
    containers = program["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers] == ["manager"]
    return f"{len(documents)} objects in one file, contract v1beta2"


@pytest.mark.parametrize("name", [*FIELDS, *RULES])
def test_row_of_the_contract(name: str, make_ground: Any, make_process: Any) -> None:
    text = CHECKS[name](Case(make_ground(), make_process))
    print(f"{name:28} {text}")


def test_no_row_is_missing() -> None:
    assert set(CHECKS) == {*FIELDS, *RULES}
    assert len(CHECKS) == 26
