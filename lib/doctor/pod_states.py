"""Pods of this project that do not run, and why.

Source: Kubernetes pkg/kubelet, reasons of waiting containers and of Events.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from lib.doctor import pods
from lib.doctor.components import LABEL
from lib.doctor.model import (
    CRASHED,
    NOT_READY,
    UNSCHEDULABLE,
    PodProblem,
    PodReport,
)
from lib.kube import client, listing, recorded_events, resources

_STARTING = ("ContainerCreating", "PodInitializing")
_WARNING = "Warning"
Name = tuple[str, str]
"""Namespace and name."""


def read(api: client.Api, names: Collection[str], timeout_s: float) -> PodReport:
    """Return the Pods of components with their problems.

    One call for each page of Pods; Events are read if a Pod is starting. names: values
    of the label. timeout_s: of each call.

    Raises:
        KubeError: Pods or Events cannot be listed.
    """
    selectors = {"labelSelector": LABEL}
    listed = listing.read(
        api, resources.PODS, pods.Pod, timeout_s=timeout_s, selectors=selectors
    )
    selected = [pod for pod in listed.items if pod.metadata.labels[LABEL] in names]
    read_warnings = functools.cache(lambda: warnings(api, timeout_s))
    problems = [problem for pod in selected for problem in of_pod(pod, read_warnings)]
    return PodReport(len(selected), tuple(problems))


def warnings(api: client.Api, timeout_s: float) -> Mapping[Name, tuple[str, str]]:
    """Return reason and message of the newest warning about each Pod.

    Raises:
        KubeError: they cannot be listed.
    """
    return {
        (event.involved_object.namespace, event.involved_object.name): (
            event.reason,
            event.message,
        )
        for event in recorded_events.read(api, timeout_s)
        if event.type == _WARNING and event.involved_object.kind == resources.PODS.kind
    }


def of_pod(
    pod: pods.Pod, read_warnings: Callable[[], Mapping[Name, tuple[str, str]]]
) -> Iterator[PodProblem]:
    """Yield the problems of a Pod. read_warnings: called if a container is starting."""
    about = pod.metadata
    if not pod.status.container_statuses:
        reason, text = _before_start(pod.status.conditions)
        yield PodProblem(about.namespace, about.name, "", reason, text)
    for status in pod.status.container_statuses:
        reason, text = _problem(status)
        if reason in _STARTING:
            key = (about.namespace, about.name)
            reason, text = read_warnings().get(key, ("", ""))
        if reason:
            yield PodProblem(about.namespace, about.name, status.name, reason, text)


def _before_start(conditions: Iterable[pods.PodCondition]) -> tuple[str, str]:
    """Return why no kubelet has reported the containers of a Pod."""
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return UNSCHEDULABLE, condition.message
    return NOT_READY, "no container has started"


def _problem(status: pods.ContainerStatus) -> tuple[str, str]:
    """Return reason and message of a container; empty ones if it is ready."""
    waiting = status.state.waiting
    if waiting is not None:
        ended = status.last_state.terminated
        if waiting.reason == CRASHED and ended is not None:
            cause = ended.message.strip() or ended.reason
            return CRASHED, f"exit code {ended.exit_code}: {cause}"
        return waiting.reason, waiting.message
    if status.ready:
        return "", ""
    ended = status.state.terminated
    if ended is not None:
        cause = ended.message.strip() or ended.reason
        return CRASHED, f"exit code {ended.exit_code}: {cause}"
    return NOT_READY, f"not ready after {status.restart_count} restarts"
