"""The flags of a cloud controller manager that do something here.

Source: k8s.io/cloud-provider v0.36 options (names, types, defaults).
"""

from lib.daemon import common_flags
from lib.process import command_line, exchange, flags, kinds
from lib.process.flags import Flag

CONTROLLERS = {
    "cloud-node-controller": "cloud-node",
    "cloud-node-lifecycle-controller": "cloud-node-lifecycle",
    "service-lb-controller": "service",
    "node-route-controller": "route",
}
"""Each controller's name and its older alias."""

_CONTROLLERS_KIND = kinds.LIST
_NAMES = ", ".join(CONTROLLERS)

CLOUD_PROVIDER = Flag(
    "cloud-provider", kinds.TEXT, "", "Name of the cloud provider.", is_required=True
)
CLOUD_CONFIG = Flag(
    "cloud-config",
    kinds.TEXT,
    "",
    "Path of the configuration file of the cloud.",
    is_required=True,
)
CONTROLLERS_FLAG = Flag(
    "controllers",
    _CONTROLLERS_KIND,
    ("*",),
    f"Which controllers run: '*' all, 'name' one, '-name' not that one. {_NAMES}.",
)
NODE_MONITOR_PERIOD = Flag(
    "node-monitor-period",
    kinds.duration(0.1),
    5.0,
    "Interval between checks of Nodes that are not Ready.",
    group=flags.NODES,
)
NODE_STATUS_PERIOD = Flag(
    "node-status-update-frequency",
    kinds.duration(0.1),
    300.0,
    "Interval between updates of the addresses of all Nodes.",
    group=flags.NODES,
)
NODE_SYNCS = Flag(
    "concurrent-node-syncs",
    kinds.integer(1, 1000),
    1,
    "Nodes updated in parallel; values below 8 are raised to 8.",
    group=flags.NODES,
)
SERVICE_SYNCS = Flag(
    "concurrent-service-syncs",
    kinds.integer(1, 1000),
    1,
    "Load balancers written in parallel at the beginning, at least 2; afterwards as"
    " many as the cloud can take. Of a cloud that is not measured: Services in"
    " parallel, at least 8.",
    group=flags.LOAD_BALANCERS,
)
CLUSTER_NAME = Flag(
    "cluster-name",
    kinds.TEXT,
    "kubernetes",
    "Cluster name in the names of load balancers; need not be unique.",
    group=flags.LOAD_BALANCERS,
)
CONFIGURE_ROUTES = Flag(
    "configure-cloud-routes",
    kinds.BOOLEAN,
    True,
    "Manage routes to Pods in the cloud; requires a router in --cloud-config.",
    group=flags.ROUTES,
)
CLUSTER_CIDR = Flag(
    "cluster-cidr",
    kinds.TEXT,
    "",
    "CIDR of all Pods, or one of IPv4 and one of IPv6; must contain the podCIDRs.",
    group=flags.ROUTES,
)
ROUTE_PERIOD = Flag(
    "route-reconciliation-period",
    kinds.duration(0.1),
    10.0,
    "Interval between reconciliations of routes.",
    group=flags.ROUTES,
)
SECURE_PORT = Flag(
    "secure-port",
    kinds.integer(0, 65535),
    10258,
    "HTTPS port of probes and metrics; 0: disabled.",
    group=flags.SERVING,
)
TLS_MIN_VERSION = Flag(
    "tls-min-version",
    kinds.TEXT,
    "",
    "Lowest version of TLS on --secure-port: VersionTLS12 (default) or VersionTLS13;"
    " VersionTLS10 and VersionTLS11 are accepted and mean VersionTLS12.",
    group=flags.SERVING,
)
TLS_CIPHER_SUITES = Flag(
    "tls-cipher-suites",
    kinds.LIST,
    (),
    "Cipher suites of TLS 1.2 on --secure-port, by the names of Go; empty: those of"
    " Python. Without a suite of TLS 1.2 only TLS 1.3 is served, whose suites cannot be"
    " chosen. RC4 and 3DES are accepted and never offered.",
    group=flags.SERVING,
)
CLIENT_CA = Flag(
    "client-ca-file",
    kinds.TEXT,
    "",
    "CA certificates of clients of --secure-port: common name is the user,"
    " organizations are groups.",
    group=flags.SERVING,
)
ALWAYS_ALLOW = Flag(
    "authorization-always-allow-paths",
    kinds.LIST,
    exchange.PROBE_PATHS,
    "Paths served without authorization; a trailing * matches any suffix.",
    group=flags.SERVING,
)
AUTHENTICATION_TTL = Flag(
    "authentication-token-webhook-cache-ttl",
    kinds.duration(0),
    10.0,
    "TTL of cached TokenReview responses.",
    group=flags.SERVING,
)
AUTHORIZED_TTL = Flag(
    "authorization-webhook-cache-authorized-ttl",
    kinds.duration(0),
    10.0,
    "TTL of cached allowed SubjectAccessReview responses.",
    group=flags.SERVING,
)
UNAUTHORIZED_TTL = Flag(
    "authorization-webhook-cache-unauthorized-ttl",
    kinds.duration(0),
    10.0,
    "TTL of cached denied SubjectAccessReview responses.",
    group=flags.SERVING,
)
LEASE_DURATION = Flag(
    "leader-elect-lease-duration",
    kinds.duration(1),
    15.0,
    "Time after the last renewal at which another process may take the Lease.",
    group=flags.LEADER_ELECTION,
)
RENEW_DEADLINE = Flag(
    "leader-elect-renew-deadline",
    kinds.duration(1),
    10.0,
    "Time after the last renewal at which the leader stops; must be less than"
    " --leader-elect-lease-duration.",
    group=flags.LEADER_ELECTION,
)
RETRY_PERIOD = Flag(
    "leader-elect-retry-period",
    kinds.duration(0.1),
    2.0,
    "Interval between attempts to acquire or renew the Lease.",
    group=flags.LEADER_ELECTION,
)
LEASE_LOCK = Flag(
    "leader-elect-resource-lock",
    kinds.one_of("leases"),
    "leases",
    "Kind of the lock; only leases.",
    group=flags.LEADER_ELECTION,
)
LEASE_NAME = Flag(
    "leader-elect-resource-name",
    kinds.TEXT,
    "cloud-controller-manager",
    "Name of the Lease.",
    group=flags.LEADER_ELECTION,
)
LEASE_NAMESPACE = Flag(
    "leader-elect-resource-namespace",
    kinds.TEXT,
    "kube-system",
    "Namespace of the Lease.",
    group=flags.LEADER_ELECTION,
)

