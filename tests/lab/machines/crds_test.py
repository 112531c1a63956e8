"""The custom resources of charts/capdvp, validated by a real API server."""

import contextlib
import copy
import datetime
import functools
import json
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml

from lib.cloud.fake import machines as fake_cloud
from lib.cloud.machines import ConditionState, Reason, Results, Target
from lib.cloud.model import Address, AddressType
from lib.kube import client, errors, events, resources, store
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.run import waiting
from lib.machines import act, bootstrap, kinds, model, status
from lib.plans import engine

TIMEOUT_S = 10.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = {"fieldValidation": "Strict"}
"""As kubectl requests: unknown fields are rejected."""
GROUP = "infrastructure.cluster.x-k8s.io"


def kind_of(kind: str, plural: str) -> resources.Resource:
    return resources.Resource(GROUP, "v1alpha1", plural, kind, True)


CLUSTERS = kind_of("DeckhouseCluster", "deckhouseclusters")
MACHINES = kind_of("DeckhouseMachine", "deckhousemachines")
TEMPLATES = kind_of("DeckhouseMachineTemplate", "deckhousemachinetemplates")
CLUSTER_TEMPLATES = kind_of("DeckhouseClusterTemplate", "deckhouseclustertemplates")
KINDS = (CLUSTERS, CLUSTER_TEMPLATES, MACHINES, TEMPLATES)

Json = dict[str, Any]
LEAST: Json = {
    "vmClassName": "generic",
    "cpu": {},
    "memory": "8Gi",
    "rootDiskSize": "50Gi",
    "rootDiskStorageClass": "fast",
    "bootDiskImageRef": {"name": "ubuntu"},
}
# As the reference of the older release writes them, from the template of its chart.
OLD: Json = {
    **LEAST,
    "providerID": "",
    "cpu": {"cores": 4, "cpuFraction": "100%"},
    "bootDiskImageRef": {"kind": "ClusterVirtualImage", "name": "ubuntu-2204"},
    "bootloader": "EFI",
    "additionalDisks": [{"size": "10Gi", "storageClass": "slow"}],
}
NEW: Json = {
    **OLD,
    "providerID": "dvp://worker-1",
    "runPolicy": "AlwaysOnUnlessStoppedManually",
    "liveMigrationPolicy": "PreferSafe",
}
FULL: Json = {
    **NEW,
    "failureDomain": "zone-a",
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "production",
    "additionalLabels": {"team": "web"},
    "additionalAnnotations": {"example.com/note": "x"},
}
OLD_STATUS: Json = {
    "ready": True,
    "initialization": {
        "infrastructureProvisioned": True,
        "bootstrapDataSecretCreated": True,
    },
    "addresses": [{"type": "Hostname", "address": "worker-1"}],
    "conditions": [{"type": "VirtualMachineReady", "status": "True", "severity": ""}],
    "failureReason": "UpdateError",
    "failureMessage": "VM is degraded",
}
NEW_STATUS: Json = {
    **OLD_STATUS,
    "initialization": {"provisioned": True},
    "failureDomain": "zone-a",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "VMRunning",
            "message": "",
            "lastTransitionTime": "2026-11-24T00:00:00Z",
            "observedGeneration": 2,
        }
    ],
}
OTHERS: list[Json] = [
    {"type": "Other", "status": "True", "reason": "x", "message": "of another client"},
    {"type": "Legacy", "status": "False", "severity": "Info"},
]
KINDS_OF_DVP = kinds.Kinds(
    MACHINES,
    "deckhousemachine.infrastructure.cluster.x-k8s.io",
    "VirtualMachineReady",
    "capdvp",
    mirrors=(("ready",), ("initialization", "infrastructureProvisioned")),
)
ENDPOINT: Json = {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}
ZONE: Json = {"name": "zone-a", "controlPlane": True, "attributes": {"x": "y"}}


def template(spec: Json) -> Json:
    return {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}}


def without_id(spec: Json) -> Json:
    left = ("providerID", "failureDomain")
    return {key: value for key, value in spec.items() if key not in left}


