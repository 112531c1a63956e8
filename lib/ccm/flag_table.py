"""The flags of a cloud controller manager that do something here.

Source: k8s.io/cloud-provider v0.36 options (names, types, defaults).
"""

from lib.daemon import common_flags
from lib.process import command_line, exchange, kinds
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

CLOUD_PROVIDER = Flag("cloud-provider", kinds.TEXT, "", "The cloud's name. Required.")
CLOUD_CONFIG = Flag(
    "cloud-config", kinds.TEXT, "", "The cloud's configuration file. Required."
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
    "Seconds between looks at the Nodes that are not Ready.",
)
NODE_STATUS_PERIOD = Flag(
    "node-status-update-frequency",
    kinds.duration(0.1),
    300.0,
    "How often the addresses of all Nodes are refreshed.",
)
NODE_SYNCS = Flag(
    "concurrent-node-syncs",
    kinds.integer(1, 1000),
    1,
    "Nodes written at once; at least 8 here, since reads are shared.",
)
SERVICE_SYNCS = Flag(
    "concurrent-service-syncs",
    kinds.integer(1, 1000),
    1,
    "Services whose load balancers are written at once; at least 8 here.",
)
CLUSTER_NAME = Flag(
    "cluster-name",
    kinds.TEXT,
    "kubernetes",
    "Part of the names of load balancers; need not be unique.",
)
CONFIGURE_ROUTES = Flag(
    "configure-cloud-routes",
    kinds.BOOLEAN,
    True,
    "Keep routes to Pods in the cloud, where its configuration names a router.",
)
CLUSTER_CIDR = Flag(
    "cluster-cidr",
    kinds.TEXT,
    "",
    "CIDR of all Pods, or two of different families; podCIDRs must be within it.",
)
ROUTE_PERIOD = Flag(
    "route-reconciliation-period",
    kinds.duration(0.1),
    10.0,
    "How often the cloud's routes are compared with those that are needed.",
)
SECURE_PORT = Flag(
    "secure-port",
    kinds.integer(0, 65535),
    10258,
    "HTTPS port of probes and metrics; 0 switches it off.",
)
CLIENT_CA = Flag(
    "client-ca-file",
    kinds.TEXT,
    "",
    "Who signs clients' certificates for --secure-port: common name is the user,"
    " organizations are groups.",
)
ALWAYS_ALLOW = Flag(
    "authorization-always-allow-paths",
    kinds.LIST,
    exchange.PROBE_PATHS,
    "Paths served without authorization; a trailing * matches any rest.",
)
AUTHENTICATION_TTL = Flag(
    "authentication-token-webhook-cache-ttl",
    kinds.duration(0),
    10.0,
    "How long the API server's word about a token is believed.",
)
AUTHORIZED_TTL = Flag(
    "authorization-webhook-cache-authorized-ttl",
    kinds.duration(0),
    10.0,
    "How long the API server's yes is believed.",
)
UNAUTHORIZED_TTL = Flag(
    "authorization-webhook-cache-unauthorized-ttl",
    kinds.duration(0),
    10.0,
    "How long the API server's no is believed.",
)
LEASE_DURATION = Flag(
    "leader-elect-lease-duration",
    kinds.duration(1),
    15.0,
    "How long others wait after the last renewal.",
)
RENEW_DEADLINE = Flag(
    "leader-elect-renew-deadline",
    kinds.duration(1),
    10.0,
    "How long the leader acts after its last renewal; shorter than the former.",
)
RETRY_PERIOD = Flag(
    "leader-elect-retry-period",
    kinds.duration(0.1),
    2.0,
    "Time between two tries to get or renew the Lease.",
)
LEASE_LOCK = Flag(
    "leader-elect-resource-lock",
    kinds.one_of("leases"),
    "leases",
    "What is locked on; only leases.",
)
LEASE_NAME = Flag(
    "leader-elect-resource-name",
    kinds.TEXT,
    "cloud-controller-manager",
    "The Lease's name.",
)
LEASE_NAMESPACE = Flag(
    "leader-elect-resource-namespace", kinds.TEXT, "kube-system", "Its namespace."
)

# Ours; the reference has none of these.

NODE_DELETE_WINDOW = Flag(
    "node-delete-window",
    kinds.duration(1),
    600.0,
    "Time over which deletions of Nodes are counted against the two limits below.",
)
NODE_DELETE_MAX_COUNT = Flag(
    "node-delete-max-count",
    kinds.integer(0),
    3,
    "So many Nodes may be deleted in a window; more are told and kept.",
)
NODE_DELETE_MAX_PERCENT = Flag(
    "node-delete-max-percent",
    kinds.integer(0, 100),
    30,
    "Or so many of all Nodes, in percent, where that is more.",
)
CLUSTER_ID = Flag(
    "cluster-id",
    kinds.TEXT,
    "",
    "Owner of load balancers and routes, unique in the cloud; the UID of namespace"
    " kube-system if empty.",
)
LB_DRIFT_PERIOD = Flag(
    "lb-drift-period",
    kinds.duration(10),
    600.0,
    "How often load balancers are compared with what is wanted.",
)
DRY_RUN = Flag(
    "dry-run",
    kinds.BOOLEAN,
    False,
    "Write nothing, take no Lease, and log what would be done.",
)

OURS: tuple[Flag[object], ...] = (
    NODE_DELETE_WINDOW,
    NODE_DELETE_MAX_COUNT,
    NODE_DELETE_MAX_PERCENT,
    CLUSTER_ID,
    LB_DRIFT_PERIOD,
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
