"""Each row of the contract of Cluster API, on live objects of its core and on the CRDs.

Prints the rows; one without a test, or a test without a row, fails.

Source: kubernetes-sigs/cluster-api docs/book/src/developer/providers/contracts.
"""

import dataclasses
import functools
import json
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab.dvp.kinds import DISKS
from lib.lab.dvp.kinds import MACHINES as VMS
from lib.lab.dvp.workload_objects import DVP_CLUSTER_TEMPLATES
from lib.lab.kube import cluster
from lib.lab.run import waiting
from tests.harness.kube import audit
from tests.harness.machines import (
    capdvp_replicas,
    cluster_objects,
    life,
)
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.cluster_objects import (
    CLUSTERS,
    DEPLOYMENTS,
    DVP_CLUSTERS,
    DVP_MACHINES,
    DVP_TEMPLATES,
    MACHINES,
    Json,
)
from tests.harness.machines.contract_rows import FIELDS, RULES
from tests.harness.machines.status_history import StatusHistory

ZONE = "a"
QUIET_S = 3.0
"""For how long nothing may happen, where that is shown."""
GROUP = cluster_objects.GROUP
SETS = Resource(GROUP, "v1beta2", "machinesets", "MachineSet", True)
_BOOTSTRAP = f"bootstrap.{GROUP}"
CONFIGS = Resource(_BOOTSTRAP, "v1alpha1", "labconfigs", "LabConfig", True)
CONFIG_TEMPLATES = Resource(
    _BOOTSTRAP, "v1alpha1", "labconfigtemplates", "LabConfigTemplate", True
)
CLUSTERCTL = pathlib.Path("charts/capdvp/clusterctl")
PROVIDER = f"{GROUP}/provider"
AGGREGATE = "capi-aggregated-manager-role"
Rule = Callable[["Live"], str]
CHECKS: dict[str, Rule] = {}


@dataclasses.dataclass
class Live:
    """One Machine of a MachineDeployment, from its creation on. name: of the Machine.

    capdvp: the replica that runs.
    """

    stage: CapiStage
    history: StatusHistory
    capdvp: CapdvpReplicas
    name: str = ""

    def get(self, kind: Resource, name: str = "") -> Json:
        """Return an object that exists."""
        document = self.stage.fleet.objects.get(kind, name or self.name)
        assert document is not None, f"{kind.kind} {name}"
        return document

    def cluster(self, kind: Resource) -> Json:
        """Return the Cluster, or its infrastructure."""
        return self.get(kind, self.stage.fleet.name)

    def vm(self) -> Json:
        """Return the VM."""
        vm = self.stage.fleet.in_parent.get(VMS, self.name)
        assert vm is not None
        return vm

    def condition(self, type_: str, kind: Resource = DVP_MACHINES) -> Json:
        """Return a condition of the Machine, or of its object of DVP."""
        return life.condition(self.get(kind), type_)

    def until_condition(self, type_: str, status: str) -> Json:
        """Return a condition of the object of DVP once it has a status."""
        waiting.until(
            f"{type_} is {status}",
            lambda: self.condition(type_).get("status") == status,
        )
        return self.condition(type_)

    def rejected(self, kind: Resource, name: str, **parts: object) -> str:
        """Return the message with which a change is rejected; empty: it is not."""
        try:
            self.stage.fleet.objects.patch(kind, name, **parts)
        except kube_errors.Invalid as error:
            return str(error)
        return ""

    def provide_bootstrap(self, name: str) -> None:
        """Report the data of a Machine as ready, as a bootstrap provider does."""
        config = self.get(MACHINES, name)["spec"]["bootstrap"]["configRef"]["name"]
        status = {
            "initialization": {"dataSecretCreated": True},
            "dataSecretName": cluster_objects.BOOTSTRAP,
        }
        self.stage.fleet.report(CONFIGS, config, status)

    def add_machine(self) -> str:
        """Have a second Machine created with its data; return its name."""
        fleet = self.stage.fleet
        fleet.scale(2)
        waiting.until("a second Machine exists", lambda: len(fleet.machines()) == 2)
        (name,) = fleet.picture().machines - {self.name}
        self.provide_bootstrap(name)
        return name

    def replace_capdvp(self, *flags: str) -> None:
        """Run capdvp with other flags."""
        self.capdvp.stop()
        stage = self.stage
        self.capdvp = CapdvpReplicas(
            stage.where, stage.project, stage.kubeconfig, stage.parent_kubeconfig, flags
        )
        self.capdvp.start()


