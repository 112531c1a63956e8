"""Parts of a catalog that share one list, and failures of each read."""

from collections.abc import Callable, Collection

import pytest

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import catalog_parts

DOWN = errors.Unavailable("down", operation="list")
DOCUMENT = catalog.Document(b"{}")
VOLUMES = (catalog.CatalogVolume("v", "pvc-1"),)


def failing(*_: object) -> object:
    raise DOWN


def readers(
    calls: list[str], broken: str = ""
) -> catalog_parts.StorageReaders[tuple[str, ...]]:
    """Return readers that note their calls. broken: name of one that fails."""

    def noted(name: str, result: object) -> Callable[..., object]:
        def call(*_: object) -> object:
            calls.append(name)
            return failing() if name == broken else result

        return call

    types = (catalog.StorageType("fast"),)
    return catalog_parts.StorageReaders(
        noted("storage", ("fast",)),  # type: ignore[arg-type]
        noted("document", DOCUMENT),  # type: ignore[arg-type]
        noted("storage types", types),  # type: ignore[arg-type]
        noted("volumes", VOLUMES),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        ((), []),
        (("VOLUMES",), ["volumes"]),
        (("DOCUMENT",), ["storage", "document"]),
        (("STORAGE_TYPES",), ["storage", "storage types"]),
        (
            ("DOCUMENT", "STORAGE_TYPES", "VOLUMES"),
            ["storage", "document", "volumes", "storage types"],
        ),
    ],
    ids=lambda value: " and ".join(value) if isinstance(value, tuple) else "",
)
def test_only_what_is_requested_is_read_and_the_list_once(
    parts: Collection[str], calls: list[str]
) -> None:
    called: list[str] = []
    requested = frozenset(CatalogPart[name] for name in parts)
    reading = catalog_parts.read(requested, readers(called))
    assert called == calls
    read = {
        CatalogPart.DOCUMENT: reading.document,
        CatalogPart.STORAGE_TYPES: reading.storage_types,
        CatalogPart.VOLUMES: reading.volumes,
    }
    assert {kind for kind, part in read.items() if part is not None} == requested
    assert all(isinstance(part, Seen) for part in read.values() if part is not None)


@pytest.mark.parametrize(
    ("broken", "unknown"),
    [
        ("storage", {"document", "storage_types"}),
        ("document", {"document"}),
        ("storage types", {"storage_types"}),
        ("volumes", {"volumes"}),
    ],
)
def test_a_failure_concerns_the_parts_that_need_it(
    broken: str, unknown: set[str]
) -> None:
    reading = catalog_parts.read(catalog_parts.PARTS, readers([], broken))
    for name in ("document", "storage_types", "volumes"):
        part = getattr(reading, name)
        assert (
            part == Unknown(DOWN) if name in unknown else isinstance(part, Seen)
        ), name
