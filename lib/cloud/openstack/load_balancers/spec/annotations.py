"""The annotations of a Service, and the validation of their values.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go; Deckhouse,
cloud-provider-openstack, "load balancer annotations".
"""

import re
import uuid
from collections.abc import Collection, Mapping

from lib.cloud.load_balancers import Reason
from lib.cloud.steps import Problem, ProblemReason
from lib.process import config

_UPSTREAM = "loadbalancer.openstack.org/"
_DECKHOUSE = "loadbalancer.openstack.deckhouse.io/"
_OURS = "mooring.io/"

INTERNAL = "service.beta.kubernetes.io/openstack-internal-load-balancer"
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
CLASS = f"{_UPSTREAM}class"
NETWORK_ID = f"{_UPSTREAM}network-id"
SUBNET_ID = f"{_UPSTREAM}subnet-id"
MEMBER_SUBNET_ID = f"{_UPSTREAM}member-subnet-id"
PORT_ID = f"{_UPSTREAM}port-id"
FLOATING_NETWORK_ID = f"{_UPSTREAM}floating-network-id"
FLOATING_SUBNET_ID = f"{_UPSTREAM}floating-subnet-id"
FLOATING_SUBNET = f"{_UPSTREAM}floating-subnet"
FLOATING_SUBNET_TAGS = f"{_UPSTREAM}floating-subnet-tags"
KEEP_FLOATING_IP = f"{_UPSTREAM}keep-floatingip"
LOAD_BALANCER_ID = f"{_UPSTREAM}load-balancer-id"
LOAD_BALANCER_ADDRESS = f"{_UPSTREAM}load-balancer-address"
HOSTNAME = f"{_UPSTREAM}hostname"
PROXY_PROTOCOL = f"{_UPSTREAM}proxy-protocol"
FORWARDED_FOR = f"{_UPSTREAM}x-forwarded-for"
TLS_REF = f"{_UPSTREAM}default-tls-container-ref"
CONNECTION_LIMIT = f"{_UPSTREAM}connection-limit"
METHOD = f"{_UPSTREAM}lb-method"
TIMEOUT_CLIENT_DATA = f"{_UPSTREAM}timeout-client-data"
TIMEOUT_MEMBER_CONNECT = f"{_UPSTREAM}timeout-member-connect"
TIMEOUT_MEMBER_DATA = f"{_UPSTREAM}timeout-member-data"
TIMEOUT_TCP_INSPECT = f"{_UPSTREAM}timeout-tcp-inspect"
ENABLE_MONITOR = f"{_UPSTREAM}enable-health-monitor"
MONITOR_DELAY = f"{_UPSTREAM}health-monitor-delay"
MONITOR_TIMEOUT = f"{_UPSTREAM}health-monitor-timeout"
MONITOR_RETRIES = f"{_UPSTREAM}health-monitor-max-retries"
MONITOR_RETRIES_DOWN = f"{_UPSTREAM}health-monitor-max-retries-down"
FLAVOR_ID = f"{_UPSTREAM}flavor-id"
AVAILABILITY_ZONE = f"{_UPSTREAM}availability-zone"
NODE_SELECTOR = f"{_UPSTREAM}node-selector"
DECKHOUSE_ID = f"{_DECKHOUSE}load-balancer-id"
DECKHOUSE_ADDRESS = f"{_DECKHOUSE}load-balancer-address"
MEMBER_CIDR = f"{_UPSTREAM}member-cidr"
"""Our own: CIDRs of the Node addresses that members use."""
ON_ERROR = f"{_UPSTREAM}on-error"
"""Our own: report, failover or recreate."""
OWNED_ID = f"{_OURS}load-balancer-id"
"""Our own, written only: the load balancer that the Service owns."""

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
