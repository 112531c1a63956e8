"""Starts VMs of a parent whose simulator is stopped, each some seconds after creation.

The simulator takes a core for hundreds of VMs: benches would measure that.
"""

import concurrent.futures
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator

from lib.cloud.dvp.machines import machine_names
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.lab.dvp import kinds
from lib.lab.dvp import parent as lab_parent
from lib.lab.dvp.project import Project
from lib.lab.run import processes
from tests.harness.dvp.dvp_parent import DvpParent

POLL_S = 0.25
THREADS = 8


@contextlib.contextmanager
def stopped(parent: DvpParent) -> Iterator[None]:
    """Have simulator and webhooks of a parent stopped while the block runs."""
    with lab_parent.without_webhooks(parent.where):
        processes.stop(parent.where, [lab_parent.SIMULATOR])
        try:
            yield
        finally:
            parent.restart()


def addresses() -> Iterator[str]:
    """Yield addresses for VMs."""
    for high, low in itertools.product(range(256), range(1, 251)):
        yield f"10.80.{high}.{low}"


class VmStarts:
    """Has each VM Starting once its parts exist, and Running `vm_s` seconds later."""

    def __init__(self, parent: DvpParent, project: Project, vm_s: float) -> None:
        self._parent, self._project = parent, project
        self._vm_s = vm_s
        self._addresses = addresses()
        self._due: dict[str, float] = {}
        self._running: set[str] = set()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start VMs while the block runs."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(60)

    def _run(self, stop: threading.Event) -> None:
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            while not stop.wait(POLL_S):
                with contextlib.suppress(kube_errors.KubeError):
                    self._turn(pool)

    def _turn(self, pool: concurrent.futures.Executor) -> None:
        names = self._complete()
        now = time.monotonic()
        new = names - self._due.keys()
        self._due |= dict.fromkeys(new, now + self._vm_s)
        due = {name for name in names - self._running if self._due[name] <= now}
        self._running |= due
        starting = {"phase": "Starting"}
        steps = [
            *((name, starting) for name in new),
            *((name, self._running_status()) for name in due),
        ]
        for _ in pool.map(lambda step: self._report(*step), steps):
            pass

    def _complete(self) -> set[str]:
        """Return the names of the VMs whose boot disk and Secret exist."""
        objects = self._parent.objects(self._project)
        disks, secrets, vms = (
            {item["metadata"]["name"] for item in objects.all(kind)}
            for kind in (kinds.DISKS, resources.SECRETS, kinds.MACHINES)
        )
        return {
            name
            for name in vms
            if machine_names.boot_disk(name) in disks
            and machine_names.secret(name) in secrets
        }

    def _running_status(self) -> dict[str, str]:
        address = next(self._addresses)
        return {"phase": "Running", "ipAddress": address, "nodeName": "hypervisor-1"}

    def _report(self, name: str, status: dict[str, str]) -> None:
        self._parent.set_status(kinds.MACHINES, self._project, name, status)
