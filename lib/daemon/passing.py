"""Load balancers and routes behind which others may stand at another time."""

import datetime
import math
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.cloud import load_balancers as model
from lib.cloud import routes, steps
from lib.cloud.model import Unknown


class LoadBalancers:
    """Passes each call on to the load balancers that `now` gives when it begins.

    Implements the protocol.
    """

    def __init__(self, now: Callable[[], model.LoadBalancers]) -> None:
        self._now = now

    @property
    def reasons(self) -> Collection[steps.ProblemReason]:
        """See the protocol."""
        return self._now().reasons

    def refer(self, facts: model.Facts) -> model.Ref:
        """See the protocol."""
        return self._now().refer(facts)

    def parse(self, facts: model.Facts) -> model.Spec | model.Problems:
        """See the protocol."""
        return self._now().parse(facts)

    def observe(
        self, targets: Collection[model.Target], depth: model.Depth
    ) -> Mapping[model.Ref, model.Observation]:
        """See the protocol."""
        return self._now().observe(targets, depth)

    def plan(
        self,
        target: model.Target,
        observed: model.Observed,
        now: datetime.datetime,
    ) -> model.Plan:
        """See the protocol."""
        return self._now().plan(target, observed, now)

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """See the protocol."""
        return self._now().apply(step, within_s)

    def gates(
        self, asked: Collection[steps.Asked]
    ) -> Mapping[str, steps.Gate | Unknown]:
        """See the protocol."""
        return self._now().gates(asked)

    def owned(self, cluster_id: str) -> Iterator[model.Owned]:
        """See the protocol."""
        return self._now().owned(cluster_id)


class Routes:
    """Passes each call on to the route tables that `now` returns when it begins.

    Implements the protocol.
    """

    def __init__(self, now: Callable[[], routes.Routes]) -> None:
        self._now = now

    @property
    def table(self) -> str:
        """See the protocol."""
        return self._now().table

    @property
    def has_routes(self) -> bool:
        """See the protocol."""
        return self._now().has_routes

    @property
    def reasons(self) -> Collection[steps.ProblemReason]:
        """See the protocol."""
        return self._now().reasons

    def observe(
        self, tables: Collection[str], depth: routes.Depth
    ) -> Mapping[str, routes.Observation]:
        """See the protocol."""
        return self._now().observe(tables, depth)

    def plan(
        self,
        target: routes.Target,
        observed: routes.Observed,
        now: datetime.datetime,
    ) -> routes.Plan:
        """See the protocol."""
        return self._now().plan(target, observed, now)

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """See the protocol."""
        return self._now().apply(step, within_s)

    def gates(
        self, asked: Collection[steps.Asked]
    ) -> Mapping[str, steps.Gate | Unknown]:
        """See the protocol."""
        return self._now().gates(asked)

    def owned(
        self, records: Collection[routes.Record]
    ) -> Iterator[routes.Owned | routes.NotOwned]:
        """See the protocol."""
        return self._now().owned(records)

    def release(self, owned: Collection[routes.Owned]) -> tuple[steps.Step, ...]:
        """See the protocol."""
        return self._now().release(owned)
