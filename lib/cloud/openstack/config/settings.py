"""Settings of cloud.conf, typed. Defaults are the reference's. Times in seconds."""

import dataclasses
import ipaddress
from collections.abc import Mapping
from typing import Annotated

from lib.process.documented import Documented

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LB_METHODS = ("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT")
"""Source: Octavia API, algorithms of pools."""
OVN_LB_METHOD = "SOURCE_IP_PORT"
"""The only one of the provider ovn."""
_IMMUTABLE = "new load balancers; existing ones get the Event `ImmutableField`"


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """[Global]: how to authenticate and reach Keystone; empty where not set."""

    auth_url: Annotated[
        str,
        Documented(
            "URL of Keystone, such as `https://keystone.example:5000/v3`.",
            kind="URL",
            default="required",
        ),
    ] = ""
    username: Annotated[
        str, Documented("Name of the user; requires a domain of the user.")
    ] = ""
    user_id: Annotated[
        str, Documented("ID of the user, instead of `username` and its domain.")
    ] = ""
    password: Annotated[
        str, Documented("Password of the user.", kind="string, secret")
    ] = dataclasses.field(default="", repr=False)
    user_domain_id: Annotated[str, Documented("ID of the user's domain.")] = ""
    user_domain_name: Annotated[str, Documented("Name of the user's domain.")] = ""
    domain_id: Annotated[
        str,
        Documented("ID of the domain of user and project, where theirs are not set."),
    ] = ""
    domain_name: Annotated[
        str,
        Documented("Name of the domain of user and project, where theirs are not set."),
    ] = ""
    tenant_id: Annotated[str, Documented("ID of the project.")] = ""
    tenant_name: Annotated[
        str, Documented("Name of the project; requires a domain of the project.")
    ] = ""
    tenant_domain_id: Annotated[str, Documented("ID of the project's domain.")] = ""
    tenant_domain_name: Annotated[str, Documented("Name of the project's domain.")] = ""
    trust_id: Annotated[
        str, Documented("ID of a Keystone trust; it implies the project.")
    ] = ""
    trustee_id: Annotated[
        str, Documented("ID of the user of the trust, where `user-id` is not set.")
    ] = ""
    trustee_password: Annotated[
        str,
        Documented(
            "Password of the user of the trust, where `password` is not set.",
            kind="string, secret",
        ),
    ] = dataclasses.field(default="", repr=False)
    token: Annotated[
        str,
        Documented(
            "Token of Keystone, instead of a password. It cannot be renewed.",
            kind="string, secret",
        ),
    ] = dataclasses.field(default="", repr=False)
    application_credential_id: Annotated[
        str, Documented("ID of an application credential.")
    ] = ""
    application_credential_name: Annotated[
        str,
        Documented(
            "Name of an application credential, instead of its ID; requires the user."
        ),
    ] = ""
    application_credential_secret: Annotated[
        str, Documented("Secret of the application credential.", kind="string, secret")
    ] = dataclasses.field(default="", repr=False)
    region: Annotated[
        str,
        Documented("Region whose endpoints are used; empty: the first of the catalog."),
    ] = ""
    endpoint_type: Annotated[
        str,
        Documented(
            "Interface of the endpoints; a suffix `URL` is removed.",
            name="os-endpoint-type",
            kind="one of public, internal, admin",
        ),
    ] = "public"
    ca_file: Annotated[
        str,
        Documented(
            "File with CA certificates in PEM, trusted instead of the system's.",
            kind="path",
        ),
    ] = ""
    cert_file: Annotated[
        str,
        Documented(
            "File with a client certificate in PEM; requires `key-file`.", kind="path"
        ),
    ] = ""
    key_file: Annotated[
        str, Documented("File with the private key of `cert-file`.", kind="path")
    ] = ""
    tls_insecure: Annotated[
        bool, Documented("Accept every certificate of the cloud. For tests only.")
    ] = False