# What it is, kind, object.
VALID: list[tuple[str, resources.Resource, Json]] = [
    ("least machine", MACHINES, {"spec": LEAST}),
    ("old machine", MACHINES, {"spec": OLD, "status": OLD_STATUS}),
    ("new machine", MACHINES, {"spec": NEW, "status": NEW_STATUS}),
    ("all fields", MACHINES, {"spec": FULL, "status": NEW_STATUS}),
    ("numbers as quantities", MACHINES, {"spec": {**LEAST, "memory": 8589934592}}),
    (
        "policy for a condition",
        MACHINES,
        {"spec": {**LEAST, "liveMigrationPolicy": "Never"}},
    ),
    ("cluster without endpoint", CLUSTERS, {}),
    ("old cluster", CLUSTERS, {"spec": ENDPOINT, "status": {"ready": True}}),
    (
        "new cluster",
        CLUSTERS,
        {
            "spec": ENDPOINT,
            "status": {
                "initialization": {"provisioned": True},
                "failureDomains": [ZONE],
            },
        },
    ),
    ("least template", TEMPLATES, template(LEAST)),
    ("old template", TEMPLATES, template(without_id(OLD))),
    (
        "template with capacity",
        TEMPLATES,
        {
            **template(without_id(FULL)),
            "status": {
                "capacity": {"cpu": 4, "memory": "8Gi"},
                "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"},
            },
        },
    ),
]


def machine(**fields: object) -> tuple[resources.Resource, Json]:
    spec = {key: value for key, value in {**LEAST, **fields}.items() if value != "-"}
    return MACHINES, {"spec": spec}


def endpoint(**fields: object) -> tuple[resources.Resource, Json]:
    return CLUSTERS, {"spec": {"controlPlaneEndpoint": fields}}


# Object, and the field that the rejection has to name.
INVALID: list[tuple[tuple[resources.Resource, Json], str]] = [
    ((MACHINES, {}), "spec"),
    (machine(vmClassName="-"), "spec.vmClassName"),
    (machine(vmClassName=""), "spec.vmClassName"),
    (machine(cpu="-"), "spec.cpu"),
    (machine(cpu={"cores": 0}), "spec.cpu.cores"),
    (machine(cpu={"cores": "4"}), "spec.cpu.cores"),
    (machine(cpu={"cpuFraction": 50}), "spec.cpu.cpuFraction"),
    (machine(cpu={"cpuFraction": "0%"}), "spec.cpu.cpuFraction"),
    (machine(cpu={"cpuFraction": "101%"}), "spec.cpu.cpuFraction"),
    (machine(memory="8 GB"), "spec.memory"),
    (machine(memory="0"), "spec.memory"),
    (machine(memory=0), "spec.memory"),
    (machine(rootDiskSize="-"), "spec.rootDiskSize"),
    (machine(rootDiskSize="-5Gi"), "spec.rootDiskSize"),
    (machine(rootDiskStorageClass=""), "spec.rootDiskStorageClass"),
    (machine(bootDiskImageRef={}), "spec.bootDiskImageRef.name"),
    (
        machine(bootDiskImageRef={"kind": "Image", "name": "a"}),
        "spec.bootDiskImageRef.kind",
    ),
    (machine(bootloader="UEFI"), "spec.bootloader"),
    (machine(runPolicy="Always"), "spec.runPolicy"),
    (machine(liveMigrationPolicy="Sometimes"), "spec.liveMigrationPolicy"),
    (machine(additionalDisks=[{"size": "1Gi"}]), "additionalDisks[0].storageClass"),
    (
        machine(additionalDisks=[{"size": "x", "storageClass": "a"}]),
        "spec.additionalDisks[0].size",
    ),
    (
        machine(additionalDisks=[{"size": "1Gi", "storageClass": "a"}] * 16),
        "spec.additionalDisks",
    ),
    (machine(providerID="openstack:///1"), "spec.providerID"),
    (machine(providerID="dvp://" + "a" * 512), "spec.providerID"),
    (
        machine(additionalLabels={"virtualization.deckhouse.io/x": "y"}),
        "spec.additionalLabels",
    ),
    (
        machine(additionalLabels={"dvp.deckhouse.io/cluster-uuid": "y"}),
        "spec.additionalLabels",
    ),
    (
        machine(tolerations=[{"operator": "Exists", "value": "x"}]),
        "spec.tolerations[0]",
    ),
    (machine(vmClass="generic"), "spec.vmClass"),
    (endpoint(host="", port=6443), "spec.controlPlaneEndpoint.host"),
    (endpoint(host="a", port=65536), "spec.controlPlaneEndpoint.port"),
    (endpoint(host="a"), "spec.controlPlaneEndpoint"),
    ((TEMPLATES, {"spec": {}}), "spec.template"),
    ((TEMPLATES, template({**LEAST, "memory": "much"})), "template.spec.memory"),
    ((TEMPLATES, template({**LEAST, "providerID": "dvp://a"})), "spec.providerID"),
]
# Status, and the field that the rejection has to name.
INVALID_STATUS: list[tuple[resources.Resource, Json, str]] = [
    (MACHINES, {"addresses": [{"type": "IP", "address": "a"}]}, "addresses[0].type"),
    (MACHINES, {"conditions": [{"type": "Ready"}]}, "conditions[0].status"),
    (MACHINES, {"initialization": {"provisioned": "yes"}}, "provisioned"),
    (CLUSTERS, {"failureDomains": [{}]}, "failureDomains[0].name"),
    (TEMPLATES, {"capacity": {"cpu": "many"}}, "status.capacity"),
    (TEMPLATES, {"nodeInfo": {"architecture": "x86"}}, "nodeInfo.architecture"),
]


