"""The flow as the runtime drives it, and what brings keys into its queue."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from lib.cloud import errors
from lib.cloud.routes import Depth, Reason, Target
from lib.cloud.steps import CommonReason, ProblemReason
from lib.kube import client, events, fresh, resources, store
from lib.kube.nodes import Node
from lib.plans import model as plans
from lib.plans.engine import Engine
from lib.plans.writing import Writing
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome
from lib.routes import act, decide, model
from lib.routes.board import Board
from lib.routes.model import ENTRY, NODE, TABLE, Action, Memory, Snapshot, Topic
from lib.routes.observe import Observer, Sources

GATHER_S = 0.5
"""Changes of Nodes are gathered for this long."""

Add = Callable[[str, str, float], None]


class RoutesFlow(runner.Flow[Snapshot, Action]):
    """Keeps routes to Pods; see lib/reconcile/runner.py for the protocol.

    reading: of the API server, for Nodes whose watch is late. writing: refuses when the
    Lease is lost. add: puts a key into the queue. table_ref: what Events about the
    table are recorded about. clock: monotonic seconds. applying: when the cloud may be
    written. on_disabled: called once the cloud turns out to have no route tables.
    """

    name = "routes"

    def __init__(  # noqa: PLR0913 # keyword only, the parts of a flow
        self,
        *,
        sources: Sources,
        reading: client.Api,
        writing: client.Api,
        recorder: events.Recorder,
        add: Add,
        table_ref: events.ObjectRef,
        clock: Callable[[], float] = time.monotonic,
        applying: Writing | None = None,
        on_disabled: Callable[[str], None] | None = None,
    ) -> None:
        self._sources = sources
        self._memory = Memory(clock)
        self._board = Board(clock)
        self._routes = sources.routes
        self._observer = Observer(sources, self._memory)
        self._on_disabled = on_disabled
        self._is_disabled = False
        self._fresh = fresh.Fresh(sources.nodes, reading, resources.NODES, Node, clock)
        engine: Engine[Target, None] = Engine(
            sources.routes, self._memory, clock, applying
        )

        def due(keys: Iterable[str], topic: Topic, delay_s: float) -> None:
            for key in keys:
                add(key, topic, delay_s)

        tools = act.Dependencies(
            writing,
            sources.nodes,
            sources.records,
            recorder,
            engine,
            table_ref,
            due,
            sources.now,
            self._disable,
        )
        self._actor = act.Actor(tools, self._memory, self._board)

    # ------------------------------------------------------------ observe

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read what these keys need; the cloud for the table alone."""
        snapshots: dict[str, Snapshot] = {}
        for claim in claims:
            topics = frozenset(map(Topic, claim.topics))
            snapshot = self._observe(claim.key, topics)
            if snapshot is not None:
                snapshots[claim.key] = snapshot
        return snapshots

    def _observe(self, key: str, topics: frozenset[Topic]) -> Snapshot | None:
        if key == TABLE:
            is_idle = topics == {Topic.DRIFT}
            if is_idle and (self._is_disabled or self._board.is_busy()):
                return None
            return self._observer.table(Depth.CHANGED if is_idle else Depth.FULL)
        if key.startswith(ENTRY):
            return self._entry(key)
        return self._node(key.removeprefix(NODE))

    def _entry(self, key: str) -> model.EntrySnapshot | None:
        step = self._board.step(key.removeprefix(ENTRY))
        if step is None:
            return None
        return model.EntrySnapshot(key, plans.ApplyStep(step, (), "", is_last=True))

    def _node(self, name: str) -> model.NodeSnapshot | None:
        is_served = self._board.is_served(name)
        if is_served is None or not self._sources.routes().has_routes:
            return None
        reading = self._fresh.read(name)
        if reading.value is None:
            return None
        return model.NodeSnapshot(reading.value, is_served, reading.held)

    # ------------------------------------------------------------ decide, act

    def decide(self, snapshot: Snapshot, now: datetime) -> Outcome[Action]:
        """See lib/routes/decide.py."""
        del now
        return decide.decide(snapshot)

    def held_s(self, snapshot: Snapshot) -> float:
        """See the protocol."""
        is_held = isinstance(snapshot, model.NodeSnapshot) and snapshot.held
        return runner.HELD_S if is_held else 0.0

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; see the protocol."""
        return self._actor.act(snapshot, action)

    def left_after(
        self, failed: Action, error: Exception, rest: Sequence[Action]
    ) -> Sequence[Action]:
        """See `carrying.GoesOn`."""
        return plans.left_after(failed, error, rest)

    def is_note(self, action: Action) -> bool:
        """See the protocol."""
        return isinstance(action, model.Publish | model.Disable)

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Have all read again once the cloud has route tables."""
        if isinstance(snapshot, model.TableSnapshot) and error is None:
            self._is_disabled = isinstance(snapshot.error, errors.Unsupported)

    # ------------------------------------------------------------ the rest

    def _disable(self, why: str) -> None:
        if not self._is_disabled and self._on_disabled is not None:
            self._on_disabled(why)

    @property
    def reasons(self) -> tuple[ProblemReason, ...]:
        """Every reason that a problem may have with these routes."""
        both = (CommonReason.REFUSED, CommonReason.DENIED)
        return (*both, *Reason, *self._routes().reasons)

    def problems(self) -> Mapping[ProblemReason, int]:
        """Count the Nodes that have a problem, and the table, by each reason."""
        counts = self._memory.problems()
        return {reason: counts.get(reason, 0) for reason in self.reasons}

    def forget(self, name: str) -> None:
        """Drop what is kept for a Node that was deleted."""
        self._memory.forget(f"{NODE}{name}")
        self._fresh.forget(name)


def is_changed(old: Node | None, new: Node | None) -> bool:
    """Report whether a change of a Node concerns its routes."""
    if old is None or new is None or old.metadata.uid != new.metadata.uid:
        return True
    before = (old.pod_cidrs, old.status.addresses, old.spec.provider_id)
    return before != (new.pod_cidrs, new.status.addresses, new.spec.provider_id)


def _condition(node: Node | None) -> tuple[str, str] | None:
    conditions = () if node is None else node.conditions
    some = [(c.status, c.reason) for c in conditions if c.type == model.CONDITION]
    return some[0] if some else None


def watch(nodes: store.Store[Node], flow: RoutesFlow, add: Add) -> None:
    """Have changes of Nodes bring in the table, gathered, and their own condition."""

    def changed(name: str, old: Node | None, new: Node | None) -> None:
        if new is None:
            flow.forget(name)
        if is_changed(old, new):
            add(TABLE, Topic.SYNC, GATHER_S)
        elif _condition(old) != _condition(new):
            add(f"{NODE}{name}", Topic.SYNC, 0.0)

    nodes.subscribe(changed)
