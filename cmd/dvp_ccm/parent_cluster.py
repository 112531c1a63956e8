"""DVP as dvp-ccm uses it: opened once, from the parent's kubeconfig."""

import dataclasses
from collections.abc import Callable, Mapping

from dvp_ccm import version
from lib.cloud.dvp import config, parent
from lib.cloud.dvp.instances import cloud
from lib.cloud.dvp.load_balancers.cloud import DvpLoadBalancers
from lib.cloud.dvp.load_balancers.desired_service import Forwarding
from lib.cloud.support.source import Observers, Opened


def opener(
    path: str,
    env: Mapping[str, str],
    user_agents: tuple[str, ...],
    forwarding: Forwarding,
) -> Callable[[Observers], Opened]:
    """Return what opens the cloud; it raises ConfigError.

    A changed kubeconfig replaces credentials without opening the cloud again: watches
    and what they have shown stay.
    """
    agent = " ".join((f"dvp-ccm/{version.VERSION}", *user_agents))

    def open_cloud(observers: Observers) -> Opened:
        settings = config.read(path, env)
        access = parent.connect(settings, agent, observers.observe, observers.circuit)
        balancers = DvpLoadBalancers(access, forwarding)
        opened = dataclasses.replace(
            cloud.of_parent(access),
            load_balancers=balancers,
            load_balancer_changes=balancers,
        )
        return Opened(opened, changed=lambda: False)

    return open_cloud
