"""The Node as Kubernetes defines it, with only what this project reads of it."""

import datetime

import msgspec

from lib.kube import objects

UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN_TAINT = "node.cloudprovider.kubernetes.io/shutdown"
IP_ADDRESS_TYPES = frozenset({"InternalIP", "ExternalIP"})
"""Source: Kubernetes core/v1 NodeAddressType."""


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A Node's taint, whole: the list is written back as one.

    Source: Kubernetes core/v1 Taint; the list has no merge key (atomic).
    """

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of spec that is read."""

    provider_id: str = msgspec.field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")


class NodeAddress(msgspec.Struct, frozen=True):
    """One address as the API server holds it."""

    type: str
    address: str


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    """One condition's type, status and reason, and since when it is that."""

    type: str
    status: str
    last_transition_time: datetime.datetime | None = None
    reason: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    """The part of status that is read."""

    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A Kubernetes Node, with only what is needed of it."""

    metadata: objects.ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        """The Node's name."""
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        """True when the Ready condition is there and True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.conditions)

    @property
    def ready_since(self) -> datetime.datetime | None:
        """Since when the Ready condition is what it is, True or not; None: unsaid."""
        times = [c.last_transition_time for c in self.conditions if c.type == "Ready"]
        return times[0] if times else None

    @property
    def conditions(self) -> tuple[NodeCondition, ...]:
        """The Node's conditions."""
        return self.status.conditions

    @property
    def pod_cidrs(self) -> tuple[str, ...]:
        """The CIDRs of its Pods, at most one of a family.

        Source: Kubernetes core/v1 NodeSpec: podCIDR is the first of podCIDRs.
        """
        return self.spec.pod_cidrs or tuple(filter(None, (self.spec.pod_cidr,)))

    @property
    def has_ip(self) -> bool:
        """True when any address is an IP."""
        return any(
            address.type in IP_ADDRESS_TYPES for address in self.status.addresses
        )

    def has_taint(self, key: str) -> bool:
        """Report whether it has a taint of that key, whatever its value and effect."""
        return any(taint.key == key for taint in self.spec.taints)
