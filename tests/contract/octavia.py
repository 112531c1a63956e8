"""Octavia as the contract of load balancers needs it: the fake one, or a real one."""

import dataclasses
import math
from collections.abc import Callable

from lib.cloud.load_balancers import Cluster, Facts, Node, Port, PortProtocol
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.read import lists
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.steps import Asked, Gate, GateState


class Octavia:
    """Implements `tests.contract.load_balancers.Ground`.

    api: a client that the product has, too. nodes: at least two, whose addresses are
    ports of the cloud. delete: sends the deletion of a load balancer with all in it.
    """

    def __init__(
        self,
        api: client.Client,
        config: settings.LoadBalancer,
        nodes: tuple[Node, ...],
        sleep: Callable[[float], None],
    ) -> None:
        self._api = api
        self._config = config
        self._nodes = nodes
        self.sleep = sleep
        self.cluster_id = "contract-of-the-protocol"
        self.restart()

    def restart(self) -> None:
        """See the contract."""
        self.balancers = OctaviaLoadBalancers(self._api, self._config)

    def facts(self, name: str) -> Facts:
        """See the contract."""
        return Facts(
            Cluster(self.cluster_id, "kubernetes"),
            "protocol",
            name,
            f"uid-of-{name}",
            ports=(Port(80, PortProtocol.TCP, 30080, "http"),),
            nodes=self._nodes[:2],
        )

    def invalid(self, facts: Facts) -> tuple[Facts, str]:
        """See the contract."""
        values = {**facts.annotations, keys.CONNECTION_LIMIT: "many"}
        return dataclasses.replace(facts, annotations=values), keys.CONNECTION_LIMIT

    def delete(self, id_: str) -> None:
        """See the contract."""
        deletion = client.Write(
            lists.BALANCER,
            "DELETE",
            f"lbaas/loadbalancers/{id_}",
            "delete load balancer",
            query=(("cascade", "true"),),
        )
        self._api.write(deletion, self._api.now() + 60)
        for _ in range(400):
            gate = self.balancers.gates([Asked(id_, math.inf)])[id_]
            if isinstance(gate, Gate) and gate.state is GateState.LOST:
                return
            self.sleep(0.5)
        raise AssertionError(f"load balancer {id_} does not go")
