"""Nodes, Services and volumes of one child while its parent fails.

For each fault: `prepare`, then in the fault `ask` and `check`, then `wait`, which adds
one row for each flow to a `FaultTable`.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
import psutil

from lib.cloud.dvp.load_balancers import lb_names
from lib.kube import client, resources
from lib.kube import errors as kube_errors
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import ATTACHMENTS, DISKS, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.run import processes, waiting
from tests.harness.dvp import csi_dvp, dvp_manager, dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.services.services import Services

FLOWS = ("Nodes", "Services", "volumes")
HOSTS = ("steady-1", "steady-2")
SILENT = "silent-1"
"""A Node that is never Ready: its VM is read again and again."""
NODES = {*HOSTS, SILENT}
SERVICES = resources.SERVICES
Json = dict[str, Any]
_NUMBERS = itertools.count(1)


class FaultTable:
    """Results by fault and flow. Printed at the end; a missing one fails."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], str] = {}

    def add(self, fault: str, flow: str, result: str) -> None:
        """Add a row."""
        self.rows[fault, flow] = result

    def check(self, faults: Sequence[str]) -> None:
        """Print all rows.

        Raises:
            AssertionError: one is missing.
        """
        for (fault, flow), result in self.rows.items():
            print(f"{fault:26} {flow:9} {result}")
        missing = set(itertools.product(faults, FLOWS)) - self.rows.keys()
        assert not missing, missing


@dataclasses.dataclass
class Asked:
    """What was requested during one fault.

    uid: of the object of the Service that is kept. others: what another child had
    before. codes: of refused calls of CSI.
    """

    name: str
    address: str
    others: str
    uid: str = ""
    done: threading.Event = dataclasses.field(default_factory=threading.Event)
    codes: set[str] = dataclasses.field(default_factory=set)

    def service(self, part: str) -> str:
        """Return the name of a Service: kept, gone or new."""
        return f"{part}-{self.name}"

    def volume(self, part: str) -> str:
        """Return the name of a volume: kept, gone or new."""
        return f"pvc-{part}-{self.name}"


