"""The annotations of a Service, and the validation of their values.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go; Deckhouse,
cloud-provider-openstack, "load balancer annotations".
"""

import re
import uuid
from collections.abc import Collection, Mapping
from typing import Annotated

from lib.cloud.load_balancers import Reason
from lib.cloud.steps import Problem, ProblemReason
from lib.process import config
from lib.process.documented import Documented

_UPSTREAM = "loadbalancer.openstack.org/"
_DECKHOUSE = "loadbalancer.openstack.deckhouse.io/"
_OURS = "mooring.io/"

_MILLISECONDS = "integer from 0 to 2073600000"
_FATAL = "invalid: nothing is written"
_IMMUTABLE = "changed later: Event `ImmutableField`"
_FATAL_IMMUTABLE = f"{_FATAL}; {_IMMUTABLE}"
_RESTORED = "restored"
"""What happens to an invalid value, and to one that is changed later."""

INTERNAL: Annotated[
    str,
    Documented(
        "No floating IP. `internal-lb` of [LoadBalancer] cannot be switched off.",
        kind="boolean",
        default="`internal-lb` of [LoadBalancer]",
    ),
] = "service.beta.kubernetes.io/openstack-internal-load-balancer"
SOURCE_RANGES: Annotated[
    str,
    Documented(
        "Clients that may connect; `spec.loadBalancerSourceRanges` wins."
        " Ignored with an Event where the provider does not support it.",
        kind="CIDRs, separated by commas",
        default="all clients",
        change=_FATAL,
    ),
] = "service.beta.kubernetes.io/load-balancer-source-ranges"
CLASS: Annotated[
    str,
    Documented(
        "Section [LoadBalancerClass] of cloud.conf that is used.",
        kind="name of a class",
        default="none",
        change=_FATAL,
    ),
] = f"{_UPSTREAM}class"
NETWORK_ID: Annotated[
    str,
    Documented(
        "Network of the VIP.",
        kind="UUID",
        default="`network-id` of [LoadBalancer]",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}network-id"
SUBNET_ID: Annotated[
    str,
    Documented(
        "Subnet of the VIP.",
        kind="UUID",
        default="`subnet-id` of [LoadBalancer]",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}subnet-id"
MEMBER_SUBNET_ID: Annotated[
    str,
    Documented(
        "Subnet of the members.",
        kind="UUID",
        default="`member-subnet-id` of [LoadBalancer], else the subnet of the VIP",
        change=_FATAL,
    ),
] = f"{_UPSTREAM}member-subnet-id"
PORT_ID: Annotated[
    str,
    Documented(
        "Existing port that becomes the VIP.",
        kind="UUID",
        default="a new port",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}port-id"
FLOATING_NETWORK_ID: Annotated[
    str,
    Documented(
        "External network of the floating IP; a class wins.",
        kind="UUID",
        default="`floating-network-id` of [LoadBalancer]",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}floating-network-id"
FLOATING_SUBNET_ID: Annotated[
    str,
    Documented(
        "Subnet of the floating IP; a class wins.",
        kind="UUID",
        default="`floating-subnet-id` of [LoadBalancer]",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}floating-subnet-id"
FLOATING_SUBNET: Annotated[
    str,
    Documented(
        "Subnet of the floating IP by name; a class wins.",
        kind="name, glob, or regular expression behind `~`",
        default="`floating-subnet` of [LoadBalancer]",
        change=_FATAL_IMMUTABLE,
    ),
] = f"{_UPSTREAM}floating-subnet"
FLOATING_SUBNET_TAGS: Annotated[
    str,
    Documented(
        "Subnet of the floating IP by tags; a class wins.",
        kind="tags, separated by commas: any of them; `&a,b`: all; `!` in front"
        " inverts",
        default="`floating-subnet-tags` of [LoadBalancer]",
        change=_IMMUTABLE,
    ),
] = f"{_UPSTREAM}floating-subnet-tags"
KEEP_FLOATING_IP: Annotated[
    str,
    Documented(
        "Keep the floating IP when the Service is deleted, or moves to another"
        " load balancer.",
        kind="boolean",
        default="`false`",
    ),
] = f"{_UPSTREAM}keep-floatingip"
LOAD_BALANCER_ID: Annotated[
    str,
    Documented(
        "Existing load balancer that serves the Service, together with others;"
        " can be changed later.",
        kind="UUID",
        default="a load balancer per Service",
        change=_FATAL,
    ),
] = f"{_UPSTREAM}load-balancer-id"
LOAD_BALANCER_ADDRESS: Annotated[
    str,
    Documented(
        "Written by openstack-ccm: the address of the load balancer. Values of"
        " users are overwritten.",
        kind="IP address, written",
        default="none",
        change=_RESTORED,
    ),
] = f"{_UPSTREAM}load-balancer-address"
HOSTNAME: Annotated[
    str,
    Documented(
        "Hostname in the status of the Service, instead of the address.",
        kind="DNS name in lower case",
        default="the address",
    ),
] = f"{_UPSTREAM}hostname"
PROXY_PROTOCOL: Annotated[
    str,
    Documented(
        "PROXY protocol towards the members; for TCP ports. Excludes"
        " `x-forwarded-for`.",
        kind="one of true, v1, v2, false",
        default="`false`",
    ),
] = f"{_UPSTREAM}proxy-protocol"
FORWARDED_FOR: Annotated[
    str,
    Documented(
        "HTTP listeners that add the header X-Forwarded-For; for TCP ports."
        " Excludes `proxy-protocol`.",
        kind="boolean",
        default="`false`",
        change="invalid: default and Event; together with `proxy-protocol`: nothing is"
        " written",
    ),
] = f"{_UPSTREAM}x-forwarded-for"
TLS_REF: Annotated[
    str,
    Documented(
        "Certificate of TERMINATED_HTTPS listeners, in Barbican; for TCP ports.",
        kind="URL that ends in containers/<uuid> or secrets/<uuid>",
        default="`default-tls-container-ref` of [LoadBalancer]",
        change=_FATAL,
    ),
] = f"{_UPSTREAM}default-tls-container-ref"
CONNECTION_LIMIT: Annotated[
    str,
    Documented(
        "Maximum number of connections per listener; -1: no limit.",
        kind="integer from -1 to 2147483647",
        default="`-1`",
    ),
] = f"{_UPSTREAM}connection-limit"
METHOD: Annotated[
    str,
    Documented(
        "Algorithm of the pools. With provider ovn only `SOURCE_IP_PORT`, and"
        " anything else is refused.",
        kind="one of ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP, SOURCE_IP_PORT",
        default="`lb-method` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}lb-method"
TIMEOUT_CLIENT_DATA: Annotated[
    str,
    Documented(
        "Milliseconds without data from the client after which a connection is"
        " closed.",
        kind=_MILLISECONDS,
        default="`50000`",
    ),
] = f"{_UPSTREAM}timeout-client-data"
TIMEOUT_MEMBER_CONNECT: Annotated[
    str,
    Documented(
        "Milliseconds for the connection to a member.",
        kind=_MILLISECONDS,
        default="`5000`",
    ),
] = f"{_UPSTREAM}timeout-member-connect"
TIMEOUT_MEMBER_DATA: Annotated[
    str,
    Documented(
        "Milliseconds without data from the member after which a connection is"
        " closed.",
        kind=_MILLISECONDS,
        default="`50000`",
    ),
] = f"{_UPSTREAM}timeout-member-data"
TIMEOUT_TCP_INSPECT: Annotated[
    str,
    Documented(
        "Milliseconds to wait for data to inspect.",
        kind=_MILLISECONDS,
        default="`0`",
    ),
] = f"{_UPSTREAM}timeout-tcp-inspect"
ENABLE_MONITOR: Annotated[
    str,
    Documented(
        "Health monitors of the pools. With externalTrafficPolicy Local they"
        " are created unless this is `false`.",
        kind="boolean",
        default="`create-monitor` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}enable-health-monitor"
MONITOR_DELAY: Annotated[
    str,
    Documented(
        "Seconds between checks of a health monitor.",
        kind="integer from 0 to 86400",
        default="`monitor-delay` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}health-monitor-delay"
MONITOR_TIMEOUT: Annotated[
    str,
    Documented(
        "Timeout of a check of a health monitor in seconds.",
        kind="integer from 0 to 86400",
        default="`monitor-timeout` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}health-monitor-timeout"
MONITOR_RETRIES: Annotated[
    str,
    Documented(
        "Successful checks after which a member is online.",
        kind="integer from 1 to 10",
        default="`monitor-max-retries` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}health-monitor-max-retries"
MONITOR_RETRIES_DOWN: Annotated[
    str,
    Documented(
        "Failed checks after which a member is offline.",
        kind="integer from 1 to 10",
        default="`monitor-max-retries-down` of [LoadBalancer]",
    ),
] = f"{_UPSTREAM}health-monitor-max-retries-down"
FLAVOR_ID: Annotated[
    str,
    Documented(
        "Octavia flavor.",
        kind="UUID",
        default="`flavor-id` of [LoadBalancer]",
        change=_IMMUTABLE,
    ),
] = f"{_UPSTREAM}flavor-id"
AVAILABILITY_ZONE: Annotated[
    str,
    Documented(
        "Octavia availability zone.",
        kind="name of a zone",
        default="`availability-zone` of [LoadBalancer]",
        change=_IMMUTABLE,
    ),
] = f"{_UPSTREAM}availability-zone"
NODE_SELECTOR: Annotated[
    str,
    Documented(
        "Labels of the Nodes that become members.",
        kind="labels, as key=value or key, separated by commas",
        default="`node-selector` of [LoadBalancer]; empty: all Nodes",
    ),
] = f"{_UPSTREAM}node-selector"
DECKHOUSE_ID: Annotated[
    str,
    Documented(
        "The same as `loadbalancer.openstack.org/load-balancer-id`, and wins.",
        kind="UUID",
        default="a load balancer per Service",
        change=_FATAL,
    ),
] = f"{_DECKHOUSE}load-balancer-id"
DECKHOUSE_ADDRESS: Annotated[
    str,
    Documented(
        "Requested address; wins over `spec.loadBalancerIP`.",
        kind="IP address",
        default="`spec.loadBalancerIP`",
        change=_FATAL,
    ),
] = f"{_DECKHOUSE}load-balancer-address"
MEMBER_CIDR: Annotated[
    str,
    Documented(
        "Addresses of Nodes that members may have. Not in the reference.",
        kind="at most 16 CIDRs, separated by commas",
        default="`member-cidr` of [LoadBalancer]; empty: all addresses",
    ),
] = f"{_UPSTREAM}member-cidr"
ON_ERROR: Annotated[
    str,
    Documented(
        "Reaction when a load balancer that was ACTIVE changes to ERROR."
        " `failover` requires the role `load-balancer_admin`; `recreate` keeps"
        " the floating IP. Not in the reference.",
        kind="one of report, failover, recreate",
        default="`report`",
    ),
] = f"{_UPSTREAM}on-error"
OWNED_ID: Annotated[
    str,
    Documented(
        "Written by openstack-ccm: the load balancer that the Service owns. It"
        " is no proof of ownership. Not in the reference.",
        kind="UUID, written",
        default="none",
        change=_RESTORED,
    ),
] = f"{_OURS}load-balancer-id"

WRITTEN = frozenset({LOAD_BALANCER_ADDRESS, OWNED_ID})
"""Written only; values of users are overwritten."""
READ = frozenset(
    value
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, str) and not name.startswith("_")
) - {LOAD_BALANCER_ADDRESS}
"""All that are read, by us or by the user."""

MOST_NAMED = 3
"""Wrong parts of one value that are reported."""
LONGEST_VALUE = 4096
LONGEST_RANGES = 32768
"""Characters of a value; of source ranges. Kubernetes allows 256 KiB."""
MOST_CIDRS = 16
"""Of member-cidr: each is compared with each address of each Node."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


class AnnotationReader:
    """Reads values, and collects their problems."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self._too_long: set[str] = set()
        self.problems: list[Problem] = []

    def has(self, key: str) -> bool:
        """Report whether the annotation exists, empty or not."""
        return key in self._annotations

    def text(self, key: str, default: str = "") -> str:
        """Return the value, also an empty one; without the annotation the default."""
        value = self._annotations.get(key, default)
        longest = LONGEST_RANGES if key == SOURCE_RANGES else LONGEST_VALUE
        if len(value) <= longest:
            return value
        if key not in self._too_long:
            self._too_long.add(key)
            self.fatal(key, value, f"at most {longest} characters")
        return default

    def boolean(self, key: str, default: bool) -> bool:
        """Read true or false."""
        return self.choice(key, str(default).lower(), ("true", "false")) == "true"

    def choice(self, key: str, default: str, allowed: Collection[str]) -> str:
        """Read one of some values."""
        value = self._annotations.get(key, default)
        if value in allowed:
            return value
        self.wrong(key, value, "one of " + ", ".join(allowed), default)
        return default

    def whole(self, key: str, default: int, least: int, most: int) -> int:
        """Read a whole number within bounds."""
        value = self._annotations.get(key)
        if value is None:
            return default
        if _WHOLE.fullmatch(value) and least <= int(value) <= most:
            return int(value)
        allowed = f"a whole number from {least} to {most}"
        self.wrong(key, value, allowed, str(default))
        return default

    def id(self, key: str) -> str:
        """Read a UUID; empty when it is not given or no UUID, which is fatal."""
        value = self.text(key)
        if value and not is_uuid(value):
            self.fatal(key, value, "a UUID")
            return ""
        return value

    def where(self, key: str) -> str:
        """Return the field of a value: settings have the names of annotations."""
        if self.has(key):
            return f"annotation {key}"
        return f"[LoadBalancer] {key.rpartition('/')[2]}"

    def wrong(self, key: str, value: str, allowed: str, used: str) -> None:
        """Report an invalid value that is replaced by the default."""
        message = (
            f"{config.FieldProblem(f'annotation {key}', value, allowed)};"
            f' using the default "{used}"'
        )
        self.problems.append(Problem(Reason.INVALID_ANNOTATION, message))

    def fatal(
        self,
        key: str,
        value: str,
        allowed: str,
        reason: ProblemReason = Reason.INVALID_ANNOTATION,
    ) -> None:
        """Report an invalid value for which there is no default."""
        message = str(config.FieldProblem(self.where(key), value, allowed))
        self.problems.append(Problem(reason, message, is_fatal=True))


def is_uuid(text: str) -> bool:
    """Report whether a text is a UUID as OpenStack writes it."""
    if len(text) not in (32, 36):
        return False
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