def row(name: str) -> Callable[[Rule], Rule]:
    def register(check: Rule) -> Rule:
        assert name not in CHECKS
        CHECKS[name] = check
        return check

    return register


@pytest.fixture(scope="module")
def live(stage: CapiStage) -> Iterator[Live]:
    """Create a Cluster, and a Machine whose bootstrap data is not ready.

    capdvp starts when they exist.
    """
    fleet, history = stage.fleet, StatusHistory()
    fleet.create_cluster()
    fleet.create_template("small")
    create_bootstrap(stage)
    config = cluster_objects.reference(CONFIG_TEMPLATES, "late")
    with history.watched(fleet.api):
        fleet.create_deployment(
            "small", 1, failureDomain=ZONE, bootstrap={"configRef": config}
        )
        waiting.until("a Machine exists", fleet.machines)
        opened = Live(stage, history, stage.capdvp())
        (opened.name,) = fleet.picture().machines
        try:
            opened.replace_capdvp(f"--zones={ZONE},b")
            waiting.until(
                "the machine waits for bootstrap data",
                lambda: opened.condition("Ready").get("reason")
                == "WaitingForBootstrapScript",
            )
            opened.provide_bootstrap(opened.name)
            fleet.until_whole(1)
            yield opened
        finally:
            opened.capdvp.stop()


def create_bootstrap(stage: CapiStage) -> None:
    """Have the child serve a bootstrap provider's kinds; no provider runs."""
    objects = stage.fleet.objects
    for kind in (CONFIGS, CONFIG_TEMPLATES):
        definition = cluster_objects.open_definition(kind)
        by_kind = {resources.DEFINITIONS.kind: resources.DEFINITIONS}
        cluster.create_documents(stage.fleet.api, [definition], by_kind)
        cluster_objects.until_served(objects, kind)
    objects.make(CONFIG_TEMPLATES, "late", spec={"template": {"spec": {}}})


def definitions(live: Live) -> Mapping[str, Json]:
    """Return the definitions of DVP that the API server has, by kind."""
    return {
        item["spec"]["names"]["kind"]: item
        for item in live.stage.fleet.objects.all(resources.DEFINITIONS)
        if item["spec"]["group"] == DVP_MACHINES.group
    }


# ------------------------------------------------------------ 6.1, fields


@row("scope, names")
def scope(live: Live) -> str:
    for kind, document in definitions(live).items():
        spec, plural = document["spec"], f"{kind.lower()}s"
        assert spec["scope"] == "Namespaced"
        assert document["metadata"]["name"] == f"{plural}.{spec['group']}"
        assert document["status"]["acceptedNames"]["listKind"] == f"{kind}List"
    return f"{len(definitions(live))} kinds"


@row("CRD label")
def labels(live: Live) -> str:
    """The core finds the version by them: references have none."""
    for document in definitions(live).values():
        labels = document["metadata"]["labels"]
        version = document["spec"]["versions"][0]["name"]
        assert labels[f"{GROUP}/v1beta2"] == version
        assert f"{GROUP}/v1beta1" not in labels, "it is not met"
    reference = live.get(MACHINES)["spec"]["infrastructureRef"]
    assert reference == cluster_objects.reference(DVP_MACHINES, live.name)
    return "v1beta2"


@row("InfraCluster endpoint")
def endpoint(live: Live) -> str:
    """The core copies it; empty texts and other ports are rejected."""
    own = live.cluster(DVP_CLUSTERS)["spec"]["controlPlaneEndpoint"]
    assert live.cluster(CLUSTERS)["spec"]["controlPlaneEndpoint"] == own
    for field, value in (("host", ""), ("host", "a" * 513), ("port", 65536)):
        changed = {"controlPlaneEndpoint": {field: value}}
        name = live.stage.fleet.name
        assert f".{field}" in live.rejected(DVP_CLUSTERS, name, spec=changed)
    return f"{own['host']}:{own['port']}"


