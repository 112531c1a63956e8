"""The demo of machines of Cluster API: what a user does, and its effect."""

import functools
from collections.abc import Iterable

from lib.lab.grounds.machine_grounds import LabMachine, MachineDeployments
from lib.lab.run import observed_steps
from lib.lab.whole import parts

MORE = 1
"""Machines that the demo adds, and removes again."""


class MachineSteps:
    """The steps of the MachineDeployment of a lab: scaled, replaced, scaled again."""

    def __init__(self, deployment: MachineDeployments) -> None:
        self._deployment = deployment
        self._began: frozenset[str] = frozenset()
        self._template = ""
        self._count = 0

    def ready(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the step that follows from what runs already."""
        title = f"MachineDeployment {self._deployment.key}: Machines Running"
        return (observed_steps.ObservedStep(title, _wait, self._all_running),)

    def steps(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps in order; each replaced Machine of the update is one."""
        step, before = observed_steps.ObservedStep, self._deployment.machines()
        self._count = len(before)
        whole = self._count + MORE
        rolled = [
            step(
                f"rolling update: {number} of {whole} replaced",
                self._roll if number == 1 else _wait,
                functools.partial(self._replaced, number),
            )
            for number in range(1, whole + 1)
        ]
        return (
            step(f"scaled to {whole}", self._scale_up, lambda: self._running(whole)),
            *rolled,
            step("rolling update: complete", _wait, lambda: self._whole(whole)),
            step(
                f"scaled to {self._count}",
                self._scale_down,
                lambda: self._running(self._count),
            ),
        )

    def delete(self) -> None:
        """Return to the number of Machines before, when a step was not complete."""
        if self._count:
            self._deployment.scale(self._count)

    def _scale_up(self) -> None:
        self._deployment.scale(self._count + MORE)

    def _scale_down(self) -> None:
        self._deployment.scale(self._count)

    def _roll(self) -> None:
        self._began = frozenset(each.name for each in self._deployment.machines())
        self._template = self._deployment.roll()

    def _all_running(self) -> str:
        machines = self._deployment.machines()
        is_whole = bool(machines) and all(each.is_running for each in machines)
        return _names(machines) if is_whole else ""

    def _running(self, count: int) -> str:
        """Return the names of the Machines, if `count` exist and all run."""
        machines = self._deployment.machines()
        is_whole = len(machines) == count and all(each.is_running for each in machines)
        return _names(machines) if is_whole else ""

    def _new(self) -> list[LabMachine]:
        return [
            each
            for each in self._deployment.machines()
            if each.name not in self._began and each.template == self._template
        ]

    def _replaced(self, number: int) -> str:
        running = [each for each in self._new() if each.is_running]
        if len(running) < number:
            return ""
        left = len(self._began & {each.name for each in self._deployment.machines()})
        return f"{_names(running)}; {left} of the template before"

    def _whole(self, count: int) -> str:
        if not self._running(count) or len(self._new()) != count:
            return ""
        return f"{count} Machines of the template {self._template}"


def of(lab: parts.Lab) -> MachineSteps | None:
    """Return the steps of a lab; None: it has no machines, or none gets a Node."""
    if lab.machines is None or not lab.has_manager:
        return None
    return MachineSteps(lab.machines.deployment(lab.where))


def _names(machines: Iterable[LabMachine]) -> str:
    return ", ".join(each.name for each in machines)


def _wait() -> None:
    """Do nothing: the step follows from what runs already."""
