"""The flags of the controller plugin: the reference's, and a few of ours.

Source: kubernetes/cloud-provider-openstack cmd/cinder-csi-plugin, v1.36 `--help`.
"""

from lib.daemon import common_flags
from lib.process import command_line, kinds
from lib.process.flags import Flag

_NO_NODE = "only the node service, csi-node, uses it"
_FEW = "only single claims are read, and only as volumes are created"

ENDPOINT = Flag(
    "endpoint",
    kinds.TEXT,
    "",
    "Where CSI is served: unix:///path/of/a/socket or tcp://host:port. Required.",
)
CLOUD_CONFIG = Flag(
    "cloud-config",
    kinds.ARRAY,
    (),
    "The cloud's configuration file; may be given again, later ones win. Required.",
)
CLOUD_NAMES = Flag(
    "cloud-name",
    kinds.ARRAY,
    ("",),
    'Which [Global "name"] sections to serve, the default one first; may be given'
    " again. A request chooses by the key `cloud` of its secrets.",
)
CLUSTER = Flag("cluster", kinds.TEXT, "", "The mark that volumes of ours carry.")
WITH_TOPOLOGY = Flag(
    "with-topology",
    kinds.BOOLEAN,
    True,
    "Tell zones, and choose the zone of a volume by where it is wanted.",
)
HTTP_ENDPOINT = Flag(
    "http-endpoint",
    kinds.TEXT,
    "",
    "Where /metrics and /healthz are served by plain HTTP, such as :8080; nowhere if"
    " empty.",
)
CONTROLLER_SERVICE = Flag(
    "provide-controller-service",
    kinds.BOOLEAN,
    True,
    "Serve the controller service; else the identity service alone.",
)
CLAIM_ANNOTATIONS = Flag(
    "pvc-annotations",
    kinds.BOOLEAN,
    False,
    "Read the annotations of PersistentVolumeClaims, for scheduling hints. Needs"
    " --extra-create-metadata of the provisioner, and to read claims.",
)
KUBECONFIG = Flag(
    "kubeconfig",
    kinds.TEXT,
    "",
    "How to reach the API server, with --pvc-annotations; in-cluster if empty.",
)

# Ours; the reference has none of these.


def cloud(names: tuple[str, ...]) -> Flag[str]:
    """Make the flag that names the kind of cloud; the first is the default."""
    return Flag("cloud", kinds.one_of(*names), names[0], "The kind of cloud.")


WORKING: tuple[Flag[object], ...] = (
    ENDPOINT,
    CLOUD_CONFIG,
    CLOUD_NAMES,
    CLUSTER,
    WITH_TOPOLOGY,
    HTTP_ENDPOINT,
    CONTROLLER_SERVICE,
    CLAIM_ANNOTATIONS,
    KUBECONFIG,
    common_flags.MASTER,
    common_flags.USER_AGENT,
    common_flags.LOGGING_FORMAT,
    command_line.VERBOSITY,
    command_line.VMODULE,
)

INERT: tuple[Flag[object], ...] = (
    Flag("nodeid", kinds.TEXT, "", "A text.", no_effect=_NO_NODE),
    Flag("additional-topology", kinds.MAP, {}, "Further segments.", no_effect=_NO_NODE),
    Flag(
        "provide-node-service",
        kinds.BOOLEAN,
        True,
        "True or false.",
        no_effect="the node service is a program of its own, csi-node",
    ),
    Flag(
        "node-service-no-os-client",
        kinds.BOOLEAN,
        False,
        "True or false.",
        no_effect=_NO_NODE,
    ),
    Flag("kube-api-qps", kinds.TEXT, "5", "A number.", no_effect=_FEW),
    Flag("kube-api-burst", kinds.integer(), 10, "A number.", no_effect=_FEW),
    Flag(
        "min-resync-period",
        kinds.DURATION,
        43200.0,
        "A duration.",
        no_effect="no objects are watched",
    ),
    Flag(
        "log-flush-frequency",
        kinds.DURATION,
        5.0,
        "A duration.",
        no_effect="every entry is written at once",
    ),
)
