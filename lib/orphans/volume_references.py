"""Which volumes belong to no PersistentVolume: pure.

One decision for the metric of discovery and for cleanup.
"""

import dataclasses
import datetime
from collections.abc import Iterable
from typing import Protocol


class PersistentVolume(Protocol):
    """What is compared of a PersistentVolume. handle: the volume's ID; may be empty."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def handle(self) -> str:
        """The volume's ID in the cloud; empty for an unknown kind."""
        ...


CLAIM_PREFIX = "pvc-"
"""Source: kubernetes-csi/external-provisioner, --volume-name-prefix: a volume is called
after the UID of its claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class VolumeReferences:
    """What leads to volumes. handles: IDs. names: of volumes known by name alone."""

    handles: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


def claims(
    persistent: Iterable[PersistentVolume], pending: Iterable[str] = ()
) -> VolumeReferences:
    """Return what PersistentVolumes and unbound claims lead to.

    A PersistentVolume that names its volume by ID refers to that one only: another
    volume of its name is what a creation with an unknown outcome leaves behind.
    pending: UIDs of PersistentVolumeClaims without a PersistentVolume.
    """
    handles: set[str] = set()
    names = {f"{CLAIM_PREFIX}{uid}" for uid in pending}
    for volume in persistent:
        if volume.handle:
            handles.add(volume.handle)
        else:
            names.add(volume.name)
    return VolumeReferences(frozenset(handles), frozenset(names))


def is_orphan(volume_id: str, name: str, claimed: VolumeReferences) -> bool:
    """Report whether nothing in the cluster leads to a volume."""
    return volume_id not in claimed.handles and name not in claimed.names


def is_young(
    created: datetime.datetime | None,
    min_age: datetime.timedelta,
    now: datetime.datetime,
) -> bool:
    """Report whether a resource is younger than min_age; one of unknown age is not."""
    return created is not None and now - created < min_age
