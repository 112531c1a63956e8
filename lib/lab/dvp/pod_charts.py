"""The umbrella chart on the lab's own parent, for `chart_grounds.LabCharts`."""

from collections.abc import Mapping

from lib.lab import places
from lib.lab.charts import charts
from lib.lab.daemons import ccm
from lib.lab.dvp import parent, pod_values
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import pod_host
from lib.lab.storage import attached_disks

_NAMED = ("capdvp", "dvp-ccm")
"""Components whose workloads have no suffix: no other cloud has them."""


class DvpCharts:
    """Implements `chart_grounds.LabCharts`. cluster: UUID of the lab's cluster."""

    chart = pod_values.CHART
    components = pod_values.COMPONENTS
    storage_class = pod_values.CLASS
    discovery_secret = "cloud-provider-dvp-discovery-data"  # noqa: S105 - a name

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def label(self, component: str) -> str:
        """See the protocol."""
        return component if component in _NAMED else f"{component}-dvp"

    def host(
        self, where: places.Places, name: str, server_id: str, address: str
    ) -> pod_host.HostSettings:
        """See the protocol: a VM has no metadata service, and its disks are SCSI."""
        del server_id
        place = parent.beside(where)
        return pod_host.HostSettings(
            name,
            address,
            [place.port("apiserver")],
            parent.folder(place) / "machines" / name,
            attached_disks.scsi,
        )

    def values(self, where: places.Places) -> Json:
        """See the protocol."""
        own = {"dvp-ccm": {"extraArgs": list(ccm.QUICK)}}
        return charts.merged(pod_values.values(where), own)

    def secrets(self, where: places.Places) -> Mapping[str, Mapping[str, str]]:
        """See the protocol: those of the reference; capdvp has one of its own."""
        opened = parent.make_project(parent.beside(where))
        texts = {
            pod_values.KEY: opened.kubeconfig.read_text(),
            "namespace": parent.NAMESPACE,
            "clusterUUID": self._cluster,
        }
        return {pod_values.SECRET: texts, pod_values.MACHINES_SECRET: texts}
