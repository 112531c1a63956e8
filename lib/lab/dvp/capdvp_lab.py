"""The core of Cluster API and capdvp in a lab of DVP, with one MachineDeployment.

Implements `lib.lab.grounds.machine_grounds`. The child is its own workload cluster, as
in the clusters that capdvp is for. Rules: `up` may be repeated, and creates only what
is missing.
"""

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.capi import core, core_program
from lib.lab.daemons import ccm
from lib.lab.dvp import capdvp_objects, parent
from lib.lab.dvp import workload_objects as workload
from lib.lab.grounds.machine_grounds import LabMachine
from lib.lab.kube import admin_api, cluster, control_plane, kube_objects
from lib.lab.run import ports, processes, progress

NAME = "capdvp"
ACCOUNT = ("kube-system", NAME)
CLUSTER = "lab"
DEPLOYMENT = "workers"
REPLICAS = 2
HEALTH = 42
"""Distance of the probes from the first port of the lab; the core's come before."""
TEMPLATES = {"small": "256Mi", "large": "512Mi"}
"""Memory of the VMs, by machine template; the first is used first."""
_CLONED = "cluster.x-k8s.io/cloned-from-name"
_TOKEN = "abcdef.0123456789abcdef"  # noqa: S105 - no machine boots in a lab


class CapdvpMachines:
    """Implements `machine_grounds.LabMachines`."""

    name = NAME
    programs = (core.NAME, NAME)

    def __init__(self, environment: Mapping[str, str]) -> None:
        """environment: of capdvp, besides the parent's kubeconfig."""
        self._environment = environment

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        core_program.build(where, shown)

    def is_built(self, where: places.Places) -> bool:
        """See the protocol."""
        with contextlib.suppress(errors.LabError):
            core_program.path(where)
            return True
        return False

    def up(
        self, where: places.Places, pex: pathlib.Path, shown: progress.Progress
    ) -> None:
        """See the protocol."""
        core.up(where, shown)
        with shown.step(f"Start {NAME}") as step:
            api = cluster.connect(control_plane.admin_kubeconfig(where))
            step.note("definitions and permissions")
            capdvp_objects.install(api, (workload.CONTROL_PLANES,))
            ccm.replace_outdated(where, NAME, pex)
            words = [*pexes.command(pex), *self._arguments(where, api)]
            env = {**pexes.environment(where), **self._environment}
            processes.start(where, NAME, words, env)
            processes.wait_for(where, NAME, lambda: self.serves(where, NAME))
            step.note(f"MachineDeployment {DEPLOYMENT}")
            _create(where, api)

    def up_with_chart(self, where: places.Places, shown: progress.Progress) -> None:
        """See the protocol."""
        core.up(where, shown)
        with shown.step(f"Create the Cluster {CLUSTER}"):
            api = cluster.connect(control_plane.admin_kubeconfig(where))
            capdvp_objects.install_beside(api, (workload.CONTROL_PLANES,))
            _create(where, api)

    @staticmethod
    def _arguments(where: places.Places, api: client.Api) -> Sequence[str]:
        """Return the reference's own command line, without a Lease: there is one."""
        admin = control_plane.admin_kubeconfig(where)
        target = where.state / f"{NAME}.kubeconfig"
        cluster.service_account_kubeconfig(api, admin, ACCOUNT, target)
        project = parent.make_project(parent.beside(where))
        return (
            f"--kubeconfig={target}",
            f"--parent-kubeconfig={project.kubeconfig}",
            "--leader-elect=false",
            f"--health-probe-bind-address={ports.LOOPBACK}:{_port(where)}",
            "--metrics-bind-address=0",
            "--v=4",
        )

    def serves(self, where: places.Places, program: str) -> bool:
        """See the protocol."""
        return core.serves(where) if program == core.NAME else _is_ready(where)

    def port(self, where: places.Places, program: str) -> int:
        """See the protocol."""
        return core.port(where, core.HEALTH) if program == core.NAME else _port(where)

    def deployment(self, where: places.Places) -> "Workers":
        """See the protocol."""
        api = cluster.connect(control_plane.admin_kubeconfig(where))
        return Workers(kube_objects.Objects(api, workload.NAMESPACE))


def _port(where: places.Places) -> int:
    return where.port_base + HEALTH


def _is_ready(where: places.Places) -> bool:
    return admin_api.serves(_port(where), "/readyz")


# ---------------------------------------------------------------- objects


