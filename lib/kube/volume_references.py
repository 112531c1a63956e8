"""Which volumes belong to no PersistentVolume: pure.

One decision for the metric of discovery and for cleanup.
"""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Protocol

from lib.kube.persistent_volumes import PersistentVolume, VolumeClaim


class Volume(Protocol):
    """Compared fields of a volume."""

    @property
    def id(self) -> str:
        """The ID in the cloud."""
        ...

    @property
    def name(self) -> str:
        """The name in the cloud."""
        ...

    @property
    def is_in_creation(self) -> bool:
        """Whether its content is not complete."""
        ...


CLAIM_PREFIX = "pvc-"
"""Source: kubernetes-csi/external-provisioner, --volume-name-prefix: the name of a
volume contains the UID of its claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeReferences:
    """References to volumes. handles: IDs. names: of volumes known by name alone."""

    handles: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


def references(
    persistent: Iterable[PersistentVolume], claims: Iterable[VolumeClaim] = ()
) -> VolumeReferences:
    """Return the references of PersistentVolumes and unbound claims.

    A PersistentVolume that names its volume by ID refers to that volume only: another
    volume of its name is the result of a creation with an unknown outcome. claims:
    PersistentVolumeClaims; a volume may be in creation for an unbound claim.
    """
    handles: set[str] = set()
    names = {f"{CLAIM_PREFIX}{claim.uid}" for claim in claims if not claim.is_bound}
    for volume in persistent:
        if volume.handle:
            handles.add(volume.handle)
        else:
            names.add(volume.name)
    return VolumeReferences(frozenset(handles), frozenset(names))


def is_orphan(volume: Volume, referenced: VolumeReferences) -> bool:
    """Report whether no object of the cluster refers to a complete volume."""
    if volume.is_in_creation:
        return False
    return volume.id not in referenced.handles and volume.name not in referenced.names


def is_young(
    created: datetime.datetime | None,
    min_age: datetime.timedelta,
    now: datetime.datetime,
) -> bool:
    """Report whether a resource is younger than min_age; False if unknown."""
    return created is not None and now - created < min_age
