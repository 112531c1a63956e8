"""The catalog of a parent keeps the contract; two requests are a whole cycle."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.catalog import CatalogPart, CatalogRequest, StorageType
from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.catalog import cloud
from lib.cloud.dvp.volumes import disk_names
from lib.cloud.model import Seen, Unknown
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from tests.contract import catalog as contract
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
CLASSES = kinds.STORAGE_CLASSES.resource
DISKS = kinds.VIRTUAL_DISKS.resource


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    annotations = fields.pop("annotations", {})
    return {
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "replicated.csi.storage.deckhouse.io",
        **fields,
    }


class Ground:
    """One project of a parent in memory."""

    installer_document: Mapping[str, object] = {"zones": ["a"]}
    storage_type = StorageType("fast", "fast", is_default=True, is_expandable=False)
    no_type = "nothing"

    def __init__(self) -> None:
        self.api = parent_api.ParentApi()
        self.parent = parent.Parent(self.api, NAMESPACE, "uuid-a")
        self.catalog = cloud.DvpCatalog(self.parent)
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.api.put(CLASSES, storage_class("fast", annotations=default))

    def add_volume(self, name: str, cluster_id: str, **labels: str) -> str:
        own = {
            ownership.CLUSTER: cluster_id,
            ownership.HOSTNAME: "",
            disk_names.DISK_LABEL: name,
        }
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {**own, **labels}}
        self.api.put(
            DISKS, {"metadata": metadata, "spec": {}, "status": {"phase": "Ready"}}
        )
        return name

    def document(self, installed: Mapping[str, object]) -> Any:
        parts = frozenset({CatalogPart.DOCUMENT})
        observation = self.catalog.read(CatalogRequest(parts, installed)).document
        assert isinstance(observation, Seen), observation
        return json.loads(observation.value.body)


@pytest.fixture()
def world() -> Iterator[Ground]:
    ground = Ground()
    yield ground
    ground.parent.close()


class TestCatalog(contract.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> Iterator[Ground]:
        ground = Ground()
        yield ground
        ground.parent.close()


def test_a_cycle_is_two_requests(world: Ground) -> None:
    world.catalog.read(CatalogRequest(world.catalog.parts, {}, "uuid-a"))
    assert [(call.verb, call.resource) for call in world.api.calls] == [
        ("list", "storageclasses"),
        ("list", "virtualdisks"),
    ]


SKIP = "cloud-provider.deckhouse.io/skip-storage-class"
BETA = "storageclass.beta.kubernetes.io/is-default-class"
MERGED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults of fields": (
        {},
        {"reclaimPolicy": "Delete", "isEnabled": True},
    ),
    "binding is always at the first consumer": (
        {"volumeBindingMode": "Immediate", "reclaimPolicy": "Retain"},
        {"reclaimPolicy": "Retain", "isEnabled": True},
    ),
    "expansion": (
        {"allowVolumeExpansion": True},
        {"reclaimPolicy": "Delete", "isEnabled": True, "allowVolumeExpansion": True},
    ),
    "skipped, in any case, and never the default": (
        {"annotations": {SKIP: "True", BETA: "true"}},
        {"reclaimPolicy": "Delete"},
    ),
    "the older annotation of the default": (
        {"annotations": {BETA: "true"}},
        {"reclaimPolicy": "Delete", "isEnabled": True, "isDefault": True},
    ),
}


@pytest.mark.parametrize("row", MERGED)
def test_a_class_of_the_parent_replaces_the_stored_one(row: str, world: Ground) -> None:
    """Fields as the reference writes them: false ones are absent."""
    fields, expected = MERGED[row]
    world.api.put(CLASSES, storage_class("slow", **fields))
    stored = {"name": "slow", "isDefault": True, "reclaimPolicy": "Other"}
    document = world.document({"storageClasses": [stored]})
    binding = {"name": "slow", "volumeBindingMode": "WaitForFirstConsumer"}
    assert document["storageClasses"][1] == {**binding, **expected}


def test_classes_of_the_installer_alone_are_kept(world: Ground) -> None:
    """Except that they are not the default any more; sorted by name."""
    gone = {"name": "aged", "volumeBindingMode": "Immediate", "isEnabled": True}
    document = world.document(
        {"layout": "Standard", "storageClasses": [{**gone, "isDefault": True}]}
    )
    assert document.pop("storageClasses")[0] == gone
    assert document == {
        "apiVersion": "deckhouse.io/v1",
        "kind": "DVPCloudDiscoveryData",
        "layout": "Standard",
        "zones": ["default"],
    }


MALFORMED: dict[str, tuple[dict[str, object], str]] = {
    "zones": ({"zones": "a"}, "zones: invalid value: must be a list of names"),
    "classes": ({"storageClasses": "x"}, "storageClasses: invalid value"),
    "no name": ({"storageClasses": [{}]}, "storageClasses[0]: invalid value"),
    "layout": ({"layout": 1}, "layout: invalid value: must be a text"),
}


@pytest.mark.parametrize("row", MALFORMED)
def test_a_malformed_document_of_the_installer_is_named(
    row: str, world: Ground
) -> None:
    """The other parts are read."""
    installed, text = MALFORMED[row]
    reading = world.catalog.read(CatalogRequest(world.catalog.parts, installed, "u"))
    assert isinstance(reading.document, Unknown)
    assert text in str(reading.document.error)
    assert isinstance(reading.storage_types, Seen)
    assert isinstance(reading.volumes, Seen)


def test_only_volumes_can_be_orphans(world: Ground) -> None:
    """Disks of machines have a host name."""
    world.add_volume("pvc-1", "uuid-a")
    world.add_volume("node-1-boot", "uuid-a", **{ownership.HOSTNAME: "node-1"})
    request = CatalogRequest(frozenset({CatalogPart.VOLUMES}), {}, "uuid-a")
    volumes = world.catalog.read(request).volumes
    assert isinstance(volumes, Seen)
    assert [volume.id for volume in volumes.value] == ["pvc-1"]


def test_skipped_classes_are_no_types(world: Ground) -> None:
    world.api.put(CLASSES, storage_class("hidden", annotations={SKIP: "true"}))
    request = CatalogRequest(frozenset({CatalogPart.STORAGE_TYPES}))
    assert world.catalog.read(request).storage_types == Seen((Ground.storage_type,))


def test_a_part_without_permission_is_unknown_alone(world: Ground) -> None:
    text = "storageclasses is forbidden"
    refused = kube_errors.Forbidden(text, operation="LIST", status=403)
    world.api.faults.append(calls.Fault(refused, "list", "storageclasses"))
    reading = world.catalog.read(CatalogRequest(world.catalog.parts, {}, "uuid-a"))
    for part in (reading.document, reading.storage_types):
        assert isinstance(part, Unknown)
        assert isinstance(part.error, errors.Forbidden)
        assert text in str(part.error)
    assert reading.volumes == Seen(())
