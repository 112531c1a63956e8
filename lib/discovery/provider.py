"""Settings of a cloud for the objects that are published for it."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry, Gauge

DATA_SECRET = "d8-cloud-provider-discovery-data"  # noqa: S105 - a name
"""Source: deckhouse, go_lib/cloud-data/reconciler.go."""


class Signal(enum.Enum):
    """States of the cluster that a cloud can have a metric for.

    DEFAULT_CLASS_DRIFTED: the default class is ours, and the cloud's default type has
    another class; never if the user names the default. INSTALLER_CONFIGURATION: the
    installer's Secret has a configuration of the cluster.
    """

    DEFAULT_CLASS_DRIFTED = enum.auto()
    INSTALLER_CONFIGURATION = enum.auto()


def _no_problems(document: object) -> tuple[str, ...]:
    del document
    return ()


def _no_signals(registry: CollectorRegistry) -> Mapping[Signal, Gauge]:
    del registry
    return {}


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """Differences of a cloud's objects from those of other clouds.

    provisioner: of its StorageClasses. type_parameter: their parameter with the name
    of the storage type. parameters: further ones, the same in every class.
    access_deployment: namespace/name, the default of --access-deployment. problems:
    of its discovery document, as JSON decodes it. lasting: keys of the document with
    lists that may be empty, but never become empty while the cluster exists.
    inputs: fields of the installer's document by the key that has their value.
    data_secret: Secret in kube-system with the document. signals: creates the metrics
    of the cloud for states of the cluster.
    """

    provisioner: str = ""
    type_parameter: str = "type"
    parameters: tuple[tuple[str, str], ...] = ()
    access_deployment: str = ""
    problems: Callable[[object], tuple[str, ...]] = _no_problems
    lasting: tuple[str, ...] = ()
    inputs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    data_secret: str = DATA_SECRET
    signals: Callable[[CollectorRegistry], Mapping[Signal, Gauge]] = _no_signals

    def class_parameters(self, storage_type: str) -> dict[str, str]:
        """Return the parameters of the StorageClass of a storage type."""
        return {self.type_parameter: storage_type, **dict(self.parameters)}