@row("InfraCluster done")
def cluster_done(live: Live) -> str:
    status = live.cluster(DVP_CLUSTERS)["status"]
    assert status["initialization"]["provisioned"] is True
    assert status["ready"] is True
    of_core = live.cluster(CLUSTERS)["status"]["initialization"]
    assert of_core["infrastructureProvisioned"] is True
    return "initialization.provisioned, ready; the Cluster is provisioned"


@row("failure domains")
def domains(live: Live) -> str:
    own = live.cluster(DVP_CLUSTERS)["status"]["failureDomains"]
    of_core = live.cluster(CLUSTERS)["status"]["failureDomains"]
    assert [domain["name"] for domain in own] == [ZONE, "b"]
    assert of_core == own
    return ", ".join(domain["name"] for domain in own)


@row("InfraMachine id")
def provider_id(live: Live) -> str:
    ids = {
        live.get(kind)["spec"]["providerID"]
        for kind in (DVP_MACHINES, MACHINES, resources.NODES)
    }
    assert ids == {f"dvp://{live.name}"}
    other = live.rejected(DVP_MACHINES, live.name, spec={"providerID": "dvp://other"})
    assert "providerID: must not change once it is set" in other
    return "equal on DeckhouseMachine, Machine and Node"


@row("InfraMachine done")
def done(live: Live) -> str:
    """A VM that is stopped stays provisioned; so does its Machine."""
    parent, project = live.stage.parent, live.stage.project
    parent.operate(project, live.name, "Stop")
    stopped = live.until_condition("Ready", "False")
    assert stopped["reason"] == "VMInStoppedState"
    status = live.get(DVP_MACHINES)["status"]
    assert status["initialization"]["provisioned"] is True
    assert status["ready"] is True
    of_core = live.get(MACHINES)["status"]["initialization"]
    assert of_core["infrastructureProvisioned"] is True
    parent.operate(project, live.name, "Start")
    live.until_condition("Ready", "True")
    return "stays true while the VM is stopped"


@row("placement")
def placement(live: Live) -> str:
    assert live.get(MACHINES)["spec"]["failureDomain"] == ZONE
    selector = live.vm()["spec"]["nodeSelector"]
    assert selector == {"topology.kubernetes.io/zone": ZONE}
    assert live.get(DVP_MACHINES)["status"]["failureDomain"] == ZONE
    return f"zone {ZONE} of Machine, VM and status"


@row("addresses")
def addresses(live: Live) -> str:
    own = live.get(DVP_MACHINES)["status"]["addresses"]
    assert live.get(MACHINES)["status"]["addresses"] == own
    types = [address["type"] for address in own]
    assert types == ["Hostname", "InternalDNS", "InternalIP", "ExternalIP"]
    return ", ".join(types)


@row("conditions")
def conditions(live: Live) -> str:
    """Ready is mirrored by the core to InfrastructureReady."""
    machine = live.get(DVP_MACHINES)
    rows = machine["status"]["conditions"]
    for condition in rows:
        assert condition["reason"]
        assert condition["lastTransitionTime"]
        assert condition["observedGeneration"] == machine["metadata"]["generation"]
    ready = live.condition("Ready")
    waiting.until(
        "the core mirrors Ready",
        lambda: live.condition("InfrastructureReady", MACHINES).get("status") == "True",
    )
    mirrored = live.condition("InfrastructureReady", MACHINES)
    assert (mirrored["status"], mirrored["reason"]) == ("True", ready["reason"])
    return ", ".join(condition["type"] for condition in rows)


@row("terminal failure")
def failure(live: Live) -> str:
    """A disk that failed for good, of a second Machine that never runs."""
    fleet = live.stage.fleet
    parent = live.stage.parent
    with (
        parent.failing("disk-ready * ProvisioningFailedTerminally no space"),
        parent.holding("machine-started"),
    ):
        name = live.add_machine()
        waiting.until("a machine fails", lambda: has_failed(live, name))
        status = live.get(DVP_MACHINES, name)["status"]
        assert status["failureReason"] == "DiskFailed"
        assert "no space" in status["failureMessage"]

        def mirrored() -> Json:
            of_core = fleet.objects.get(MACHINES, name) or {}
            return life.condition(of_core, "InfrastructureReady")

        waiting.until("the core shows it", lambda: "no space" in str(mirrored()))
        assert mirrored()["status"] == "False"
        fleet.scale(1)
        fleet.until_whole(1, without=[name])
    return f"{status['failureReason']}: {status['failureMessage']}"


