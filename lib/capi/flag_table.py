"""The flags of an infrastructure provider: those of the references, and own ones.

Source: kubebuilder's main.go, which the references were generated from.
"""

from lib.daemon import common_flags
from lib.process import command_line, flags, kinds
from lib.process.flags import Flag

_NO_WEBHOOK = "the CRDs validate by CEL, and no webhook is served"
PROBE_ADDRESS = Flag(
    "health-probe-bind-address",
    kinds.TEXT,
    ":8081",
    "Address of the probes, as host:port or :port; 0: none.",
    group=flags.SERVING,
)
METRICS_ADDRESS = Flag(
    "metrics-bind-address",
    kinds.TEXT,
    ":8443",
    "Address of the metrics, as host:port or :port; 0: none.",
    group=flags.SERVING,
)
METRICS_SECURE = Flag(
    "metrics-secure",
    kinds.BOOLEAN,
    True,
    "Serve the metrics by HTTPS with authentication and authorization.",
    group=flags.SERVING,
)
METRICS_CERT_PATH = Flag(
    "metrics-cert-path",
    kinds.TEXT,
    "",
    "Folder of the certificate of the metrics; empty: self-signed, kept in memory.",
    group=flags.SERVING,
)
METRICS_CERT_NAME = Flag(
    "metrics-cert-name",
    kinds.TEXT,
    "tls.crt",
    "File of the certificate in --metrics-cert-path.",
    group=flags.SERVING,
)
METRICS_CERT_KEY = Flag(
    "metrics-cert-key",
    kinds.TEXT,
    "tls.key",
    "File of the private key in --metrics-cert-path.",
    group=flags.SERVING,
)
LEASE_NAMESPACE = Flag(
    "leader-election-namespace",
    kinds.TEXT,
    "",
    "Namespace of the Lease; empty: the namespace of the Pod.",
    group=flags.LEADER_ELECTION,
)
ZONES = Flag(
    "zones",
    kinds.LIST,
    (),
    "Failure domains of the cluster, shown in its status; empty: none.",
)
WATCH_FILTER = Flag(
    "watch-filter",
    kinds.TEXT,
    "",
    "Value of the label cluster.x-k8s.io/watch-filter of objects that are reconciled;"
    " empty: any.",
)
NAMESPACE = Flag(
    "namespace",
    kinds.TEXT,
    "",
    "Namespace whose objects are reconciled; empty: all.",
)
DELETION_TIMEOUT = Flag(
    "deletion-timeout",
    kinds.duration(1),
    600.0,
    "Time after which a deleted machine is released although parts of it are left.",
)
SYNC_PERIOD = Flag(
    "sync-period",
    kinds.duration(10),
    600.0,
    "Interval at which all machines are compared with the cloud.",
)
CONCURRENCY = Flag(
    "machine-concurrency",
    kinds.integer(1, 1000),
    10,
    "Machines that are reconciled in parallel.",
)
DRY_RUN = Flag(
    "dry-run",
    kinds.BOOLEAN,
    False,
    "Log actions without any write; no Lease is acquired.",
)
_NO_ZAP = "the log is that of --logging-format and --v"
_INERT = (
    Flag("zap-devel", kinds.BOOLEAN, False, "Ignored.", no_effect=_NO_ZAP),
    Flag("zap-encoder", kinds.TEXT, "", "Ignored.", no_effect=_NO_ZAP),
    Flag("zap-log-level", kinds.TEXT, "", "Ignored.", no_effect=_NO_ZAP),
    Flag("zap-stacktrace-level", kinds.TEXT, "", "Ignored.", no_effect=_NO_ZAP),
    Flag("zap-time-encoding", kinds.TEXT, "", "Ignored.", no_effect=_NO_ZAP),
    Flag("webhook-cert-path", kinds.TEXT, "", "Ignored.", no_effect=_NO_WEBHOOK),
    Flag("webhook-cert-name", kinds.TEXT, "", "Ignored.", no_effect=_NO_WEBHOOK),
    Flag("webhook-cert-key", kinds.TEXT, "", "Ignored.", no_effect=_NO_WEBHOOK),
    Flag(
        "enable-http2",
        kinds.BOOLEAN,
        False,
        "Ignored.",
        no_effect="HTTP/2 is not served",
    ),
)
FLAGS: tuple[Flag[object], ...] = (
    common_flags.KUBECONFIG,
    NAMESPACE,
    WATCH_FILTER,
    ZONES,
    DELETION_TIMEOUT,
    SYNC_PERIOD,
    CONCURRENCY,
    DRY_RUN,
    PROBE_ADDRESS,
    METRICS_ADDRESS,
    METRICS_SECURE,
    METRICS_CERT_PATH,
    METRICS_CERT_NAME,
    METRICS_CERT_KEY,
    common_flags.LEADER_ELECT,
    LEASE_NAMESPACE,
    common_flags.LOGGING_FORMAT,
    common_flags.USER_AGENT,
    command_line.VERBOSITY,
    *_INERT,
)
