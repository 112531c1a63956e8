"""Values of charts/cloud-provider-openstack on a node of the lab's OpenStack."""

from collections.abc import Mapping

from lib.lab import places
from lib.lab.charts import charts
from lib.lab.daemons import ccm, csi, discoverer
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.pods import host_keeper, node_values, pod_host
from lib.lab.run import ports

CHART = "cloud-provider-openstack"
COMPONENTS = ("openstack-ccm", "cloud-data-discoverer", "csi-controller", "csi-node")
SECRET, KEY = "cloud-config", "cloud.conf"
ZONE = "nova"
"""Of the volumes of the lab's Cinder."""
CLASS = "volumes"
IMAGE = "tiny"
"""Of the lab's Glance."""


class OpenStackCharts:
    """The umbrella chart on the lab's own OpenStack, for `chart_grounds.LabCharts`."""

    chart = CHART
    components = COMPONENTS
    storage_class = CLASS
    discovery_secret = discoverer.DATA[0]

    def label(self, component: str) -> str:
        """See the protocol."""
        return component

    def host(
        self, where: places.Places, name: str, server_id: str, address: str
    ) -> pod_host.HostSettings:
        """See the protocol: the node reaches all services of the cloud."""
        numbers = [*layout.ports(where).values(), where.port(host_keeper.METADATA)]
        return pod_host.HostSettings(
            name,
            address,
            numbers,
            layout.attachments(where, server_id),
            instance_id=server_id,
            zone=ZONE,
        )

    def values(self, where: places.Places) -> Json:
        """See the protocol."""
        url = f"http://{ports.LOOPBACK}:{where.port(host_keeper.METADATA)}"
        own = {"openstack-ccm": {"extraArgs": list(ccm.QUICK)}}
        return charts.merged(values(where, csi.CLUSTER, url), own)

    def secrets(self, where: places.Places) -> Mapping[str, Mapping[str, str]]:
        """See the protocol."""
        return {SECRET: {KEY: accounts.cloud_conf(where)}}


def values(where: places.Places, cluster: str, metadata: str) -> Json:
    """Return the values of the umbrella chart on the node.

    cloud-data-discoverer uses the Service of the API server, by kube-proxy.

    cluster: its name, and the ID in the ownership tags. metadata: URL of the metadata
    service of the server.
    """
    own: Json = {
        "global": {"clusterID": cluster},
        "cloud-data-discoverer": {
            "moduleConfig": {
                "instances": {"imageName": IMAGE, "mainNetwork": tenant.NETWORK}
            }
        },
        "openstack-ccm": {"clusterName": cluster},
        "csi-controller": {
            "storageClasses": [{"name": CLASS, "type": "fast", "fsType": "xfs"}]
        },
        "csi-node": {"metadataAddress": metadata},
    }
    return node_values.values(where, "openstack-ccm", own)
