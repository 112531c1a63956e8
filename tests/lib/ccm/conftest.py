"""What controllers share, over a cluster in memory."""

from collections.abc import Callable

import prometheus_client
import pytest

from lib.ccm import cluster_id, node_controllers, parts, service_controllers
from lib.daemon import read_only
from lib.kube import client, events, guarded, resources, store
from lib.kube.nodes import Node
from lib.process import probes
from lib.reconcile import loops, queue
from lib.reconcile import metrics as reconcile_metrics

MakeParts = Callable[..., parts.Parts]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what controllers wait for others, and between two tries."""
    for module, name, value in (
        (node_controllers, "BATCH_S", 0.05),
        (service_controllers, "BATCH_S", 0.03),
        (service_controllers, "GATHER_S", 0.05),
        (service_controllers, "TURN_S", 0.05),
        (cluster_id, "TURN_S", 0.05),
        (cluster_id, "RETRY_S", 0.1),
        (queue, "STOP_POLL_S", 0.02),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture()
def make_parts() -> MakeParts:
    """Return a factory of parts whose recorders run among the loops given."""

    def make(
        api: client.Api,
        running: loops.Loops,
        *,
        is_dry: bool = False,
        unsettled_s: Callable[[float], float] = lambda settle_s: 0.0,
    ) -> parts.Parts:
        permit = read_only.refuse if is_dry else guarded.always
        writing = guarded.Guarded(api, permit)
        registry = prometheus_client.CollectorRegistry()

        def recorder(component: str) -> events.Recorder:
            event_recorder = events.Recorder(
                writing, component=component, host="here", poll_s=0.02
            )
            running.start(f"events of {component}", event_recorder.run)
            return event_recorder

        return parts.Parts(
            reading=api,
            writing=writing,
            nodes=store.Store(api, resources.NODES, Node),
            recorder=recorder,
            registry=registry,
            metrics=reconcile_metrics.ReconcileMetrics(registry),
            probes=probes.Probes(),
            permit=permit,
            unsettled_s=unsettled_s,
            show_work=lambda work: None,
        )

    return make
