"""What every implementation of `Catalog` does, row by row."""

import json
from collections.abc import Mapping
from typing import Protocol

import pytest

from lib.cloud.catalog import (
    Catalog,
    CatalogPart,
    CatalogReading,
    CatalogRequest,
    StorageType,
)
from lib.cloud.model import Seen

FIELDS = {
    CatalogPart.CONDITIONS: "conditions",
    CatalogPart.INSTANCE_TYPES: "instance_types",
    CatalogPart.DOCUMENT: "document",
    CatalogPart.VOLUMES: "volumes",
    CatalogPart.STORAGE_TYPES: "storage_types",
}


class Ground(Protocol):
    """A cloud that offers something of each part it has, and the means to change it.

    installer_document: a document of the installer that it accepts. storage_type: one
    that it offers, with an ID. no_type: the ID of none.
    """

    @property
    def catalog(self) -> Catalog: ...

    @property
    def installer_document(self) -> Mapping[str, object]: ...

    @property
    def storage_type(self) -> StorageType: ...

    @property
    def no_type(self) -> str: ...

    def add_volume(self, name: str, cluster_id: str) -> str:
        """Create a volume with the ownership metadata of a cluster; return its ID."""
        ...


def read(
    ground: Ground, *parts: CatalogPart, cluster_id: str = "catalog-1"
) -> CatalogReading:
    return ground.catalog.read(
        CatalogRequest(frozenset(parts), ground.installer_document, cluster_id)
    )


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    @pytest.mark.parametrize("part", list(CatalogPart))
    def test_a_part_that_is_asked_for_is_read_and_no_other(
        self, ground: Ground, part: CatalogPart
    ) -> None:
        reading = read(ground, part)
        catalog_parts = {
            kind for kind in CatalogPart if getattr(reading, FIELDS[kind]) is not None
        }
        assert catalog_parts == {part} & ground.catalog.parts
        if catalog_parts:
            assert isinstance(getattr(reading, FIELDS[part]), Seen)

    def test_nothing_is_read_when_nothing_is_asked_for(self, ground: Ground) -> None:
        assert read(ground) == CatalogReading()

    def test_parts_are_the_same_together_and_alone(self, ground: Ground) -> None:
        together = read(ground, *ground.catalog.parts)
        for part, field in FIELDS.items():
            assert getattr(read(ground, part), field) == getattr(together, field)

    def test_instance_types_have_a_size(self, ground: Ground) -> None:
        if CatalogPart.INSTANCE_TYPES not in ground.catalog.parts:
            return
        observation = read(ground, CatalogPart.INSTANCE_TYPES).instance_types
        assert isinstance(observation, Seen)
        assert observation.value
        for instance_type in observation.value:
            assert instance_type.name
            assert min(instance_type.vcpus, instance_type.memory_mib) >= 1
            assert instance_type.root_disk_gib >= 0
        assert len({instance_type.name for instance_type in observation.value}) == len(
            observation.value
        )

    def test_the_document_is_a_json_object(self, ground: Ground) -> None:
        observation = read(ground, CatalogPart.DOCUMENT).document
        assert isinstance(observation, Seen)
        assert isinstance(json.loads(observation.value.body), dict)

    def test_a_storage_type_is_listed_and_found_by_its_id(self, ground: Ground) -> None:
        observation = read(ground, CatalogPart.STORAGE_TYPES).storage_types
        assert isinstance(observation, Seen)
        assert ground.storage_type in observation.value
        catalog = ground.catalog
        assert catalog.has_storage_type(ground.storage_type.id) == Seen(True)
        assert catalog.has_storage_type(ground.no_type) == Seen(False)

    def test_volumes_are_those_of_one_cluster(self, ground: Ground) -> None:
        mine = ground.add_volume("mine", "catalog-2")
        other = ground.add_volume("other", "catalog-3")
        for cluster_id, id_, name in (
            ("catalog-2", mine, "mine"),
            ("catalog-3", other, "other"),
        ):
            observation = read(
                ground, CatalogPart.VOLUMES, cluster_id=cluster_id
            ).volumes
            assert isinstance(observation, Seen)
            assert [
                (catalog_volume.id, catalog_volume.name)
                for catalog_volume in observation.value
            ] == [(id_, name)]
        empty = read(ground, CatalogPart.VOLUMES, cluster_id="catalog-4").volumes
        assert empty == Seen(())
