"""One cluster for the tests of osdpl-controller, and what they ask of it."""

import base64
import contextlib
import dataclasses
import json
import pathlib
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import psutil

from lib.helm import model, releases
from lib.kube import client, objects, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors, places
from lib.lab.kube import cluster, control_plane, kube_files
from lib.lab.osdpl import controller, deployment, lab, simulator, view
from lib.lab.run import processes, progress, waiting
from lib.process import decoding
from tests.harness.kube import audit

POLL_S = 0.25
OBSERVE_S = 1.0
"""Between two looks at all releases and workloads."""
TIMEOUT_S = 20.0
T = TypeVar("T")
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorStage:
    """A cluster with simulated Nodes in which the controller can run."""

    where: places.Places
    api: client.Api
    pex: pathlib.Path

    def start(self, *extra: str) -> None:
        """Start the controller with further flags; return once it is ready."""
        controller.start(self.where, self.pex, extra)

    def stop(self) -> None:
        """Stop the controller as Kubernetes does."""
        processes.stop(self.where, [controller.NAME])

    def kill(self) -> None:
        """Kill the controller and the helm processes that it started."""
        process = self.process()
        for child in process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.kill()
        process.wait(TIMEOUT_S)
        processes.stop(self.where, [controller.NAME])

    def process(self) -> psutil.Process:
        """Return the process of the controller.

        Raises:
            LabError: it does not run.
        """
        process = processes.find(self.where, controller.NAME)
        if process is None:
            raise errors.LabError(f"{controller.NAME} does not run")
        return process

    def log(self) -> str:
        """Return all that the controller has logged."""
        return (self.where.log / f"{controller.NAME}.log").read_text()

    def apply(self, document: Mapping[str, Any]) -> None:
        """Create or change an OpenStackDeployment."""
        controller.apply(self.api, document)

    def patch(self, spec: Mapping[str, Any], name: str = deployment.NAME) -> None:
        """Merge a change into the spec of the OpenStackDeployment."""
        self.api.patch(
            deployment.DEPLOYMENTS,
            name,
            json.dumps({"spec": spec}).encode(),
            deployment.NAMESPACE,
            timeout_s=TIMEOUT_S,
        )

    def annotate(self, annotations: Mapping[str, str | None]) -> None:
        """Set annotations of the OpenStackDeployment; None removes one."""
        self.api.patch(
            deployment.DEPLOYMENTS,
            deployment.NAME,
            json.dumps({"metadata": {"annotations": dict(annotations)}}).encode(),
            deployment.NAMESPACE,
            timeout_s=TIMEOUT_S,
        )

    def forget(self, name: str = deployment.NAME) -> None:
        """Delete an OpenStackDeployment in any state; wait until it is released.

        Raises:
            LabError: it was not in time.
        """
        if name == deployment.NAME and self.get(deployment.DEPLOYMENTS, name):
            self.annotate({"mooring.io/force": "deletion"})
        self.delete(deployment.DEPLOYMENTS, name)
        self.wait(
            f"the OpenStackDeployment {name} is deleted",
            lambda: self.get(deployment.DEPLOYMENTS, name) is None,
        )

    def delete(self, kind: Resource, name: str) -> None:
        """Delete an object of the namespace; it may be absent."""
        with contextlib.suppress(kube_errors.NotFound):
            self.api.delete(kind, name, deployment.NAMESPACE, timeout_s=TIMEOUT_S)

    def get(self, kind: Resource, name: str) -> Json | None:
        """Return an object of the namespace, or None."""
        try:
            body = self.api.read(kind, name, deployment.NAMESPACE, timeout_s=TIMEOUT_S)
        except kube_errors.NotFound:
            return None
        return dict(json.loads(body))

    def items(self, kind: Resource) -> list[Json]:
        """Return all objects of a kind in the namespace."""
        namespace = deployment.NAMESPACE if kind.namespaced else None
        page = self.api.list_page(kind, namespace, query={}, timeout_s=TIMEOUT_S)
        return list(json.loads(page)["items"])

    def hold(self, *pods: str) -> None:
        """Keep pods from starting. pods: "application/component"; none: all start."""
        self.configure(simulator.SETTINGS, hold="\n".join(pods))

    def fail(self, *pods: str) -> None:
        """Have pods of Jobs fail. pods: as of `hold`; none: all succeed."""
        self.configure(simulator.SETTINGS, fail="\n".join(pods))

    def configure(self, name: str, **data: str | None) -> None:
        """Create a ConfigMap, or change keys of it; None removes one."""
        body = {"metadata": {"name": name}, "data": data}
        kind, space = resources.CONFIG_MAPS, deployment.NAMESPACE
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **body}).encode()
        try:
            self.api.create(kind, text, space, timeout_s=TIMEOUT_S)
        except kube_errors.AlreadyExists:
            self.api.patch(kind, name, text, space, timeout_s=TIMEOUT_S)

    def observe(self) -> view.ReleaseView:
        """Return the state of all releases."""
        return view.observe(self.api)

    def newest(self) -> Mapping[str, model.Revision]:
        """Return the newest revision of each release, by name."""
        newest: dict[str, model.Revision] = {}
        for revision in sorted(self.history(), key=lambda item: item.number):
            newest[revision.name] = revision
        return newest

    def history(self) -> list[model.Revision]:
        """Return all revisions that helm keeps."""
        revisions = (
            releases.revision(
                decoding.decode(json.dumps(item["metadata"]), objects.ObjectMeta)
            )
            for item in self.items(resources.SECRETS)
            if item["type"] == releases.TYPE
        )
        return [revision for revision in revisions if revision is not None]

    def revisions(self) -> Mapping[str, int]:
        """Return the revision of each installed release."""
        return {
            row.release: row.revision for row in self.observe().rows if row.revision
        }

    def secrets(self) -> Mapping[str, Mapping[str, str]]:
        """Return the decoded content of all Secrets that helm does not own."""
        return {
            item["metadata"]["name"]: {
                key: base64.b64decode(text).decode(errors="replace")
                for key, text in (item.get("data") or {}).items()
            }
            for item in self.items(resources.SECRETS)
            if item["type"] != "helm.sh/release.v1"
        }

    def condition(self, kind: str, name: str = deployment.NAME) -> Json:
        """Return a condition of an OpenStackDeployment; empty when it has none."""
        owner = self.get(deployment.DEPLOYMENTS, name) or {}
        conditions = owner.get("status", {}).get("conditions", [])
        return next((row for row in conditions if row["type"] == kind), {})

    def requests(self) -> tuple[audit.Row, ...]:
        """Return the controller's own requests, those of its helm processes included.

        Renewals of the Lease are left out.
        """
        rows = audit.rows(self.where, controller.ACCOUNT)
        return tuple(row for row in rows if row.resource != "leases")

    def wait(
        self,
        what: str,
        read: Callable[[], T],
        poll_s: float = POLL_S,
    ) -> T:
        """Return what `read` returns once that is true.

        Raises:
            LabError: it was not in time.
        """
        results: list[T] = []

        def is_met() -> bool:
            results.append(read())
            return bool(results[-1])

        waiting.until(what, is_met, poll_s=poll_s)
        return results[-1]

    def wait_deployed(self, releases: Collection[str]) -> None:
        """Wait until these releases are deployed, whatever becomes of others.

        Raises:
            LabError: they were not in time.
        """

        def are_deployed() -> bool:
            rows = self.observe().rows
            deployed = {row.release for row in rows if row.state == "deployed"}
            return deployed.issuperset(releases)

        what = f"{sorted(releases)} are deployed"
        self.wait(what, are_deployed, poll_s=OBSERVE_S)

    def wait_complete(self) -> view.ReleaseView:
        """Return the state once all is deployed and Ready.

        Raises:
            LabError: it was not in time; names what is missing.
        """
        observed = self.observe()

        def is_complete() -> bool:
            nonlocal observed
            observed = self.observe()
            return observed.is_complete

        waiting.until(
            lambda: f"all is complete: {summary(observed)}",
            is_complete,
            poll_s=OBSERVE_S,
        )
        return observed


def summary(observed: view.ReleaseView) -> str:
    """Return what is missing, in one line."""
    rows = [
        f"{row.release} {row.state or 'pending'} {row.ready}/{len(row.workloads)}"
        f" {row.waiting_for}".strip()
        for row in observed.rows
        if not row.is_complete
    ]
    return "; ".join([observed.state or "no status", *rows, *observed.conditions])


@contextlib.contextmanager
def opened(
    where: places.Places, pex: pathlib.Path, shown: progress.Progress
) -> Iterator[OperatorStage]:
    """Run an empty cluster with simulator and RBAC; the controller is not started."""
    shutil.rmtree(kube_files.etcd_data(where), ignore_errors=True)
    try:
        lab.start(where, shown)
        lab.start_simulator(where, lab.source_tool(), shown)
        controller.install(where)
        api = cluster.connect(control_plane.admin_kubeconfig(where))
        yield OperatorStage(where, api, pex)
    finally:
        processes.stop(where, (controller.NAME, lab.SIMULATOR), patience_s=5)
        control_plane.down(where)