class ThreeFlows:
    """A child of three Nodes, its parent, and what its user and its sidecars do."""

    def __init__(
        self,
        parent: DvpParent,
        project: Project,
        where: places.Places,
        api: client.Api,
        driver: csi_dvp.CsiDvp,
    ) -> None:
        self.parent = parent
        self.project = project
        self.where = where
        self.objects = parent.objects(project)
        self.services = Services(api, "faulty")
        self.nodes = dvp_manager.SeenNodes(api)
        self.driver = driver
        self.table = FaultTable()
        self._processes = [self.manager(), driver.process()]

    def manager(self) -> psutil.Process:
        """Return the process of dvp-ccm."""
        process = processes.find(self.where, dvp_manager.NAME)
        assert process is not None
        return process

    def in_parent(self, service: str) -> Json:
        """Return the object of a Service."""
        document = self.services.get(service)
        assert document is not None
        name = lb_names.object_name(document["metadata"]["uid"])
        return self.objects.get(SERVICES, name) or {}

    def is_served(self, service: str) -> bool:
        """Report whether it has an address, and all VMs of Ready Nodes its label."""
        document = self.services.get(service) or {}
        ingress = document.get("status", {}).get("loadBalancer", {}).get("ingress")
        key = lb_names.label_key(lb_names.object_name(document["metadata"]["uid"]))
        vms = [self.objects.get(MACHINES, host) or {} for host in HOSTS]
        labels = [vm["metadata"].get("labels", {}) for vm in vms]
        return bool(ingress) and all(key in label for label in labels)

    def is_initialised(self, node: str) -> bool:
        """Report whether a Node is initialised."""
        return not self.nodes.is_new(node)

    def others(self) -> str:
        """Return what another child has in the project, whole; VMs without a status."""
        vm = self.objects.get(MACHINES, "theirs") or {}
        vm.pop("status", None)
        kinds = ((SERVICES, "atheirs"), (DISKS, "pvc-theirs"))
        whole = [vm, *(self.objects.get(kind, name) for kind, name in kinds)]
        for document in whole:
            assert document
            document["metadata"].pop("managedFields", None)
        return json.dumps(whole, sort_keys=True)

    def prepare(self) -> Asked:
        """Create what the fault may damage: two Services, two volumes."""
        number = next(_NUMBERS)
        asked = Asked(f"{number}", f"10.98.0.{number}", self.others())
        for part in ("kept", "gone"):
            self.services.make(asked.service(part))
            self.driver.create(asked.volume(part))
        self.driver.publish(asked.volume("kept"), HOSTS[0])
        for part in ("kept", "gone"):
            self.until(part, functools.partial(self.is_served, asked.service(part)))
        asked.uid = self.in_parent(asked.service("kept"))["metadata"]["uid"]
        return asked

    def ask(self, asked: Asked) -> None:
        """Request a change of each flow, in the fault."""
        self.services.make(asked.service("new"))
        self.services.change(asked.service("kept"), {"example.com/a": asked.name})
        self.services.delete([asked.service("gone")])
        threading.Thread(target=self._sidecars, args=(asked,), daemon=True).start()

    def _sidecars(self, asked: Asked) -> None:
        """Repeat each call of CSI until it succeeds, as the sidecars do."""
        new, kept, gone = (asked.volume(part) for part in ("new", "kept", "gone"))
        calls: tuple[Callable[[], object], ...] = (
            lambda: self.driver.create(new),
            lambda: self.driver.publish(new, HOSTS[0]),
            lambda: self.driver.unpublish(kept, HOSTS[0]),
            lambda: self.driver.expand(kept, 2 * csi_dvp.GIB),
            lambda: self.driver.delete(gone),
        )
        for call in calls:
            while not self._is_accepted(call, asked):
                time.sleep(1.0)
        asked.done.set()

    @staticmethod
    def _is_accepted(call: Callable[[], object], asked: Asked) -> bool:
        try:
            call()
        except grpc.RpcError as error:
            code: Any = error
            asked.codes.add(code.code().name)
            return False
        return True

    def check(self) -> None:
        """Check, in the fault, that nothing is lost and both processes answer."""
        assert self.nodes.names() == NODES
        assert ccm.ask(self.where, "/healthz")[0] == 200
        for process in self._processes:
            assert process.is_running(), process

    def wait(self, fault: str, asked: Asked) -> None:
        """Wait until all that was requested is done; add the rows of the fault."""
        began = time.monotonic()

        def since() -> str:
            return f"done {time.monotonic() - began:5.1f} s after its end"

        status = {"ipAddress": asked.address}
        self.until("parent", lambda: self._set_status(status))
        self.until(
            "the Node of a changed VM",
            lambda: ("InternalIP", asked.address) in self.nodes.addresses(HOSTS[0]),
        )
        self.table.add(fault, "Nodes", f"{len(NODES)} kept; {since()}")
        self._wait_services(asked)
        self.table.add(fault, "Services", since())
        self.until("volumes", asked.done.is_set)
        self._check_volumes(asked)
        codes = ", ".join(sorted(asked.codes)) or "none"
        self.table.add(fault, "volumes", f"{since()}; codes: {codes}")
        self.check()
        assert self.others() == asked.others

    def _set_status(self, status: Json) -> bool:
        self.parent.set_status(MACHINES, self.project, HOSTS[0], status)
        return True

    def _wait_services(self, asked: Asked) -> None:
        kept, gone, new = (asked.service(part) for part in ("kept", "gone", "new"))
        self.until("the new Service", lambda: self.is_served(new))
        self.until("the deletion", lambda: self.services.get(gone) is None)
        self.until(
            "the change",
            lambda: self.in_parent(kept)["metadata"]
            .get("annotations", {})
            .get("example.com/a")
            == asked.name,
        )
        names = {
            lb_names.object_name(document["metadata"]["uid"])
            for document in self.services.all().values()
        }
        in_parent = {item["metadata"]["name"] for item in self.objects.all(SERVICES)}
        assert in_parent == names | {"atheirs"}

    def _check_volumes(self, asked: Asked) -> None:
        """The parent holds what the calls asked for, and nothing twice."""
        disks = {item["metadata"]["name"] for item in self.objects.all(DISKS)}
        assert {asked.volume("new"), asked.volume("kept")} <= disks
        self.until(
            "the deleted disk",
            lambda: self.objects.get(DISKS, asked.volume("gone")) is None,
        )
        attached = [
            (item["spec"]["blockDeviceRef"]["name"], item["spec"]["virtualMachineName"])
            for item in self.objects.all(ATTACHMENTS)
        ]
        assert attached.count((asked.volume("new"), HOSTS[0])) == 1
        assert (asked.volume("kept"), HOSTS[0]) not in attached
        self.driver.unpublish(asked.volume("new"), HOSTS[0])
        for part in ("new", "kept"):
            self.driver.delete(asked.volume(part))

    def end(self) -> None:
        """Delete all Services, while dvp-ccm runs."""
        self.services.delete(list(self.services.all()))
        self.until("no Service", lambda: not self.services.all())

    def until(self, what: str, is_met: Callable[[], object]) -> float:
        """Wait; the API server of the parent may have been started just now."""

        def met() -> bool:
            try:
                return bool(is_met())
            except kube_errors.Unavailable:
                return False

        return waiting.until(what, met)


