"""Meadow: a cloud that lives in memory, written from lib/cloud alone.

It differs from OpenStack wherever the vocabulary allows it: every write is complete
when it returns, load balancers are found by name and have no gates, there are no zones,
no instance types, no clones, no lists of volumes. It proves that the flows, the edges
and the daemons know no provider.
"""

import dataclasses
import json
import threading
from collections.abc import Collection, Iterable, Mapping

from lib.cloud import catalog, errors
from lib.cloud.catalog import CatalogPart, StorageType
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceId,
    InstanceRef,
    NotManaged,
    Observation,
    Seen,
    Unknown,
)
from lib.cloud.protocol import Cloud
from tests.third.balancers import MeadowLoadBalancers, Relay
from tests.third.volumes import Brick, MeadowVolumes

NAME = "meadow"
SCHEME = f"{NAME}://"


@dataclasses.dataclass
class World:
    """What the cloud holds; it outlives every process that works on it."""

    instances: dict[InstanceId, Instance] = dataclasses.field(default_factory=dict)
    relays: dict[str, Relay] = dataclasses.field(default_factory=dict)
    bricks: dict[str, Brick] = dataclasses.field(default_factory=dict)
    classes: tuple[str, ...] = ("fast", "slow")
    lock: threading.RLock = dataclasses.field(default_factory=threading.RLock)

    def open(self) -> Cloud:
        """Open the cloud, as an entry point does."""
        return Cloud(
            NAME,
            instances=MeadowInstances(self),
            load_balancers=MeadowLoadBalancers(self.relays, self.lock),
            volumes=MeadowVolumes(self.bricks, self.classes, self.has, self.lock),
            catalog=MeadowCatalog(self),
        )

    def has(self, instance_id: str) -> bool:
        """Report whether there is such an instance."""
        return instance_id in self.instances


def provider_id(instance_id: str) -> str:
    """Return the provider ID of an instance."""
    return f"{SCHEME}{instance_id}"


class MeadowInstances:
    """Implements `lib.cloud.protocol.Instances`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        del not_before  # what is in memory is always new
        with self._world.lock:
            instances = tuple(self._world.instances.values())
        return {ref: self._find(ref, instances) for ref in refs}

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        return {ref: self._bare(ref) for ref in refs}

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol."""
        return isinstance(self.observe([ref], 0.0)[ref], Absent)

    def _bare(self, ref: InstanceRef) -> Observation[Instance]:
        if not ref.provider_id:
            return Unknown(errors.Unsupported("no provider ID", operation="look"))
        observation = self.observe([ref], 0.0)[ref]
        if not isinstance(observation, Seen):
            return observation
        bare = dataclasses.replace(
            observation.value, addresses=(), addresses_known=False
        )
        return Seen(bare)

    @staticmethod
    def _find(ref: InstanceRef, instances: Iterable[Instance]) -> Observation[Instance]:
        if ref.provider_id and not ref.provider_id.startswith(SCHEME):
            return NotManaged(f"{ref.provider_id} is not of {NAME}")
        if ref.provider_id:
            matches = [
                instance
                for instance in instances
                if instance.provider_id == ref.provider_id
            ]
        else:
            matches = [
                instance for instance in instances if instance.name == ref.node_name
            ]
        if len(matches) > 1:
            text = f"{len(matches)} instances have the name {ref.node_name!r}"
            return Unknown(errors.Ambiguous(text, operation="find instance"))
        return Seen(matches[0]) if matches else Absent(by_id=bool(ref.provider_id))


class MeadowCatalog:
    """Implements `lib.cloud.catalog.Catalog`; it has no conditions, nor types."""

    parts = frozenset(
        {CatalogPart.DOCUMENT, CatalogPart.VOLUMES, CatalogPart.STORAGE_TYPES}
    )

    def __init__(self, world: World) -> None:
        self._world = world

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol."""
        with self._world.lock:
            types = tuple(StorageType(n, f"id-{n}") for n in self._world.classes)
            bricks = tuple(self._world.bricks.values())
        document = json.dumps({"kind": "MeadowDiscoveryData", "zones": ["meadow"]})
        volumes = tuple(
            catalog.CatalogVolume(brick.id, brick.name, brick.created_at)
            for brick in bricks
            if brick.cluster == request.cluster_id
        )
        asked = request.parts
        return catalog.CatalogReading(
            document=(
                Seen(catalog.Document(document.encode()))
                if CatalogPart.DOCUMENT in asked
                else None
            ),
            volumes=Seen(volumes) if CatalogPart.VOLUMES in asked else None,
            storage_types=Seen(types) if CatalogPart.STORAGE_TYPES in asked else None,
        )

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol."""
        return Seen(type_id in [f"id-{name}" for name in self._world.classes])