# Ours; the reference has none of these.

NODE_DELETE_WINDOW = Flag(
    "node-delete-window",
    kinds.duration(1),
    600.0,
    "Time window in which deletions count against --node-delete-max-count and"
    " --node-delete-max-percent.",
    group=flags.NODE_DELETION,
)
NODE_DELETE_MAX_COUNT = Flag(
    "node-delete-max-count",
    kinds.integer(0),
    3,
    "Maximum number of Nodes deleted per --node-delete-window. The longest absent"
    " go first; while more than 55 % of all Nodes are absent, none is deleted. What is"
    " held back has an Event.",
    group=flags.NODE_DELETION,
)
NODE_DELETE_MAX_PERCENT = Flag(
    "node-delete-max-percent",
    kinds.integer(0, 100),
    30,
    "Maximum percentage of all Nodes, where that is more than --node-delete-max-count.",
    group=flags.NODE_DELETION,
)
CLUSTER_ID = Flag(
    "cluster-id",
    kinds.TEXT,
    "",
    "Cluster ID recorded as owner on load balancers and routes; must be unique in the"
    " cloud; empty: UID of namespace kube-system.",
    group=flags.LOAD_BALANCERS,
)
LB_DRIFT_PERIOD = Flag(
    "lb-drift-period",
    kinds.duration(10),
    600.0,
    "Interval of drift detection for load balancers.",
    group=flags.LOAD_BALANCERS,
)
LB_MAX_WRITES = Flag(
    "lb-max-writes",
    kinds.integer(1, 1000),
    1000,
    "Load balancers created, changed or deleted in parallel, at most. No effect with a"
    " cloud that is not measured.",
    group=flags.LOAD_BALANCERS,
)
DRY_RUN = Flag(
    "dry-run",
    kinds.BOOLEAN,
    False,
    "Log actions without any write; no Lease is acquired.",
)

OURS: tuple[Flag[object], ...] = (
    NODE_DELETE_WINDOW,
    NODE_DELETE_MAX_COUNT,
    NODE_DELETE_MAX_PERCENT,
    CLUSTER_ID,
    LB_DRIFT_PERIOD,
    LB_MAX_WRITES,
    DRY_RUN,
)

WORKING: tuple[Flag[object], ...] = (
    CLOUD_PROVIDER,
    CLOUD_CONFIG,
    common_flags.KUBECONFIG,
    common_flags.MASTER,
    CONTROLLERS_FLAG,
    NODE_MONITOR_PERIOD,
    NODE_STATUS_PERIOD,
    NODE_SYNCS,
    SERVICE_SYNCS,
    CLUSTER_NAME,
    CONFIGURE_ROUTES,
    CLUSTER_CIDR,
    ROUTE_PERIOD,
    common_flags.BIND_ADDRESS,
    SECURE_PORT,
    common_flags.TLS_CERT,
    common_flags.TLS_KEY,
    TLS_MIN_VERSION,
    TLS_CIPHER_SUITES,
    CLIENT_CA,
    ALWAYS_ALLOW,
    AUTHENTICATION_TTL,
    AUTHORIZED_TTL,
    UNAUTHORIZED_TTL,
    common_flags.LEADER_ELECT,
    LEASE_DURATION,
    RENEW_DEADLINE,
    RETRY_PERIOD,
    LEASE_LOCK,
    LEASE_NAME,
    LEASE_NAMESPACE,
    common_flags.LOGGING_FORMAT,
    common_flags.USER_AGENT,
    command_line.VERBOSITY,
)
