"""Runs the workload simulator: watches, decides, acts, and keeps the Nodes alive."""

import datetime
import functools
import pathlib
import sys
import threading
from collections.abc import Callable

from lib.kube import client, resources, store
from lib.kube import errors as kube_errors
from lib.lab.kube import cluster, simulated_kubelet
from lib.lab.osdpl import nodes, pods, simulator
from lib.reconcile import loops

_SETTLE_S = 0.05
"""Pause after a change, so that one step answers several."""
_REPEAT_S = 1.0

Report = Callable[[str], None]


def run(api: client.Api, stop: threading.Event, report: Report) -> None:
    """Simulate all workloads of a cluster until `stop` is set.

    report: receives one line per pod that has changed, and per failure.
    """
    changed = threading.Event()
    selector = f"metadata.name={simulator.SETTINGS}"
    seen_pods = store.Store(api, pods.PODS, pods.Pod)
    seen_jobs = store.Store(api, pods.JOBS, pods.JobState)
    slices = store.Store(api, pods.SLICES, pods.Slice)
    claims = store.Store(api, resources.CLAIMS, simulator.Claim)
    settings = store.Store(
        api, resources.CONFIG_MAPS, simulator.Settings, field_selector=selector
    )
    stores = (seen_pods, seen_jobs, slices, claims, settings)
    threads = loops.Loops(stop)
    for watched in stores:
        watched.subscribe(lambda key, old, new: changed.set())
        threads.start("watch", watched.run)
    threads.start("nodes", lambda stop: _beat(api, stop, report))
    for watched in stores:
        while not watched.synced.wait(_REPEAT_S) and not stop.is_set():
            continue

    def step() -> None:
        parts = (seen_pods.items(), seen_jobs.items(), list(slices.items().values()))
        observed = pods.snapshot(*parts)
        for action in simulator.decide(observed, claims.items(), settings.items()):
            _act(api, action, report)

    while not stop.is_set():
        changed.wait(_REPEAT_S)
        stop.wait(_SETTLE_S)
        changed.clear()
        step()
    threads.join(_REPEAT_S)


def main() -> None:
    """Run as a process. Its argument is --kubeconfig=FILE."""
    kubeconfig = pathlib.Path(sys.argv[-1].removeprefix("--kubeconfig="))
    write = functools.partial(print, flush=True)
    run(cluster.connect(kubeconfig), threading.Event(), write)


def _act(api: client.Api, action: simulator.Action, report: Report) -> None:
    now = datetime.datetime.now(datetime.UTC)
    what = action.claim if isinstance(action, simulator.Provision) else action.pod
    try:
        simulator.act(api, action, now)
    except kube_errors.KubeError as error:
        report(f"{type(action).__name__} {what.metadata.key}: {error}")
    else:
        report(f"{now.isoformat()} {type(action).__name__} {what.metadata.key}")


def _beat(api: client.Api, stop: threading.Event, report: Report) -> None:
    while not stop.wait(simulated_kubelet.BEAT_S):
        try:
            nodes.beat(api, datetime.datetime.now(datetime.UTC))
        except kube_errors.KubeError as error:
            report(f"nodes: {error}")
