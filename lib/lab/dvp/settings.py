"""What a user of a simulated parent asks of the simulator. Pure.

The ConfigMap `parent-simulator` of the namespace kube-system, each key with one entry
per line; `#` begins a comment. NAME: of an object, with * and ? as in a shell.

    delays: TRANSITION SECONDS
    hold:   TRANSITION [NAME]                     it does not happen
    fail:   TRANSITION NAME REASON [MESSAGE...]   it fails

    serial: any text; a change of it is logged once it is known

TRANSITION is a key of `transitions.TRANSITIONS`, or `*`.
"""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence

from lib.lab.dvp.transitions import TRANSITIONS
from lib.lab.dvp.writes import Step

NAMESPACE = "kube-system"
NAME = "parent-simulator"


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """One line. reason, message: of a failure."""

    transition: str
    name: str = "*"
    reason: str = ""
    message: str = ""

    def matches(self, step: Step) -> bool:
        """Report whether a rule is about a step."""
        return self.transition in (step.transition, "*") and fnmatch.fnmatchcase(
            step.item.name, self.name
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """All that is asked. delays: seconds by transition."""

    delays: Mapping[str, float] = dataclasses.field(default_factory=dict)
    hold: Sequence[Rule] = ()
    fail: Sequence[Rule] = ()

    def delay_s(self, step: Step) -> float:
        """Return the seconds after which a step happens."""
        usual = TRANSITIONS[step.transition].delay_s
        return self.delays.get(step.transition, self.delays.get("*", usual))

    def is_held(self, step: Step) -> bool:
        """Report whether a step does not happen."""
        return any(rule.matches(step) for rule in self.hold)

    def failure(self, step: Step) -> Rule | None:
        """Return how a step fails; None when it succeeds."""
        if step.failed is None:
            return None
        return next((rule for rule in self.fail if rule.matches(step)), None)


def read(data: Mapping[str, str]) -> SimulatorSettings:
    """Read the data of the ConfigMap.

    Raises:
        ValueError: a line is not as described, or names no transition.
    """
    delays = {words[0]: float(words[1]) for words in _lines(data, "delays", 2)}
    hold = [Rule(*words[:2]) for words in _lines(data, "hold", 1)]
    fail = [
        Rule(words[0], words[1], words[2], " ".join(words[3:]))
        for words in _lines(data, "fail", 3)
    ]
    return SimulatorSettings(delays, hold, fail)


def _lines(data: Mapping[str, str], key: str, least: int) -> Sequence[Sequence[str]]:
    rows = []
    for line in data.get(key, "").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) < least or words[0] not in (*TRANSITIONS, "*"):
            raise ValueError(f"{key}: invalid line {line!r}")
        rows.append(words)
    return rows
