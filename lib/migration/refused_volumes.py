"""Volumes and claims of the reference that csi-controller or csi-node refuses.

Volumes stay mounted until their pods end, and are not mounted again.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lib.kube import client, listing, objects, resources
from lib.migration.changed_items import ChangedItem
from lib.node_volumes import decide_stage

_SEVERAL_WRITERS = "ReadWriteMany"
_RAW = "Block"
_FS_TYPE_KEYS = ("csi.storage.k8s.io/fstype", "fstype")
"""Source: kubernetes-csi/external-provisioner (pkg/controller), prefixedFsTypeKey."""
_IN_TREE: Mapping[str, str] = {"cinder.csi.openstack.org": "kubernetes.io/cinder"}
"""Provisioner of the in-tree driver by the driver that serves its volumes.

Source: kubernetes csi-translation-lib, plugins/openstack_cinder.go.
"""
BEFORE = "ReadWriteMany with a file system"
_WRITERS = "several writers destroy a file system; before the change, create the claim"
_MODES = (
    "again with ReadWriteOnce, with volumeMode Block, or on a shared file system such"
    " as NFS"
)
AFTER = f"refused by csi-node: {_WRITERS} {_MODES}"
AFTER_CLAIM = f"refused by csi-controller: {_WRITERS} {_MODES}"


class _Source(msgspec.Struct, frozen=True, rename="camel"):
    driver: str = ""
    fs_type: str = ""


class _Reference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    csi: _Source | None = None
    cinder: _Source | None = None
    claim_ref: _Reference | None = None


class _Volume(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _Spec = _Spec()


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    volume_name: str = ""
    storage_class_name: str | None = None


class _Claim(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _ClaimSpec = _ClaimSpec()


class _Class(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    provisioner: str = ""
    parameters: Mapping[str, str] | None = None

    @property
    def fs_type(self) -> str:
        """The file system of its volumes; empty: the driver chooses."""
        parameters = self.parameters or {}
        return next(filter(None, map(parameters.get, _FS_TYPE_KEYS)), "") or ""


@dataclasses.dataclass(frozen=True, slots=True)
class RefusedVolumes:
    """What a driver will refuse. checked: number of its volumes, claims and classes."""

    checked: int
    items: tuple[ChangedItem, ...]


def read(api: client.Api, timeout_s: float, driver: str) -> RefusedVolumes:
    """List volumes, claims without one, and classes that will be refused: three calls.

    Volumes and classes of the in-tree driver count, which Kubernetes hands to the
    driver.

    Raises:
        KubeError: they cannot be read.
    """
    names = {driver, _IN_TREE.get(driver, driver)}
    listed = listing.read(
        api, resources.PERSISTENT_VOLUMES, _Volume, timeout_s=timeout_s
    )
    kinds = listing.read(api, resources.STORAGE_CLASSES, _Class, timeout_s=timeout_s)
    asked = listing.read(api, resources.CLAIMS, _Claim, timeout_s=timeout_s)
    volumes = [volume for volume in listed.items if _source(volume, driver)]
    classes = [kind for kind in kinds.items if kind.provisioner in names]
    own = {kind.metadata.name for kind in classes}
    claims = [
        claim
        for claim in asked.items
        if not claim.spec.volume_name and claim.spec.storage_class_name in own
    ]
    items = (
        *_volumes(volumes, driver),
        *_claims(claims),
        *_classes(classes),
    )
    return RefusedVolumes(len(volumes) + len(claims) + len(classes), items)


def _source(volume: _Volume, driver: str) -> _Source | None:
    """Return what a driver is given of a volume; None: another driver serves it."""
    spec = volume.spec
    if spec.cinder is not None and driver in _IN_TREE:
        return spec.cinder
    is_own = spec.csi is not None and spec.csi.driver == driver
    return spec.csi if is_own else None


def _volumes(volumes: Iterable[_Volume], driver: str) -> Iterator[ChangedItem]:
    for volume in sorted(volumes, key=lambda item: item.metadata.name):
        spec, source = volume.spec, _source(volume, driver)
        if spec.volume_mode == _RAW or source is None:
            continue
        name = f"PersistentVolume {volume.metadata.name}"
        claim = spec.claim_ref
        subject = f"{name} of claim {claim.namespace}/{claim.name}" if claim else name
        if _SEVERAL_WRITERS in spec.access_modes:
            yield ChangedItem(subject, BEFORE, AFTER)
        if problem := _unsupported(source.fs_type):
            after = f"refused by csi-node: {problem}; before the change, copy the data"
            after = f"{after} to a volume with one of these"
            yield ChangedItem(subject, f"fsType {source.fs_type}", after)


def _claims(claims: Iterable[_Claim]) -> Iterator[ChangedItem]:
    for claim in sorted(claims, key=lambda item: item.metadata.key):
        spec = claim.spec
        if _SEVERAL_WRITERS in spec.access_modes and spec.volume_mode != _RAW:
            subject = f"PersistentVolumeClaim {claim.metadata.key}"
            yield ChangedItem(subject, BEFORE, AFTER_CLAIM)


def _classes(classes: Iterable[_Class]) -> Iterator[ChangedItem]:
    for kind in sorted(classes, key=lambda item: item.metadata.name):
        if problem := _unsupported(kind.fs_type):
            after = f"its volumes are refused by csi-node: {problem}; create the class"
            after = f"{after} again with one of these"
            subject = f"StorageClass {kind.metadata.name}"
            yield ChangedItem(subject, f"fstype {kind.fs_type}", after)


def _unsupported(fs_type: str) -> str:
    """Return why csi-node refuses a file system; empty: it does not."""
    failure = decide_stage.unsupported(fs_type.lower())
    return failure.message if failure else ""
