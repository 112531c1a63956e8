"""Pods as far as the doctor reads them, in lists and in templates of workloads.

Source: Kubernetes core/v1 PodSpec.
"""

import msgspec

from lib.kube import objects


class KeyToPath(msgspec.Struct, frozen=True):
    """A key of a Secret with a path of its own."""

    key: str = ""
    path: str = ""


class SecretVolume(msgspec.Struct, frozen=True, rename="camel"):
    """The Secret of a volume."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()


class Volume(msgspec.Struct, frozen=True):
    """A volume of a Pod; only those of Secrets have content here."""

    name: str = ""
    secret: SecretVolume | None = None


class VolumeMount(msgspec.Struct, frozen=True, rename="camel"):
    """Where a container has a volume."""

    name: str = ""
    mount_path: str = ""
    sub_path: str = ""


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """Image, command line and mounts of a container."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class PodSpec(msgspec.Struct, frozen=True):
    """Containers and volumes of a Pod."""

    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()


class PodTemplate(msgspec.Struct, frozen=True):
    """The Pods of a workload."""

    spec: PodSpec = PodSpec()


class Pod(msgspec.Struct, frozen=True):
    """A Pod of the cluster."""

    metadata: objects.ObjectMeta
    spec: PodSpec = PodSpec()
