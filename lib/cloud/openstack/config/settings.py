"""What cloud.conf says, typed. Defaults are the reference's. Times in seconds."""

import dataclasses
import ipaddress
from collections.abc import Mapping

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LB_METHODS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
"""Source: Octavia API, algorithms of pools."""
OVN_LB_METHOD = "SOURCE_IP_PORT"
"""The only one of the provider ovn."""


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """[Global]: who we are and how Keystone is reached; empty where not given.

    endpoint_type: public, internal or admin. ca_file: trusted instead of the
    system's. cert_file, key_file: a client certificate; both or none count.
    """

    auth_url: str = ""
    username: str = ""
    user_id: str = ""
    password: str = dataclasses.field(default="", repr=False)
    user_domain_id: str = ""
    user_domain_name: str = ""
    domain_id: str = ""
    domain_name: str = ""
    tenant_id: str = ""
    tenant_name: str = ""
    tenant_domain_id: str = ""
    tenant_domain_name: str = ""
    trust_id: str = ""
    trustee_id: str = ""
    trustee_password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)
    application_credential_id: str = ""
    application_credential_name: str = ""
    application_credential_secret: str = dataclasses.field(default="", repr=False)
    region: str = ""
    endpoint_type: str = "public"
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    tls_insecure: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Networking:
    """[Networking]: which addresses a Node gets, and in which order."""

    ipv6_support_disabled: bool = False
    public_network_names: tuple[str, ...] = ()
    internal_network_names: tuple[str, ...] = ()
    """Empty: all networks are internal."""
    address_sort_order: tuple[Network, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Metadata:
    """[Metadata]. request_timeout_s: of every single HTTP call to the cloud."""

    search_order: tuple[str, ...] = ("configDrive", "metadataService")
    request_timeout_s: float = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class LoadBalancerClass:
    """[LoadBalancerClass "x"]."""

    floating_network_id: str = ""
    floating_subnet_id: str = ""
    floating_subnet: str = ""
    floating_subnet_tags: str = ""
    network_id: str = ""
    subnet_id: str = ""
    member_subnet_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadBalancer:
    """[LoadBalancer], with all [LoadBalancerClass "x"] by name."""

    enabled: bool = True
    lb_version: str = ""
    lb_provider: str = "amphora"
    lb_method: str = "ROUND_ROBIN"
    subnet_id: str = ""
    member_subnet_id: str = ""
    member_cidr: tuple[Network, ...] = ()
    """Ours: which addresses of Nodes members may have; empty: any."""
    network_id: str = ""
    floating_network_id: str = ""
    floating_subnet_id: str = ""
    floating_subnet: str = ""
    floating_subnet_tags: str = ""
    flavor_id: str = ""
    availability_zone: str = ""
    node_selector: str = ""
    default_tls_container_ref: str = ""
    create_monitor: bool = False
    monitor_delay_s: float = 5.0
    monitor_timeout_s: float = 3.0
    monitor_max_retries: int = 1
    monitor_max_retries_down: int = 3
    manage_security_groups: bool = False
    internal_lb: bool = False
    cascade_delete: bool = True
    enable_ingress_hostname: bool = False
    ingress_hostname_suffix: str = "nip.io"
    max_shared_lb: int = 2
    container_store: str = "barbican"
    provider_requires_serial_api_calls: bool = False
    wait_active_steps: int = 23
    """From the environment: OCCM_WAIT_LB_ACTIVE_STEPS."""
    classes: Mapping[str, LoadBalancerClass] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class BlockStorage:
    """[BlockStorage], of which the cloud controller manager uses nothing.

    availability_zone_map: Nova's zone to the zone of Cinder that serves it; a zone
    that is not in it has the same name in both. Ours; the reference has none.
    """

    ignore_volume_microversion: bool = False
    rescan_on_resize: bool = False
    ignore_volume_az: bool = False
    node_volume_attach_limit: int = 256
    availability_zone_map: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeConfig:
    """What a node uses of cloud.conf.

    search_order: sources of metadata, in order. attach_limit: None: not set.
    has_credentials: the file holds some, which a node does not need.
    """

    search_order: tuple[str, ...]
    attach_limit: int | None
    has_credentials: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Config:
    """All of cloud.conf and of the environment that belongs to it.

    router_id: [Route] router-id. address_pairs_only: [Route] address-pairs-only: no
    routes, only address pairs of ports. regional: provider ids carry the region
    (OS_CCM_REGIONAL). warnings: about the file; to be logged once.
    """

    credentials: Credentials
    networking: Networking = dataclasses.field(default_factory=Networking)
    router_id: str = ""
    address_pairs_only: bool = False
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    load_balancer: LoadBalancer = dataclasses.field(default_factory=LoadBalancer)
    block_storage: BlockStorage = dataclasses.field(default_factory=BlockStorage)
    regional: bool = False
    warnings: tuple[str, ...] = ()


class CloudConfError(Exception):
    """The configuration can't be used.

    problems: every one of them, each naming section, key, value and what would be
    right; never the value of a secret.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
