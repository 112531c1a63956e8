"""A simulated parent cluster for tests: its VMs, disks and Services, and its faults.

Use the fixtures of `parent_fixtures.py` in the conftest.py of a folder:

    from tests.harness.dvp import parent_fixtures

    where = parent_fixtures.where      # the child, which `api` opens as administrator
    parent = parent_fixtures.parent    # DvpParent, of the session
    project = parent_fixtures.project  # of a module: namespace and kubeconfig

Then, in tests:

    vm = parent.machine(project, "node-1")             # made, not yet Running
    parent.wait_phase(MACHINES, project, vm, "Running")# address in its status
    parent.machines(project, ["a", "b"])               # made, and all Running
    parent.seed(project, 1000)                         # Running, without Pods
    project.kubeconfig                                 # file for --parent-kubeconfig
    project.encoded()                                  # DVP_KUBERNETES_CONFIG_BASE64
    parent.objects(project).get(DISKS, "pvc-1")        # anything, as administrator
    parent.operate(project, vm, "Stop")                # Start Stop Restart Migrate
    with parent.failing("attachment-attached pvc-1 Conflict some text"): ...
    with parent.holding("disk-ready", "service-ingress web*"): ...
    with parent.delaying(disk_ready=5): ...
    with parent.stopped(): ...                         # nobody listens
    with parent.frozen(): ...                          # listens, no answers
    with parent.proxied(project) as (proxy, kubeconfig):# .silent(), .shut()
    parent.rotate(project); parent.revoke(project)     # tokens
    parent.requests(project)                           # audit rows of its user
    parent.settled(project)                            # the same, once none come
    parent.serve_checked_services()                    # ServiceWithHealthchecks
    parent.forget_checked_services()
    parent.add_phase(MACHINES, "Frozen")               # a phase of a newer parent
    parent.attachments("node-1")                       # folder of links for devices


Loop devices of a VM: `attached_disks.AttachedDisks(parent.attachments(hostname),
machine, names=attached_disks.scsi)`. Names of transitions, and
what each is based on: `lib/lab/dvp/transitions.py`.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import yaml

from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab import errors, places
from lib.lab.dvp import kinds, parent, project, settings
from lib.lab.dvp.kinds import MACHINES, OPERATIONS
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane, kube_objects
from lib.lab.run import processes, progress, waiting
from tests.harness.dvp import dropped_fields
from tests.harness.faults import tcp_proxy
from tests.harness.kube import audit

CLUSTER = "0badc0de-0000-4000-8000-000000000001"
"""Cluster UUID of the child, unless a test sets another."""
OTHER_CLUSTER = "0badc0de-0000-4000-8000-000000000002"
CLUSTER_LABEL = "dvp.deckhouse.io/cluster-uuid"
HOSTNAME_LABEL = "dvp.deckhouse.io/hostname"
MANAGED = {"deckhouse.io/managed-by": "deckhouse"}
QUIET_S = 1.0
"""Without a request, until those before are all in the audit log."""
TIMEOUT_S = 120.0
_AT_ONCE = 8
T = TypeVar("T")
Json = dict[str, Any]


class DvpParent:
    """A parent that runs. where: its places. Safe to use from several threads."""

    def __init__(self, where: places.Places) -> None:
        self.where = where
        self.api: client.Api = parent.api(where)

    def project(self, namespace: str) -> Project:
        """Return a project; create it unless it is there."""
        return parent.make_project(self.where, namespace)

    def objects(self, project_: Project) -> kube_objects.Objects:
        """Return the parent's objects in a project, with all rights."""
        return kube_objects.Objects(self.api, project_.namespace)

    def machine(
        self,
        project_: Project,
        hostname: str,
        *,
        name: str = "",
        cluster: str = CLUSTER,
        labels: Mapping[str, str] | None = None,
        **spec: object,
    ) -> str:
        """Create a VM with a boot disk; return its name.

        name: empty: the hostname, as VMs of Cluster API have it. labels: besides those
        of the reference. spec: fields of the VM's spec besides the usual ones.
        """
        name = name or hostname
        boot = f"{name}-boot"
        own = {**MANAGED, CLUSTER_LABEL: cluster, HOSTNAME_LABEL: hostname}
        objects = self.objects(project_)
        self._disk(objects, boot, {**own, "virtualDiskName": boot})
        whole = {**machine_spec(boot), **spec}
        meta = {"labels": {**own, **(labels or {})}}
        objects.make(MACHINES, name, meta, spec=whole)
        return name

    @staticmethod
    def _disk(
        objects: kube_objects.Objects, name: str, labels: Mapping[str, str]
    ) -> None:
        claim = {"storageClassName": project.STORAGE_AT_ONCE, "size": "64Mi"}
        image = {"kind": "ClusterVirtualImage", "name": project.IMAGE}
        source = {"type": "ObjectRef", "objectRef": image}
        with contextlib.suppress(kube_errors.AlreadyExists):
            objects.make(
                kinds.DISKS,
                name,
                {"labels": dict(labels)},
                spec={"dataSource": source, "persistentVolumeClaim": claim},
            )

    def machines(
        self, project_: Project, hostnames: Sequence[str], **more: Any
    ) -> Mapping[str, Json]:
        """Create VMs, wait until they are Running; return them by hostname."""
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            names = list(
                pool.map(lambda each: self.machine(project_, each, **more), hostnames)
            )
        pairs = zip(hostnames, names, strict=True)
        return {
            hostname: self.wait_phase(MACHINES, project_, name, "Running")
            for hostname, name in pairs
        }

    def seed(
        self, project_: Project, count: int, prefix: str = "node", **more: Any
    ) -> Sequence[str]:
        """Create VMs that are Running at once, without Pods; return their hostnames.

        The simulator is held meanwhile, and leaves them as they are: it moves a VM
        when its spec or an operation asks for it.
        """
        names = [f"{prefix}-{number}" for number in range(count)]
        rules = ("machine-accepted", "machine-address", "machine-running")
        with (
            self.holding(*(f"{rule} {prefix}-*" for rule in rules)),
            concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool,
        ):
            list(
                pool.map(
                    lambda pair: self._seed(project_, pair[1], pair[0], more),
                    enumerate(names),
                )
            )
        return names

    def _seed(
        self, project_: Project, name: str, number: int, more: Mapping[str, Any]
    ) -> None:
        objects = self.objects(project_)
        own = {**MANAGED, CLUSTER_LABEL: CLUSTER, HOSTNAME_LABEL: name}
        spec = {**machine_spec("seeded"), **more}
        created = objects.make(MACHINES, name, {"labels": own}, spec=spec)
        address = f"10.80.{number // 250}.{number % 250 + 1}"
        status = {
            "phase": "Running",
            "ipAddress": address,
            "nodeName": "hypervisor-1",
            "observedGeneration": created["metadata"]["generation"],
        }
        self.set_status(MACHINES, project_, name, status)

    def set_status(
        self, kind: Resource, project_: Project, name: str, status: Mapping[str, Any]
    ) -> None:
        """Change the status of an object, as a controller of the parent does."""
        self.api.patch(
            kind,
            name,
            json.dumps({"status": dict(status)}).encode(),
            project_.namespace if kind.namespaced else None,
            subresource="status",
            timeout_s=TIMEOUT_S,
        )

    def operate(self, project_: Project, name: str, type_: str) -> str:
        """Create a VirtualMachineOperation; return its name."""
        operation = f"{name}-{type_.lower()}-{time.monotonic_ns()}"
        spec = {"type": type_, "virtualMachineName": name}
        self.objects(project_).make(OPERATIONS, operation, spec=spec)
        return operation

    def wait_phase(
        self, kind: Resource, project_: Project, name: str, *phases: str
    ) -> Json:
        """Return an object once it has one of the phases.

        Raises:
            LabError: it has not in time.
        """

        def read() -> Json | None:
            item = self.objects(project_).get(kind, name)
            phase = (item or {}).get("status", {}).get("phase")
            return item if phase in phases else None

        return self.wait(f"{kind.kind} {name} is {' or '.join(phases)}", read)

    def wait(self, what: str, read: Callable[[], T | None]) -> T:
        """Return what `read` returns once that is not None and not False.

        Raises:
            LabError: it is not in time.
        """
        values: list[T] = []

        def is_met() -> bool:
            value = read()
            if value is not None and value is not False:
                values.append(value)
            return bool(values)

        waiting.until(what, is_met)
        return values[0]

    @contextlib.contextmanager
    def failing(self, *lines: str) -> Iterator[None]:
        """Have transitions fail. lines: "TRANSITION NAME REASON MESSAGE"."""
        with self._configured("fail", lines):
            yield

    @contextlib.contextmanager
    def holding(self, *lines: str) -> Iterator[None]:
        """Have transitions not happen. lines: "TRANSITION" or "TRANSITION NAME"."""
        with self._configured("hold", lines):
            yield

    @contextlib.contextmanager
    def delaying(self, **seconds: float) -> Iterator[None]:
        """Have transitions happen after some seconds; keys with _ stand for -."""
        lines = [f"{key.replace('_', '-')} {value}" for key, value in seconds.items()]
        with self._configured("delays", lines):
            yield

    @contextlib.contextmanager
    def _configured(self, key: str, lines: Sequence[str]) -> Iterator[None]:
        self.configure({key: "\n".join(lines)})
        try:
            yield
        finally:
            self.configure({key: None})

    def configure(self, data: Mapping[str, str | None]) -> None:
        """Change the ConfigMap of the simulator; None removes a key.

        Returns once the simulator has seen it.
        """
        kind, space = resources.CONFIG_MAPS, settings.NAMESPACE
        serial = f"# {time.monotonic_ns()}"
        body = {"metadata": {"name": settings.NAME}, "data": {**data, "serial": serial}}
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **body}).encode()
        try:
            self.api.create(kind, text, space, timeout_s=TIMEOUT_S)
        except kube_errors.AlreadyExists:
            self.api.patch(kind, settings.NAME, text, space, timeout_s=TIMEOUT_S)
        self.wait(
            "the simulator has its settings",
            lambda: f"settings {serial}" in self._log(),
        )

    def _log(self) -> str:
        return (self.where.log / f"{parent.SIMULATOR}.log").read_text()

    def reset(self) -> None:
        """Remove all settings of the simulator."""
        self.configure(dict.fromkeys(("delays", "hold", "fail")))

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Have the API server of the parent stopped while the block runs."""
        processes.stop(self.where, ["kube-apiserver"])
        try:
            yield
        finally:
            self.restart()

    def restart(self) -> None:
        """Start what does not run of the parent, and wait for it."""
        control_plane.up(self.where, progress.Silent())
        parent.start_simulator(self.where)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have the API server of the parent stand still while the block runs."""
        process = processes.find(self.where, "kube-apiserver")
        if process is None:
            raise errors.LabError("the parent does not run")
        process.suspend()
        try:
            yield
        finally:
            process.resume()

    @contextlib.contextmanager
    def proxied(
        self, project_: Project, idle_s: float = float("inf")
    ) -> Iterator[tuple[tcp_proxy.TcpProxy, pathlib.Path]]:
        """Run a proxy in front of the parent, and a kubeconfig that leads through it.

        TLS passes through: `proxy.shut()` and `proxy.silent()` are its faults.
        """
        proxy = tcp_proxy.TcpProxy(self.where.port("apiserver"), idle_s)
        target = project_.kubeconfig.with_suffix(f".proxy-{proxy.port}")
        try:
            self.redirect(project_, f"https://127.0.0.1:{proxy.port}", target)
            yield proxy, target
        finally:
            proxy.close()

    def redirect(self, project_: Project, server: str, target: pathlib.Path) -> None:
        """Write a kubeconfig of a project's user for another address."""
        document = yaml.safe_load(project_.kubeconfig.read_text())
        document["clusters"][0]["cluster"]["server"] = server
        project.write(target, yaml.safe_dump(document))

    def rotate(self, project_: Project) -> None:
        """Write a new token into the kubeconfig of a project; old ones stay valid."""
        admin = control_plane.admin_kubeconfig(self.where)
        project.rotate(self.api, admin, project_.namespace, project_.kubeconfig)

    def revoke(self, project_: Project) -> None:
        """Make all tokens of a project invalid; `rotate` writes a new one."""
        project.revoke(self.api, project_.namespace)

    def requests(self, project_: Project) -> tuple[audit.Row, ...]:
        """Return all requests of a project's user, by the parent's audit log."""
        return audit.rows(self.where, (project_.namespace, project.USER))

    def settled(self, project_: Project) -> tuple[audit.Row, ...]:
        """Wait until no request but watches has come for a while; return all of them.

        The audit log may be written a little after the answer.
        """

        def sent() -> tuple[audit.Row, ...]:
            return tuple(row for row in self.requests(project_) if row.verb != "watch")

        known = sent()
        changed_at = time.monotonic()

        def is_quiet() -> bool:
            nonlocal known, changed_at
            now = sent()
            if now != known:
                known, changed_at = now, time.monotonic()
            return time.monotonic() - changed_at >= QUIET_S

        waiting.until("no requests", is_quiet)
        return known

    def serve_checked_services(self) -> None:
        """Have the parent serve ServiceWithHealthchecks."""
        parent.serve_checked_services(self.where)

    def forget_checked_services(self) -> None:
        """Have the parent no longer serve ServiceWithHealthchecks."""
        kind = kinds.CHECKED_SERVICES
        with contextlib.suppress(kube_errors.NotFound):
            self.api.delete(
                resources.DEFINITIONS, f"{kind.plural}.{kind.group}", timeout_s=30
            )

    def add_phase(self, kind: Resource, phase: str) -> None:
        """Have a kind allow one more phase, as a newer parent may."""
        name = f"{kind.plural}.{kind.group}"
        body = self.api.read(resources.DEFINITIONS, name, timeout_s=TIMEOUT_S)
        versions = json.loads(body)["spec"]["versions"]
        for version in versions:
            whole = version["schema"]["openAPIV3Schema"]["properties"]
            allowed = whole["status"]["properties"]["phase"]["enum"]
            allowed.extend([phase] if phase not in allowed else [])
        text = json.dumps({"spec": {"versions": versions}}).encode()
        self.api.patch(resources.DEFINITIONS, name, text, timeout_s=TIMEOUT_S)

    def attachments(self, hostname: str) -> pathlib.Path:
        """Return the folder with a link per attached disk of a VM, by its serial."""
        return parent.folder(self.where) / "machines" / hostname


def machine_spec(boot: str) -> Json:
    """Return the spec of a VM as the reference creates it. boot: its disk."""
    return {
        "virtualMachineClassName": project.CLASS,
        "runPolicy": "AlwaysOnUnlessStoppedManually",
        "cpu": {"cores": 1, "coreFraction": "10%"},
        "memory": {"size": "256Mi"},
        "blockDeviceRefs": [{"kind": "VirtualDisk", "name": boot}],
    }


@contextlib.contextmanager
def running(where: places.Places, shown: progress.Progress) -> Iterator[DvpParent]:
    """Run the parent of a lab while the block runs.

    Raises:
        LabError: it did not start.
        AssertionError: its API server dropped a field that a program has sent.
    """
    place = parent.beside(where)
    place.state.mkdir(parents=True, exist_ok=True)
    try:
        parent.up(place, shown)
        yield DvpParent(place)
    finally:
        processes.stop(place, (parent.SIMULATOR, *control_plane.PROGRAMS), 2)
    lines = dropped_fields.of_log(place.log / "audit.log")
    assert not lines, "dropped by the parent:\n" + "\n".join(lines)
