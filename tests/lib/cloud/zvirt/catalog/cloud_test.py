"""The catalog of an engine: its contract, statuses of domains, requests counted."""

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.catalog import CatalogPart, CatalogRequest, StorageType
from lib.cloud.model import Seen, Unknown
from lib.cloud.zvirt import disk_tags
from lib.cloud.zvirt.catalog.cloud import EngineCatalog
from lib.lab.zvirt import seed
from tests.contract import catalog
from tests.lib.cloud.zvirt.engines import Simulated, engine
from tests.lib.lab.zvirt.stage import ABSENT, Stage

INSTALLED: Mapping[str, object] = {
    "zones": ["zone-1"],
    "storageDomains": [{"name": "of-the-installer", "isEnabled": True}],
}


class Scene:
    """Implements the `Ground` of the contract."""

    installer_document = INSTALLED
    storage_type = StorageType(seed.NFS, seed.identifier(seed.NFS))
    no_type = ABSENT

    def __init__(self, data_center: str = "") -> None:
        self.stage = Stage()
        self.catalog = EngineCatalog(
            engine(Simulated(self.stage), time.monotonic), data_center
        )

    def add_volume(self, name: str, cluster_id: str) -> str:
        more = f"<description>of a user\n{disk_tags.tag(cluster_id)}</description>"
        return self.stage.new_disk(name, more)

    def document(self, installed: Mapping[str, object] = INSTALLED) -> dict[str, Any]:
        parts = frozenset({CatalogPart.DOCUMENT})
        read = self.catalog.read(CatalogRequest(parts, installed)).document
        assert isinstance(read, Seen), read
        document: dict[str, Any] = json.loads(read.value.body)
        return document

    def domains(self) -> dict[str, bool]:
        entries = self.document()["storageDomains"]
        return {entry["name"]: entry["isEnabled"] for entry in entries}

    def types(self) -> list[str]:
        parts = frozenset({CatalogPart.STORAGE_TYPES})
        read = self.catalog.read(CatalogRequest(parts)).storage_types
        assert isinstance(read, Seen), read
        return [each.name for each in read.value]


@pytest.fixture()
def scene() -> Scene:
    return Scene()


class TestCatalog(catalog.Contract):
    """The rows stand in the contract."""

    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls) -> catalog.Ground:
        return Scene()


def test_the_document_is_that_of_the_installer_with_the_domains(scene: Scene) -> None:
    assert scene.document() == {
        "apiVersion": "deckhouse.io/v1",
        "kind": "ZvirtCloudProviderDiscoveryData",
        "zones": ["zone-1"],
        "storageDomains": [
            {"name": seed.ISCSI, "isEnabled": True, "isDefault": True},
            {"name": seed.NFS, "isEnabled": True, "isDefault": False},
            {"name": "of-the-installer", "isEnabled": False, "isDefault": False},
        ],
    }
    assert scene.document({})["zones"] == ["default"]


@pytest.mark.parametrize("status", ["maintenance", "locked", "inactive", "unknown"])
def test_a_domain_that_is_not_active_is_disabled(status: str, scene: Scene) -> None:
    scene.stage.set("storage_domain", seed.NFS, status=status)
    assert scene.domains()[seed.NFS] is False
    assert scene.types() == [seed.ISCSI]
    assert scene.catalog.has_storage_type(seed.identifier(seed.NFS)) == Seen(True)


def test_domains_of_other_kinds_and_places_are_omitted(scene: Scene) -> None:
    with scene.stage.engine.lock:
        for name, kind in (("iso-1", "iso"), ("export-1", "export")):
            seed.add_domain(scene.stage.engine, name, kind, seed.DATA_CENTER)
        seed.add_place(scene.stage.engine, "Second", "Second")
        seed.add_domain(scene.stage.engine, "elsewhere", "data", "Second")
    first = EngineCatalog(
        engine(Simulated(scene.stage), time.monotonic), seed.DATA_CENTER
    )
    second = EngineCatalog(engine(Simulated(scene.stage), time.monotonic), "Second")
    scene.catalog = first
    assert scene.types() == [seed.ISCSI, seed.NFS]
    scene.catalog = second
    assert scene.types() == ["elsewhere"]


@pytest.mark.parametrize(
    ("chosen", "value"), [("", "not set"), ("none", 'unsupported value "none"')]
)
def test_a_data_center_that_is_not_one(chosen: str, value: str) -> None:
    scene = Scene(chosen)
    seed.add_place(scene.stage.engine, "Second", "Second")
    parts = frozenset({CatalogPart.STORAGE_TYPES, CatalogPart.VOLUMES})
    reading = scene.catalog.read(CatalogRequest(parts, cluster_id="c"))
    assert isinstance(reading.storage_types, Unknown)
    assert isinstance(reading.storage_types.error, errors.InvalidRequest)
    assert reading.storage_types.error.message == (
        f"--data-center: {value}: must be one of the data centers of the engine:"
        " Default, Second"
    )
    assert isinstance(reading.volumes, Seen)


@pytest.mark.parametrize("status", ["active", "maintenance"])
def test_a_domain_that_is_missing_twice_is_disabled(status: str, scene: Scene) -> None:
    """As in the reference, it is never dropped while the process knows it."""
    scene.stage.set("storage_domain", seed.NFS, status=status)
    is_on = status == "active"
    assert scene.domains()[seed.NFS] is is_on
    scene.stage.engine.settings.replace([f"hide {seed.NFS}"])
    shown = [scene.domains()[seed.NFS] for _ in range(3)]
    assert shown == [is_on, False, False]
    scene.stage.set("storage_domain", seed.NFS, status="active")
    scene.stage.engine.settings.replace([])
    assert scene.domains()[seed.NFS] is True


@pytest.mark.parametrize(
    ("installed", "field"),
    [
        ({"storageDomains": "x"}, "storageDomains"),
        ({"storageDomains": [{}]}, "storageDomains[0]"),
        ({"storageDomains": [{"name": 4}]}, "storageDomains[0]"),
        ({"zones": "x"}, "zones"),
        ({"zones": [""]}, "zones"),
    ],
)
def test_a_malformed_document_of_the_installer(
    installed: Mapping[str, object], field: str, scene: Scene
) -> None:
    parts = frozenset({CatalogPart.DOCUMENT, CatalogPart.STORAGE_TYPES})
    reading = scene.catalog.read(CatalogRequest(parts, installed))
    assert isinstance(reading.document, Unknown)
    assert field in reading.document.error.message
    assert isinstance(reading.storage_types, Seen)


def test_a_cycle_is_four_requests_at_most(scene: Scene) -> None:
    for number in range(20):
        scene.add_volume(f"pvc-{number}", "c")
    counts = scene.stage.service.counts
    scene.catalog.read(CatalogRequest(frozenset(CatalogPart), INSTALLED, "c"))
    counts.clear()
    scene.catalog.read(CatalogRequest(frozenset(CatalogPart), INSTALLED, "c"))
    print(dict(counts))
    assert sum(counts.values()) <= 4


@pytest.mark.parametrize(
    ("description", "cluster"),
    [
        (None, ""),
        ("", ""),
        ("mooring.io/cluster=a", "a"),
        ("text\nmooring.io/cluster=a\nmore", "a"),
        ("see mooring.io/cluster=a", ""),
        ("mooring.io/cluster=a\nmooring.io/cluster=b", ""),
        ("mooring.io/cluster=", ""),
    ],
)
def test_the_tag_of_a_disk(description: str | None, cluster: str) -> None:
    assert disk_tags.cluster_of(description) == cluster
