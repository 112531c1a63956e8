"""The flags of the controller plugin: the reference's, and a few of ours.

Source: kubernetes/cloud-provider-openstack cmd/cinder-csi-plugin, v1.36 `--help`;
flags of further reference drivers.
"""

from lib.daemon import common_flags
from lib.process import command_line, flags, kinds
from lib.process.flags import Flag

_NO_NODE = "only the node service, csi-node, uses it"
_FEW = "only single claims are read, and only as volumes are created"

ENDPOINT = Flag(
    "endpoint",
    kinds.TEXT,
    "",
    "Address of the CSI server: unix:///path/of/a/socket or tcp://host:port.",
    group=flags.SERVING,
    is_required=True,
)
CLOUD_CONFIG = Flag(
    "cloud-config",
    kinds.ARRAY,
    (),
    "Path of the configuration file of the cloud; can be repeated, later files"
    " override earlier ones.",
)
CLOUD_NAMES = Flag(
    "cloud-name",
    kinds.ARRAY,
    ("",),
    'Which [Global "name"] sections to serve, the default one first; may be given'
    " again. A request chooses by the key `cloud` of its secrets.",
)
CLUSTER = Flag(
    "cluster",
    kinds.TEXT,
    "",
    "Cluster ID recorded as owner in the metadata of volumes.",
    group=flags.VOLUMES,
)
WITH_TOPOLOGY = Flag(
    "with-topology",
    kinds.BOOLEAN,
    True,
    "Report zones, and select the zone of a volume by the requested topology.",
    group=flags.VOLUMES,
)
HTTP_ENDPOINT = Flag(
    "http-endpoint",
    kinds.TEXT,
    "",
    "Address of /metrics and /healthz by plain HTTP, such as :8080; empty: none.",
    group=flags.SERVING,
)
CONTROLLER_SERVICE = Flag(
    "provide-controller-service",
    kinds.BOOLEAN,
    True,
    "Serve the controller service; false: the identity service only.",
)
CLAIM_ANNOTATIONS = Flag(
    "pvc-annotations",
    kinds.BOOLEAN,
    False,
    "Read scheduling hints in annotations of PersistentVolumeClaims; requires"
    " --extra-create-metadata of external-provisioner, and RBAC.",
    group=flags.VOLUMES,
)
KUBECONFIG = Flag(
    "kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig for --pvc-annotations, and for the Nodes whose servers show"
    " that a project is that of the cluster; empty: the service account of the Pod.",
)

# Ours; the reference has none of these.

MAX_WRITES = Flag(
    "volume-max-writes",
    kinds.integer(1, 1000),
    1000,
    "Volumes created, changed or deleted in parallel, and volumes attached or detached"
    " in parallel, at most.",
    group=flags.VOLUMES,
)


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
    MAX_WRITES,
    common_flags.MASTER,
    common_flags.USER_AGENT,
    common_flags.LOGGING_FORMAT,
    command_line.VERBOSITY,
    command_line.VMODULE,
)

INERT: tuple[Flag[object], ...] = (
    Flag(
        "drivername",
        kinds.TEXT,
        "",
        "Ignored.",
        no_effect="--cloud selects the name of the driver",
    ),
    Flag("node-name", kinds.TEXT, "", "Ignored.", no_effect=_NO_NODE),
    Flag("nodeid", kinds.TEXT, "", "Ignored.", no_effect=_NO_NODE),
    Flag("additional-topology", kinds.MAP, {}, "Ignored.", no_effect=_NO_NODE),
    Flag(
        "provide-node-service",
        kinds.BOOLEAN,
        True,
        "Ignored.",
        no_effect="the node service is a program of its own, csi-node",
    ),
    Flag(
        "node-service-no-os-client",
        kinds.BOOLEAN,
        False,
        "Ignored.",
        no_effect=_NO_NODE,
    ),
    Flag("kube-api-qps", kinds.TEXT, "5", "Ignored.", no_effect=_FEW),
    Flag("kube-api-burst", kinds.integer(), 10, "Ignored.", no_effect=_FEW),
    Flag(
        "min-resync-period",
        kinds.DURATION,
        43200.0,
        "Ignored.",
        no_effect="no objects are watched",
    ),
    Flag(
        "log-flush-frequency",
        kinds.DURATION,
        5.0,
        "Ignored.",
        no_effect="every entry is written immediately",
    ),
)
