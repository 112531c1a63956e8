"""One Service that is to be planned for: everything that its plan depends on."""

import dataclasses

from lib.cloud.load_balancers import Ref
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.read.native import LoadBalancer
from lib.cloud.openstack.load_balancers.read.observed import (
    Environment,
    Features,
    Relation,
    Tree,
)
from lib.cloud.openstack.load_balancers.spec.desired import Desired


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """What every function of a plan is given, as one value.

    ref: the Service. desired: what it asks for. observed: what there is. config: of
    cloud.conf.
    """

    ref: Ref
    desired: Desired
    observed: Tree
    config: settings.LoadBalancer

    @property
    def balancer(self) -> LoadBalancer:
        """The load balancer of the Service; only where there is one."""
        balancer = self.observed.identity.load_balancer
        if balancer is None:
            raise TypeError(f"the Service {self.ref.key} has no load balancer")
        return balancer

    @property
    def relation(self) -> Relation:
        """Whose the load balancer is."""
        return self.observed.identity.relation

    @property
    def provider(self) -> str:
        """The provider of the load balancer, or of the one that is created."""
        return self.observed.identity.provider(self.config)

    @property
    def environment(self) -> Environment:
        """What surrounds the load balancer: ports, floating IPs, groups, subnets."""
        return self.observed.environment

    @property
    def can(self) -> Features:
        """What Octavia and the provider are capable of."""
        return self.observed.features
