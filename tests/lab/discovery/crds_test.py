"""The custom resources of charts/cloud-data-discoverer, judged by a real API server."""

import contextlib
import functools
import json
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from lib.kube import client, errors, resources
from lib.lab import places
from lib.lab.kube import cluster, control_plane
from lib.lab.run import waiting

TIMEOUT_S = 10.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = {"fieldValidation": "Strict", "dryRun": "All"}
"""As kubectl asks: fields that are not known are refused."""

CLASSES = resources.Resource(
    "deckhouse.io", "v1", "openstackinstanceclasses", "OpenStackInstanceClass", False
)
OLD_CLASSES = resources.Resource(
    "deckhouse.io",
    "v1alpha1",
    "openstackinstanceclasses",
    "OpenStackInstanceClass",
    False,
)
CATALOGS = resources.Resource(
    "deckhouse.io",
    "v1alpha1",
    "instancetypescatalogs",
    "InstanceTypesCatalog",
    False,
)
KINDS = (CLASSES, OLD_CLASSES, CATALOGS)

FULL = {
    "flavorName": "m1.large",
    "imageName": "ubuntu",
    "rootDiskSize": 20,
    "mainNetwork": "shared",
    "additionalNetworks": ["storage"],
    "additionalSecurityGroups": ["web"],
    "additionalTags": {"owner": "port"},
    "tags": ["fast"],
    "preemptible": True,
    "capacity": {"cpu": "1500m", "memory": "8Gi"},
}
OFFER = {"name": "m1.large", "cpu": "4", "memory": "8Gi", "rootDisk": "0"}

GOOD: list[tuple[resources.Resource, Mapping[str, object]]] = [
    (CLASSES, {"spec": {"flavorName": "m1.large"}}),
    (CLASSES, {"spec": FULL}),
    (CLASSES, {"spec": {"flavorName": "a", "imageName": "", "rootDiskSize": 0}}),
    (CLASSES, {"spec": {"flavorName": "a", "capacity": {"cpu": 4, "memory": "0"}}}),
    (CLASSES, {"spec": FULL, "status": {"nodeGroupConsumers": ["worker"]}}),
    (OLD_CLASSES, {"spec": FULL}),
    (CATALOGS, {}),
    (CATALOGS, {"instanceTypes": []}),
    (CATALOGS, {"instanceTypes": [OFFER, {**OFFER, "name": "Большой", "cpu": 8}]}),
    (CATALOGS, {"instanceTypes": [{**OFFER, "memory": "1536Mi"}]}),
]


def of_class(**fields: object) -> tuple[resources.Resource, Mapping[str, object]]:
    return CLASSES, {"spec": {"flavorName": "m1.large", **fields}}


def of_catalog(**fields: object) -> tuple[resources.Resource, Mapping[str, object]]:
    return CATALOGS, {"instanceTypes": [{**OFFER, **fields}]}


# Object, the field that must stand in the refusal.
BAD: list[tuple[tuple[resources.Resource, Mapping[str, object]], str]] = [
    ((CLASSES, {}), "spec"),
    ((CLASSES, {"spec": {}}), "spec.flavorName"),
    (of_class(flavorName=""), "spec.flavorName"),
    (of_class(imageName=7), "spec.imageName"),
    (of_class(rootDiskSize="20"), "spec.rootDiskSize"),
    (of_class(rootDiskSize=-1), "spec.rootDiskSize"),
    (of_class(mainNetwork=["a"]), "spec.mainNetwork"),
    (of_class(additionalNetworks="a"), "spec.additionalNetworks"),
    (of_class(additionalNetworks=[""]), "spec.additionalNetworks[0]"),
    (of_class(additionalSecurityGroups=[1]), "spec.additionalSecurityGroups[0]"),
    (of_class(additionalTags={"a": 1}), "spec.additionalTags.a"),
    (of_class(tags=["a,b"]), "spec.tags[0]"),
    (of_class(tags=["a/b"]), "spec.tags[0]"),
    (of_class(tags=["ok", "x" * 61]), "spec.tags[1]"),
    (of_class(preemptible="yes"), "spec.preemptible"),
    (of_class(capacity={"cpu": "four"}), "spec.capacity.cpu"),
    (of_class(capacity={"memory": "8 GB"}), "spec.capacity.memory"),
    (of_class(capacity={"disk": 1}), "spec.capacity.disk"),
    (of_class(flavourName="m1"), "spec.flavourName"),
    (
        (CLASSES, {"spec": FULL, "status": {"nodeGroupConsumers": [1]}}),
        "status.nodeGroupConsumers[0]",
    ),
    ((OLD_CLASSES, {"spec": {"flavorName": 1}}), "spec.flavorName"),
    ((CATALOGS, {"instanceTypes": {}}), "instanceTypes"),
    ((CATALOGS, {"instanceTypes": [{"cpu": 4}]}), "instanceTypes[0].name"),
    (of_catalog(name=""), "instanceTypes[0].name"),
    (of_catalog(cpu="many"), "instanceTypes[0].cpu"),
    (of_catalog(cpu=-1), "instanceTypes[0].cpu"),
    (of_catalog(memory="8Gb"), "instanceTypes[0].memory"),
    (of_catalog(rootDisk="-5Gi"), "instanceTypes[0].rootDisk"),
    (of_catalog(disk=1), "instanceTypes[0].disk"),
    ((CATALOGS, {"spec": {}}), "spec"),
]


