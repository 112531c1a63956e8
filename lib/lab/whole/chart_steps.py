"""The steps of components in pods: their pods, and a pod that uses a claim."""

import contextlib
import functools

from lib.kube import errors as kube_errors
from lib.lab import errors
from lib.lab.kube import kube_objects
from lib.lab.pods import cluster_pods
from lib.lab.run import observed_steps
from lib.lab.storage import volume_client
from lib.lab.whole import chart_release, parts, record

NAME = "mooring-lab"
"""Of a claim and a pod, which stay in the lab."""
NAMESPACE = "default"


class ChartSteps:
    """What becomes of the pods of a release, and of a claim that a pod uses."""

    def __init__(self, lab: parts.Lab) -> None:
        self._lab = lab
        self._pods = chart_release.pods(lab)
        self._objects = kube_objects.Objects(lab.api(), NAMESPACE)
        self._client = volume_client.VolumeClient(
            self._objects, parts.node_view(lab), record.NODE
        )

    def pods(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps of the pods: one for each component."""
        return tuple(
            observed_steps.ObservedStep(
                f"pod of {name}: Ready", _wait, functools.partial(self._ready, name)
            )
            for name in chart_release.components(self._lab)
        )

    def volume(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps from the driver of the node to the file of a pod."""
        if not self._lab.has_claims:
            return ()
        step, key = observed_steps.ObservedStep, f"{NAMESPACE}/{NAME}"
        return (
            step(f"driver on {record.NODE}", _wait, self._driver),
            step(f"claim {key}: bound", self._claim, self._bound),
            step(f"pod {key}: its file", _wait, self._written),
        )

    def delete(self) -> None:
        """Delete what the steps create; fine when it is absent."""
        self._client.delete(NAME)
        self._objects.delete(kube_objects.CLAIM, NAME)

    def _ready(self, name: str) -> str:
        pod = self._pods.newest().get(chart_release.of(self._lab).label(name))
        if pod is None or not cluster_pods.is_ready(pod) or not self._is_current(pod):
            return ""
        spec = pod["spec"]
        containers = ", ".join(row["name"] for row in spec["containers"])
        account = spec.get("serviceAccountName", "")
        return f"{pod['metadata']['name']} as {account}: {containers}"

    def _driver(self) -> str:
        document = self._objects.get(kube_objects.CSI_NODE, record.NODE) or {"spec": {}}
        rows = document["spec"].get("drivers") or []
        return ", ".join(f"{row['name']} {row['nodeID']}" for row in rows)

    def _claim(self) -> None:
        # It exists if the lab was started before.
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._client.claim(NAME, chart_release.of(self._lab).storage_class)
        self._use()

    def _use(self) -> bool:
        """Create the pod again if it has ended; report whether it may be running.

        It ends with the lab, and its claim and their data stay.
        """
        pod = self._objects.get(kube_objects.POD, NAME)
        if pod is None:
            with contextlib.suppress(kube_errors.AlreadyExists):
                self._client.pod(NAME, NAME)
            return False
        phase = pod["status"].get("phase")
        if phase in ("Succeeded", "Failed"):
            self._client.delete(NAME)
        return phase == "Running" and self._is_current(pod)

    def _is_current(self, pod: kube_objects.Json) -> bool:
        """Report whether the node, as it runs now, has started a pod's containers."""
        began_s = parts.node_process(self._lab).create_time()
        return cluster_pods.runs_since(pod, began_s)

    def _bound(self) -> str:
        self._use()
        try:
            _, volume_id = self._client.volume(NAME)
        except errors.LabError:
            return ""
        return f"volume {volume_id}"

    def _written(self) -> str:
        if not self._use() or not self._client.has_written(NAME):
            return ""
        if not (targets := self._client.mounted(NAME)):
            return ""
        size = self._client.node.size_bytes(targets[0]) / 2**30
        earlier = len(self._client.lines(NAME)) - 1
        lines = f", after {earlier} of earlier pods" if earlier else ""
        return f"{volume_client.FILE} written{lines}, on {size:.2f} GiB"


def _wait() -> None:
    """Do nothing: the step follows from what runs already."""
