"""dvp-ccm on a simulated parent, and the kubelets of its VMs."""

import contextlib
import datetime
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.cloud.dvp import needs
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.dvp.project import Project
from lib.lab.kube import (
    cluster,
    control_plane,
    kube_objects,
    simulated_kubelet,
)
from lib.lab.run import processes, waiting
from tests.harness.dvp import dvp_parent

NAME = "dvp-ccm"
NODES_ONLY = "--controllers=cloud-node,cloud-node-lifecycle"
BEAT_S = 2.0
ACCOUNT = ("kube-system", "dvp-ccm")
SWITCH_NAMESPACE = "d8-cloud-provider-dvp"
Json = Mapping[str, Any]


def environment(project: Project, uuid: str = dvp_parent.CLUSTER) -> dict[str, str]:
    """Return the variables of the reference's daemons, but for the kubeconfig."""
    return {"DVP_NAMESPACE": project.namespace, "CLUSTER_UUID": uuid}


def arguments(
    where: places.Places,
    kubeconfig: pathlib.Path | None,
    words: Sequence[str] = (),
    child: pathlib.Path | None = None,
) -> tuple[str, ...]:
    """Return the reference's own command line, and what a lab needs.

    kubeconfig: of the parent; None: by the environment. child: kubeconfig of the child;
    None: that of its administrator.
    """
    parent = () if kubeconfig is None else (f"--parent-kubeconfig={kubeconfig}",)
    return (
        "--cloud-provider=dvp",
        "--allow-untagged-cloud=true",
        "--configure-cloud-routes=false",
        "--v=4",
        *parent,
        f"--kubeconfig={child or control_plane.admin_kubeconfig(where)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={where.port(ccm.PORT)}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        *words,
    )


def account(
    where: places.Places, api: client.Api, folder: pathlib.Path
) -> pathlib.Path:
    """Apply the manifest of dvp-ccm in the child; return a kubeconfig of its user."""
    objects = kube_objects.Objects(api, SWITCH_NAMESPACE)
    with contextlib.suppress(kube_errors.AlreadyExists):
        objects.make(resources.NAMESPACES, SWITCH_NAMESPACE)
    control_plane.apply_manifests(where, needs.manifest())
    target = folder / "child.kubeconfig"
    admin = control_plane.admin_kubeconfig(where)
    cluster.service_account_kubeconfig(api, admin, ACCOUNT, target)
    return target


@contextlib.contextmanager
def running(
    where: places.Places,
    pex: pathlib.Path,
    words: Sequence[str],
    env: Mapping[str, str],
) -> Iterator[None]:
    """Run dvp-ccm while the block runs. where: of the child."""
    ccm.start(where, pex, words, env, NAME)
    try:
        yield
    finally:
        processes.stop(where, [NAME])


def log_of(where: places.Places) -> str:
    """Return what dvp-ccm has logged."""
    return (where.log / f"{NAME}.log").read_text()


class Kubelets:
    """The kubelets of VMs: they register Nodes, and keep them Ready."""

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self._alive: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def boot(self, *names: str) -> None:
        """Register Nodes, unless they are there, and keep them Ready from now on."""
        for name in names:
            simulated_kubelet.register(self._api, name, utc_now())
        self._alive |= set(names)

    def fall_silent(self, *names: str) -> None:
        """Cease to report: the Nodes are not Ready after some seconds."""
        self._alive -= set(names)

    def end(self) -> None:
        """Cease to report for all Nodes, and delete them."""
        self._stop.set()
        self._thread.join(60)
        SeenNodes(self._api).delete_all()

    def _run(self) -> None:
        while not self._stop.wait(BEAT_S):
            for name in tuple(self._alive):
                with contextlib.suppress(kube_errors.KubeError):
                    simulated_kubelet.beat(self._api, name, utc_now())


def utc_now() -> datetime.datetime:
    """Return the time of day."""
    return datetime.datetime.now(datetime.UTC)


class SeenNodes:
    """The Nodes of a child as JSON, and waits for what they become; see `rows`."""

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self.rows: list[tuple[str, float]] = []

    def get(self, name: str) -> Json | None:
        """Return a Node; None: it does not exist."""
        try:
            return dict(json.loads(self._api.read(resources.NODES, name, timeout_s=30)))
        except kube_errors.NotFound:
            return None

    def register_foreign(self, name: str, provider_id: str) -> None:
        """Create a Node of another provider, initialised, whose kubelet is silent."""
        manifest = simulated_kubelet.manifest(name, utc_now())
        whole = {**manifest, "spec": {"providerID": provider_id}}
        body = json.dumps(whole).encode()
        self._api.create(resources.NODES, body, timeout_s=30)

    def names(self) -> set[str]:
        """Return the names of all Nodes."""
        listed = self._api.list_page(resources.NODES, query={}, timeout_s=30)
        return {node["metadata"]["name"] for node in json.loads(listed)["items"]}

    def delete_all(self) -> None:
        """Delete all Nodes."""
        for name in self.names():
            with contextlib.suppress(kube_errors.NotFound):
                self._api.delete(resources.NODES, name, timeout_s=30)

    def new(self) -> set[str]:
        """Return the names of all Nodes that are not initialised."""
        listed = self._api.list_page(resources.NODES, query={}, timeout_s=60)
        return {
            node["metadata"]["name"]
            for node in json.loads(listed)["items"]
            for taint in node["spec"].get("taints", ())
            if taint["key"] == simulated_kubelet.TAINT
        }

    def taints(self, name: str) -> set[str]:
        """Return the keys of a Node's taints."""
        node = self.get(name) or {}
        return {taint["key"] for taint in node.get("spec", {}).get("taints", [])}

    def is_new(self, name: str) -> bool:
        """Report whether a Node is missing, or was not initialised yet."""
        return self.get(name) is None or simulated_kubelet.TAINT in self.taints(name)

    def is_ready(self, name: str) -> bool:
        """Report whether a Node is Ready."""
        rows = (self.get(name) or {}).get("status", {}).get("conditions", [])
        return any(row["type"] == "Ready" and row["status"] == "True" for row in rows)

    def addresses(self, name: str) -> list[tuple[str, str]]:
        """Return types and addresses of a Node, in their order."""
        status = (self.get(name) or {}).get("status", {})
        return [(row["type"], row["address"]) for row in status.get("addresses", [])]

    def events(self, name: str) -> set[str]:
        """Return the reasons of all Events about a Node, or another object."""
        query = {"fieldSelector": f"involvedObject.name={name}"}
        path = resources.EVENTS.path()
        listed = json.loads(self._api.request("GET", path, query=query, timeout_s=30))
        return {item["reason"] for item in listed["items"]}

    def until(self, what: str, is_met: Any) -> float:
        """Wait until a condition holds; return the seconds, and keep a row of it.

        Raises:
            LabError: it does not hold in time.
        """
        took_s = waiting.until(what, is_met)
        self.rows.append((what, took_s))
        return took_s

    def show(self) -> None:
        """Print what was waited for, and how long."""
        for what, took_s in self.rows:
            print(f"{what:60} {took_s:6.2f} s")
