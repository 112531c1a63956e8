"""The discovery document of zVirt: pure.

Source: deckhouse modules/030-cloud-provider-zvirt, images/cloud-data-discoverer: field
names and merge rules.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping

from lib.cloud import errors
from lib.cloud.catalog import Document, StorageType

KIND = "ZvirtCloudProviderDiscoveryData"
API_VERSION = "deckhouse.io/v1"
DEFAULT_ZONES = ("default",)
ACTIVE = "active"


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """One storage domain for data. status: in its data center, as the engine has it."""

    id: str
    name: str
    status: str

    @property
    def is_enabled(self) -> bool:
        """Whether disks can be created in it."""
        return self.status == ACTIVE


def write(
    domains: Iterable[Domain],
    former: Mapping[str, bool],
    installed: Mapping[str, object],
) -> Document:
    """Return the document: that of the installer with the domains of the engine.

    former: whether domains are enabled that the engine does not have now. A domain of
    the installer that it does not have is disabled, not dropped. installed: the
    document of the installer; empty without one.

    Raises:
        InvalidRequest: a field of it is malformed; the message names it.
    """
    enabled = dict.fromkeys(_stored(installed), False)
    enabled |= former
    enabled |= {domain.name: domain.is_enabled for domain in domains}
    first = min((name for name, is_on in enabled.items() if is_on), default="")
    entries = [
        {"name": name, "isEnabled": enabled[name], "isDefault": name == first}
        for name in sorted(enabled)
    ]
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "zones": _zones(installed),
        "storageDomains": entries,
    }
    return Document(json.dumps(document).encode())


def storage_types(domains: Iterable[Domain]) -> tuple[StorageType, ...]:
    """Return the domains in which disks can be created, by name."""
    usable = (domain for domain in domains if domain.is_enabled)
    return tuple(
        StorageType(domain.name, domain.id)
        for domain in sorted(usable, key=lambda domain: domain.name)
    )


def _stored(installed: Mapping[str, object]) -> list[str]:
    """Return the names of the installer's domains."""
    stored = installed.get("storageDomains") or []
    if not isinstance(stored, list):
        raise _malformed("storageDomains", "a list of objects with a name")
    names = []
    for number, entry in enumerate(stored):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            raise _malformed(f"storageDomains[{number}]", "an object with a name")
        names.append(name)
    return names


def _zones(installed: Mapping[str, object]) -> list[str]:
    zones = installed.get("zones") or list(DEFAULT_ZONES)
    if not isinstance(zones, list) or not all(isinstance(z, str) and z for z in zones):
        raise _malformed("zones", "a list of names")
    return zones


def _malformed(field: str, expected: str) -> errors.InvalidRequest:
    text = f"installer's document: {field}: invalid value: must be {expected}"
    return errors.InvalidRequest(text, operation="write discovery document")
