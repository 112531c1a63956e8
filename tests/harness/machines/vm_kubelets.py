"""The kubelets of all VMs of a cluster in a simulated parent.

Each registers its Node when its VM runs, and keeps it Ready for as long as it does; the
name of the Node is the VM's hostname. So does `mooring lab` for the machines it starts.
"""

import contextlib
import datetime
import threading

from lib.kube import client
from lib.kube import errors as kube_errors
from lib.lab import errors
from lib.lab.dvp.virtual_servers import VirtualServers
from lib.lab.kube import simulated_kubelet

TICK_S = 1.0


class VmKubelets:
    """Kubelets that run from `start` to `end`. child: of the Nodes."""

    def __init__(self, child: client.Api, servers: VirtualServers) -> None:
        self._child = child
        self._servers = servers
        self._silent: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def fall_silent(self, name: str) -> None:
        """Cease to report for a Node whose VM runs."""
        self._silent.add(name)

    def end(self) -> None:
        """Cease to report for all Nodes."""
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        before: simulated_kubelet.Running = {}
        while not self._stop.wait(TICK_S):
            with contextlib.suppress(kube_errors.KubeError):
                before = self._tick(before)

    def _tick(self, before: simulated_kubelet.Running) -> simulated_kubelet.Running:
        now = self._running(before)
        at = datetime.datetime.now(datetime.UTC)
        for action in simulated_kubelet.decide(before, now):
            simulated_kubelet.act(self._child, action, at)
        return now

    def _running(self, before: simulated_kubelet.Running) -> simulated_kubelet.Running:
        """Return the VMs that run; those of before while the parent is down."""
        try:
            listed = self._servers.items()
        except errors.LabError:
            return before
        names = [server.name for server in listed if server.name not in self._silent]
        return simulated_kubelet.running(names, listed)
