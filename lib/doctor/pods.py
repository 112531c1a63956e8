"""Pods as far as the doctor reads them, in lists and in templates of workloads.

Source: Kubernetes core/v1 PodSpec.
"""

import msgspec

from lib.kube import container_variables, objects


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
    """Image, command line, variables and mounts of a container."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[container_variables.ContainerVariable, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Containers and volumes of a Pod, and its ServiceAccount."""

    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    service_account_name: str = ""


class PodTemplate(msgspec.Struct, frozen=True):
    """The Pods of a workload."""

    spec: PodSpec = PodSpec()


class WaitingContainer(msgspec.Struct, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(msgspec.Struct, frozen=True):
    """State of a container; it runs if it neither waits nor has ended."""

    waiting: WaitingContainer | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """State of a container, and of its previous start."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodCondition(msgspec.Struct, frozen=True):
    """A condition of a Pod."""

    type: str = ""
    status: str = ""
    message: str = ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions of a Pod, and the states of its containers."""

    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True):
    """A Pod of the cluster."""

    metadata: objects.ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
