"""A small cloud with Nodes, and one Service in it, driven the way a flow must do it.

Each reconciliation observes, records the plan's results for the Service, and applies
steps: those that wait for the gate one after the other, and at most one that can't be
repeated.
"""

import copy
import dataclasses
import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lib.cloud import errors
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Facts,
    Node,
    Plan,
    Port,
    PortProtocol,
    Problems,
    Spec,
    Target,
)
from lib.cloud.model import Address, AddressType, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.plan import actions

if TYPE_CHECKING:
    from lib.cloud.steps import Notice, Problem

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CLUSTER = Cluster("cluster-1", "kubernetes")
UID = "11111111-2222-4333-8444-555555555555"


class NotSettledError(Exception):
    """It did not converge; the message lists the last steps."""


@dataclasses.dataclass(frozen=True)
class Ground:
    """A network of Nodes, another network, and an external one, by their ids."""

    cloud: session.FakeOpenStack
    network_id: str
    subnet_id: str
    other_subnet_id: str
    external_id: str
    external_subnet_id: str

    def node(self, number: int, **labels: str) -> Node:
        """Create a Node with a port; return it as the facts have it."""
        address = f"10.0.0.{number}"
        self.cloud.neutron.add_port(self.subnet_id, address, f"server-{number}")
        return Node(
            f"node-{number}",
            f"openstack:///server-{number}",
            (Address(AddressType.INTERNAL_IP, address),),
            tuple(labels.items()),
        )


def ground(cloud: session.FakeOpenStack | None = None) -> Ground:
    """Make the networks."""
    created = cloud or session.FakeOpenStack()
    neutron = created.neutron
    inside, other = neutron.add_network("inside"), neutron.add_network("other")
    outside = neutron.add_network("public", external=True)
    return Ground(
        created,
        inside,
        neutron.add_subnet(inside, "10.0.0.0/16", "inside-v4"),
        neutron.add_subnet(other, "10.1.0.0/16", "other-v4"),
        outside,
        neutron.add_subnet(outside, "198.51.100.0/24", "public-v4"),
    )


def service(nodes: tuple[Node, ...], **fields: object) -> Facts:
    """Return the facts of a usual Service."""
    usual = Facts(
        CLUSTER,
        "default",
        "web",
        UID,
        ports=(Port(80, PortProtocol.TCP, 30080, "http"),),
        nodes=nodes,
    )
    return dataclasses.replace(usual, **fields)  # type: ignore[arg-type]  # any field


