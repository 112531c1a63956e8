"""Pods that do not run are reported with the reason of Kubernetes and a remedy."""

from collections.abc import Mapping

import pytest

from lib.doctor import judge, pod_states
from lib.doctor.model import CheckState, PodReport, Read
from lib.kube import resources
from lib.kube.fake import api as fake_api

NAME = "openstack-ccm"
TIMEOUT_S = 1.0


def cluster(
    status: Mapping[str, object], message: str = "", app: str = NAME
) -> fake_api.FakeApi:
    """Return a cluster with one Pod. message: of a FailedMount Event about it."""
    api = fake_api.FakeApi()
    about = {
        "name": "pod",
        "namespace": "system",
        "labels": {"app.kubernetes.io/name": app},
    }
    api.put(resources.PODS, {"metadata": about, "status": dict(status)})
    if message:
        event: dict[str, object] = {
            "metadata": {"name": "event", "namespace": "system"},
            "involvedObject": {"kind": "Pod", "namespace": "system", "name": "pod"},
            "type": "Warning",
            "reason": "FailedMount",
            "message": message,
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        api.put(resources.EVENTS, event)
    return api


def container(**parts: object) -> Mapping[str, object]:
    return {"containerStatuses": [{"name": "c", **parts}]}


def waiting(reason: str, message: str = "", **parts: object) -> Mapping[str, object]:
    return container(state={"waiting": {"reason": reason, "message": message}}, **parts)


EXIT = {"terminated": {"exitCode": 2, "reason": "Error", "message": "no file\n"}}
SILENT = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes available"}
ROWS: Mapping[str, tuple[Mapping[str, object], str, str]] = {
    "registry": (
        waiting("ImagePullBackOff", "no such host"),
        "c: ImagePullBackOff: no such host",
        "the registry",
    ),
    "architecture": (
        waiting("RunContainerError", "exec format error"),
        "c: RunContainerError: exec format error",
        "the architecture of the Node",
    ),
    "name of the image": (
        waiting("InvalidImageName", "invalid reference format"),
        "c: InvalidImageName: invalid reference format",
        "values image",
    ),
    "key of the Secret": (
        waiting("CreateContainerConfigError", "couldn't find key region"),
        "c: CreateContainerConfigError: couldn't find key region",
        "create the Secret",
    ),
    "Secret": (
        waiting("ContainerCreating"),
        'c: FailedMount: secret "cloud-config" not found',
        "create the Secret",
    ),
    "crash loop": (
        waiting("CrashLoopBackOff", "back-off 10s", lastState=EXIT),
        "c: CrashLoopBackOff: exit code 2: no file",
        "kubectl -n system logs pod -c c --previous",
    ),
    "memory": (
        waiting("CrashLoopBackOff", "back-off 10s", lastState=SILENT),
        "c: CrashLoopBackOff: exit code 137: OOMKilled",
        "--previous",
    ),
    "ended": (
        container(state=EXIT),
        "c: CrashLoopBackOff: exit code 2: no file",
        "--previous",
    ),
    "no Node": (
        {"conditions": [NO_NODE]},
        "Unschedulable: 0/3 nodes available",
        "nodeSelector and tolerations",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_pod_that_does_not_run_fails_with_its_reason(name: str) -> None:
    status, text, remedy = ROWS[name]
    api = cluster(status, 'secret "cloud-config" not found')
    (line,) = judge.pods(Read(pod_states.read(api, (NAME,), TIMEOUT_S)))
    assert line.state is CheckState.FAILED
    assert line.text == f"system/pod: {text}"
    assert remedy in line.remedy


def test_a_running_container_that_is_not_ready_is_a_warning() -> None:
    api = cluster(container(state={"running": {}}, restartCount=3))
    (line,) = judge.pods(Read(pod_states.read(api, (NAME,), TIMEOUT_S)))
    assert line.state is CheckState.WARNING
    assert line.text == "system/pod: c: NotReady: not ready after 3 restarts"
    assert line.remedy == "see the log: kubectl -n system logs pod -c c"


@pytest.mark.parametrize(
    "status",
    [container(ready=True, state={"running": {}}), waiting("ContainerCreating")],
)
def test_pods_that_run_or_start_are_no_problem(status: Mapping[str, object]) -> None:
    (line,) = judge.pods(Read(pod_states.read(cluster(status), (NAME,), TIMEOUT_S)))
    assert (line.state, line.text) == (CheckState.OK, "1 Pods run")


def test_a_pod_that_no_kubelet_has_started_is_a_warning() -> None:
    (line,) = judge.pods(Read(pod_states.read(cluster({}), (NAME,), TIMEOUT_S)))
    assert line.state is CheckState.WARNING
    assert line.text == "system/pod: NotReady: no container has started"
    assert line.remedy == "kubectl -n system describe pod pod"


def test_pods_of_others_are_not_read() -> None:
    api = cluster(waiting("ImagePullBackOff"), app="other")
    assert pod_states.read(api, (NAME,), TIMEOUT_S) == PodReport(0)
    (line,) = judge.pods(Read(PodReport(0)))
    assert line.state is CheckState.SKIPPED


def test_events_are_read_only_if_a_pod_is_starting() -> None:
    api = cluster(waiting("ImagePullBackOff"))
    pod_states.read(api, (NAME,), TIMEOUT_S)
    assert len(api.calls) == 1
    api = cluster(waiting("ContainerCreating"))
    pod_states.read(api, (NAME,), TIMEOUT_S)
    assert len(api.calls) == 2
