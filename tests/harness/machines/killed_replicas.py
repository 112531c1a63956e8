"""Replicas of capdvp that are killed at random while a block runs."""

import contextlib
import random
import threading
from collections.abc import Iterator, Sequence

from lib.lab.run import processes, waiting
from tests.harness.machines import life
from tests.harness.machines.capdvp_replicas import CapdvpReplicas
from tests.harness.machines.capi_stage import CapiStage

LIVES_S = (2.0, 30.0)
"""Seconds that a ready replica runs; the Lease of a leader expires after 15 s."""
KILLS = 8
"""At least, in one life."""


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
            thread.join(waiting.LIMIT_S)
        waiting.until(
            "all replicas run",
            lambda: all(processes.find(self._where, name) for name in self._names),
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


def live(stage: CapiStage, actions: Sequence[str], seed: int) -> None:
    """Carry actions of `life.ACTIONS` out while two replicas are killed at random.

    Before the last one Machines are created and deleted until there were enough kills.

    Raises:
        LabError, AssertionError: an action did not lead to what it should, an object
            existed twice, or too few replicas were killed.
    """
    lived = life.MachineLife(stage.fleet, stage.kubelets)
    capdvp = KilledReplicas(
        stage.where, stage.project, stage.kubeconfig, stage.parent_kubeconfig
    )
    try:
        capdvp.start(2)
        *first, last = actions
        with capdvp.killing(seed):
            lived.run(first)
            while capdvp.kills < KILLS:
                lived.run(life.SCALING)
            lived.run([last])
    finally:
        capdvp.stop()
        print(f"{capdvp.kills} kills")
    assert {row.action for row in lived.rows} >= set(actions)
    assert capdvp.kills >= KILLS
    assert not stage.duplicates()
