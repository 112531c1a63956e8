"""The pods of a release, as the cluster and the node show them."""

import dataclasses
import datetime
from collections.abc import Mapping

from lib.kube import resources
from lib.lab import places
from lib.lab.kube import kube_objects
from lib.lab.kube.kube_objects import Json
from lib.lab.pods import pod_host

SYSTEM = "kube-system"
COMPONENT = "app"
"""Label of a pod with the name of its component."""
Pods = Mapping[str, Json]
"""The newest pod of each component."""


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterPods:
    """The pods of the namespace of a release. where: of the node on which they run."""

    where: places.Places
    objects: kube_objects.Objects

    def newest(self) -> Pods:
        """Return the newest pod of each component that is not being deleted."""
        newest: dict[str, Json] = {}
        for pod in self.objects.all(resources.PODS):
            name = pod["metadata"].get("labels", {}).get(COMPONENT, "")
            if "deletionTimestamp" in pod["metadata"]:
                continue
            created = pod["metadata"]["creationTimestamp"]
            known = newest.get(name, {}).get("metadata", {}).get("creationTimestamp")
            if known is None or created > known:
                newest[name] = pod
        return newest

    def ready(self) -> frozenset[str]:
        """Return the components with a Ready pod."""
        return frozenset(x for x, pod in self.newest().items() if is_ready(pod))

    def statuses(self) -> Mapping[tuple[str, str], Json]:
        """Return the status of each container, by component and name."""
        return {
            (component, status["name"]): status
            for component, pod in self.newest().items()
            for status in pod["status"].get("containerStatuses", ())
        }

    def log(self, component: str, container: str) -> str:
        """Return what a container has written, in all pods and after all starts."""
        space, folder = self.objects.namespace, pod_host.logs(self.where)
        files = folder.glob(f"{space}_{component}-*/{container}/*.log")
        ordered = sorted(files, key=lambda file: file.stat().st_mtime)
        return "".join(file.read_text() for file in ordered)


def is_ready(pod: Json) -> bool:
    """Report whether a pod is Ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(x["type"] == "Ready" and x["status"] == "True" for x in conditions)


def runs_since(pod: Json, began_s: float) -> bool:
    """Report whether each container of a pod runs and was started after a moment.

    When the node starts again, a pod's status shows the containers of before until the
    kubelet has reported. began_s: seconds since the epoch, of the node's start.
    """
    statuses = pod.get("status", {}).get("containerStatuses", ())
    started = [row["state"].get("running", {}).get("startedAt") for row in statuses]
    return bool(started) and all(text and _end_s(text) > began_s for text in started)


def _end_s(text: str) -> float:
    # Times of Kubernetes are in whole seconds.
    return datetime.datetime.fromisoformat(text).timestamp() + 1
