"""The validated configuration of a cluster on OpenStack.

Empty strings and tuples mean "not set".
"""

import dataclasses
import enum
from collections.abc import Mapping


class PodNetworkMode(enum.StrEnum):
    """How pods of different Nodes reach each other."""

    VXLAN = "VXLAN"
    DIRECT = "DirectRouting"
    DIRECT_WITH_PORT_SECURITY = "DirectRoutingWithPortSecurityEnabled"


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """Address of Keystone, and credentials.

    One of tenant_name and tenant_id. ca_cert: PEM. An application credential or a
    token may replace user and password where the reader of a Secret allows it.
    """

    auth_url: str = ""
    domain_name: str = ""
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    region: str = ""
    tenant_name: str = ""
    tenant_id: str = ""
    ca_cert: str = dataclasses.field(default="", repr=False)
    application_credential_id: str = ""
    application_credential_name: str = ""
    application_credential_secret: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceDefaults:
    """Defaults of new instances, for fields that their class does not set."""

    ssh_key_pair_name: str = ""
    image_name: str = ""
    main_network: str = ""
    additional_networks: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class LoadBalancerPlace:
    """Networks of load balancers; both are IDs."""

    subnet_id: str = ""
    floating_network_id: str = ""
    disabled: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleSettings:
    """Settings of the module; each field is one setting."""

    connection: Connection = dataclasses.field(default_factory=Connection)
    internal_network_names: tuple[str, ...] = ()
    external_network_names: tuple[str, ...] = ()
    additional_external_network_names: tuple[str, ...] = ()
    pod_network_mode: PodNetworkMode | None = None
    instances: InstanceDefaults = dataclasses.field(default_factory=InstanceDefaults)
    load_balancer: LoadBalancerPlace = dataclasses.field(
        default_factory=LoadBalancerPlace
    )
    zones: tuple[str, ...] = ()
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    storage_class_exclude: tuple[str, ...] = ()
    storage_class_default: str = ""
    topology_enabled: bool = True
    ignore_volume_microversion: bool = False
    fs_group_policy: str = "ReadWriteOnceWithFSType"


@dataclasses.dataclass(frozen=True, slots=True)
class Discovered:
    """Discovery data of the base infrastructure."""

    internal_network_names: tuple[str, ...] = ()
    external_network_names: tuple[str, ...] = ()
    pod_network_mode: PodNetworkMode | None = None
    zones: tuple[str, ...] = ()
    instances: InstanceDefaults = dataclasses.field(default_factory=InstanceDefaults)
    load_balancer: LoadBalancerPlace = dataclasses.field(
        default_factory=LoadBalancerPlace
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterConfiguration:
    """The parts of OpenStackClusterConfiguration that the cluster uses.

    external_network_dhcp: of the layout; True where it has no such switch.
    """

    layout: str
    connection: Connection
    external_network_dhcp: bool = True
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The three sources merged; network names and zones sorted and unique.

    hybrid: without an OpenStackClusterConfiguration; the masters are elsewhere.
    """

    connection: Connection
    internal_network_names: tuple[str, ...] = ()
    external_network_names: tuple[str, ...] = ()
    external_network_dhcp: bool = True
    zones: tuple[str, ...] = ()
    instances: InstanceDefaults = dataclasses.field(default_factory=InstanceDefaults)
    pod_network_mode: PodNetworkMode | None = None
    load_balancer: LoadBalancerPlace = dataclasses.field(
        default_factory=LoadBalancerPlace
    )
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hybrid: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceClass:
    """The spec of an OpenStackInstanceClass.

    root_disk_size_gib: 0 means that the flavor's own disk is used. tags: raw server
    tags. `capacity` is a hint for the autoscaler, never part of a machine.
    """

    flavor_name: str
    image_name: str = ""
    root_disk_size_gib: int = 0
    main_network: str = ""
    additional_networks: tuple[str, ...] = ()
    additional_security_groups: tuple[str, ...] = ()
    additional_tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    preemptible: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Properties of the cluster itself.

    pod_subnet: a CIDR. prefix: of the names of all resources in the cloud.
    """

    uuid: str
    pod_subnet: str = ""
    prefix: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Machines of one node group in one zone."""

    name: str
    zone: str
    instance_class: InstanceClass
    manual_rollout_id: str = ""
