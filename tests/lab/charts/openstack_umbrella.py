"""The umbrella chart for OpenStack: its case, mistakes in values, and sets of them."""

from lib.lab.charts import charts
from tests.lab.charts import installing, umbrellas

CHART = charts.UMBRELLA
CSI_DRIVER = ("CSIDriver", "", "cinder.csi.openstack.org")
CASE = installing.Case(
    chart=CHART,
    home=charts.SYSTEM,
    rights=lambda values: "",
    readers=frozenset(),
    replicas=0,
    plain="",
    kept={CSI_DRIVER: f"/apis/storage.k8s.io/v1/csidrivers/{CSI_DRIVER[2]}"},
)
MISTAKES = [
    ("unknown key", "global.registry=x", "additional properties 'registry'"),
    ("no registry", "global.imageRegistry=", "'/global/imageRegistry': minLength"),
    ("not a name", "global.cloudConfig.secretName=A_B", "'/global/cloudConfig"),
    ("Secret in values", "global.cloudConfig.text=x", "'text' not allowed"),
    ("not a key", "global.cloudConfig.key=a/b", "'/global/cloudConfig/key'"),
    ("negative number", "global.controlPlaneNodes=-1", "'/global/controlPlane"),
    ("no port", "global.kubeApiServer.port=0", "'/global/kubeApiServer/port'"),
    *umbrellas.PROXY_MISTAKES,
    ("two words", "global.clusterID=a b", "'/global/clusterID': 'a b'"),
    ("text as switch", "global.deckhouse.enabled=yes", "'/global/deckhouse/enabled'"),
    ("number as label", "global.nodeSelector.x=1", "'/global/nodeSelector/x'"),
    ("no such chart", "components.csi-snapshotter=true", "'csi-snapshotter' not"),
    ("zero replicas", "openstack-ccm.replicas=0", "'/replicas': minimum"),
    ("too many replicas", "openstack-ccm.replicas=12", "'/replicas': maximum"),
    ("image without version", "openstack-ccm.image=r/ccm", "'/image': 'r/ccm'"),
    (
        "port in use",
        "openstack-ccm.securePort=9819",
        'csi-node.httpEndpoint: invalid value "9819"',
    ),
    ("no unit", "openstack-ccm.nodeDeletion.window=10", "'/nodeDeletion/window'"),
    (
        "two Secrets of csi-controller",
        "csi-controller.cloudConfig.secretName=a,csi-controller.cloudConfig.text=b",
        "'/cloudConfig': 'not' failed",
    ),
    (
        "two Secrets of the discoverer",
        "cloud-data-discoverer.cloudConfig.secretName=a,"
        "cloud-data-discoverer.openstack.password=b",
        "'/openstack/password': maxLength",
    ),
    ("no version", "csi-controller.sidecars.resizer.version=", "'/sidecars/resizer"),
    ("no unit of time", "csi-controller.sidecars.timeout=180", "'/sidecars/timeout'"),
    (
        "unknown policy",
        "csi-controller.storageClasses[0].name=a,"
        "csi-controller.storageClasses[0].reclaimPolicy=Keep",
        "'/storageClasses/0/reclaimPolicy'",
    ),
    (
        "unknown effect of a taint",
        "openstack-ccm.tolerations[0].effect=NoRun",
        "'/tolerations/0/effect': value must be one of",
    ),
    ("no label", "csi-node.nodeSelector.disk=a b", "'/nodeSelector/disk': 'a b'"),
    ("relative folder", "csi-node.kubeletDirectory=kubelet", "'/kubeletDirectory'"),
    ("no update", "csi-node.maxUnavailable=0", "'/maxUnavailable'"),
    ("unknown mode", "csi-node.registrar.mode=none", "'/registrar/mode': value"),
    ("unknown unit", "cloud-data-discoverer.discoveryPeriod=1d", "'/discoveryPeriod'"),
    (
        "nothing at all",
        ",".join(f"components.{name}=false" for name in charts.COMPONENTS),
        "components: invalid value: must enable at least one component",
    ),
]
"""What is wrong, what is set, what helm must name."""
SETS = ("defaults", "production", "deckhouse")
"""Values of the releases: install, upgrade, upgrade; then two rollbacks."""
