"""The templates flow, and the events that enqueue a template."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from lib.kube import client
from lib.machines import status, translate, writer
from lib.machines.kinds import OwnerCluster
from lib.machines.model import MachineSettings
from lib.machines.templates.model import (
    Snapshot,
    TemplateKinds,
    TemplateObject,
    TemplateStores,
    Topic,
    WriteShape,
)
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome, Requeue

Enqueue = Callable[[str, Topic], None]


class TemplatesFlow(runner.Flow[Snapshot, WriteShape]):
    """Shows what nodes of templates have; see lib/reconcile/runner.py."""

    name = "templates"

    def __init__(
        self,
        stores: TemplateStores,
        api: client.Api,
        kinds: TemplateKinds,
        settings: MachineSettings,
    ) -> None:
        self._stores = stores
        self._shape = kinds.shape
        self._settings = settings
        self._writer = writer.ObjectWriter(
            api, stores.templates, kinds.template, kinds.field_manager, TemplateObject
        )

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Return one snapshot per template that exists."""
        templates = self._stores.templates
        snapshots: dict[str, Snapshot] = {}
        for claim in claims:
            is_current = templates.is_current(claim.key)
            # Read after that: what is newer still is current all the more.
            template = templates.get(claim.key)
            if template is not None:
                is_active = self._is_active(template)
                snapshots[claim.key] = Snapshot(template, not is_current, is_active)
        return snapshots

    def _is_active(self, template: TemplateObject) -> bool:
        about, owner = template.metadata, template.owner
        cluster = None
        if owner is not None:
            cluster = self._stores.clusters.get(f"{about.namespace}/{owner.name}")
        is_paused = translate.is_paused(about, cluster)
        return translate.is_responsible(about, self._settings) and not is_paused

    def needs_read(self, snapshot: Snapshot) -> bool:
        """See the protocol: no cloud is read."""
        del snapshot
        return False

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """See the protocol: no cloud is read."""
        return snapshots

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[WriteShape]:
        """Return the write of the status, if it does not show this yet: pure.

        Further keys of the capacity stay: another client may add those of GPUs.
        """
        del now
        template = snapshot.template
        is_deleted = template.metadata.deletion_timestamp is not None
        if is_deleted or not snapshot.is_active:
            return Outcome()
        shape = self._shape(template.machine_spec)
        if shape is None or status.is_within(shape.document(), template.status):
            return Outcome()
        return Outcome((WriteShape(shape),))

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        return runner.HELD_S if snapshot.held else 0.0

    def act(self, snapshot: Snapshot, action: WriteShape) -> Snapshot:
        """Apply the status.

        Raises:
            KubeError: it was rejected, or the outcome is unknown.
        """
        about = snapshot.template.metadata
        document = action.shape.document()
        now = self._writer.apply_status(about, document, about.generation)
        return dataclasses.replace(snapshot, template=now)

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """See the protocol; nothing is counted here."""

    def requeues(
        self, snapshot: Snapshot, error: Exception | None
    ) -> Sequence[Requeue]:
        """See the protocol; there are none."""
        return ()


def watch(stores: TemplateStores, add: Enqueue) -> None:
    """Add templates to the queue when they, or the pause of their Cluster, change."""

    def template(
        key: str, old: TemplateObject | None, new: TemplateObject | None
    ) -> None:
        del old
        if new is not None:
            add(key, Topic.SYNC)

    def cluster(key: str, old: OwnerCluster | None, new: OwnerCluster | None) -> None:
        if old is not None and new is not None and old.spec == new.spec:
            return
        namespace, _, name = key.rpartition("/")
        for other, item in stores.templates.items().items():
            is_of = item.owner is not None and item.owner.name == name
            if is_of and item.metadata.namespace == namespace:
                add(other, Topic.SYNC)

    stores.templates.subscribe(template)
    stores.clusters.subscribe(cluster)
