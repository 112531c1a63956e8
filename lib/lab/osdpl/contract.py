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

_AIRSHIP = "quay.io/airshipit"
OTHER_IMAGES: Mapping[str, str] = {
    "ceph_config_helper": f"{_AIRSHIP}/ceph-config-helper:latest-ubuntu_jammy",
    "dep_check": f"{_AIRSHIP}/kubernetes-entrypoint:latest-ubuntu_noble",
    "etcd": "registry.k8s.io/etcd-amd64:3.4.3",
    "etcd_db_compact": "registry.k8s.io/etcd-amd64:3.4.3",
    "glance_storage_init": f"{_AIRSHIP}/ceph-config-helper:latest-ubuntu_jammy",
    "image_repo_sync": f"{_AIRSHIP}/docker:27.5.0",
    "kubectl": "docker.io/bitnami/kubectl:latest",
    "mariadb": f"{_AIRSHIP}/mariadb:latest-ubuntu_noble",
    "mariadb_backup": f"{_AIRSHIP}/porthole-mysqlclient-utility:latest-ubuntu_jammy",
    "mariadb_controller": f"{_AIRSHIP}/mariadb:latest-ubuntu_noble",
    "memcached": f"{_AIRSHIP}/memcached:1.6.32",
    "netoffload": "ghcr.io/vexxhost/netoffload:v1.0.1",
    "nova_service_cleaner": f"{_AIRSHIP}/ceph-config-helper:latest-ubuntu_jammy",
    "nova_storage_init": f"{_AIRSHIP}/ceph-config-helper:latest-ubuntu_jammy",
    "nova_wait_for_computes_init": f"{_AIRSHIP}/ceph-config-helper:latest-ubuntu_jammy",
    "openvswitch_db_server": f"{_AIRSHIP}/openvswitch:latest-ubuntu_noble",
    "openvswitch_vswitchd": f"{_AIRSHIP}/openvswitch:latest-ubuntu_noble",
    "prometheus_create_mysql_user": f"{_AIRSHIP}/mariadb:11.4.8-noble",
    "prometheus_mysql_exporter": "docker.io/prom/mysqld-exporter:v0.12.1",
    "rabbit_init": "docker.io/rabbitmq:3.13-management",
    "rabbitmq": f"{_AIRSHIP}/rabbitmq:3.10.18",
    "scripted_test": f"{_AIRSHIP}/rabbitmq:3.10.18-management",
    "test": "docker.io/xrally/xrally-openstack:2.0.0",
}
"""Images that are not of OpenStack's version, by key: defaults of the charts. Others
have none here, since the operator computes them."""


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
    port: of its Service; cluster_ip: "None" or the path of its value. host: namespaces
    of the host that its pods use. claim: name of its volume claims. budget: key below
    pod.lifecycle.disruption_budget, if it has a PodDisruptionBudget.
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
    cluster_ip: str = ""
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
