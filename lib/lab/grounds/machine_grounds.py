"""Machines of Cluster API in the lab's own cloud, for grounds that have them."""

import dataclasses
import pathlib
from typing import Protocol, runtime_checkable

from lib.lab import places
from lib.lab.run import progress


@dataclasses.dataclass(frozen=True, slots=True)
class LabMachine:
    """A Machine. name: also of its server and its Node.

    template: name of its machine template. is_running: its Node has joined, and is
    initialised.
    """

    name: str
    template: str
    is_running: bool


class MachineDeployments(Protocol):
    """The MachineDeployment of a lab."""

    @property
    def key(self) -> str:
        """namespace/name of it."""
        ...

    @property
    def cluster_key(self) -> str:
        """namespace/name of its Cluster."""
        ...

    def endpoint(self) -> str:
        """Return the Cluster's endpoint; empty until the Cluster is provisioned."""
        ...

    def replicas(self) -> int:
        """Return the desired number of Machines."""
        ...

    def machines(self) -> tuple[LabMachine, ...]:
        """Return the Machines that exist, sorted by name."""
        ...

    def scale(self, replicas: int) -> None:
        """Change the number of Machines."""
        ...

    def roll(self) -> str:
        """Replace all Machines by such of another template; return its name."""
        ...


class LabMachines(Protocol):
    """What a lab needs to run Cluster API with an infrastructure provider.

    Methods raise LabError when something is missing or does not start.
    """

    @property
    def name(self) -> str:
        """The infrastructure provider, a component."""
        ...

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of all processes: of the core, and of the provider."""
        ...

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """Build the core; start nothing."""
        ...

    def is_built(self, where: places.Places) -> bool:
        """Report whether `build` has nothing to do."""
        ...

    def up(
        self, where: places.Places, pex: pathlib.Path, shown: progress.Progress
    ) -> None:
        """Start core and provider, and create what is missing of the Cluster.

        pex: of the provider.
        """
        ...

    def up_with_chart(self, where: places.Places, shown: progress.Progress) -> None:
        """Start the core and create what is missing of the Cluster.

        The provider runs in a pod of a chart, which has the definitions of its kinds.
        """
        ...

    def serves(self, where: places.Places, program: str) -> bool:
        """Report whether a program answers."""
        ...

    def port(self, where: places.Places, program: str) -> int:
        """Return the port at which a program answers."""
        ...

    def deployment(self, where: places.Places) -> MachineDeployments:
        """Open the MachineDeployment."""
        ...


@runtime_checkable
class MachineGrounds(Protocol):
    """Grounds whose own cloud has machines of Cluster API."""

    @property
    def machines(self) -> LabMachines:
        """What runs them."""
        ...
