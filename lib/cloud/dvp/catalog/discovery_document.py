"""The discovery document of DVP: pure.

Source: deckhouse modules/030-cloud-provider-dvp, images/cloud-data-discoverer
(discoverer.go) and go_lib/cloud-data: field names, merge rules, annotations.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from lib.cloud import errors
from lib.cloud.catalog import Document, StorageType
from lib.cloud.dvp.kinds import ParentStorageClass

KIND = "DVPCloudDiscoveryData"
API_VERSION = "deckhouse.io/v1"
SKIP = "cloud-provider.deckhouse.io/skip-storage-class"
"""Annotation of a StorageClass of the parent that children do not use."""
DEFAULTS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
DEFAULT_ZONES = ("default",)
_BINDING = "WaitForFirstConsumer"
"""Of every class of a child, whatever that of the parent is."""
_RECLAIM = "Delete"
"""Source: Kubernetes, default of reclaimPolicy."""

Entry = Mapping[str, object]


def write(
    classes: Iterable[ParentStorageClass], installed: Mapping[str, object]
) -> Document:
    """Return the document: that of the installer with the classes of the parent.

    installed: the document of the installer; empty without one.

    Raises:
        InvalidRequest: a field of it is malformed; the message names it.
    """
    merged = {str(entry["name"]): entry for entry in _stored(installed)}
    merged |= {item.metadata.name: _entry(item) for item in classes}
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "layout": _text(installed, "layout"),
        "zones": list(_zones(installed)),
        "storageClasses": [merged[name] for name in sorted(merged)],
    }
    return Document(json.dumps(_without_empty(document)).encode())


def storage_types(classes: Iterable[ParentStorageClass]) -> tuple[StorageType, ...]:
    """Return the classes that children may use; the name of a class never changes."""
    return tuple(
        StorageType(
            name,
            name,
            is_default=_is_default(item),
            reclaim_policy=item.reclaim_policy or _RECLAIM,
            is_expandable=bool(item.allow_volume_expansion),
        )
        for item in classes
        if (name := item.metadata.name) and not _is_skipped(item)
    )


def _entry(item: ParentStorageClass) -> Entry:
    return _without_empty(
        {
            "name": item.metadata.name,
            "volumeBindingMode": _BINDING,
            "reclaimPolicy": item.reclaim_policy or _RECLAIM,
            "allowVolumeExpansion": bool(item.allow_volume_expansion),
            "isEnabled": not _is_skipped(item),
            "isDefault": _is_default(item),
        }
    )


def _is_skipped(item: ParentStorageClass) -> bool:
    return item.metadata.annotations.get(SKIP, "").lower() == "true"


def _is_default(item: ParentStorageClass) -> bool:
    annotations = item.metadata.annotations
    is_chosen = any(annotations.get(key) == "true" for key in DEFAULTS)
    return is_chosen and not _is_skipped(item)


def _without_empty(entry: Entry) -> dict[str, object]:
    """Return an entry as Go writes it: without false and empty values (omitempty)."""
    return {key: value for key, value in entry.items() if value}


def _stored(installed: Mapping[str, object]) -> Sequence[Entry]:
    """Return the installer's entries; none of them is the default any more."""
    stored = installed.get("storageClasses") or []
    if not isinstance(stored, list):
        raise _malformed("storageClasses", "a list of objects with a name")
    for number, entry in enumerate(stored):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise _malformed(f"storageClasses[{number}]", "an object with a name")
    return [{k: v for k, v in entry.items() if k != "isDefault"} for entry in stored]


def _zones(installed: Mapping[str, object]) -> Sequence[str]:
    zones = installed.get("zones") or list(DEFAULT_ZONES)
    if not isinstance(zones, list) or not all(isinstance(z, str) and z for z in zones):
        raise _malformed("zones", "a list of names")
    return zones


def _text(installed: Mapping[str, object], key: str) -> str:
    value = installed.get(key) or ""
    if not isinstance(value, str):
        raise _malformed(key, "a text")
    return value


def _malformed(field: str, expected: str) -> errors.InvalidRequest:
    text = f"installer's document: {field}: invalid value: must be {expected}"
    return errors.InvalidRequest(text, operation="write discovery document")
