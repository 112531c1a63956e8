"""What every implementation of `Catalog` does, row by row."""

import json
from collections.abc import Mapping
from typing import Protocol

import pytest

from lib.cloud.catalog import (
    Catalog,
    CatalogPart,
    CatalogReading,
    CatalogWish,
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

    given: a document of the installer that it accepts. storage_type: one of those
    that it offers, with an ID. no_type: the ID of none.
    """

    @property
    def catalog(self) -> Catalog: ...

    @property
    def given(self) -> Mapping[str, object]: ...

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
    return ground.catalog.read(CatalogWish(frozenset(parts), ground.given, cluster_id))


class Contract:
    """The rows. A subclass, or its module, has the fixture `ground`."""

    @pytest.mark.parametrize("part", list(CatalogPart))
    def test_a_part_that_is_asked_for_is_read_and_no_other(
        self, ground: Ground, part: CatalogPart
    ) -> None:
        reading = read(ground, part)
        there = {
            kind for kind in CatalogPart if getattr(reading, FIELDS[kind]) is not None
        }
        assert there == {part} & ground.catalog.parts
        if there:
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
        found = read(ground, CatalogPart.INSTANCE_TYPES).instance_types
        assert isinstance(found, Seen)
        assert found.value
        for one in found.value:
            assert one.name
            assert min(one.vcpus, one.memory_mib) >= 1
            assert one.root_disk_gib >= 0
        assert len({one.name for one in found.value}) == len(found.value)

    def test_the_document_is_a_json_object(self, ground: Ground) -> None:
        found = read(ground, CatalogPart.DOCUMENT).document
        assert isinstance(found, Seen)
        assert isinstance(json.loads(found.value.body), dict)

    def test_a_storage_type_is_listed_and_found_by_its_id(self, ground: Ground) -> None:
        found = read(ground, CatalogPart.STORAGE_TYPES).storage_types
        assert isinstance(found, Seen)
        assert ground.storage_type in found.value
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
            found = read(ground, CatalogPart.VOLUMES, cluster_id=cluster_id).volumes
            assert isinstance(found, Seen)
            assert [(one.id, one.name) for one in found.value] == [(id_, name)]
        nobody = read(ground, CatalogPart.VOLUMES, cluster_id="catalog-4").volumes
        assert nobody == Seen(())
