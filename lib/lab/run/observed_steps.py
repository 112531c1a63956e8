"""Steps with evidence: act, wait, and show what was observed."""

import dataclasses
from collections.abc import Callable, Sequence

from lib.lab.run import waiting

POLL_S = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedStep:
    """One step. act: what the user does. observe: what shows its end; else empty."""

    title: str
    act: Callable[[], object]
    observe: Callable[[], str]


@dataclasses.dataclass(frozen=True, slots=True)
class StepRow:
    """One row of the table. evidence: empty until the step is complete."""

    title: str
    evidence: str = ""
    seconds: float | None = None


def run(
    steps: Sequence[ObservedStep],
    show: Callable[[Sequence[StepRow]], None],
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> bool:
    """Do all steps until one is not complete in time; report whether all were.

    show: called at each change, and while a step is waited for, with all rows.

    Raises:
        LabError: data was lost. KubeError: the API server refused.
    """
    rows = [StepRow(step.title) for step in steps]
    for number, step in enumerate(steps):
        began = now()
        step.act()
        while not (evidence := step.observe()):
            elapsed_s = now() - began
            rows[number] = StepRow(step.title, "", elapsed_s)
            show(rows)
            if elapsed_s > waiting.LIMIT_S:
                return False
            sleep(POLL_S)
        rows[number] = StepRow(step.title, evidence, now() - began)
        show(rows)
    return True
