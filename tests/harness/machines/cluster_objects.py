"""Objects of Cluster API as a user of DVP creates them, and what tests add.

See `lib.lab.dvp.workload_objects`.
"""

import contextlib
from collections.abc import Mapping

from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab.dvp import workload_objects
from lib.lab.dvp.workload_objects import (
    BOOTSTRAP,
    CLUSTERS,
    CONTROL,
    CONTROL_PLANE_STATUS,
    CONTROL_PLANES,
    DEPLOYMENTS,
    DVP_CLUSTER_TEMPLATES,
    DVP_CLUSTERS,
    DVP_MACHINES,
    DVP_TEMPLATES,
    GROUP,
    INFRASTRUCTURE,
    MACHINES,
    NAME_LABEL,
    NAMESPACE,
    Json,
    cluster_spec,
    deployment_spec,
    machine_spec,
    open_definition,
    reference,
    rollout,
    secret_data,
    template_spec,
)
from lib.lab.kube import kube_objects
from lib.lab.run import waiting

__all__ = (
    "BOOTSTRAP",
    "CLUSTERS",
    "CONTROL",
    "CONTROL_PLANES",
    "CONTROL_PLANE_STATUS",
    "DEPLOYMENTS",
    "DVP_CLUSTERS",
    "DVP_CLUSTER_TEMPLATES",
    "DVP_MACHINES",
    "DVP_TEMPLATES",
    "GROUP",
    "HEALTH_CHECKS",
    "INFRASTRUCTURE",
    "Json",
    "MACHINES",
    "NAMESPACE",
    "NAME_LABEL",
    "TOKEN",
    "bootstrap_data",
    "cluster_spec",
    "deployment_spec",
    "health_check_spec",
    "machine_spec",
    "open_definition",
    "reference",
    "rollout",
    "secret_data",
    "template_spec",
    "until_served",
)
TOKEN = "abcdef.0123456789abcdef"
"""In the bootstrap data: a secret that must not appear elsewhere."""
HEALTH_CHECKS = Resource(
    GROUP, "v1beta2", "machinehealthchecks", "MachineHealthCheck", True
)


def until_served(objects: kube_objects.Objects, kind: Resource) -> None:
    """Wait until a kind can be listed."""

    def is_served() -> bool:
        with contextlib.suppress(kube_errors.NotFound, kube_errors.Unavailable):
            objects.all(kind)
            return True
        return False

    waiting.until(f"{kind.plural} are served", is_served)


def health_check_spec(cluster: str, unhealthy_s: int) -> Json:
    """Return the spec of a MachineHealthCheck.

    unhealthy_s: for how long a Node may be not Ready.
    """
    rows = [
        {"type": "Ready", "status": status, "timeoutSeconds": unhealthy_s}
        for status in ("Unknown", "False")
    ]
    return {
        "clusterName": cluster,
        "selector": {"matchLabels": {"lab": cluster}},
        "checks": {"nodeStartupTimeoutSeconds": 0, "unhealthyNodeConditions": rows},
    }


def bootstrap_data() -> Mapping[str, str]:
    """Return bootstrap data with the token."""
    return workload_objects.bootstrap_data(TOKEN)
