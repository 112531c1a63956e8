"""The flow as the runtime drives it: each OpenStackDeployment is a key of the queue."""

import datetime
from collections.abc import Mapping, Sequence

from lib.kube import errors as kube_errors
from lib.osdpl.reconcile import act, actions, checks, decide, observe
from lib.osdpl.reconcile.actions import Action
from lib.osdpl.reconcile.snapshot import Blocker, Refused, Snapshot
from lib.process import config
from lib.reconcile import failure as failures
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome

TOPIC = "deployment"
"""The one topic there is."""
_APPLIED = (actions.ApplyBundle, actions.ApplyBundleStatus, actions.ApplyStatus)
"""Writes by server-side apply: not found is the kind, never the object."""


class OpenStackFlow(runner.Flow[Snapshot, Action]):
    """Turns an OpenStackDeployment into helm releases.

    Implements lib/reconcile/runner.py, Flow.
    """

    name = "osdpl"

    def __init__(
        self, observer: observe.Observer, actor: act.Actor, checks_: checks.Checks
    ) -> None:
        self._observer = observer
        self._actor = actor
        self._checks = checks_

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Return a snapshot of each object that exists."""
        return self._observer.observe(claim.key for claim in claims)

    def decide(self, snapshot: Snapshot, now: datetime.datetime) -> Outcome[Action]:
        """Return the actions; see lib/osdpl/reconcile/decide.py."""
        return decide.decide(snapshot, now)

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out; a refusal becomes a condition."""
        try:
            self._actor.act(snapshot, action)
        except kube_errors.Forbidden as error:
            if not isinstance(action, actions.ApplyConditions):
                words = f"permission denied: {error}"
                self._checks.refused(Blocker(Refused.FORBIDDEN, words))
            raise
        except kube_errors.NotFound as error:
            if isinstance(action, _APPLIED):
                words = f"{error}: its CustomResourceDefinition must exist"
                self._checks.refused(Blocker(Refused.UNKNOWN, words))
            raise
        return snapshot

    def failure(self, error: Exception) -> failures.Failure | None:
        """Explain an expected error; None for a bug."""
        if isinstance(error, config.ConfigError):
            return failures.Failure(str(error))
        return failures.explained(error)
