"""The demo of Services, claims and discovery: what a user does, and its effect."""

import base64
import binascii
import contextlib
import json

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.daemons import csi, discoverer
from lib.lab.kube import kube_objects
from lib.lab.run import observed_steps
from lib.lab.whole import chart_release, parts

SERVICE = CLAIM = "mooring-demo"
NAMESPACE = "default"
_SHOWN = 4


class ComponentLife:
    """The steps of the components of a lab; a real node shows claims itself."""

    def __init__(self, lab: parts.Lab) -> None:
        self._lab = lab
        self._objects = kube_objects.Objects(lab.api(), NAMESPACE)
        self._system = kube_objects.Objects(lab.api(), discoverer.NAMESPACE)
        self._volume_id = ""

    def steps(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps of the components that run, in order."""
        step, lab = observed_steps.ObservedStep, self._lab
        steps = []
        if lab.has_discovery:
            steps.append(self.discovered())
        if lab.has_balancers:
            steps += [
                step("Service created: address", self._expose, self._address),
                step("Service deleted", self._hide, self._hidden),
            ]
        if lab.has_claims and not (lab.has_volumes or lab.record.charts):
            steps += [
                step("claim created: bound", self._claim, self._bound),
                step("claim expanded: 1Gi to 2Gi", self._expand, self._expanded),
                step("claim deleted", self._release, self._released),
            ]
        return tuple(steps)

    def discovered(self) -> observed_steps.ObservedStep:
        """Return the step of the discoverer, which runs already."""
        title = f"{self._offers} discovered"
        return observed_steps.ObservedStep(title, _wait, self._offered)

    def delete(self) -> None:
        """Delete what the steps create; fine when it is absent."""
        self._hide()
        self._release()

    @property
    def _offers(self) -> str:
        discovery = self._lab.grounds.discovery
        return discovery.offers if discovery is not None else ""

    def _offered(self) -> str:
        name, key = discoverer.DATA
        if self._lab.record.charts:
            name = chart_release.of(self._lab).discovery_secret
        secret = self._system.get(resources.SECRETS, name) or {}
        try:
            document = json.loads(base64.b64decode(secret["data"][key]))
        except (TypeError, KeyError, ValueError, binascii.Error):
            return ""  # not published yet, or not by this version
        rows = document.get(self._offers, [])
        return _listed([row if isinstance(row, str) else row["name"] for row in rows])

    def _expose(self) -> None:
        spec = {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}
        # It exists if an earlier demo was interrupted.
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._objects.make(resources.SERVICES, SERVICE, spec=spec)

    def _address(self) -> str:
        service = self._objects.get(resources.SERVICES, SERVICE) or {}
        status = service.get("status", {}).get("loadBalancer", {})
        addresses = [row["ip"] for row in status.get("ingress", []) if row.get("ip")]
        annotations = service.get("metadata", {}).get("annotations", {})
        key = self._lab.grounds.load_balancer_annotation
        if not addresses or (key and not annotations.get(key)):
            return ""
        which = f", load balancer {annotations[key]}" if key else ""
        return f"{addresses[0]}{which}"

    def _hide(self) -> None:
        self._objects.delete(resources.SERVICES, SERVICE)

    def _hidden(self) -> str:
        # A finalizer keeps the Service until its load balancer is deleted.
        is_present = self._objects.get(resources.SERVICES, SERVICE)
        return (
            "" if is_present else "no Service with its finalizer, so no load balancer"
        )

    def _claim(self) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": csi.CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._objects.make(kube_objects.CLAIM, CLAIM, spec=spec)

    def _volume(self) -> kube_objects.Json | None:
        """Return the PersistentVolume of the claim, once it is bound."""
        claim = self._objects.get(kube_objects.CLAIM, CLAIM) or {}
        if claim.get("status", {}).get("phase") != "Bound":
            return None
        return self._objects.get(kube_objects.VOLUME, claim["spec"]["volumeName"])

    def _bound(self) -> str:
        volume = self._volume()
        if volume is None:
            return ""
        self._volume_id = volume["spec"]["csi"]["volumeHandle"]
        return f"volume {self._volume_id}"

    def _expand(self) -> None:
        spec = {"resources": {"requests": {"storage": "2Gi"}}}
        self._objects.patch(kube_objects.CLAIM, CLAIM, spec=spec)

    def _expanded(self) -> str:
        volume = self._volume() or {"spec": {"capacity": {}}}
        if volume["spec"]["capacity"].get("storage") != "2Gi":
            return ""
        return "the volume has 2Gi; a node expands its file system"

    def _release(self) -> None:
        self._objects.delete(kube_objects.CLAIM, CLAIM)

    def _released(self) -> str:
        volumes = self._objects.all(kube_objects.VOLUME)
        handles = [
            volume["spec"].get("csi", {}).get("volumeHandle") for volume in volumes
        ]
        if self._volume_id in handles or self._objects.get(kube_objects.CLAIM, CLAIM):
            return ""
        return "0 claims and PersistentVolumes"


def _listed(names: list[str]) -> str:
    """Return the first names and the number of the others; empty for none."""
    more = len(names) - _SHOWN
    text = ", ".join(names[:_SHOWN])
    return f"{text} and {more} more" if more > 0 else text


def _wait() -> None:
    """Do nothing: the step follows from what runs already."""