def definitions() -> list[dict[str, Any]]:
    """Return the manifests, in a checkout and beside the tests in a sandbox alike."""
    folder = pathlib.Path("charts/cloud-data-discoverer/crds")
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]


def wait_until_served(api: client.Api, kind: resources.Resource) -> None:
    deadline = time.monotonic() + waiting.LIMIT_S
    while True:
        try:
            api.list_page(kind, query={"limit": "1"}, timeout_s=TIMEOUT_S)
            return
        except errors.KubeError:
            assert time.monotonic() < deadline, f"{kind.plural} is not served"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def crds(apart: places.Places) -> client.Api:
    """Have the custom resources served by a control plane of their own."""
    api = cluster.connect(control_plane.admin_kubeconfig(apart))
    for definition in definitions():
        with contextlib.suppress(errors.AlreadyExists):
            api.request(
                "POST",
                DEFINITIONS,
                query={"fieldValidation": "Strict"},
                body=json.dumps(definition).encode(),
                timeout_s=TIMEOUT_S,
            )
    for kind in KINDS:
        wait_until_served(api, kind)
    return api


def create(
    api: client.Api, kind: resources.Resource, fields: Mapping[str, object]
) -> None:
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "one"},
        **fields,
    }
    api.create(kind, json.dumps(body).encode(), query=STRICT, timeout_s=TIMEOUT_S)


def conditions_of(api: client.Api, name: str) -> Mapping[str, str]:
    """Return the status of each condition of a definition."""
    answer = json.loads(api.request("GET", DEFINITIONS, timeout_s=TIMEOUT_S))
    stored = {item["metadata"]["name"]: item for item in answer["items"]}
    conditions = stored[name]["status"]["conditions"]
    return {condition["type"]: condition["status"] for condition in conditions}


def is_established(api: client.Api, name: str) -> bool:
    return conditions_of(api, name).get("Established") == "True"


def test_the_definitions_are_accepted(crds: client.Api) -> None:
    """Names accepted, established, and no schema that is only half looked at."""
    names = {definition["metadata"]["name"] for definition in definitions()}
    assert len(names) == 2
    for name in names:
        # A kind is served a little before this condition says so.
        waiting.until(
            f"{name} is established", functools.partial(is_established, crds, name)
        )
        conditions = conditions_of(crds, name)
        assert conditions["NamesAccepted"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


def test_good_objects_are_taken(crds: client.Api) -> None:
    """Every field in use, old and new version, numbers and quantities."""
    for kind, fields in GOOD:
        create(crds, kind, fields)
        print(f"{kind.api_version} {kind.kind:24} taken    {json.dumps(fields)[:90]}")


def test_bad_objects_are_refused_by_the_name_of_the_field(crds: client.Api) -> None:
    """The refusal says which field it is about."""
    wrong = []
    for (kind, fields), field in BAD:
        try:
            create(crds, kind, fields)
            message = "taken"
        except errors.KubeError as error:
            message = str(error)
        print(f"{kind.kind:24} {field:34} {message[:150]}")
        if field not in message or message == "taken":
            wrong.append((field, message))
    assert not wrong


def properties_of(schema: Mapping[str, object], path: str = "") -> set[str]:
    """Name every field of a schema, with its path."""
    paths = set()
    known = schema.get("properties")
    for name, field_schema in known.items() if isinstance(known, dict) else ():
        paths |= {f"{path}{name}"} | properties_of(field_schema, f"{path}{name}.")
    items = schema.get("items")
    return paths | (properties_of(items, path) if isinstance(items, dict) else set())


def test_each_field_has_a_bad_object() -> None:
    """A field that joins a schema needs a row in the table."""
    rows = {field.replace("[0]", "").replace("[1]", "") for _, field in BAD}
    for definition in definitions():
        for version in definition["spec"]["versions"]:
            fields = properties_of(version["schema"]["openAPIV3Schema"])
            for path in fields:
                assert any(f"{row}.".startswith(f"{path}.") for row in rows), path