@dataclasses.dataclass(frozen=True, slots=True)
class Networking:
    """[Networking]: which addresses a Node gets, and in which order."""

    ipv6_support_disabled: Annotated[
        bool, Documented("Omit IPv6 addresses of instances.")
    ] = False
    public_network_names: Annotated[
        tuple[str, ...],
        Documented(
            "Networks whose addresses are of type ExternalIP; can be repeated.",
            name="public-network-name",
        ),
    ] = ()
    internal_network_names: Annotated[
        tuple[str, ...],
        Documented(
            "Networks whose addresses are of type InternalIP; can be repeated. Empty: "
            "all networks.",
            name="internal-network-name",
        ),
    ] = ()
    address_sort_order: Annotated[
        tuple[Network, ...],
        Documented(
            "Order of a Node's addresses: those of the first CIDR come first. Invalid "
            "items are ignored.",
            kind="CIDRs, separated by commas",
        ),
    ] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Metadata:
    """[Metadata]."""

    search_order: Annotated[
        tuple[str, ...],
        Documented(
            "Sources from which csi-node reads the identity of its instance, in this "
            "order.",
            kind="one or both of configDrive, metadataService, separated by a comma",
            used_by=("csi-node",),
        ),
    ] = ("configDrive", "metadataService")
    request_timeout_s: Annotated[
        float,
        Documented(
            "Timeout of each HTTP request to the cloud; 0: the default.",
            name="request-timeout",
            default="60s",
            used_by=(
                "openstack-ccm",
                "csi-controller",
                "mooring",
            ),
        ),
    ] = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class LoadBalancerClass:
    """[LoadBalancerClass "x"]."""

    floating_network_id: Annotated[
        str, Documented("External network of the floating IP.", kind="UUID")
    ] = ""
    floating_subnet_id: Annotated[
        str, Documented("Subnet of the floating IP.", kind="UUID")
    ] = ""
    floating_subnet: Annotated[
        str,
        Documented(
            "Name of the subnet of the floating IP: a name, a glob, or a regular "
            "expression behind `~`."
        ),
    ] = ""
    floating_subnet_tags: Annotated[
        str,
        Documented(
            "Tags of the subnet of the floating IP, separated by commas: any of them;"
            " `&a,b`: all; `!` in front inverts."
        ),
    ] = ""
    network_id: Annotated[str, Documented("Network of the VIP.", kind="UUID")] = ""
    subnet_id: Annotated[str, Documented("Subnet of the VIP.", kind="UUID")] = ""
    member_subnet_id: Annotated[
        str, Documented("Subnet of the members.", kind="UUID")
    ] = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadBalancer:
    """[LoadBalancer], with all [LoadBalancerClass "x"] by name."""

    enabled: Annotated[
        bool,
        Documented(
            "Manage load balancers. `false` disables the controller of Services.",
            change="requires a restart",
        ),
    ] = True
    lb_version: Annotated[
        str,
        Documented(
            "Version of the API of load balancers.",
            kind="v2",
            no_effect="Octavia is the only API",
        ),
    ] = ""
    lb_provider: Annotated[
        str,
        Documented(
            "Octavia provider of new load balancers. An unknown name is used with a "
            "warning.",
            kind="one of amphora, octavia, ovn, f5, amphorav2",
            change=_IMMUTABLE,
        ),
    ] = "amphora"
    lb_method: Annotated[
        str,
        Documented(
            "Algorithm of the pools. ovn supports `SOURCE_IP_PORT` only.",
            kind="one of ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP, SOURCE_IP_PORT",
        ),
    ] = "ROUND_ROBIN"
    subnet_id: Annotated[
        str,
        Documented(
            "Subnet of the VIP, and of the members where `member-subnet-id` is not "
            "set.",
            kind="UUID",
            change=_IMMUTABLE,
        ),
    ] = ""
    member_subnet_id: Annotated[
        str, Documented("Subnet of the members; default: that of the VIP.", kind="UUID")
    ] = ""
    member_cidr: Annotated[
        tuple[Network, ...],
        Documented(
            "Which addresses of Nodes members may have; empty: any. Not a key of the "
            "reference.",
            kind="CIDRs, separated by commas",
        ),
    ] = ()
    network_id: Annotated[
        str,
        Documented(
            "Network of the VIP, where no subnet is set.",
            kind="UUID",
            change=_IMMUTABLE,
        ),
    ] = ""
    floating_network_id: Annotated[
        str,
        Documented(
            "External network of floating IPs; empty: the only external network of "
            "the cloud.",
            kind="UUID",
        ),
    ] = ""
    floating_subnet_id: Annotated[
        str, Documented("Subnet of floating IPs.", kind="UUID")
    ] = ""
    floating_subnet: Annotated[
        str,
        Documented(
            "Name of the subnet of floating IPs: a name, a glob, or a regular "
            "expression behind `~`."
        ),
    ] = ""
    floating_subnet_tags: Annotated[
        str,
        Documented(
            "Tags of the subnet of floating IPs, separated by commas: any of them;"
            " `&a,b`: all; `!` in front inverts."
        ),
    ] = ""
    flavor_id: Annotated[
        str,
        Documented(
            "Octavia flavor of new load balancers.", kind="UUID", change=_IMMUTABLE
        ),
    ] = ""
    availability_zone: Annotated[
        str,
        Documented(
            "Octavia availability zone of new load balancers.", change=_IMMUTABLE
        ),
    ] = ""
    node_selector: Annotated[
        str,
        Documented(
            "Labels of the Nodes that become members, such as `role=ingress,zone=a`; "
            "empty: all Nodes."
        ),
    ] = ""
    default_tls_container_ref: Annotated[
        str,
        Documented(
            "Secret of Barbican with the certificate of TERMINATED_HTTPS listeners; "
            "empty: no TLS termination.",
            kind="URL of a container or secret",
        ),
    ] = ""
    create_monitor: Annotated[bool, Documented("Create health monitors.")] = False
    monitor_delay_s: Annotated[
        float,
        Documented(
            "Interval between checks of a health monitor.", name="monitor-delay"
        ),
    ] = 5.0
    monitor_timeout_s: Annotated[
        float,
        Documented("Timeout of a check of a health monitor.", name="monitor-timeout"),
    ] = 3.0
    monitor_max_retries: Annotated[
        int,
        Documented(
            "Successful checks after which a member is online.",
            kind="integer from 1 to 10",
        ),
    ] = 1
    monitor_max_retries_down: Annotated[
        int,
        Documented(
            "Failed checks after which a member is offline.",
            kind="integer from 1 to 10",
        ),
    ] = 3
    manage_security_groups: Annotated[
        bool,
        Documented(
            "Create a security group per Service, and add it to the ports of the "
            "Nodes."
        ),
    ] = False
    internal_lb: Annotated[
        bool,
        Documented(
            "Create no floating IPs, whatever the annotations of Services request."
        ),
    ] = False
    cascade_delete: Annotated[
        bool,
        Documented(
            "Delete a load balancer with all its children by one request. `false`: "
            "children first."
        ),
    ] = True
    enable_ingress_hostname: Annotated[
        bool,
        Documented("Write a hostname into the status of Services with proxy protocol."),
    ] = False
    ingress_hostname_suffix: Annotated[
        str, Documented("Domain of that hostname: `<address>.<suffix>`.")
    ] = "nip.io"
    max_shared_lb: Annotated[
        int, Documented("Maximum number of Services on a shared load balancer.")
    ] = 2
    container_store: Annotated[
        str,
        Documented(
            "Where the certificates of TLS termination are. `external`: the reference "
            "is not checked.",
            kind="one of barbican, external",
        ),
    ] = "barbican"
    provider_requires_serial_api_calls: Annotated[
        bool,
        Documented(
            "Create load balancers without children, and each child by its own "
            "request."
        ),
    ] = False
    wait_active_steps: int = 23
    """From the environment: OCCM_WAIT_LB_ACTIVE_STEPS."""
    classes: Mapping[str, LoadBalancerClass] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class BlockStorage:
    """[BlockStorage], of which the cloud controller manager uses nothing.

    availability_zone_map: Nova's zone to the zone of Cinder that serves it; a zone
    that is not in it has the same name in both. Ours; the reference has none.
    """

    ignore_volume_microversion: Annotated[
        bool, Documented("Use the oldest API version of Cinder that works (3.34).")
    ] = False
    rescan_on_resize: Annotated[
        bool,
        Documented(
            "Rescan the disk on the node after an expansion.",
            no_effect="csi-node reads the size of the disk until it has grown",
        ),
    ] = False
    ignore_volume_az: Annotated[
        bool,
        Documented("Volumes can be attached in every zone: no topology is reported."),
    ] = False
    node_volume_attach_limit: Annotated[
        int,
        Documented(
            "Maximum number of volumes per Node that csi-node reports; out of range: "
            "256.",
            kind="integer from 1 to 256",
            used_by=("csi-node",),
        ),
    ] = 256
    availability_zone_map: Annotated[
        Mapping[str, str],
        Documented(
            "Zone of Nova to the zone of Cinder that serves it; a zone without a pair "
            "has the same name in both. Not a key of the reference.",
            kind="pairs such as az1:volumes-1,az2:volumes-2",
        ),
    ] = dataclasses.field(default_factory=dict)


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
    router_id: Annotated[
        str,
        Documented(
            "Router to which openstack-ccm writes the routes to Pods; empty: no "
            "routes.",
            kind="UUID",
        ),
    ] = ""
    address_pairs_only: Annotated[
        bool,
        Documented(
            "No routes: only allowed address pairs of the ports. Not a key of the "
            "reference."
        ),
    ] = False
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