def _put_others(parent: DvpParent, project: Project) -> None:
    """Create a VM, a Service and a disk of another child, with names as ours."""
    other = dvp_parent.OTHER_CLUSTER
    objects = parent.objects(project)
    parent.machine(project, HOSTS[0], name="theirs", cluster=other)
    parent.wait_phase(MACHINES, project, "theirs", "Running")
    labels = {dvp_parent.CLUSTER_LABEL: other, "mooring.io/owner-uid": "x"}
    objects.make(
        SERVICES,
        "atheirs",
        {"labels": labels},
        spec={"type": "ClusterIP", "ports": [{"port": 80}]},
    )
    claim = {"storageClassName": projects.STORAGE_AT_ONCE, "size": str(csi_dvp.GIB)}
    labels = {dvp_parent.CLUSTER_LABEL: other, "virtualDiskName": "pvc-theirs"}
    about = {"labels": {**labels, dvp_parent.HOSTNAME_LABEL: ""}}
    objects.make(DISKS, "pvc-theirs", about, spec={"persistentVolumeClaim": claim})
    parent.wait_phase(DISKS, project, "pvc-theirs", "Ready")


@contextlib.contextmanager
def running(
    parent: DvpParent,
    reached: Project,
    where: places.Places,
    api: client.Api,
    state: pathlib.Path,
) -> Iterator[ThreeFlows]:
    """Run dvp-ccm and csi-controller while the block runs.

    reached: the project, with the kubeconfig that both use. state: folder of files.
    """
    _put_others(parent, reached)
    parent.machines(reached, sorted(NODES))
    words = dvp_manager.arguments(where, reached.kubeconfig, ["--leader-elect=false"])
    env = dvp_manager.environment(reached)
    pex = pexes.beside(dvp_manager.NAME)
    kubelets = dvp_manager.Kubelets(api)
    try:
        with (
            csi_dvp.running(state, parent.where, reached) as driver,
            dvp_manager.running(where, pex, words, env),
        ):
            flows = ThreeFlows(parent, reached, where, api, driver)
            kubelets.boot(*NODES)
            for name in NODES:
                flows.until(name, functools.partial(flows.is_initialised, name))
            kubelets.fall_silent(SILENT)
            flows.until("not Ready", lambda: not flows.nodes.is_ready(SILENT))
            yield flows
            flows.end()
    finally:
        kubelets.end()
