"""Keeps the programs of a driver running, and kills some of them at random."""

import concurrent.futures
import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence

import psutil

from lib.lab import places
from lib.lab.daemons import csi
from lib.lab.run import processes, waiting

LOOK_S = 0.3
END_S = 10.0
LIVES_S = (0.5, 25.0)
"""While it is being killed, csi-controller runs so long after it listens.

It creates nothing in its first 10 s: only longer lives get on with that.
"""


class CsiKeeper:
    """Starts programs again when they end, as a kubelet or systemd would.

    kills: how often it killed a program itself, in blocks of `killing`.
    """

    def __init__(
        self,
        where: places.Places,
        start: Callable[[], None],
        chance: random.Random,
        victims: Sequence[str] = (csi.NAME,),
        lives_s: tuple[float, float] = LIVES_S,
    ) -> None:
        """start: starts what does not run, and returns when it serves.

        victims: programs that are killed. lives_s: the range of times between kills.
        """
        self._victims = victims
        self._lives_s = lives_s
        self._where = where
        self._start = start
        self._chance = chance
        self._stop = threading.Event()
        self._killing = threading.Event()
        self._starting = threading.Lock()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._kept = self._pool.submit(self._keep)
        self.kills = 0

    def _keep(self) -> None:
        while not self._stop.is_set():
            with self._starting:
                self._start()
            if self._killing.is_set():
                self._stop.wait(self._chance.uniform(*self._lives_s))
                self._kill()
            else:
                self._stop.wait(LOOK_S)

    def _kill(self) -> None:
        process = processes.find(self._where, self._chance.choice(self._victims))
        if process is not None and self._killing.is_set():
            with contextlib.suppress(psutil.Error):
                process.kill()
                self.kills += 1
                process.wait(END_S)  # who is still ending would not be started again

    def kill(self, name: str) -> None:
        """Kill a program once it runs, but not while a start waits for it.

        Raises:
            LabError: it did not run in time, or a start failed.
        """
        waiting.until(f"{name} is killed", lambda: self._is_killed(name))

    def _is_killed(self, name: str) -> bool:
        if self._kept.done():
            self._kept.result()  # a start failed: nothing would run again
        with self._starting:
            process = processes.find(self._where, name)
            if process is None:
                return False
            process.kill()
            process.wait(END_S)
            return True

    @contextlib.contextmanager
    def killing(self) -> Iterator[None]:
        """Kill a program at random while the block lasts."""
        self._killing.set()
        try:
            yield
        finally:
            self._killing.clear()

    def end(self) -> None:
        """Keep nothing any more; what runs continues.

        Raises whatever a start raised.
        """
        self._stop.set()
        self._kept.result()
        self._pool.shutdown()
