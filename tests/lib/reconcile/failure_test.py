"""Every flow retries an error in the same way: by its own retry class and time."""

import functools
from collections.abc import Callable
from typing import Any, cast

import pytest

from lib.balancers import model as balancers_model
from lib.balancers.flow import BalancersFlow
from lib.cloud import errors
from lib.discovery import model as discovery_model
from lib.discovery.flow import DiscoveryFlow
from lib.kube import errors as kube_errors
from lib.machines.clusters.flow import ClustersFlow
from lib.machines.flow import MachinesFlow
from lib.machines.templates.flow import TemplatesFlow
from lib.nodes.flow import NodesFlow
from lib.osdpl.reconcile.flow import OpenStackFlow
from lib.process import config
from lib.reconcile.failure import SLOW_S, Failure, Postponed
from lib.routes.flow import RoutesFlow
from lib.volumes import csi_codes
from lib.volumes.settling import Settling

FLOWS: dict[str, Any] = {
    "nodes": NodesFlow,
    "Services": BalancersFlow,
    "routes": RoutesFlow,
    "machines": MachinesFlow,
    "clusters of machines": ClustersFlow,
    "templates of machines": TemplatesFlow,
    "discovery": DiscoveryFlow,
    "OpenStackDeployments": OpenStackFlow,
    "volumes": Settling,
}
BACKOFF, ROUTINE, SLOW = (None, False), (None, True), (SLOW_S, False)
CLOUD: dict[type[errors.CloudError], tuple[float | None, bool]] = {
    errors.CloudError: BACKOFF,
    errors.NotFound: BACKOFF,
    errors.AlreadyExists: SLOW,
    errors.Ambiguous: SLOW,
    errors.InvalidRequest: SLOW,
    errors.OutOfRange: SLOW,
    errors.AttachedElsewhere: SLOW,
    errors.InUse: SLOW,
    errors.Unplaceable: SLOW,
    errors.Busy: ROUTINE,
    errors.QuotaExceeded: SLOW,
    errors.LimitReached: SLOW,
    errors.Unauthenticated: SLOW,
    errors.Forbidden: SLOW,
    errors.Unavailable: BACKOFF,
    errors.NotCredible: BACKOFF,
    errors.Unsupported: SLOW,
}
KUBE: dict[type[kube_errors.KubeError], tuple[float | None, bool]] = {
    kube_errors.KubeError: BACKOFF,
    kube_errors.NotFound: BACKOFF,
    kube_errors.Conflict: ROUTINE,
    kube_errors.AlreadyExists: BACKOFF,
    kube_errors.Gone: BACKOFF,
    kube_errors.Forbidden: BACKOFF,
    kube_errors.Unauthorized: BACKOFF,
    kube_errors.Invalid: SLOW,
    kube_errors.Unavailable: BACKOFF,
    kube_errors.NotLeader: BACKOFF,
}
OWN: dict[str, Exception] = {
    "Services": balancers_model.TerminalError("no"),
    "discovery": discovery_model.InvalidCatalog("no"),
    "OpenStackDeployments": config.ConfigError(["no"]),
    "volumes": csi_codes.RefusedCall(csi_codes.Code.ABORTED, "no"),
}
"""Errors that only one flow has: tried again after the queue's own backoff."""


def error_of(kind: type[Exception], retry_after_s: float | None = None) -> Exception:
    make = cast(Callable[..., Exception], kind)
    return make("no", operation="try it", retry_after_s=retry_after_s)


def explained(flow: str, error: Exception) -> Failure | None:
    # It uses nothing of the flow.
    explain = functools.partial(FLOWS[flow].failure, None)
    return cast(Failure | None, explain(error))


def classes(base: type[Exception]) -> set[type[Exception]]:
    return {base}.union(*map(classes, base.__subclasses__()))


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [*CLOUD.items(), *KUBE.items()],
    ids=[f"{kind.__module__}.{kind.__name__}" for kind in (*CLOUD, *KUBE)],
)
def test_an_error_is_retried_in_the_same_way_by_each_flow(
    kind: type[Exception], expected: tuple[float | None, bool], flow: str
) -> None:
    failure = explained(flow, error_of(kind))
    assert failure is not None
    assert (failure.retry_after_s, failure.is_routine) == expected
    assert failure.requeue_after_s is None
    assert failure.summary == "try it: no"


def test_the_table_has_every_error() -> None:
    cloud = {kind for kind in classes(errors.CloudError) if "lib." in kind.__module__}
    assert {kind for kind in cloud if kind.__module__ == errors.__name__} == set(CLOUD)
    assert classes(kube_errors.KubeError) == set(KUBE)
    known = {kind.retry for kind in KUBE} | {kind.retry for kind in CLOUD}
    assert known == {retry.value for retry in errors.Retry}


@pytest.mark.parametrize("flow", FLOWS)
def test_a_pause_that_the_server_names_is_kept_and_is_never_shorter(flow: str) -> None:
    for asked_s, kind, expected_s in (
        (7.0, errors.Unavailable, 7.0),
        (7.0, errors.QuotaExceeded, SLOW_S),
        (240.0, errors.Forbidden, 240.0),
        (7.0, kube_errors.Unavailable, 7.0),
    ):
        failure = explained(flow, error_of(kind, asked_s))
        assert failure is not None
        assert failure.retry_after_s == expected_s


@pytest.mark.parametrize("flow", FLOWS)
def test_a_postponed_action_keeps_its_own_time(flow: str) -> None:
    assert explained(flow, Postponed("later", 3.0)) == Failure(
        "later", requeue_after_s=3.0, is_routine=True
    )


@pytest.mark.parametrize("flow", FLOWS)
def test_other_errors_are_bugs_unless_they_are_the_flows_own(flow: str) -> None:
    assert explained(flow, ValueError("x")) is None
    for owner, error in OWN.items():
        failure = explained(flow, error)
        assert (failure is not None) == (owner == flow)
        if failure is not None:
            assert (failure.retry_after_s, failure.is_routine) == BACKOFF
