"""The flow as the runtime drives it: each step of the cycle is a key of the queue."""

import datetime
from collections.abc import Mapping, Sequence

from lib.cloud import errors as cloud_errors
from lib.discovery import act, cycle_report, decide, model, observe
from lib.discovery.model import Action, DiscoveryStep, Snapshot
from lib.kube import errors as kube_errors
from lib.reconcile import failure as failures
from lib.reconcile import queue, runner
from lib.reconcile.outcome import Outcome

CYCLE = "cycle"
"""The only topic of the queue."""


class DiscoveryFlow(runner.Flow[Snapshot, Action]):
    """Publishes the catalog of the cloud in the cluster.

    Implements lib/reconcile/runner.py, Flow.
    """

    name = "discovery"

    def __init__(
        self,
        observer: observe.CatalogObserver,
        actor: act.DiscoveryActor,
        settings: model.DiscoverySettings,
        report: cycle_report.CycleReport,
    ) -> None:
        self._observer = observer
        self._actor = actor
        self._settings = settings
        self._report = report

    def observe(self, claims: Sequence[queue.Claim]) -> Mapping[str, Snapshot]:
        """Read the cloud once for all these steps."""
        snapshots = self._observer.observe(
            {DiscoveryStep(claim.key) for claim in claims}
        )
        for step, snapshot in snapshots.items():
            self._report.read(step, not _is_of_cloud(snapshot))
            for signal, is_on in decide.signals(snapshot, self._settings):
                self._report.signal(signal, is_on)
        return {step.value: snapshot for step, snapshot in snapshots.items()}

    def decide(self, snapshot: Snapshot, now: datetime.datetime) -> Outcome[Action]:
        """See lib/discovery/decide.py."""
        return decide.decide(snapshot, self._settings, now)

    def act(self, snapshot: Snapshot, action: Action) -> Snapshot:
        """Carry one action out, and count it as a success of its step."""
        self._actor.act(action)
        self._report.succeeded(model.step_of(snapshot))
        return snapshot

    def ended(self, snapshot: Snapshot, error: Exception | None) -> None:
        """Count the result of a step; `observe` counts failed reads of the cloud."""
        step = model.step_of(snapshot)
        if error is None:
            self._report.succeeded(step)
        elif isinstance(error, kube_errors.KubeError | model.InvalidCatalog):
            is_refused = isinstance(error, kube_errors.KubeError)
            self._report.failed(step, is_refused=is_refused)

    def failure(self, error: Exception) -> failures.Failure | None:
        """Explain the error of a step; None for a bug."""
        if isinstance(error, model.InvalidCatalog):
            return failures.Failure(str(error))
        return failures.explained(error)


def _is_of_cloud(snapshot: Snapshot) -> bool:
    return isinstance(snapshot, model.FailedStep) and isinstance(
        snapshot.error, cloud_errors.CloudError
    )
