"""Reads of one reconciliation: Services of the watched store, the rest of clouds."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from lib.balancers import contests, decide, model, translate
from lib.balancers.model import Memory, Service, Snapshot, Topic
from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    LoadBalancers,
    Node,
    Results,
    Target,
)
from lib.kube import client, fresh, objects, resources, store
from lib.kube import errors as kube_errors
from lib.plans.engine import Engine
from lib.process import decoding

Claim = tuple[str, frozenset[Topic]]


def depth(topics: Iterable[Topic]) -> Depth:
    """Return how much is to be read for these topics."""
    topic_set = set(topics)
    if Topic.DEEP_DRIFT in topic_set:
        return Depth.FULL
    return Depth.TREE if Topic.DRIFT in topic_set else Depth.CHANGED


@dataclasses.dataclass(frozen=True, slots=True)
class Sources:
    """Where the flow reads from.

    nodes: gives those that may receive traffic now. cluster: asked once the API server
    answers. serving: gives the names of the Nodes with ready endpoints of a Service, by
    its key; None: not watched. is_disabled: while true, no Service is reconciled.
    """

    services: store.Store[Service]
    api: client.Api
    nodes: Callable[[], tuple[Node, ...]]
    cluster: Callable[[], Cluster]
    serving: Callable[[str], frozenset[str] | None] = lambda key: None
    is_disabled: Callable[[], bool] = lambda: False


class ServiceObserver:
    """Reads for a batch of Services together.

    contests: those of our writes that other clients undo.
    """

    def __init__(
        self,
        sources: Sources,
        load_balancers: Callable[[], LoadBalancers],
        memory: Memory,
        engine: Engine[Target, Results],
        clock: Callable[[], float],
    ) -> None:
        self._sources = sources
        self._load_balancers = load_balancers
        self._memory = memory
        self._engine = engine
        self.contests = contests.Contests(clock)
        self._fresh = fresh.Fresh(
            sources.services, sources.api, resources.SERVICES, Service, clock
        )

    def observe(self, claims: Sequence[Claim]) -> Mapping[str, Snapshot]:
        """Return one snapshot per Service that is reconciled here; one call serves all.

        Those that `needs_read` names have nothing of the cloud in them yet.
        """
        if self._sources.is_disabled():
            return {}
        nodes = self._sources.nodes()
        snapshots: dict[str, Snapshot] = {}
        for key, topics in claims:
            snapshot = self._service(key, topics)
            if snapshot is not None and snapshot.service.concerns_us:
                snapshots[key] = self._isolated(snapshot, nodes)
        self._resume(snapshots)
        return snapshots

    def _isolated(self, snapshot: Snapshot, nodes: tuple[Node, ...]) -> Snapshot:
        """Parse one Service; an unexpected error concerns no other of the batch.

        Raises:
            KubeError: the API server does not answer, which concerns all.
        """
        try:
            return self._with_desired(snapshot, nodes)
        except kube_errors.KubeError:
            raise
        except Exception as error:
            self._memory.drop(snapshot.service.metadata.uid)
            return dataclasses.replace(snapshot, error=error)

    def _service(self, key: str, topics: frozenset[Topic]) -> Snapshot | None:
        reading = self._fresh.read(key)
        if reading.value is None:
            return None
        return Snapshot(reading.value, topics, held=reading.held)

    def _with_desired(self, snapshot: Snapshot, nodes: tuple[Node, ...]) -> Snapshot:
        if snapshot.held:
            return snapshot
        uid = snapshot.service.metadata.uid
        serving = self._sources.serving(snapshot.service.key)
        target, problems = translate.target(
            snapshot.service,
            nodes,
            self._sources.cluster(),
            self._load_balancers(),
            serving,
        )
        return dataclasses.replace(
            snapshot,
            target=target,
            problems=problems,
            nodes=nodes,
            serving=serving,
            is_in_progress=self._memory.is_in_progress(uid),
            backoff_s=self._memory.backoff_s(
                uid, is_desired=snapshot.service.is_desired
            ),
            failed=self._memory.failed(uid),
            reported=self._memory.reported(uid),
            is_report_due=self._memory.is_report_due(uid),
            contested=self.contests.find(
                snapshot.service,
                lambda write: self._other(snapshot.service.metadata, write),
            ),
        )

    def _other(self, about: objects.ObjectMeta, write: model.Write) -> str:
        """Return who has changed the field of a write; empty: that is unknown."""
        try:
            answer = self._sources.api.read(
                resources.SERVICES,
                about.name,
                about.namespace,
                timeout_s=fresh.READ_TIMEOUT_S,
            )
            return decoding.decode(answer, contests.WithManagers).other(write)
        except (kube_errors.KubeError, msgspec.DecodeError):
            return ""

    def _resume(self, snapshots: dict[str, Snapshot]) -> None:
        """Resume the open plans of all Services that can be decided upon."""
        by_uid = {
            snapshot.service.metadata.uid: key
            for key, snapshot in snapshots.items()
            if not snapshot.held and snapshot.error is None
        }
        targets = {uid: snapshots[key].target for uid, key in by_uid.items()}
        for uid, resumed in self._engine.resume(targets).items():
            key = by_uid[uid]
            snapshots[key] = dataclasses.replace(snapshots[key], resumed=resumed)

    def read(self, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
        """Read the cloud for those that need it, those of one depth together."""
        result = dict(snapshots)
        by_depth: dict[Depth, dict[str, Target]] = {}
        for key, snapshot in snapshots.items():
            if snapshot.target is not None and self.needs_read(snapshot):
                desired = by_depth.setdefault(depth(snapshot.topics), {})
                desired[key] = snapshot.target
        for level, targets in by_depth.items():
            observations = self._load_balancers().observe(
                tuple(targets.values()), level
            )
            for key, target in targets.items():
                observed = observations[target.ref]
                result[key] = dataclasses.replace(result[key], observed=observed)
        return result

    def needs_read(self, snapshot: Snapshot) -> bool:
        """Report whether it must be read: not if all that matters was in sync."""
        if snapshot.held or snapshot.resumed is not None or snapshot.target is None:
            return False
        settled = self._memory.settled(snapshot.service.metadata.uid)
        is_compared = Topic.LISTED_DRIFT in snapshot.topics
        if settled is None or is_compared or depth(snapshot.topics) > Depth.CHANGED:
            return True
        target, results = settled
        is_desired = snapshot.service.is_desired
        writes = decide.lacking if is_desired else decide.missing
        return target != snapshot.target or bool(writes(snapshot, results))

    def forget(self, key: str) -> None:
        """Drop what is kept for a Service that was deleted."""
        self._fresh.forget(key)
