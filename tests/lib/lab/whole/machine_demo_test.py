"""Steps of the demo of Machines: what they do, and what shows their end."""

import itertools
from collections.abc import Iterable

from lib.lab.grounds import servers
from lib.lab.grounds.machine_grounds import LabMachine
from lib.lab.run import observed_steps
from lib.lab.status import table
from lib.lab.whole import demo
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
    cluster_key = "machines/lab"

    def __init__(self) -> None:
        self.desired = 2
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
        if len(self.rows) > self.desired:
            self.rows.remove((old or new)[0])
        elif len(new) < self.desired and not self.breaks:
            name = f"workers-{next(self._numbers)}"
            self.rows.append(LabMachine(name, self.template, is_running=False))

    def scale(self, replicas: int) -> None:
        self.calls.append(f"scale {replicas}")
        self.desired = replicas

    def replicas(self) -> int:
        return self.desired

    def endpoint(self) -> str:
        return "192.0.2.1:6443"

    def look(self, names: Iterable[str]) -> demo.View:
        """Show servers at once, and Nodes of Machines that run."""
        running = {row.name for row in self.rows if row.is_running}
        return demo.View(
            tuple(
                table.NodeRow(
                    name,
                    ready="True",
                    provider_id=f"dvp://{name}",
                    addresses=("InternalIP 10.0.0.1",),
                    type="generic",
                )
                for name in names
                if name in running
            ),
            tuple(
                servers.Server(name, name, servers.ACTIVE, addresses=("10.0.0.1",))
                for name in names
                if name
            ),
        )

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
    observed = played(MachineSteps(deployment, deployment.look).ready())
    assert observed == {
        "Cluster machines/lab": "192.0.2.1:6443",
        "MachineDeployment machines/workers: Machines created": "workers-1, workers-2",
        "Machine 1: server": "workers-1: 10.0.0.1",
        "Machine 2: server": "workers-2: 10.0.0.1",
        "Machine 1: Node": "dvp://workers-1, generic",
        "Machine 2: Node": "dvp://workers-2, generic",
        "MachineDeployment machines/workers: Machines Running": "workers-1, workers-2",
    }


def test_the_demo_scales_and_replaces_each_machine() -> None:
    deployment = Deployment()
    for _ in range(6):
        deployment.machines()
    steps = MachineSteps(deployment, deployment.look)
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
    steps = MachineSteps(deployment, deployment.look)
    assert played(steps.steps()) == {}
    steps.delete()
    assert deployment.calls == ["scale 3", "scale 2"]
