"""Keeps csi-controller and the sidecars running, and kills the former at random."""

import concurrent.futures
import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import psutil

from lib.lab import places
from lib.lab.daemons import csi
from lib.lab.run import processes

LOOK_S = 0.3
END_S = 10.0
LIVES_S = (0.5, 25.0)
"""While it is being killed, csi-controller runs so long after it listens.

It creates nothing in its first 10 s: only longer lives get on with that.
"""


class CsiKeeper:
    """Starts csi-controller and the sidecars again when they end, as a kubelet would.

    kills: how often it killed csi-controller itself, between `kill` and its end.
    """

    def __init__(
        self, where: places.Places, start: Callable[[], None], chance: random.Random
    ) -> None:
        """start: starts what does not run, and returns when the driver listens."""
        self._where = where
        self._start = start
        self._chance = chance
        self._stop = threading.Event()
        self._killing = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._kept = self._pool.submit(self._keep)
        self.kills = 0

    def _keep(self) -> None:
        while not self._stop.is_set():
            self._start()
            if self._killing.is_set():
                self._stop.wait(self._chance.uniform(*LIVES_S))
                self._kill()
            else:
                self._stop.wait(LOOK_S)

    def _kill(self) -> None:
        process = processes.find(self._where, csi.NAME)
        if process is not None and self._killing.is_set():
            with contextlib.suppress(psutil.Error):
                process.kill()
                self.kills += 1
                process.wait(END_S)  # who is still ending would not be started again

    @contextlib.contextmanager
    def killing(self) -> Iterator[None]:
        """Kill csi-controller at random while the block lasts."""
        self._killing.set()
        try:
            yield
        finally:
            self._killing.clear()

    def end(self) -> None:
        """Keep nothing any more; what runs goes on.

        Raises whatever a start raised.
        """
        self._stop.set()
        self._kept.result()
        self._pool.shutdown()
