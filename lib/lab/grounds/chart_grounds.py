"""Components in pods of an umbrella chart, for grounds that have one."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from lib.lab import places
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import pod_host


class LabCharts(Protocol):
    """What a lab needs to install an umbrella chart, and to run its pods on a node.

    Methods raise LabError when something is missing.
    """

    @property
    def chart(self) -> str:
        """The folder of the umbrella chart in charts/."""
        ...

    @property
    def components(self) -> Sequence[str]:
        """The components of the chart, each of which has an image of this name."""
        ...

    @property
    def storage_class(self) -> str:
        """A StorageClass of the chart; claims of it are bound when a pod uses them."""
        ...

    @property
    def discovery_secret(self) -> str:
        """The Secret in which cloud-data-discoverer publishes what it has read."""
        ...

    def label(self, component: str) -> str:
        """Return the label "app" of the pods of a component."""
        ...

    def host(
        self, where: places.Places, name: str, server_id: str, address: str
    ) -> pod_host.HostSettings:
        """Return the node. name: of the server with this ID and address."""
        ...

    def values(self, where: places.Places) -> Json:
        """Return the values of the chart, without images and selection of Nodes."""
        ...

    def secrets(self, where: places.Places) -> Mapping[str, Mapping[str, str]]:
        """Return the Secrets that the chart expects, by name, each with its texts."""
        ...


@runtime_checkable
class ChartGrounds(Protocol):
    """Grounds with an umbrella chart of all components."""

    @property
    def charts(self) -> LabCharts:
        """The chart."""
        ...
