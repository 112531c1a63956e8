"""What a cloud offers and holds, in words that no single cloud owns.

Rules: frozen values only, no I/O, no native type of any cloud. Native words are
translated in the provider rooms.
"""

import dataclasses
import enum
from typing import Generic, NewType, TypeVar

from lib.cloud import errors

InstanceId = NewType("InstanceId", str)


class AddressType(enum.StrEnum):
    """The closed set of Node address types.

    Source: Kubernetes core/v1 NodeAddressType.
    """

    HOSTNAME = "Hostname"
    INTERNAL_IP = "InternalIP"
    EXTERNAL_IP = "ExternalIP"
    INTERNAL_DNS = "InternalDNS"
    EXTERNAL_DNS = "ExternalDNS"


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """One address of an instance, by type."""

    type: AddressType
    address: str


class Phase(enum.Enum):
    """Where an instance stands; each native status maps to exactly one."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    """Shut down by its user: the only phase that earns the shutdown taint."""
    SUSPENDED = "suspended"
    """Not running, but kept to be resumed: paused, suspended, shelved, rescued."""
    DELETING = "deleting"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """One VM.

    addresses: in the order in which a Node shows them; may be empty while the network
    is being set up. addresses_known: False when they could not be read though the
    instance was; addresses is empty then, and no_addresses_reason is the reason as a
    clause where the cloud itself has none. instance_type: None when the cloud no longer
    knows it; type_problem is the reason then, as a clause. zone, region: empty when the
    cloud has none; already fit to be label values. labels: further Node labels of this
    cloud, key to value. address_problem: why the addresses that it has are ignored;
    empty: they are not.
    """

    id: InstanceId
    name: str
    phase: Phase
    provider_id: str
    addresses: tuple[Address, ...] = ()
    instance_type: str | None = None
    zone: str = ""
    region: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    addresses_known: bool = True
    type_problem: str = dataclasses.field(default="", compare=False)
    address_problem: str = dataclasses.field(default="", compare=False)
    no_addresses_reason: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceRef:
    """How a Node names its instance: by provider id, else by the Node's name."""

    node_name: str
    provider_id: str = ""


T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """The thing is there."""

    value: T


@dataclasses.dataclass(frozen=True, slots=True)
class Absent:
    """A complete read did not show it. Not yet a reason to delete anything.

    by_id: True when it was searched by its id, False when by name.
    """

    by_id: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Unknown:
    """It could not be read; `error` is the reason."""

    error: errors.CloudError


@dataclasses.dataclass(frozen=True, slots=True)
class NotManaged:
    """It belongs to another cloud or region: never ours to change or delete."""

    reason: str


Observation = Seen[T] | Absent | Unknown | NotManaged
