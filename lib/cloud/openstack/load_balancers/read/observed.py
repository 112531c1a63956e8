"""Observed objects of one Service: the provider's value inside Observed."""

import dataclasses
import enum
from collections.abc import Mapping

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.read.native import (
    FloatingIp,
    Listener,
    LoadBalancer,
    Member,
    Monitor,
    Pool,
    Port,
    SecurityGroup,
    Subnet,
)
from lib.cloud.steps import Problem

Version = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Features:
    """What the provider can, by the version of Octavia's API.

    Source: octavia/api/root_controller.py (the versions and what came with each);
    kubernetes/cloud-provider-openstack pkg/util/openstack/loadbalancer.go for ovn.
    """

    timeouts: bool = True
    tags: bool = True
    flavors: bool = True
    additive_members: bool = True
    cidrs: bool = True
    zones: bool = True
    udp_http_monitors: bool = True
    additional_vips: bool = True
    http_monitors: bool = True


class Relation(enum.Enum):
    """Relation of a load balancer to the Service."""

    NONE = "none"
    """There is none yet."""
    OWNED = "owned"
    """It is the Service's own: made for it, or adopted."""
    SHARED = "shared"
    """It is another's, or the user's; the Service only has listeners on it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Children:
    """A load balancer's listeners, pools and monitors.

    members: by pool id. full: pools whose members show everything, not only name,
    address and port.
    """

    listeners: tuple[Listener, ...] = ()
    pools: Mapping[str, Pool] = dataclasses.field(default_factory=dict)
    monitors: Mapping[str, Monitor] = dataclasses.field(default_factory=dict)
    members: Mapping[str, tuple[Member, ...]] = dataclasses.field(default_factory=dict)
    full: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """Ownership: the load balancer of a Service, and others of its name or tag.

    going: ours, and being deleted. duplicates: of ours, younger, never used.
    namesakes: others that have the name ours would have. problem: why none can be
    used, or a warning. was_lost: another client deleted the owned one. former: those
    that the Service was on before it moved, with objects that remain there.
    absent_in_s, twins_in_s: seconds until it is confirmed that what the Service leads
    to does not exist, and that the duplicates are not in use; see `absence`. absent_id:
    of the load balancer whose absence has to last long. kept: others with the Service's
    tag that only a person may delete, or the deletion of the Service. shown_ids: of
    others with its tag whose address its status shows.
    """

    load_balancer: LoadBalancer | None = None
    relation: Relation = Relation.NONE
    going: tuple[LoadBalancer, ...] = ()
    duplicates: tuple[LoadBalancer, ...] = ()
    namesakes: tuple[LoadBalancer, ...] = ()
    problem: Problem | None = None
    was_lost: bool = False
    former: tuple[LoadBalancer, ...] = ()
    absent_in_s: float = 0.0
    twins_in_s: float = 0.0
    absent_id: str = ""
    kept: tuple[LoadBalancer, ...] = ()
    shown_ids: tuple[str, ...] = ()

    def provider(self, config: settings.LoadBalancer) -> str:
        """Return the provider of the load balancer, or of one that is created."""
        balancer = self.load_balancer
        return (balancer.provider if balancer else "") or config.lb_provider


@dataclasses.dataclass(frozen=True, slots=True)
class Former:
    """A load balancer that the Service was on before, and what it was to it.

    children: None where they do not matter or are in flux.
    """

    load_balancer: LoadBalancer
    relation: Relation
    children: Children | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingSource:
    """Where a new floating IP may come from.

    network_id: empty: there is no external network. subnet_ids: to be tried in this
    order; empty: any. problem: why the desired subnets cannot be used. misfit: how the
    existing floating IP differs from the desired one.
    """

    network_id: str = ""
    subnet_ids: tuple[str, ...] = ()
    problem: Problem | None = None
    misfit: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """Environment of a load balancer, as far as its plan requires it.

    floating_ips: all of the project. groups: our security groups, by id; all but the
    first were made twice. ports: those that carry one, and where security groups are
    kept those with members' addresses too.
    node_subnet_id: of the first member's address. member_subnet: where the members
    are, for security group rules. second_subnet_id: for the VIP of the second family.
    problems: what could not be found.
    vip_is_gone: another client has deleted the port of the VIP; read at depth FULL.
    """

    floating_ips: tuple[FloatingIp, ...] = ()
    groups: tuple[SecurityGroup, ...] = ()
    ports: tuple[Port, ...] = ()
    node_subnet_id: str = ""
    member_subnet: Subnet | None = None
    second_subnet_id: str = ""
    source: FloatingSource = dataclasses.field(default_factory=FloatingSource)
    problems: tuple[Problem, ...] = ()
    vip_is_gone: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Tree:
    """All that was observed. children: None where they do not matter or are in flux.

    former: those of the identity, with their children. is_abandoned: all Services on
    the load balancer are being deleted.
    """

    identity: Identity
    features: Features
    children: Children | None = None
    environment: Environment = dataclasses.field(default_factory=Environment)
    former: tuple[Former, ...] = ()
    is_abandoned: bool = False