class Driver:
    """One Service and the process that serves it; `restart` gives it a new one.

    facts: tests change them at will. applied: steps, as they were printed. problems,
    notices: of the last pass.
    """

    def __init__(
        self,
        on: Ground,
        facts: Facts,
        config: settings.LoadBalancer | None = None,
    ) -> None:
        self.ground = on
        self.cloud = on.cloud
        self.facts = facts
        self.config = config or settings.LoadBalancer()
        self.balancers = OctaviaLoadBalancers(on.cloud.client(), self.config)
        self.applied: list[str] = []
        self.problems: tuple[Problem, ...] = ()
        self.notices: tuple[Notice, ...] = ()
        self.depth = Depth.TREE

    def restart(self) -> None:
        """Forget everything that only the process knew."""
        self.balancers = OctaviaLoadBalancers(self.cloud.client(), self.config)

    def copied(self, on: Ground | None = None) -> "Driver":
        """Return a new process for the same Service, in a copy of the cloud.

        on: that copy, where others are served in it, too.
        """
        ground = on or dataclasses.replace(self.ground, cloud=copy.deepcopy(self.cloud))
        return Driver(ground, self.facts, self.config)

    def annotate(self, values: Mapping[str, str | None]) -> None:
        """Set annotations of the Service; None removes one."""
        both = {**self.facts.annotations, **values}
        kept = {key: value for key, value in both.items() if value is not None}
        self.facts = dataclasses.replace(self.facts, annotations=kept)

    def change(self, **fields: object) -> None:
        """Change fields of the facts."""
        self.facts = dataclasses.replace(
            self.facts, **fields  # type: ignore[arg-type]  # any field
        )

    def plan(self, *, gone: bool = False) -> Plan | Problems | Unknown:
        """Observe and plan; write nothing."""
        spec: Spec | None = None
        if not gone:
            parsed = self.balancers.parse(self.facts)
            if isinstance(parsed, Problems):
                return parsed
            spec = parsed
        target = Target(self.balancers.refer(self.facts), spec)
        observation = self.balancers.observe([target], self.depth)[target.ref]
        if isinstance(observation, Unknown):
            return observation
        return self.balancers.plan(target, observation.value, NOW)

    def one_pass(self, *, gone: bool = False) -> bool:
        """Reconcile once; return whether nothing is left to do.

        A Service that is deleted keeps its annotations.
        """
        planned = self.plan(gone=gone)
        if isinstance(planned, Problems):
            self.problems, self.notices = planned.problems, ()
            return True
        if isinstance(planned, Unknown):
            self.cloud.clock.sleep(5)
            return False
        self.problems, self.notices = planned.problems, planned.notices
        if not gone:
            self.annotate(dict(planned.results.annotations))
        if planned.results.ingress is not None:
            self.change(ingress=planned.results.ingress)
        if planned.settled or not planned.steps:
            self.cloud.clock.sleep(planned.retry_after_s or 0)
            return planned.settled or planned.retry_after_s is None
        self._apply(planned)
        return False

    def _apply(self, planned: Plan) -> None:
        for step in planned.steps:
            self.applied.append(str(step))
            try:
                result = self.balancers.apply(step)
            except errors.CloudError:
                break
            self.annotate(dict(result.annotations))
            if actions.of(step).balancer_id:
                self.cloud.clock.sleep(self.cloud.octavia.update_s)
            if not step.is_repeatable:
                break
        self.cloud.clock.sleep(planned.retry_after_s or 10)

    def settle(self, *, gone: bool = False, passes: int = 60) -> list[str]:
        """Reconcile until nothing is left to do; return the steps applied.

        Raises:
            NotSettledError: it never comes to rest.
        """
        before = len(self.applied)
        for _ in range(passes):
            if self.one_pass(gone=gone):
                return self.applied[before:]
        raise NotSettledError("\n".join(self.applied[-10:]))

    # What tests look at: the first of each kind.

    @property
    def balancer(self) -> wire.Json:
        """The Service's load balancer in the cloud."""
        key = "loadbalancer.openstack.org/load-balancer-id"
        return self.cloud.octavia.load_balancers[self.facts.annotations[key]]

    @property
    def listener(self) -> wire.Json:
        """Its first listener."""
        listeners = self.cloud.octavia.listeners.values()
        return next(listener for listener in listeners if self._is_under(listener))

    @property
    def pool(self) -> wire.Json:
        """Its first listener's pool."""
        return self.cloud.octavia.pools[str(self.listener["default_pool_id"])]

    @property
    def monitor(self) -> wire.Json:
        """That pool's monitor; empty without one."""
        key = str(self.pool["healthmonitor_id"])
        return self.cloud.octavia.monitors.get(key, {})

    @property
    def members(self) -> list[wire.Json]:
        """That pool's members."""
        return list(self.cloud.octavia.members[str(self.pool["id"])].values())

    @property
    def floating_ip(self) -> wire.Json:
        """The floating IP on its VIP; empty without one."""
        port_id = self.balancer["vip_port_id"]
        floating_ips = self.cloud.neutron.floating_ips.values()
        return next((ip for ip in floating_ips if ip["port_id"] == port_id), {})

    def _is_under(self, child: wire.Json) -> bool:
        parents = wire.objects(child, "loadbalancers")
        return any(parent["id"] == self.balancer["id"] for parent in parents)
