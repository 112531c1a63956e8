"""Replicas of capdvp that are killed at random while a block runs."""

import contextlib
import random
import threading
from collections.abc import Iterator

from lib.lab.run import processes
from tests.harness import waiting
from tests.harness.machines.capdvp_replicas import READY_S, CapdvpReplicas

LIVES_S = (2.0, 20.0)
"""Seconds that a ready replica runs; the Lease of a leader expires after 15 s."""


class KilledReplicas(CapdvpReplicas):
    """Replicas that `killing` kills and starts again. kills: number of kills."""

    kills = 0

    @contextlib.contextmanager
    def killing(self, seed: int) -> Iterator[None]:
        """Kill replicas at random while the block runs; start each of them again."""
        ended = threading.Event()
        chance = random.Random(seed)  # noqa: S311 # repeatable, no secret
        thread = threading.Thread(target=self._kill, args=(ended, chance), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(READY_S)
        waiting.until(
            "all replicas run",
            lambda: all(processes.find(self._where, name) for name in self._names),
            READY_S,
        )

    def _kill(self, ended: threading.Event, chance: random.Random) -> None:
        while not ended.is_set():
            name = chance.choice(self._names)
            while not (self._is_ready(name) or ended.wait(waiting.POLL_S)):
                pass
            if not ended.wait(chance.uniform(*LIVES_S)):
                self.kill(name)
                self._launch(name)
                self.kills += 1
