"""PersistentVolumes and their claims, as far as they are read."""

import msgspec

from lib.kube import objects


class CsiSource(msgspec.Struct, frozen=True, rename="camel"):
    """Of a PersistentVolume that a CSI driver serves."""

    volume_handle: str = ""


class CinderSource(msgspec.Struct, frozen=True):
    """Of a PersistentVolume of the in-tree driver."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PersistentVolumeSpec(msgspec.Struct, frozen=True):
    """What the volume is in the cloud."""

    csi: CsiSource | None = None
    cinder: CinderSource | None = None


class PersistentVolume(msgspec.Struct, frozen=True):
    """A PersistentVolume, with only what leads to its volume."""

    metadata: objects.ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()

    @property
    def name(self) -> str:
        """Its name, which is also the name of the volume that CSI creates."""
        return self.metadata.name

    @property
    def handle(self) -> str:
        """The volume's id in the cloud; empty for another kind."""
        if self.spec.csi is not None:
            return self.spec.csi.volume_handle
        return self.spec.cinder.volume_id if self.spec.cinder is not None else ""


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which PersistentVolume a claim is bound to; empty: none yet."""

    volume_name: str = ""


class VolumeClaim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    metadata: objects.ObjectMeta
    spec: ClaimSpec = ClaimSpec()

    @property
    def uid(self) -> str:
        """The UID, after which the external-provisioner names the volume."""
        return self.metadata.uid

    @property
    def is_bound(self) -> bool:
        """Whether a PersistentVolume is bound to it."""
        return bool(self.spec.volume_name)
