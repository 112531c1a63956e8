"""The validated configuration of a cluster on DVP.

Empty strings and tuples mean "not set". A spec of an instance class stays the document
that it is: checksums and templates read it by the paths of its fields.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

Spec = Mapping[str, object]
"""The spec of a DVPInstanceClass."""
DEFAULT_ZONES = ("default",)


class NetworkPolicy(enum.StrEnum):
    """Which traffic reaches the VMs of the cluster in the parent."""

    ISOLATED = "Isolated"
    NONE = "None"


@dataclasses.dataclass(frozen=True, slots=True)
class Project:
    """The project in the parent, and the kubeconfig of an account there.

    namespace: the project. kubeconfig: its text, decoded.
    """

    namespace: str = ""
    kubeconfig: str = dataclasses.field(default="", repr=False)
    network_policy: NetworkPolicy = NetworkPolicy.ISOLATED
    ingress_ports: tuple[int, ...] = (22,)
    additional_vm_labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleSettings:
    """Settings of the module that override the configuration.

    network_policy: None: not set. is_second_generation: version 2, whose credentials
    are a Secret of their own.
    """

    namespace: str = ""
    network_policy: NetworkPolicy | None = None
    ssh_public_key: str = ""
    zones: tuple[str, ...] = ()
    storage_class_exclude: tuple[str, ...] = ()
    is_second_generation: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Properties of the cluster itself. prefix: of the names of all its VMs."""

    uuid: str
    prefix: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderSettings:
    """All sources merged."""

    project: Project
    ssh_public_key: str = ""
    zones: Sequence[str] = DEFAULT_ZONES


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroup:
    """Ephemeral nodes of one kind. zones: empty means all of the provider's."""

    name: str
    spec: Spec
    zones: tuple[str, ...] = ()
    manual_rollout_id: str = ""
