"""The flags that daemons of all kinds have, with one name, default and description.

A flag that one daemon describes otherwise is defined there.
"""

from lib.process import flags, kinds
from lib.process.flags import Flag

KUBECONFIG = Flag(
    "kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig; empty: the service account of the Pod.",
)
MASTER = Flag(
    "master", kinds.TEXT, "", "URL of the API server; overrides the kubeconfig."
)
BIND_ADDRESS = Flag(
    "bind-address",
    kinds.TEXT,
    "0.0.0.0",  # noqa: S104
    "Address on which --secure-port listens.",
    group=flags.SERVING,
)
TLS_CERT = Flag(
    "tls-cert-file",
    kinds.TEXT,
    "",
    "Certificate of --secure-port in PEM; empty: self-signed, kept in memory.",
    group=flags.SERVING,
)
TLS_KEY = Flag(
    "tls-private-key-file",
    kinds.TEXT,
    "",
    "Private key of --tls-cert-file in PEM.",
    group=flags.SERVING,
)
LEADER_ELECT = Flag(
    "leader-elect",
    kinds.BOOLEAN,
    True,
    "Act only while this process holds the Lease.",
    group=flags.LEADER_ELECTION,
)
LOGGING_FORMAT = Flag(
    "logging-format",
    kinds.one_of("text", "json"),
    "text",
    "Log format: text (as klog) or json.",
    group=flags.LOGGING,
)
USER_AGENT = Flag(
    "user-agent",
    kinds.ARRAY,
    (),
    "Suffix of the User-Agent of cloud requests; can be repeated.",
)
