"""The demo of machines of Cluster API: what a user does, and its effect."""

import functools
from collections.abc import Callable, Iterable

from lib.lab.grounds.machine_grounds import LabMachine, MachineDeployments
from lib.lab.run import observed_steps
from lib.lab.whole import demo, parts

MORE = 1
"""Machines that the demo adds, and removes again."""


class MachineSteps:
    """The steps of the MachineDeployment of a lab: scaled, replaced, scaled again.

    look: reads the servers and Nodes of these names, at least.
    """

    def __init__(
        self,
        deployment: MachineDeployments,
        look: Callable[[Iterable[str]], demo.View],
    ) -> None:
        self._deployment = deployment
        self._look = look
        self._began: frozenset[str] = frozenset()
        self._template = ""
        self._count = 0

    def ready(self) -> tuple[observed_steps.ObservedStep, ...]:
        """Return the steps that follow from what runs already, in their order.

        Each server and each Node is one; their names are known when they exist.
        """
        title = f"MachineDeployment {self._deployment.key}: Machines"
        numbers = range(self._deployment.replicas())
        rows: list[tuple[str, Callable[[], str]]] = [
            (f"Cluster {self._deployment.cluster_key}", self._deployment.endpoint),
            (f"{title} created", self._all_created),
            *(
                (f"Machine {n + 1}: {part}", functools.partial(observe, n))
                for part, observe in (("server", self._server), ("Node", self._node))
                for n in numbers
            ),
            (f"{title} Running", self._all_running),
        ]
        return tuple(
            observed_steps.ObservedStep(name, _wait, observe) for name, observe in rows
        )

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

    def _all_created(self) -> str:
        machines = self._deployment.machines()
        return _names(machines) if len(machines) >= self._deployment.replicas() else ""

    def _name(self, number: int) -> str:
        """Return the name of a Machine by its number, from 0; empty: none yet."""
        machines = self._deployment.machines()
        return machines[number].name if number < len(machines) else ""

    def _server(self, number: int) -> str:
        name = self._name(number)
        return self._look([name]).active_server(name)

    def _node(self, number: int) -> str:
        name = self._name(number)
        return self._look([name]).initialised_node(name)

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
    api, cloud = lab.api(), lab.cloud()
    return MachineSteps(
        lab.machines.deployment(lab.where),
        lambda names: parts.view(api, cloud, tuple(names)),
    )


def _names(machines: Iterable[LabMachine]) -> str:
    return ", ".join(each.name for each in machines)


def _wait() -> None:
    """Do nothing: the step follows from what runs already."""