def has_failed(live: Live, name: str) -> bool:
    return "failureReason" in live.get(DVP_MACHINES, name).get("status", {})


@row("templates")
def templates(live: Live) -> str:
    """The core clones it; its status describes a Node that does not exist yet."""
    template = live.get(DVP_TEMPLATES, "small")
    (owner,) = template["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Cluster", live.stage.fleet.name)
    annotations = live.get(DVP_MACHINES)["metadata"]["annotations"]
    assert annotations[f"{GROUP}/cloned-from-name"] == "small"
    kind = f"{DVP_TEMPLATES.kind}.{DVP_TEMPLATES.group}"
    assert annotations[f"{GROUP}/cloned-from-groupkind"] == kind
    own = live.get(DVP_MACHINES)["spec"]
    cloned = template["spec"]["template"]["spec"]
    assert cloned == {name: own[name] for name in cloned}
    shown = template["status"]
    assert shown["capacity"] == {"cpu": "1", "memory": "256Mi"}
    node = {"architecture": "amd64", "operatingSystem": "linux"}
    assert shown["nodeInfo"] == node
    return f"cloned {', '.join(cloned)}; capacity {shown['capacity']}"


@row("cluster template")
def cluster_template(live: Live) -> str:
    """A ClusterClass refers to it: it is accepted, kept and deleted."""
    objects = live.stage.fleet.objects
    spec: Json = {"template": {"spec": {}}}
    objects.make(DVP_CLUSTER_TEMPLATES, "class", spec=spec)
    stored = objects.get(DVP_CLUSTER_TEMPLATES, "class") or {}
    assert stored["spec"] == spec
    assert "status" not in stored
    objects.delete(DVP_CLUSTER_TEMPLATES, "class")
    return "created, read and deleted"


@row("order of reading")
def order(live: Live) -> str:
    """No version of the object was provisioned without an ID."""
    versions = live.history.versions(DVP_MACHINES.kind, live.name)
    for version in versions:
        status = version.status.get("initialization", {})
        assert not status.get("provisioned") or version.spec.get("providerID")
    return f"provider ID before provisioned, in {len(versions)} versions"


# ------------------------------------------------------------ 6.2, rules


@row("owner")
def owner(live: Live) -> str:
    """The Machine is the only controller; without an owner nothing is written."""
    for kind, name, owning in (
        (DVP_MACHINES, live.name, MACHINES),
        (DVP_CLUSTERS, live.stage.fleet.name, CLUSTERS),
    ):
        about = live.get(kind, name)["metadata"]
        (reference,) = about["ownerReferences"]
        assert (reference["kind"], reference["name"]) == (owning.kind, name)
        assert about["labels"][cluster_objects.NAME_LABEL] == live.stage.fleet.name
    (controller,) = live.get(DVP_MACHINES)["metadata"]["ownerReferences"]
    assert controller["controller"] is True
    objects = live.stage.fleet.objects
    objects.make(DVP_MACHINES, "lonely", spec=cluster_objects.machine_spec())
    check_untouched(live, DVP_MACHINES, "lonely")
    return "nothing is written without one"


def check_untouched(live: Live, kind: Resource, name: str) -> None:
    """Delete an object that capdvp has not written within a while."""
    time.sleep(QUIET_S)
    document = live.get(kind, name)
    assert "finalizers" not in document["metadata"]
    assert "status" not in document
    assert live.stage.fleet.in_parent.get(VMS, name) is None
    live.stage.fleet.objects.delete(kind, name)


@row("paused")
def paused(live: Live) -> str:
    """By annotation; that of the Cluster is an action of `machines_test.py`."""
    key = f"{GROUP}/paused"
    objects = live.stage.fleet.objects
    objects.patch(DVP_MACHINES, live.name, metadata={"annotations": {key: "false"}})
    live.until_condition("Paused", "True")
    objects.patch(DVP_MACHINES, live.name, metadata={"annotations": {key: None}})
    live.until_condition("Paused", "False")
    return "annotation of any value"


