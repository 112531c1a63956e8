"""The parent cluster of a lab: a control plane of its own, and the simulator.

Its ports are those of the lab's cloud: it runs beside the lab's own control plane.
Rules: `up` may be repeated and leaves alone what runs; `down` keeps the data.
"""

import base64
import contextlib
import datetime
import functools
import pathlib
import sys
from collections.abc import Iterator, Sequence

from lib.kube import client, resources
from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.dvp import kinds, parent_kinds, parent_simulation, project, rules
from lib.lab.dvp.machines import NODE_LABEL
from lib.lab.kube import (
    admin_api,
    cluster,
    control_plane,
    kube_files,
    pki,
    simulated_kubelet,
)
from lib.lab.run import ports, processes, progress

SIMULATOR = "parent-simulator"
NAMESPACE = "child"
"""The project of the lab's own cluster."""
_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)
WEBHOOK_PORT = "kubelet"
"""Name of the port of the webhooks: a parent has no kubelet of its own."""
_KINDS = {
    kind.kind: kind
    for kind in (
        resources.DEFINITIONS,
        resources.NODES,
        resources.STORAGE_CLASSES,
        resources.CLUSTER_ROLES,
        kinds.CLASSES,
        kinds.CLUSTER_IMAGES,
        _WEBHOOKS,
    )
}
"""Kinds of what a new parent is filled with."""


def beside(where: places.Places) -> places.Places:
    """Return the places of the parent of a lab."""
    return places.Places(where.cache, where.state / "parent", where.port("cloud-1"))


def folder(parent: places.Places) -> pathlib.Path:
    """Return the folder of the data of disks, see `backing.py`."""
    return parent.state / "volumes"


def up(parent: places.Places, shown: progress.Progress) -> None:
    """Start control plane and simulator; return when VMs can be created.

    parent: places of the parent itself, see `beside`.

    Raises:
        LabError: a program is not built, a port is taken, or one did not start.
        KubeError: the API server refused.
    """
    control_plane.up(parent, shown, title="Start the parent's control plane")
    with shown.step("Prepare the parent cluster"):
        opened = api(parent)
        cluster.create_documents(opened, parent_kinds.definitions(), _KINDS)
        _wait_for(parent, (*kinds.SIMULATED, kinds.ADDRESS_LEASES))
        rest = (*_nodes(), *project.base(), _webhooks(parent))
        start_simulator(parent)
        cluster.create_documents(opened, rest, _KINDS)
        ready = f"/apis/{kinds.GROUP}/v1alpha2/virtualmachineclasses/{project.CLASS}"
        processes.wait_for(
            parent,
            SIMULATOR,
            lambda: b'"Ready"' in admin_api.ask(parent, "GET", ready)[1],
        )


def _wait_for(parent: places.Places, served: Sequence[Resource]) -> None:
    for kind in served:
        processes.wait_for(
            parent,
            "kube-apiserver",
            functools.partial(admin_api.answers, parent, kind.path()),
        )


def _nodes() -> Sequence[kinds.Json]:
    now = datetime.datetime.now(datetime.UTC)
    documents: list[kinds.Json] = []
    for name, zone in zip(parent_simulation.NODES, "abcabc", strict=True):
        document = simulated_kubelet.manifest(name, now)
        labels = {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": "parent",
            NODE_LABEL: "",
        }
        meta = {"name": name, "labels": labels}
        documents.append({**document, "metadata": meta, "spec": {}})
    return documents


def _webhooks(parent: places.Places) -> kinds.Json:
    authority = kube_files.certificates(parent) / "ca.crt"
    url = f"https://{ports.LOOPBACK}:{parent.port(WEBHOOK_PORT)}"
    encoded = base64.b64encode(authority.read_bytes()).decode()
    return rules.configuration(url, encoded)


@contextlib.contextmanager
def without_webhooks(parent: places.Places) -> Iterator[None]:
    """Have writes accepted without a simulator while the block runs.

    Raises:
        KubeError: the API server refused or did not answer.
    """
    opened, document = api(parent), _webhooks(parent)
    name = document["metadata"]["name"]
    opened.delete(_WEBHOOKS, name, timeout_s=cluster.TIMEOUT_S)
    try:
        yield
    finally:
        cluster.create_documents(opened, [document], _KINDS)


def start_simulator(parent: places.Places) -> None:
    """Start the simulator from the sources that this process has imported."""
    code = f"import {parent_simulation.__name__} as program; program.main()"
    now = datetime.datetime.now(datetime.UTC)
    subject = pki.Subject("virtualization-controller", names=(ports.LOOPBACK,))
    kube_files.issued(parent, "webhooks", subject, now)
    words = (
        *(sys.executable, "-c", code),
        f"--port={parent.port(WEBHOOK_PORT)}",
        f"--certificate={kube_files.certificates(parent) / 'webhooks.crt'}",
        f"--kubeconfig={control_plane.admin_kubeconfig(parent)}",
        f"--folder={folder(parent)}",
    )
    env = {"PYTHONPATH": ":".join(part for part in sys.path if part)}
    processes.start(parent, SIMULATOR, words, env)


def serve_checked_services(parent: places.Places) -> None:
    """Have the parent serve ServiceWithHealthchecks.

    Raises:
        LabError: the API server refused, or does not serve it in time.
    """
    cluster.create_documents(api(parent), [parent_kinds.checked_service()], _KINDS)
    _wait_for(parent, [kinds.CHECKED_SERVICES])


def api(parent: places.Places) -> client.Api:
    """Open the parent with all rights."""
    return cluster.connect(control_plane.admin_kubeconfig(parent))


def make_project(parent: places.Places, namespace: str = NAMESPACE) -> project.Project:
    """CreateObject a project unless it is there.

    Raises:
        KubeError: the parent refused or did not answer.
    """
    admin = control_plane.admin_kubeconfig(parent)
    return project.ensure(api(parent), admin, namespace, parent.state / "users")


def down(parent: places.Places) -> None:
    """Stop simulator and control plane; fine when they do not run."""
    processes.stop(parent, [SIMULATOR])
    control_plane.down(parent)
