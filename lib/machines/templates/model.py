"""What the flow knows and does: templates, snapshots, one action."""

import dataclasses
import enum
from collections.abc import Callable, Mapping

from lib.kube.resources import Resource
from lib.kube.store import Store
from lib.machines.kinds import OwnerCluster, OwnerReference, ProviderObject, at


class Topic(enum.StrEnum):
    """Why a template is reconciled."""

    SYNC = "sync"
    """It, or its Cluster, has changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node has. cpu, memory: quantities. Others: in the words of Go.

    Source: kubernetes-sigs/cluster-api docs/book, contract of InfraMachineTemplate.
    """

    cpu: str
    memory: str
    architecture: str = "amd64"
    operating_system: str = "linux"

    def document(self) -> Mapping[str, object]:
        """Return the fields of the status that show it."""
        return {
            "capacity": {"cpu": self.cpu, "memory": self.memory},
            "nodeInfo": {
                "architecture": self.architecture,
                "operatingSystem": self.operating_system,
            },
        }


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateKinds:
    """All that the flow knows of a provider's kind.

    template: the provider's machine template. field_manager: of its status. shape:
    returns what a node of a machine spec has; None: the spec is invalid.
    """

    template: Resource
    field_manager: str
    shape: Callable[[Mapping[str, object]], NodeShape | None]


class TemplateObject(ProviderObject, frozen=True):
    """The provider's machine template."""

    @property
    def machine_spec(self) -> Mapping[str, object]:
        """Spec of the machines that are created from it."""
        spec = at(self.spec, ("template", "spec"))
        return spec if isinstance(spec, Mapping) else {}

    @property
    def owner(self) -> OwnerReference | None:
        """Reference to the Cluster that owns it; None without one."""
        return self.metadata.owner("Cluster")


@dataclasses.dataclass(frozen=True, slots=True)
class TemplateStores:
    """The watched kinds."""

    templates: Store[TemplateObject]
    clusters: Store[OwnerCluster]


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one reconciliation knows of one template.

    held: our own last write is not back in the watch yet. is_active: this process may
    write it now.
    """

    template: TemplateObject
    held: bool = False
    is_active: bool = True


@dataclasses.dataclass(frozen=True)
class WriteShape:
    """Apply the fields of the status that show what a node has."""

    shape: NodeShape
