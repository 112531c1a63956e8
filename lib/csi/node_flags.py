"""The flags of the node plugin: those of the references, and a few of ours.

Source: kubernetes/cloud-provider-openstack cmd/cinder-csi-plugin, v1.36 `--help`;
Deckhouse dvp-csi-driver; openshift/ovirt-csi-driver.
"""

from lib.csi import flag_table
from lib.daemon import common_flags
from lib.process import command_line, flags, kinds
from lib.process.flags import Flag

_NO_API = "csi-node does not use the API server"
_NO_BUFFER = "every entry is written immediately"
_NO_CLOUD = "csi-node does not call the cloud"

ENDPOINT = flag_table.ENDPOINT
WITH_TOPOLOGY = Flag(
    "with-topology",
    kinds.BOOLEAN,
    True,
    "Report the zone of the node; without a known zone it is not registered.",
    group=flags.NODES,
)
HTTP_ENDPOINT = flag_table.HTTP_ENDPOINT
CLOUD_CONFIG = Flag(
    "cloud-config",
    kinds.ARRAY,
    (),
    "The cloud's configuration file, for the sections of nodes; may be given again,"
    " later ones win. Credentials in it are not used.",
)
ADDITIONAL_TOPOLOGY = Flag(
    "additional-topology",
    kinds.MAP,
    {},
    "Further topology segments of the node.",
    group=flags.NODES,
)

# Ours; the reference has none of these.

MAX_VOLUMES = Flag(
    "max-volumes",
    kinds.integer(0, 2**31 - 1),
    0,
    "Volumes that can be attached to the node; 0: the limit of --cloud-config, else"
    " the capacity of the bus minus the disks of others.",
    group=flags.NODES,
)
REGISTRATION_SOCKET = Flag(
    "registration-socket",
    kinds.TEXT,
    "",
    "Socket in the kubelet's plugins_registry by which csi-node registers; empty: a"
    " node-driver-registrar does.",
    group=flags.SERVING,
)
REGISTRATION_PATH = Flag(
    "kubelet-registration-path",
    kinds.TEXT,
    "",
    "Path of --endpoint as the kubelet sees it; the same path if empty.",
    group=flags.SERVING,
)
KUBELET_DIRECTORY = Flag(
    "kubelet-directory",
    kinds.TEXT,
    "",
    "Folder of the kubelet, below which all paths of requests must be; if empty, any"
    " path is allowed, and orphaned mounts are searched below /var/lib/kubelet.",
)
DEV = Flag("dev-root", kinds.TEXT, "/dev", "Root of the device files.")
SYS = Flag("sys-root", kinds.TEXT, "/sys", "Root of sysfs.")
METADATA_ADDRESS = Flag(
    "metadata-address",
    kinds.TEXT,
    "",
    "Address of the metadata service, http://host[:port]; the cloud's own if empty.",
    group=flags.NODES,
)

NODE_NAME = Flag(
    "node-name",
    kinds.TEXT,
    "",
    "Name of the Node; required where that is the node's id, as no metadata names it.",
    group=flags.NODES,
)

WORKING: tuple[Flag[object], ...] = (
    ENDPOINT,
    CLOUD_CONFIG,
    WITH_TOPOLOGY,
    ADDITIONAL_TOPOLOGY,
    HTTP_ENDPOINT,
    MAX_VOLUMES,
    REGISTRATION_SOCKET,
    REGISTRATION_PATH,
    KUBELET_DIRECTORY,
    DEV,
    SYS,
    METADATA_ADDRESS,
    NODE_NAME,
    common_flags.LOGGING_FORMAT,
    command_line.VERBOSITY,
    command_line.VMODULE,
)


def _inert(
    name: str, kind: kinds.FlagKind[object], default: object, why: str
) -> Flag[object]:
    return Flag(name, kind, default, "Ignored.", no_effect=why)


INERT: tuple[Flag[object], ...] = (
    _inert("drivername", kinds.TEXT, "", "--cloud selects the name of the driver"),
    _inert("ovirt-conf", kinds.TEXT, "", _NO_CLOUD),
    _inert("namespace", kinds.TEXT, "", _NO_API),
    _inert("nodeid", kinds.TEXT, "", "the node reads its own identity"),
    _inert("cloud-name", kinds.ARRAY, (), _NO_CLOUD),
    _inert("cluster", kinds.TEXT, "", "only csi-controller creates volumes"),
    _inert(
        "provide-controller-service",
        kinds.BOOLEAN,
        True,
        "the controller service is a program of its own, csi-controller",
    ),
    _inert("provide-node-service", kinds.BOOLEAN, True, "it is always provided"),
    _inert("node-service-no-os-client", kinds.BOOLEAN, False, _NO_CLOUD),
    _inert("pvc-annotations", kinds.BOOLEAN, False, _NO_API),
    _inert("kubeconfig", kinds.TEXT, "", _NO_API),
    _inert("master", kinds.TEXT, "", _NO_API),
    _inert("kube-api-qps", kinds.TEXT, "5", _NO_API),
    _inert("kube-api-burst", kinds.integer(), 10, _NO_API),
    _inert("min-resync-period", kinds.DURATION, 43200.0, _NO_API),
    _inert("user-agent", kinds.ARRAY, (), _NO_CLOUD),
    _inert("log-flush-frequency", kinds.DURATION, 5.0, _NO_BUFFER),
)