@row("watch filter and namespace")
def filtered(live: Live) -> str:
    """A Machine that no flag excludes is created; another one is not touched."""
    fleet = live.stage.fleet
    live.replace_capdvp("--watch-filter=mine", f"--namespace={fleet.objects.namespace}")
    name = live.add_machine()
    waiting.until(
        "its object has an owner",
        lambda: live.get(DVP_MACHINES, name)["metadata"].get("ownerReferences"),
    )
    time.sleep(QUIET_S)
    assert "status" not in live.get(DVP_MACHINES, name)
    mine = {"labels": {f"{GROUP}/watch-filter": "mine"}}
    fleet.objects.patch(DVP_MACHINES, name, metadata=mine)
    fleet.until_whole(2)
    live.replace_capdvp("--namespace=elsewhere")
    fleet.delete_machine(name)
    waiting.until("the core deletes its object", lambda: is_ending(live, name))
    time.sleep(QUIET_S)
    assert fleet.in_parent.get(VMS, name) is not None
    fleet.scale(1)
    live.replace_capdvp()
    fleet.until_whole(1, without=[name])
    return "objects of others are not touched, also in a deletion"


def is_ending(live: Live, name: str) -> bool:
    return "deletionTimestamp" in live.get(DVP_MACHINES, name)["metadata"]


@row("waits")
def waits(live: Live) -> str:
    """For the infrastructure of the cluster, then for bootstrap data."""
    reasons = [
        str(condition["reason"])
        for version in live.history.versions(DVP_MACHINES.kind, live.name)
        for condition in version.status.get("conditions", ())
        if condition["type"] == "Ready"
    ]
    expected = ["WaitingForClusterInfrastructure", "WaitingForBootstrapScript"]
    assert list(dict.fromkeys(reasons))[:2] == expected
    return ", ".join(expected)


@row("finalizer")
def finalizer(live: Live) -> str:
    """It was added before the VM was created, by both audit logs."""
    added = min(
        entry.received
        for entry in audit.rows(live.stage.where, capdvp_replicas.ACCOUNT)
        if (entry.verb, entry.resource, entry.subresource, entry.name)
        == ("patch", DVP_MACHINES.plural, "", live.name)
    )
    created = min(
        entry.received
        for entry in audit.rows(live.stage.parent.where, live.stage.account)
        if (entry.verb, entry.name) == ("create", live.name)
    )
    assert added < created
    first = next(
        version.metadata.finalizers
        for version in live.history.versions(DVP_MACHINES.kind, live.name)
        if version.metadata.finalizers
    )
    assert list(first) == [f"deckhousemachine.{DVP_MACHINES.group}"]
    return f"{first[0]}, before the VM"


@row("providerID match")
def match(live: Live) -> str:
    nodes = live.stage.fleet.objects.all(resources.NODES)
    ids = [node["spec"].get("providerID") for node in nodes]
    assert ids.count(f"dvp://{live.name}") == 1
    assert live.get(MACHINES)["status"]["nodeRef"] == {"name": live.name}
    return "one Node; the Machine refers to it"


@row("status lost by a move")
def moved(live: Live) -> str:
    before = live.get(DVP_MACHINES)["status"]
    written = live.vm()["metadata"]["generation"]
    live.stage.fleet.report(DVP_MACHINES, live.name, None)
    live.until_condition("Ready", "True")

    def without_times(status: Any) -> Any:
        rows = [{**c, "lastTransitionTime": ""} for c in status["conditions"]]
        return {**status, "conditions": sorted(rows, key=lambda c: str(c["type"]))}

    after = live.get(DVP_MACHINES)["status"]
    assert without_times(after) == without_times(before)
    assert live.vm()["metadata"]["generation"] == written
    return "rebuilt from the VM, which is not changed"


@row("externally managed")
def managed(live: Live) -> str:
    about = live.cluster(DVP_CLUSTERS)["metadata"]
    for place in ("labels", "annotations"):
        key = {place: {f"{GROUP}/managed-by": "another"}}
        meta = {"ownerReferences": about["ownerReferences"], **key}
        live.stage.fleet.objects.make(DVP_CLUSTERS, "external", meta, spec={})
        check_untouched(live, DVP_CLUSTERS, "external")
    return "label or annotation: not changed"


