"""The table of `lab up`: servers, pods, Nodes, Machines, an address, and a volume."""

import contextlib
from functools import partial

from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.daemons import csi
from lib.lab.kube import kube_objects
from lib.lab.run import observed_steps
from lib.lab.whole import chart_steps, component_demo, machine_demo, parts, whole

NAME, NAMESPACE = chart_steps.NAME, chart_steps.NAMESPACE
"""Of a Service and a claim, which stay in the lab."""


class LabPath:
    """What becomes of the servers of a lab, and of a Service and a claim."""

    def __init__(self, lab: parts.Lab) -> None:
        self._lab = lab
        self._look = whole.look(lab)
        self._objects = kube_objects.Objects(lab.api(), NAMESPACE)
        charts = chart_steps.ChartSteps(lab) if lab.record.charts else None
        self._charts = charts

    def steps(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps of the components that run, in order."""
        lab, step = self._lab, observed_steps.ObservedStep
        names = lab.record.servers if lab.record.charts else lab.record.names
        steps = [step(f"server {n}", _wait, partial(self._server, n)) for n in names]
        if self._charts is not None:
            steps += self._charts.pods()
        if lab.has_manager:
            steps += [step(f"Node {n}", _wait, partial(self._node, n)) for n in names]
        if (machines := machine_demo.of(lab)) is not None:
            steps += machines.ready()
        if lab.has_discovery:
            steps.append(component_demo.ComponentLife(lab).discovered())
        if lab.has_balancers:
            title = f"Service {NAMESPACE}/{NAME}: address"
            steps.append(step(title, self._expose, self._address))
        if self._charts is not None:
            steps += self._charts.volume()
        elif lab.has_claims and not lab.has_volumes:
            title = f"claim {NAMESPACE}/{NAME}: bound"
            steps.append(step(title, self._claim, self._bound))
        return tuple(steps)

    def delete(self) -> None:
        """Delete what the steps create; fine when it is absent."""
        self._objects.delete(resources.SERVICES, NAME)
        self._objects.delete(kube_objects.CLAIM, NAME)
        if self._charts is not None:
            self._charts.delete()

    def _server(self, name: str) -> str:
        return self._look().active_server(name)

    def _node(self, name: str) -> str:
        return self._look().initialised_node(name)

    def _expose(self) -> None:
        spec = {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]}
        # They exist if the lab was started before.
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._objects.make(resources.SERVICES, NAME, spec=spec)

    def _address(self) -> str:
        service = self._objects.get(resources.SERVICES, NAME) or {}
        rows = service.get("status", {}).get("loadBalancer", {}).get("ingress", [])
        return ", ".join(str(row["ip"]) for row in rows if row.get("ip"))

    def _claim(self) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": csi.CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        with contextlib.suppress(kube_errors.AlreadyExists):
            self._objects.make(kube_objects.CLAIM, NAME, spec=spec)

    def _bound(self) -> str:
        claim = self._objects.get(kube_objects.CLAIM, NAME) or {}
        if claim.get("status", {}).get("phase") != "Bound":
            return ""
        return f"volume {claim['spec']['volumeName']}"


def _wait() -> None:
    """Do nothing: the step follows from what runs already."""
