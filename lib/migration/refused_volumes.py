"""Volumes of the reference that csi-node refuses: several writers of one file system.

They stay mounted until their pods end, and are not mounted again.
"""

from collections.abc import Iterator

import msgspec

from lib.kube import client, listing, objects, resources
from lib.migration.changed_items import ChangedItem

_SEVERAL_WRITERS = "ReadWriteMany"
_RAW = "Block"
AFTER = (
    "refused by csi-node: several writers destroy a file system; before the change,"
    " create the claim again with ReadWriteOnce, with volumeMode Block, or on a shared"
    " file system such as NFS"
)


class _Source(msgspec.Struct, frozen=True):
    driver: str = ""


class _Claim(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    csi: _Source | None = None
    claim_ref: _Claim | None = None


class _Volume(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _Spec = _Spec()


def read(api: client.Api, timeout_s: float, driver: str) -> tuple[ChangedItem, ...]:
    """List the volumes of a driver that will be refused: one call.

    Raises:
        KubeError: they cannot be read.
    """
    kind = resources.PERSISTENT_VOLUMES
    volumes = listing.read(api, kind, _Volume, timeout_s=timeout_s).items
    return tuple(_refused(volumes, driver))


def _refused(volumes: tuple[_Volume, ...], driver: str) -> Iterator[ChangedItem]:
    for volume in sorted(volumes, key=lambda item: item.metadata.name):
        spec = volume.spec
        is_own = spec.csi is not None and spec.csi.driver == driver
        has_writers = _SEVERAL_WRITERS in spec.access_modes
        if is_own and has_writers and spec.volume_mode != _RAW:
            name = f"PersistentVolume {volume.metadata.name}"
            claim = spec.claim_ref
            subject = (
                f"{name} of claim {claim.namespace}/{claim.name}" if claim else name
            )
            yield ChangedItem(subject, "ReadWriteMany with a file system", AFTER)
