"""What a cloud brings to the lab: its programs, its servers, and what daemons need.

`whole` starts, shows and stops a cloud by this protocol alone. A lab either runs its
own cloud on this machine, or uses one that is there already (`Existing`).
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from lib.lab import places
from lib.lab.grounds import servers
from lib.lab.run import progress

Fault = Callable[[places.Places], AbstractContextManager[None]]
"""Breaks the cloud of a lab until its block ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Existing:
    """A cloud that is there already. name: empty for the lab's own cloud.

    file: where the cloud is described; empty for the usual place.
    """

    name: str = ""
    file: str = ""


OWN = Existing()
"""The cloud that the lab runs itself."""


@dataclasses.dataclass(frozen=True, slots=True)
class CloudProgram:
    """A program of the cloud, as it is now. port: 0 when it listens nowhere."""

    name: str
    port: int
    runs: bool
    answers: bool


class NodeVolumes(Protocol):
    """What csi-controller and a real node need for volumes of the lab's own cloud."""

    @property
    def zone(self) -> str:
        """The zone in which the cloud creates volumes."""
        ...

    def attachments(self, where: places.Places, server_id: str) -> pathlib.Path:
        """Return the folder in which the cloud links the volumes of a server."""
        ...

    def configuration(self, where: places.Places) -> pathlib.Path:
        """Write the configuration of csi-controller; return its path."""
        ...


class Claims(Protocol):
    """What csi-controller needs to bind claims in the lab's own cloud."""

    @property
    def driver(self) -> str:
        """The name of the CSI driver."""
        ...

    @property
    def default_class(self) -> str:
        """The default StorageClass of the lab: YAML."""
        ...

    def arguments(self, where: places.Places) -> tuple[str, ...]:
        """Write the configuration of csi-controller; return its flags for the cloud."""
        ...

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """Return the variables of csi-controller."""
        ...


class Discovery(Protocol):
    """What cloud-data-discoverer needs to read the lab's own cloud."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The flags that name the cloud."""
        ...

    @property
    def offers(self) -> str:
        """The key of the discovery data with a list that the demo shows."""
        ...

    def environment(self, where: places.Places) -> Mapping[str, str]:
        """Return the variables with the address and the credentials of the cloud."""
        ...

    def installed(self) -> Mapping[str, object]:
        """Return what the installer of a cluster records of it, of JSON types."""
        ...


@runtime_checkable
class Counting(Protocol):
    """A cloud that counts the requests of its clients."""

    def requests(self, where: places.Places) -> Mapping[str, int]:
        """Return the number of requests by kind; empty while it does not run."""
        ...


class Grounds(Protocol):
    """One provider's proving ground. Every method may be repeated at any time.

    Methods raise LabError with one sentence when something is missing or fails.
    """

    @property
    def name(self) -> str:
        """The provider's name, as `--cloud` and the record of a lab have it."""
        ...

    @property
    def title(self) -> str:
        """The cloud's name for people, in "Start NAME"."""
        ...

    @property
    def manager(self) -> str:
        """The component that is the cloud controller manager; empty: none exists."""
        ...

    @property
    def has_routes(self) -> bool:
        """Whether the lab's own cloud routes to the Pods of Nodes."""
        ...

    @property
    def volumes(self) -> NodeVolumes | None:
        """Volumes of the lab's own cloud; None: it has none for a real node."""
        ...

    @property
    def claims(self) -> Claims | None:
        """Claims of a lab without a real node; None: they are not bound."""
        ...

    @property
    def discovery(self) -> Discovery | None:
        """What the lab's own cloud offers; None: no discoverer supports it."""
        ...

    @property
    def load_balancer_annotation(self) -> str:
        """The annotation of a Service with the ID of its load balancer; or empty."""
        ...

    @property
    def has_load_balancers(self) -> bool:
        """Whether a Service of the lab's own cloud gets a load balancer."""
        ...

    @property
    def manifest(self) -> str:
        """The rights of the manager: YAML with its ServiceAccount in kube-system."""
        ...

    @property
    def programs(self) -> tuple[str, ...]:
        """Names of the programs, in the order in which they are shown."""
        ...

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What can befall the cloud besides programs that end or freeze, by name."""
        ...

    def ports(self, where: places.Places) -> Mapping[str, int]:
        """Return the ports of the programs, out of the lab's cloud ports."""
        ...

    def build(self, where: places.Places, shown: progress.Progress) -> None:
        """Fetch or build what the programs need; start nothing."""
        ...

    def is_built(self, where: places.Places) -> bool:
        """Report whether `build` has nothing to do."""
        ...

    def up(self, where: places.Places, shown: progress.Progress) -> None:
        """Start the programs and wait until they answer; what runs is not changed."""
        ...

    def down(self, where: places.Places) -> None:
        """Stop the programs; their data is kept."""
        ...

    def status(self, where: places.Places) -> tuple[CloudProgram, ...]:
        """Return how every program is."""
        ...

    def prepare(self, where: places.Places) -> None:
        """Create in the lab's own cloud what servers need, such as a network."""
        ...

    def open(self, where: places.Places, existing: Existing) -> servers.Cloud:
        """Open the cloud with a user's rights."""
        ...

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all variables that `environment` may return."""
        ...

    def environment(
        self, where: places.Places, existing: Existing
    ) -> Mapping[str, str]:
        """Return the variables with which a user's own client finds the cloud."""
        ...

    def described(self, where: places.Places, existing: Existing) -> Existing:
        """Return the cloud as another process can open it, also the lab's own."""
        ...

    def manager_arguments(
        self,
        where: places.Places,
        existing: Existing,
        kubeconfig: pathlib.Path,
        pod_cidr: str = "",
    ) -> tuple[str, ...]:
        """Write the manager's configuration, and return its command line.

        kubeconfig: of the manager's ServiceAccount. pod_cidr: of the Pods that the
        manager routes to; empty: to none.
        """
        ...

    def manager_environment(
        self, where: places.Places, existing: Existing
    ) -> Mapping[str, str]:
        """Return the variables of the manager."""
        ...
