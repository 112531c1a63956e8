"""DVPInstanceClass, validated by a real API server: field by field."""

import contextlib
import copy
import json
import pathlib
import time
from typing import Any

import pytest
import yaml

from lib.kube import client, errors, resources
from lib.lab.run import waiting
from tests.harness.dvp.dvp_parent import DvpParent

TIMEOUT_S = 10.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = {"fieldValidation": "Strict", "dryRun": "All"}
CRD = pathlib.Path("charts/cloud-provider-dvp/crds/dvpinstanceclasses.yaml")
CLASSES = resources.Resource(
    "deckhouse.io", "v1alpha1", "dvpinstanceclasses", "DVPInstanceClass", False
)
BARE: dict[str, Any] = {
    "virtualMachine": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}},
    "rootDisk": {
        "size": "50Gi",
        "image": {"kind": "ClusterVirtualImage", "name": "ubuntu"},
    },
}
FULL: dict[str, Any] = {
    "virtualMachine": {
        "cpu": {"cores": 2, "coreFraction": "50%"},
        "memory": {"size": 4294967296},
        "virtualMachineClassName": "generic",
        "bootloader": "BIOS",
        "runPolicy": "AlwaysOn",
        "liveMigrationPolicy": "AlwaysSafe",
        "additionalLabels": {"a": "b"},
        "additionalAnnotations": {"a": "b"},
        "priorityClassName": "high",
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": []}]},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
        "gpus": [{"gpuClassName": "a100"}],
    },
    "rootDisk": {
        "size": "20Gi",
        "storageClass": "fast",
        "image": {"kind": "VirtualDisk", "name": "golden"},
    },
    "etcdDisk": {"size": "15Gi", "storageClass": "fast"},
    "additionalDisks": [{"size": "10Gi", "storageClass": "slow"}],
}
MACHINE = "virtualMachine"
# Path, value (None: removed), and the field that the rejection names.
BAD: list[tuple[str, object, str]] = [
    (MACHINE, None, "spec.virtualMachine"),
    ("rootDisk", None, "spec.rootDisk"),
    (f"{MACHINE}.cpu", None, "spec.virtualMachine.cpu"),
    (f"{MACHINE}.cpu.cores", 0, "spec.virtualMachine.cpu.cores"),
    (f"{MACHINE}.cpu.cores", "4", "spec.virtualMachine.cpu.cores"),
    (f"{MACHINE}.cpu.coreFraction", "0%", "spec.virtualMachine.cpu.coreFraction"),
    (f"{MACHINE}.cpu.coreFraction", "101%", "spec.virtualMachine.cpu.coreFraction"),
    (f"{MACHINE}.memory.size", "much", "spec.virtualMachine.memory.size"),
    (f"{MACHINE}.memory.size", 0, "spec.virtualMachine.memory.size"),
    (f"{MACHINE}.bootloader", "GRUB", "spec.virtualMachine.bootloader"),
    (f"{MACHINE}.runPolicy", "Off", "spec.virtualMachine.runPolicy"),
    (f"{MACHINE}.liveMigrationPolicy", "x", "spec.virtualMachine.liveMigrationPolicy"),
    (f"{MACHINE}.additionalLabels", {"a": 1}, "spec.virtualMachine.additionalLabels"),
    (f"{MACHINE}.tolerations", {}, "spec.virtualMachine.tolerations"),
    (f"{MACHINE}.gpus", [{}] * 17, "spec.virtualMachine.gpus"),
    (f"{MACHINE}.ipAddresses", ["Auto"], "spec.virtualMachine.ipAddresses"),
    ("rootDisk.size", "50 GB", "spec.rootDisk.size"),
    ("rootDisk.storageClass", "", "spec.rootDisk.storageClass"),
    ("rootDisk.image", None, "spec.rootDisk.image"),
    ("rootDisk.image.kind", "Image", "spec.rootDisk.image.kind"),
    ("rootDisk.image.name", "", "spec.rootDisk.image.name"),
    ("etcdDisk", {"size": "1Gi"}, "spec.etcdDisk.storageClass"),
    ("additionalDisks", [{"size": "1Gi"}], "spec.additionalDisks[0].storageClass"),
    ("zones", ["a"], "spec.zones"),
]


@pytest.fixture(scope="module")
def api(parent: DvpParent) -> client.Api:
    """Serve the kind."""
    body = json.dumps(yaml.safe_load(CRD.read_text())).encode()
    with contextlib.suppress(errors.AlreadyExists):
        parent.api.request(
            "POST",
            DEFINITIONS,
            query={"fieldValidation": "Strict"},
            body=body,
            timeout_s=TIMEOUT_S,
        )
    deadline = time.monotonic() + waiting.LIMIT_S
    while True:
        try:
            parent.api.list_page(CLASSES, query={"limit": "1"}, timeout_s=TIMEOUT_S)
        except errors.KubeError:
            assert time.monotonic() < deadline, "the kind is not served"
            time.sleep(0.1)
        else:
            return parent.api


def create(api: client.Api, spec: object) -> dict[str, Any]:
    document = {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": "worker"},
        "spec": spec,
    }
    answer = api.request(
        "POST",
        CLASSES.path(),
        query=STRICT,
        body=json.dumps(document).encode(),
        timeout_s=TIMEOUT_S,
    )
    stored: dict[str, Any] = json.loads(answer)
    return stored


def with_field(path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(FULL)
    *parents, last = path.split(".")
    place = changed
    for name in parents:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


def conditions(api: client.Api) -> dict[str, str]:
    """Return the status of each condition of the definition."""
    path = f"{DEFINITIONS}/dvpinstanceclasses.deckhouse.io"
    status = json.loads(api.request("GET", path, timeout_s=TIMEOUT_S))["status"]
    return {item["type"]: item["status"] for item in status["conditions"]}


def test_the_kind_is_established(api: client.Api) -> None:
    """Its schema is structural: the API server has no complaint about it."""
    # A kind is served before this condition is "True".
    waiting.until(
        "the definition is established",
        lambda: conditions(api)["Established"] == "True",
    )
    states = conditions(api)
    print(states)
    assert states.get("NonStructuralSchema", "False") == "False"


def test_classes_are_accepted_with_defaults(api: client.Api) -> None:
    """Every field, a selector in both forms, and the reference's defaults."""
    assert create(api, FULL)["spec"] == FULL
    plain = {"zone": "a"}
    created = create(api, with_field(f"{MACHINE}.nodeSelector", plain))
    assert created["spec"][MACHINE]["nodeSelector"] == plain
    defaults = create(api, BARE)["spec"][MACHINE]
    assert defaults["cpu"]["coreFraction"] == "100%"
    assert defaults["bootloader"] == "EFI"
    assert defaults["runPolicy"] == "AlwaysOnUnlessStoppedManually"
    assert defaults["liveMigrationPolicy"] == "PreferForced"


@pytest.mark.parametrize(("path", "value", "field"), BAD)
def test_a_bad_class_is_rejected(
    api: client.Api, path: str, value: object, field: str
) -> None:
    """The rejection names the field."""
    with pytest.raises(errors.KubeError) as rejected:
        create(api, with_field(path, value))
    print(str(rejected.value)[:160])
    assert field in str(rejected.value)
