"""All that the simulator does next, and when. Pure, but for what `Due` remembers."""

import datetime
from collections.abc import Iterator, Mapping, Sequence

from lib.lab.dvp import attachments, disks, machines, operations, surroundings, writes
from lib.lab.dvp.kinds import World
from lib.lab.dvp.settings import SimulatorSettings
from lib.lab.dvp.writes import Step


def decide(
    world: World, allocated: surroundings.Allocated, now: datetime.datetime
) -> Iterator[Step]:
    """Yield every step that an object of the parent could take now."""
    yield from surroundings.decide(world, allocated, now)
    yield from disks.decide(world, now)
    yield from operations.decide(world, now)
    yield from machines.decide(world, now)
    yield from attachments.decide(world, now)


def chosen(step: Step, settings: SimulatorSettings) -> Sequence[writes.Call]:
    """Return the writes of a step; those of its failure where one is asked for."""
    rule = settings.failure(step)
    if rule is None or step.failed is None:
        return step.calls
    return [step.failed(rule.reason, rule.message)]


class Due:
    """Remembers since when each step could happen, and for how long it waits."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}

    def postpone(self, step: Step, until: float) -> None:
        """Have a step that was refused happen later. until: monotonic seconds."""
        self._since[step.key] = until

    def ready(
        self, proposed: Sequence[Step], settings: SimulatorSettings, at: float
    ) -> tuple[Sequence[Step], float | None]:
        """Return the steps whose delay is over, and seconds until the next one's.

        proposed: all that could happen now. at: monotonic seconds.
        """
        possible = [step for step in proposed if not settings.is_held(step)]
        since: Mapping[tuple[str, str], float] = {
            step.key: self._since.get(step.key, at) for step in possible
        }
        self._since = dict(since)
        left = {
            id(step): since[step.key] + settings.delay_s(step) - at for step in possible
        }
        waiting = [seconds for seconds in left.values() if seconds > 0]
        ready = [step for step in possible if left[id(step)] <= 0]
        return ready, min(waiting, default=None)