def _create(where: places.Places, api: client.Api) -> None:
    """Create the Cluster with its MachineDeployment; what exists is not changed."""
    objects = kube_objects.Objects(api, workload.NAMESPACE)
    processes.wait_for(where, "kube-apiserver", lambda: _are_served(objects))
    admin = control_plane.admin_kubeconfig(where).read_bytes()
    for kind, name, parts in _objects(admin):
        labels = {"labels": {workload.NAME_LABEL: CLUSTER}}
        with contextlib.suppress(kube_errors.AlreadyExists):
            objects.make(kind, name, labels, **parts)
    status = {"status": workload.CONTROL_PLANE_STATUS}
    api.patch(
        workload.CONTROL_PLANES,
        CLUSTER,
        json.dumps(status).encode(),
        workload.NAMESPACE,
        subresource="status",
        timeout_s=kube_objects.TIMEOUT_S,
    )


def _are_served(objects: kube_objects.Objects) -> bool:
    kinds = (workload.CONTROL_PLANES, workload.DVP_CLUSTERS, workload.DVP_TEMPLATES)
    with contextlib.suppress(kube_errors.NotFound, kube_errors.Unavailable):
        for kind in kinds:
            objects.all(kind)
        return True
    return False


def _objects(admin: bytes) -> Iterator[tuple[Resource, str, Mapping[str, object]]]:
    """Yield what a user creates, in this order. admin: kubeconfig of the child."""
    secret = {"type": "cluster.x-k8s.io/secret"}
    own = workload.secret_data(value=admin)
    yield resources.SECRETS, f"{CLUSTER}-kubeconfig", {**secret, "data": own}
    data = workload.bootstrap_data(_TOKEN)
    yield resources.SECRETS, workload.BOOTSTRAP, {**secret, "data": data}
    yield workload.CONTROL_PLANES, CLUSTER, {}
    yield workload.DVP_CLUSTERS, CLUSTER, {"spec": {}}
    yield workload.CLUSTERS, CLUSTER, {"spec": workload.cluster_spec(CLUSTER)}
    for template, memory in TEMPLATES.items():
        spec = workload.template_spec(memory=memory)
        yield workload.DVP_TEMPLATES, template, {"spec": spec}
    spec = workload.deployment_spec(CLUSTER, next(iter(TEMPLATES)), REPLICAS)
    yield workload.DEPLOYMENTS, DEPLOYMENT, {"spec": spec}


class Workers:
    """Implements `machine_grounds.MachineDeployments`."""

    key = f"{workload.NAMESPACE}/{DEPLOYMENT}"
    cluster_key = f"{workload.NAMESPACE}/{CLUSTER}"

    def __init__(self, objects: kube_objects.Objects) -> None:
        self._objects = objects

    def endpoint(self) -> str:
        """See the protocol."""
        document = self._objects.get(workload.CLUSTERS, CLUSTER) or {}
        done = document.get("status", {}).get("initialization", {})
        endpoint = document.get("spec", {}).get("controlPlaneEndpoint", {})
        parts = ("infrastructureProvisioned", "controlPlaneInitialized")
        if not endpoint.get("host") or not all(map(done.get, parts)):
            return ""
        return f"{endpoint['host']}:{endpoint['port']}"

    def replicas(self) -> int:
        """See the protocol."""
        document = self._objects.get(workload.DEPLOYMENTS, DEPLOYMENT) or {}
        return int(document.get("spec", {}).get("replicas", 0))

    def machines(self) -> tuple[LabMachine, ...]:
        """See the protocol."""
        templates = {
            item["metadata"]["name"]: item["metadata"]["annotations"].get(_CLONED, "")
            for item in self._objects.all(workload.DVP_MACHINES)
        }
        rows = [
            LabMachine(
                item["metadata"]["name"],
                templates.get(item["spec"]["infrastructureRef"]["name"], ""),
                item.get("status", {}).get("phase") == "Running",
            )
            for item in self._objects.all(workload.MACHINES)
        ]
        return tuple(sorted(rows, key=lambda machine: machine.name))

    def scale(self, replicas: int) -> None:
        """See the protocol."""
        self._objects.patch(
            workload.DEPLOYMENTS, DEPLOYMENT, spec={"replicas": replicas}
        )

    def roll(self) -> str:
        """See the protocol: to the template that is not in use."""
        document = self._objects.get(workload.DEPLOYMENTS, DEPLOYMENT) or {}
        used = document["spec"]["template"]["spec"]["infrastructureRef"]["name"]
        name = next(template for template in TEMPLATES if template != used)
        ref = workload.reference(workload.DVP_TEMPLATES, name)
        template = {"spec": {"infrastructureRef": ref}}
        self._objects.patch(
            workload.DEPLOYMENTS, DEPLOYMENT, spec={"template": template}
        )
        return name
