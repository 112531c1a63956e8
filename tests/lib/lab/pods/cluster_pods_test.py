"""Pods of a release, as they are after a start of their node."""

import datetime

from lib.lab.kube import kube_objects
from lib.lab.pods import cluster_pods

STARTED = "2026-01-02T03:04:05Z"
STARTED_S = datetime.datetime.fromisoformat(STARTED).timestamp()


def pod(*states: kube_objects.Json) -> kube_objects.Json:
    return {"status": {"containerStatuses": [{"state": state} for state in states]}}


def test_a_pod_runs_since_the_start_of_its_node() -> None:
    """Kubernetes gives whole seconds; a node that started within that second counts."""
    runs: kube_objects.Json = {"running": {"startedAt": STARTED}}
    cases = {
        "started before the pod": (pod(runs, runs), STARTED_S - 1, True),
        "started in the same second": (pod(runs), STARTED_S + 0.9, True),
        "started after the pod": (pod(runs), STARTED_S + 1.1, False),
        "one container waits": (pod(runs, {"waiting": {}}), STARTED_S - 1, False),
        "one has ended": (pod({"terminated": {}}), STARTED_S - 1, False),
        "not reported yet": ({"status": {}}, STARTED_S - 1, False),
    }
    reported = {
        name: cluster_pods.runs_since(document, began_s)
        for name, (document, began_s, _) in cases.items()
    }
    assert reported == {name: expected for name, (_, _, expected) in cases.items()}