def definitions() -> list[Json]:
    folder = pathlib.Path("charts/capdvp/crds")
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]


def stored(api: client.Api) -> dict[str, Json]:
    """Return the definitions that the API server has, by name."""
    answer = json.loads(api.request("GET", DEFINITIONS, timeout_s=TIMEOUT_S))
    return {item["metadata"]["name"]: item for item in answer["items"]}


def is_served(api: client.Api, kind: resources.Resource) -> bool:
    """Report whether a kind can be listed, and its definition states that."""
    status = stored(api)[f"{kind.plural}.{GROUP}"].get("status") or {}
    rows = status.get("conditions") or ()  # null before the first one
    states = {row["type"]: row["status"] for row in rows}
    if states.get("Established") != "True":
        return False
    listing = functools.partial(
        api.list_page, kind, query={"limit": "1"}, timeout_s=TIMEOUT_S
    )
    return rejection(listing) == ""


@pytest.fixture(scope="module")
def crds(apart: places.Places) -> client.Api:
    """Have the custom resources served by a control plane of their own."""
    api = cluster.connect(control_plane.admin_kubeconfig(apart))
    for definition in definitions():
        with contextlib.suppress(errors.AlreadyExists):
            api.request(
                "POST",
                DEFINITIONS,
                query=STRICT,
                body=json.dumps(definition).encode(),
                timeout_s=TIMEOUT_S,
            )
    for kind in KINDS:
        waiting.until(
            f"{kind.plural} are served", functools.partial(is_served, api, kind)
        )
    return api


def send(
    api: client.Api, kind: resources.Resource, fields: Mapping[str, object], **more: str
) -> Json:
    """Create an object; more: of the query."""
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"generateName": "one-", "namespace": "default"},
        **fields,
    }
    answer = api.create(
        kind,
        json.dumps(body).encode(),
        "default",
        query={**STRICT, **more},
        timeout_s=TIMEOUT_S,
    )
    created: Json = json.loads(answer)
    return created


def write_status(
    api: client.Api, kind: resources.Resource, name: str, fields: Json
) -> Json:
    answer = api.patch(
        kind,
        name,
        json.dumps({"status": fields}).encode(),
        "default",
        subresource="status",
        query=STRICT,
        timeout_s=TIMEOUT_S,
    )
    now: Json = json.loads(answer)
    return now


def rejection(call: Any) -> str:
    """Return the message with which a request is rejected; empty: it is accepted."""
    try:
        call()
    except errors.KubeError as error:
        return str(error)
    return ""


def test_the_definitions_are_accepted_with_the_label_of_the_contract(
    crds: client.Api,
) -> None:
    names = {definition["metadata"]["name"] for definition in definitions()}
    assert names == {f"{kind.plural}.{GROUP}" for kind in KINDS}
    served = stored(crds)
    for definition in (served[name] for name in names):
        rows = definition["status"]["conditions"]
        states = {row["type"]: row["status"] for row in rows}
        assert (states["NamesAccepted"], states["Established"]) == ("True", "True")
        assert states.get("NonStructuralSchema", "False") == "False"
        labels = definition["metadata"]["labels"]
        assert "cluster.x-k8s.io/v1beta1" not in labels
        assert labels["cluster.x-k8s.io/v1beta2"] == "v1alpha1"
        assert labels["cluster.x-k8s.io/provider"] == "infrastructure-dvp"


def test_valid_objects_of_both_generations_are_accepted_and_kept(
    crds: client.Api,
) -> None:
    """No field is dropped, neither from the spec nor from the status."""
    for what, kind, fields in VALID:
        created = send(crds, kind, {k: v for k, v in fields.items() if k != "status"})
        reported = fields.get("status")
        if reported is not None:
            created = write_status(crds, kind, created["metadata"]["name"], reported)
        assert created.get("status") == reported
        lost = [key for key in fields.get("spec", {}) if key not in created["spec"]]
        print(f"{kind.kind:26} {what:26} accepted")
        assert not lost


def test_defaults_are_those_of_the_reference(crds: client.Api) -> None:
    least = {key: value for key, value in LEAST.items() if key != "memory"}
    created = send(crds, MACHINES, {"spec": least}, dryRun="All")["spec"]
    assert created["cpu"] == {"cores": 4, "cpuFraction": "100%"}
    assert created["bootDiskImageRef"]["kind"] == "VirtualImage"
    assert (created["memory"], created["bootloader"]) == ("8Gi", "EFI")


