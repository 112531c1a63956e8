"""Steps of the demo of Machines: what they do, and what shows their end."""

import itertools

from lib.lab.grounds.machine_grounds import LabMachine
from lib.lab.run import observed_steps
from lib.lab.whole.machine_demo import MachineSteps

TITLES = [
    "scaled to 3",
    "rolling update: 1 of 3 replaced",
    "rolling update: 2 of 3 replaced",
    "rolling update: 3 of 3 replaced",
    "rolling update: complete",
    "scaled to 2",
]


class Deployment:
    """A MachineDeployment that does one thing between two reads.

    breaks: nothing is created any more.
    """

    key = "machines/workers"

    def __init__(self) -> None:
        self.replicas = 2
        self.template = "small"
        self.rows: list[LabMachine] = []
        self.breaks = False
        self.calls: list[str] = []
        self._numbers = itertools.count(1)

    def machines(self) -> tuple[LabMachine, ...]:
        self._step()
        return tuple(self.rows)

    def _step(self) -> None:
        for index, row in enumerate(self.rows):
            if not row.is_running:
                self.rows[index] = LabMachine(row.name, row.template, is_running=True)
                return
        new = [row for row in self.rows if row.template == self.template]
        old = [row for row in self.rows if row.template != self.template]
        if len(self.rows) > self.replicas:
            self.rows.remove((old or new)[0])
        elif len(new) < self.replicas and not self.breaks:
            name = f"workers-{next(self._numbers)}"
            self.rows.append(LabMachine(name, self.template, is_running=False))

    def scale(self, replicas: int) -> None:
        self.calls.append(f"scale {replicas}")
        self.replicas = replicas

    def roll(self) -> str:
        self.template = "large" if self.template == "small" else "small"
        self.calls.append(f"roll {self.template}")
        return self.template


def played(steps: tuple[observed_steps.ObservedStep, ...]) -> dict[str, str]:
    """Title and evidence of each step that was observed."""
    now_s = itertools.count(step=10)
    rows: list[observed_steps.StepRow] = []

    def show(shown: object) -> None:
        rows[:] = list(shown)  # type: ignore[call-overload]

    observed_steps.run(steps, show, lambda: float(next(now_s)), lambda seconds: None)
    return {row.title: row.evidence for row in rows if row.evidence}


def test_up_waits_for_all_machines() -> None:
    deployment = Deployment()
    (title, evidence), *_ = played(MachineSteps(deployment).ready()).items()
    assert title == "MachineDeployment machines/workers: Machines Running"
    assert evidence == "workers-1"


def test_the_demo_scales_and_replaces_each_machine() -> None:
    deployment = Deployment()
    for _ in range(6):
        deployment.machines()
    steps = MachineSteps(deployment)
    observed = played(steps.steps())
    print(*observed.items(), sep="\n")
    assert list(observed) == TITLES
    assert deployment.calls == ["scale 3", "roll large", "scale 2"]
    assert observed["rolling update: complete"] == "3 Machines of the template large"
    assert {row.template for row in deployment.rows} == {"large"}


def test_a_step_that_does_not_end_leaves_the_number_as_it_was() -> None:
    deployment = Deployment()
    for _ in range(6):
        deployment.machines()
    deployment.breaks = True
    steps = MachineSteps(deployment)
    assert played(steps.steps()) == {}
    steps.delete()
    assert deployment.calls == ["scale 3", "scale 2"]
