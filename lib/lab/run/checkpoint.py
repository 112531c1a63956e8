"""What ran before a start, so that all the rest can be ended again."""

import dataclasses

from lib.lab import places
from lib.lab.run import offspring, processes


@dataclasses.dataclass(frozen=True, slots=True)
class Checkpoint:
    """What ran before an `up`, so that the rest can be ended."""

    where: places.Places
    programs: frozenset[str]
    children: offspring.Known

    def halt(self) -> None:
        """Stop everything that was started since; repeat until nothing remains."""
        offspring.end(self.children)
        new = [
            name for name in processes.names(self.where) if name not in self.programs
        ]
        processes.stop(self.where, new, patience_s=2)


def take(where: places.Places) -> Checkpoint:
    """Take note of what runs now."""
    runs = [name for name in processes.names(where) if processes.find(where, name)]
    return Checkpoint(where, frozenset(runs), offspring.seen())