@row("RBAC")
def rbac(live: Live) -> str:
    """The role of the chart is aggregated to that of the core's manager."""
    role = live.get(resources.CLUSTER_ROLES, AGGREGATE)
    verbs = {
        (resource, verb)
        for rule in role["rules"]
        if DVP_MACHINES.group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = ("get", "list", "watch", "create", "patch", "delete")
    for kind in (DVP_CLUSTERS, DVP_MACHINES, DVP_TEMPLATES):
        assert {(kind.plural, verb) for verb in needed} <= verbs
    return f"{AGGREGATE}: {len(verbs)} verbs of three kinds"


@row("clusterctl")
def clusterctl(live: Live) -> str:
    """A move follows owners up to the Cluster; the CRDs have the provider's label."""
    series = yaml.safe_load((CLUSTERCTL / "metadata.yaml").read_text())["releaseSeries"]
    assert {release["contract"] for release in series} == {"v1beta2"}
    for document in definitions(live).values():
        assert document["metadata"]["labels"][PROVIDER] == "infrastructure-dvp"
    by_kind = {kind.kind: kind for kind in (CLUSTERS, DEPLOYMENTS, SETS, MACHINES)}
    chain, kind, name = [DVP_MACHINES.kind], DVP_MACHINES, live.name
    while kind is not CLUSTERS:
        reference = live.get(kind, name)["metadata"]["ownerReferences"][0]
        kind, name = by_kind[reference["kind"]], reference["name"]
        chain.append(kind.kind)
    return " of ".join(chain)


@row("dry run of topology")
def dry_run(live: Live) -> str:
    """The topology controller applies a template in a dry run, and compares the answer.

    Changed fields are accepted: no spec of a template is immutable. Unchanged ones come
    back unchanged: no default appears as a change, which would replace all Machines.
    """
    before = live.get(DVP_TEMPLATES, "small")

    def applied(**fields: object) -> Json:
        machine = {**before["spec"]["template"]["spec"], **fields}
        about = {
            "name": "small",
            "annotations": {"topology.cluster.x-k8s.io/dry-run": ""},
        }
        document = {
            "apiVersion": before["apiVersion"],
            "kind": before["kind"],
            "metadata": about,
            "spec": {"template": {"spec": machine}},
        }
        answer = live.stage.fleet.api.patch(
            DVP_TEMPLATES,
            "small",
            json.dumps(document).encode(),
            cluster_objects.NAMESPACE,
            content_type=client.APPLY_PATCH,
            query={"fieldManager": "capi-topology", "force": "true", "dryRun": "All"},
            timeout_s=30,
        )
        shown: Json = json.loads(answer)
        return shown

    assert applied()["spec"] == before["spec"]
    changed = {"memory": "512Mi", "vmClassName": "other", "rootDiskSize": "2Gi"}
    spec = applied(**changed)["spec"]["template"]["spec"]
    assert {name: spec[name] for name in changed} == changed
    assert live.get(DVP_TEMPLATES, "small") == before
    return f"accepted: {', '.join(changed)}; nothing is written"


@row("delete without cluster")
def delete(live: Live) -> str:
    """Cluster and Machine are removed, and the objects of DVP by the garbage collector.

    The last row: nothing of the Cluster exists afterwards.
    """
    fleet = live.stage.fleet
    gone = ((CLUSTERS, fleet.name), (MACHINES, live.name))
    for kind, name in gone:
        fleet.objects.delete(kind, name, None)
    for kind, name in gone:
        waiting.until(
            f"{kind.kind} is removed", functools.partial(is_removed, live, kind, name)
        )
    waiting.until("nothing is left", lambda: not any(fleet.owned().values()))
    waiting.until("its object is gone", lambda: not fleet.objects.all(DVP_MACHINES))
    assert not fleet.in_parent.all(DISKS)
    return "nothing is left in the parent"


def is_removed(live: Live, kind: Resource, name: str) -> bool:
    """Remove finalizers of an object as long as it exists; report whether it does not.

    The core adds them again.
    """
    objects = live.stage.fleet.objects
    try:
        objects.patch(kind, name, metadata={"finalizers": None})
    except kube_errors.NotFound:
        return True
    except kube_errors.Conflict:
        return False
    return objects.get(kind, name) is None


@pytest.mark.parametrize("name", CHECKS)
def test_row_of_the_contract(live: Live, name: str) -> None:
    print(f"{name:28} {CHECKS[name](live)}")


def test_no_row_is_missing() -> None:
    assert set(CHECKS) == {*FIELDS, *RULES}
