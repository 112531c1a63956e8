"""What a chart of openstack-helm demands and makes, as far as an operator meets it.

Rules: names of charts, workloads, Services, Jobs, images, labels and values paths are
those of openstack-helm 2026.1.0; the templates that use them are ours.
"""

import dataclasses
import enum
from collections.abc import Mapping

CONTROL_PLANE = "openstack-control-plane"
COMPUTE = "openstack-compute-node"
OPENVSWITCH = "openvswitch"

SERVICES: Mapping[str, str] = {
    "compute": "nova-api",
    "compute_metadata": "nova-metadata",
    "etcd": "etcd",
    "identity": "keystone-api",
    "image": "glance-api",
    "network": "neutron-server",
    "oslo_cache": "memcached",
    "oslo_db": "mariadb",
    "oslo_messaging": "rabbitmq",
}
"""Kubernetes Service by endpoint."""


class WorkloadKind(enum.Enum):
    """Kinds of workloads."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Conditions for which the init container of a pod waits.

    services: endpoints. jobs: names. pods: application and component of a pod that must
    be Ready; same_node: on the node of the waiting pod.
    """

    services: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    pods: tuple[tuple[str, str], ...] = ()
    same_node: bool = True


NOTHING = Needs()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One controller of pods.

    name: may hold {{ .Release.Name }}. component: label of its pods. label: path below
    `labels` of its node selector. replicas: key below pod.replicas. flag: key below
    manifests, empty if it is always rendered; is_on: default of the flag. service,
    port: of its Service. host: namespaces of the host that its pods use. claim: name of
    its volume claims. budget: key below pod.lifecycle.disruption_budget, if it has a
    PodDisruptionBudget.
    """

    kind: WorkloadKind
    name: str
    component: str
    label: str
    images: tuple[str, ...]
    replicas: str = ""
    flag: str = ""
    is_on: bool = True
    needs: Needs = NOTHING
    service: str = ""
    port: int = 80
    host: tuple[str, ...] = ()
    is_privileged: bool = False
    claim: str = ""
    budget: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One Job. weight: of a hook, None for a plain Job. schedule: of a CronJob.

    is_cluster_wide: whether it comes with a ClusterRole that reads Nodes.
    """

    name: str
    image: str
    weight: int | None
    needs: Needs = NOTHING
    flag: str = ""
    is_on: bool = True
    schedule: str = ""
    is_cluster_wide: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart. required: value paths that an operator computes.

    labels: default node label by path below `labels`. flags: further manifests.*.
    public: value paths with the public secret the real chart has as its default; they
    are required, too. application: label of all pods.
    """

    name: str
    app_version: str
    workloads: tuple[Workload, ...]
    images: tuple[str, ...]
    jobs: tuple[Job, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    replicas: tuple[str, ...] = ()
    flags: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    endpoints: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    public: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def parts(self) -> tuple[Workload | Job, ...]:
        """All workloads and Jobs."""
        return (*self.workloads, *self.jobs)
