"""A node of any cloud on which helm installs an umbrella chart."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from lib.kube import resources
from lib.lab import places
from lib.lab.charts import charts
from lib.lab.images import images
from lib.lab.kube import kube_objects
from lib.lab.pods import cluster_pods, release
from lib.lab.run import waiting
from tests.harness.pods import containers

SYSTEM = cluster_pods.SYSTEM
Json = dict[str, Any]
Images = Mapping[str, str]
"""References, by component."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InstalledNode:
    """A node, and a chart that is or will be installed on it.

    chart: its name. storage_class, service_annotations: of users of the node. images:
    of the components, by name. values: of the chart. system, default: objects of these
    namespaces. pods: of the release.
    """

    where: places.Places
    chart: str
    name: str
    address: str
    storage_class: str
    service_annotations: Mapping[str, str]
    images: Mapping[str, images.Image]
    values: Json
    system: kube_objects.Objects
    default: kube_objects.Objects
    pods: cluster_pods.ClusterPods

    def writes(self) -> Sequence[object]:
        """Return what may have changed something in the cloud so far."""
        raise NotImplementedError

    def in_cloud(self) -> Mapping[str, list[str]]:
        """Return what the components own in the cloud, by kind."""
        raise NotImplementedError

    def helm(self, *words: str | pathlib.Path) -> str:
        """Run helm on the namespace of the release."""
        return release.run(self.where, words)

    def install(
        self, chart: pathlib.Path, verb: str = "install", images: Images | None = None
    ) -> None:
        """Install the umbrella chart, or upgrade to it.

        images: of some components, in place of those of the chart.
        """
        chosen = {name: {"image": image} for name, image in (images or {}).items()}
        values = charts.merged(self.values, chosen)
        release.install(self.where, chart, values, [verb])

    def process(self, component: str, container: str) -> psutil.Process:
        """Return the process of a container."""
        return containers.process_of(self.pods.statuses()[component, container])

    def container_spec(self, key: tuple[str, str]) -> Json:
        """Return a container of the newest pod of a component."""
        (spec,) = (
            dict(x)
            for x in self.pods.newest()[key[0]]["spec"]["containers"]
            if x["name"] == key[1]
        )
        return spec

    def memory(self, key: tuple[str, str]) -> tuple[float, float]:
        """Return the MiB that a container uses and requests."""
        requests = self.container_spec(key)["resources"]["requests"]
        used = containers.anonymous_bytes(self.process(*key))
        requested = containers.quantity_bytes(requests["memory"])
        return used / containers.MIB, requested / containers.MIB

    def until(self, what: str, is_met: Callable[[], object]) -> None:
        """Wait, and print the seconds; with all logs if it does not happen."""
        try:
            seconds = waiting.until(what, is_met)
        except Exception:
            self._print_failure()
            raise
        print(f"{what:64} {seconds:6.1f} s")

    def _print_failure(self) -> None:
        for component, pod in self.pods.newest().items():
            for status in pod["status"].get("containerStatuses", ()):
                print(component, status["name"], json.dumps(status["state"]))
                print(self.pods.log(component, status["name"])[-3000:])
        for objects in (self.system, self.default):
            for event in objects.all(resources.EVENTS):
                if event.get("type") == "Warning":
                    name = event["involvedObject"].get("name")
                    print(name, event.get("reason"), event.get("message"))