def test_invalid_objects_are_rejected_and_the_field_is_named(crds: client.Api) -> None:
    wrong = []
    for (kind, fields), field in INVALID:
        message = rejection(functools.partial(send, crds, kind, fields, dryRun="All"))
        print(f"{kind.kind:24} {field:34} {message[-120:] or 'accepted'}")
        if field not in message:
            wrong.append((field, message))
    for kind, reported, field in INVALID_STATUS:
        valid = next(fields for _, other, fields in VALID if other is kind)
        name = send(crds, kind, copy.deepcopy(valid))["metadata"]["name"]
        message = rejection(functools.partial(write_status, crds, kind, name, reported))
        print(f"{kind.kind:24} {field:34} {message[-120:] or 'accepted'}")
        if field not in message:
            wrong.append((field, message))
    print(f"{len(INVALID)} objects and {len(INVALID_STATUS)} statuses")
    assert len(INVALID) >= 30
    assert not wrong


def test_a_provider_id_is_set_once(crds: client.Api) -> None:
    name = send(crds, MACHINES, {"spec": OLD})["metadata"]["name"]

    def set_id(value: str | None) -> str:
        body = json.dumps({"spec": {"providerID": value}}).encode()
        return rejection(
            lambda: crds.patch(MACHINES, name, body, "default", timeout_s=TIMEOUT_S)
        )

    assert set_id("dvp://worker-1") == ""
    assert set_id("dvp://worker-1") == ""
    for other in ("dvp://worker-2", "", None):
        assert "providerID: must not change once it is set" in set_id(other)


def read(api: client.Api, name: str) -> kinds.MachineObject:
    body = api.read(MACHINES, name, "default", timeout_s=TIMEOUT_S)
    return msgspec.json.decode(body, type=kinds.MachineObject)


def actor(api: client.Api) -> act.MachineActor:
    """Return what writes a status; nothing else of it is used."""
    stores = model.Stores(
        store.Store(api, MACHINES, kinds.MachineObject),
        store.Store(api, KINDS_OF_DVP.owners, kinds.OwnerMachine),
        store.Store(api, KINDS_OF_DVP.clusters, kinds.OwnerCluster),
        store.Store(api, resources.SECRETS, bootstrap.BootstrapSecret),
    )
    memory = model.MachineMemory(time.monotonic)
    cloud = fake_cloud.FakeMachines(time.monotonic)
    writer = engine.Engine[Target, Results](lambda: cloud, memory, time.monotonic)

    def desire(
        machine: kinds.MachineObject, related: model.Related
    ) -> tuple[model.Snapshot, Target | None]:
        return model.Snapshot(machine, related=related), None

    dependencies = act.Dependencies(
        api,
        stores,
        KINDS_OF_DVP,
        events.Recorder(api, component="capdvp", host=""),
        writer,
        desire,
        lambda: (),
    )
    return act.MachineActor(dependencies, memory)


def test_a_status_is_applied_by_one_field_manager(crds: client.Api) -> None:
    """Conditions of others stay, failures of the reference are removed.

    Nothing is to be written afterwards, and the same request changes nothing.
    """
    name = send(crds, MACHINES, {"spec": NEW})["metadata"]["name"]
    write_status(crds, MACHINES, name, {**OLD_STATUS, "conditions": OTHERS})
    now = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
    results = Results(
        ConditionState(True, Reason.RUNNING),
        is_provisioned=True,
        provider_id="dvp://worker-1",
        addresses=(Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
    )
    shown = status.Shown(results.state, results)
    before = read(crds, name)
    write = status.change(before, KINDS_OF_DVP, shown, (), now)
    assert write is not None
    actor(crds).act(model.Snapshot(before), write)
    after = read(crds, name)
    assert set(status.recorded_conditions(after)) == {
        *("Ready", "VirtualMachineReady", "Paused"),
        *("Other", "Legacy"),
    }
    assert after.is_provisioned
    assert "failureReason" not in after.status
    assert status.change(after, KINDS_OF_DVP, shown, (), now) is None
    actor(crds).act(model.Snapshot(after), write)
    again = read(crds, name)
    assert again.metadata.resource_version == after.metadata.resource_version
    body = crds.read(MACHINES, name, "default", timeout_s=TIMEOUT_S)
    managers = [
        (row["manager"], row["operation"], row.get("subresource"))
        for row in json.loads(body)["metadata"]["managedFields"]
    ]
    print(managers)
    assert managers.count(("capdvp", "Apply", "status")) == 1
