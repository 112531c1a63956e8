"""One process of openstack-ccm for a bench: what it counts, holds and burns."""

import os
import pathlib
import subprocess
import time
from collections.abc import Sequence

import psutil

from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import ccm, metrics
from lib.lab.kube import control_plane
from lib.lab.run import waiting

END_S = 30.0


class MeasuredDaemon:
    """Runs until `end`; its lines go to ccm.log in the lab's state.

    began: when it was started, in monotonic seconds.
    """

    def __init__(
        self,
        where: places.Places,
        pex: pathlib.Path,
        conf: pathlib.Path,
        words: Sequence[str] = (),
    ) -> None:
        self._where = where
        self._file = where.state / "ccm.log"
        self.began = time.monotonic()
        self._log = self._file.open("ab")
        self._from = self._log.tell()
        self._process = subprocess.Popen(
            [
                *pexes.command(pex),
                "--cloud-provider=openstack",
                f"--cloud-config={conf}",
                f"--kubeconfig={control_plane.admin_kubeconfig(where)}",
                "--bind-address=127.0.0.1",
                f"--secure-port={where.port(ccm.PORT)}",
                "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
                *words,
            ],
            env={**os.environ, **pexes.environment(where)},
            stdout=self._log,
            stderr=self._log,
        )

    def get(self, path: str) -> tuple[int, str]:
        """Ask --secure-port; 0 when it does not answer yet."""
        try:
            return ccm.ask(self._where, path, timeout_s=10)
        except OSError:
            return 0, ""

    def ready_s(self) -> float:
        """Wait until it is ready; return the seconds since its start."""
        waiting.until("ready", lambda: self.get("/readyz")[0] == 200)
        return time.monotonic() - self.began

    def counted(self, name: str, **labels: str) -> float:
        """Add up a metric's samples that have these labels."""
        return metrics.total(self.get("/metrics")[1], name, **labels)

    def rss_mib(self) -> float:
        """Return the resident memory."""
        return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20

    def cpu_s(self) -> float:
        """Return the seconds of processor that it has used."""
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def lines(self) -> list[str]:
        """Return what it has logged."""
        with self._file.open("rb") as file:
            file.seek(self._from)
            return file.read().decode().splitlines()

    def end(self) -> None:
        """Stop it as Kubernetes does."""
        self._process.terminate()
        self._process.wait(END_S)
        self._log.close()
