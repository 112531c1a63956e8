"""The flags that daemons of all kinds have, with one name, default and description.

A flag that one daemon describes otherwise is defined there.
"""

from lib.process import kinds
from lib.process.flags import Flag

KUBECONFIG = Flag(
    "kubeconfig", kinds.TEXT, "", "How to reach the API server; in-cluster if empty."
)
MASTER = Flag(
    "master", kinds.TEXT, "", "The API server's address, in place of the kubeconfig's."
)
BIND_ADDRESS = Flag(
    "bind-address", kinds.TEXT, "0.0.0.0", "Where --secure-port listens."  # noqa: S104
)
TLS_CERT = Flag(
    "tls-cert-file",
    kinds.TEXT,
    "",
    "Certificate of --secure-port; self-signed, in memory, if empty.",
)
TLS_KEY = Flag("tls-private-key-file", kinds.TEXT, "", "Its private key.")
LEADER_ELECT = Flag(
    "leader-elect", kinds.BOOLEAN, True, "Act only while holding the Lease."
)
LOGGING_FORMAT = Flag(
    "logging-format",
    kinds.one_of("text", "json"),
    "text",
    "Log format: text, as klog writes it, or json.",
)
USER_AGENT = Flag(
    "user-agent",
    kinds.ARRAY,
    (),
    "Added to the User-Agent of cloud requests; may be given again.",
)
