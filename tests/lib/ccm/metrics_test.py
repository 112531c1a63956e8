"""The reference's metrics, by their names and labels, and our own of Events."""

import datetime

import prometheus_client
import pytest

from lib.balancers.model import Operation
from lib.ccm import metrics
from lib.cloud.load_balancers import Reason
from lib.cloud.openstack import reference_metrics
from lib.cloud.steps import CommonReason, ProblemReason
from lib.daemon import counting
from lib.daemon import metrics as daemon_metrics
from lib.kube import events
from lib.kube.fake import api
from lib.process import metrics as process_metrics
from lib.process import slis

OPENSTACK = counting.Reference(
    reference_metrics.CALLS,
    reference_metrics.request,
    reference_metrics.RECONCILIATIONS,
)
NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
NAMES = (
    "node_controller_cloud_provider_taint_removal_delay_seconds",
    "node_controller_initial_node_sync_delay_seconds",
)


def test_a_new_node_is_told_under_both_names_of_the_reference() -> None:
    """In the reference's buckets, by the time since the Node's creation."""
    registry = prometheus_client.CollectorRegistry()
    new_nodes = metrics.NodeMetrics(registry)
    new_nodes.initialised(NOON, NOON + datetime.timedelta(seconds=10))
    for name in NAMES:
        observed = {
            le: registry.get_sample_value(f"{name}_bucket", {"le": le})
            for le in ("1.0", "4.0", "16.0", "64.0", "256.0", "1024.0", "+Inf")
        }
        assert list(observed.values()) == [0, 0, 1, 1, 1, 1, 1]
        assert registry.get_sample_value(f"{name}_sum") == 10


def test_a_clock_that_is_behind_counts_as_no_delay() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics.NodeMetrics(registry).initialised(
        NOON, NOON - datetime.timedelta(seconds=3)
    )
    assert registry.get_sample_value(f"{NAMES[0]}_sum") == 0


REFERENCE: dict[str, tuple[tuple[str, ...], str]] = {
    # Name: its labels, and why we have none of that name.
    "openstack_api_requests_total": (("request",), ""),
    "openstack_api_request_duration_seconds": (("request",), ""),
    "openstack_api_request_errors_total": (("request",), ""),
    NAMES[0]: ((), ""),
    NAMES[1]: ((), ""),
    "leader_election_master_status": (("name",), ""),
    "leader_election_slowpath_total": (("name",), ""),
    "running_managed_controllers": (("name", "manager"), ""),
    "rest_client_requests_total": (("code", "method"), ""),
    "rest_client_request_duration_seconds": ((), ""),
    "kubernetes_healthcheck": (("name", "type"), ""),
    "kubernetes_healthchecks_total": (("name", "type", "status"), ""),
    "process_resident_memory_bytes": ((), ""),
    "process_cpu_seconds_total": ((), ""),
    "process_open_fds": ((), ""),
    "service_controller_loadbalancer_sync_total": ((), ""),
    "service_controller_nodesync_error_total": ((), ""),
    "service_controller_nodesync_latency_seconds": (
        (),
        "each load balancer for itself: update_loadbalancer_host_latency_seconds",
    ),
    "service_controller_update_loadbalancer_host_latency_seconds": ((), ""),
    "cloudprovider_openstack_reconcile_total": (("operation",), ""),
    "cloudprovider_openstack_reconcile_duration_seconds": (("operation",), ""),
    "cloudprovider_openstack_reconcile_errors_total": (("operation",), ""),
    "route_controller_route_sync_total": ((), "no routes yet"),
    "workqueue_depth": ((), "mooring_queue_depth, by controller"),
    "workqueue_retries_total": ((), "mooring_retries_total, by controller"),
    "workqueue_work_duration_seconds": ((), "mooring_reconcile_duration_seconds"),
    "kubernetes_build_info": ((), "mooring_build_info; this is no build of Kubernetes"),
    "go_goroutines": ((), "Go's own"),
    "apiserver_audit_event_total": ((), "never counts anything there"),
}
"""Source: cloud-provider-openstack docs/metrics.md; k8s.io/cloud-provider
controllers/*/metrics.go; k8s.io/component-base metrics/prometheus."""


def test_every_metric_of_the_reference_is_there_or_has_a_reason() -> None:
    """Prints name and state; one that is neither kept nor explained fails."""
    health = slis.Slis()
    registry = process_metrics.new_registry(process_metrics.Build("ccm", "1"))
    calls = counting.CloudMetrics("openstack", registry, OPENSTACK)
    calls.observe("list servers", "Unavailable", 0.1)
    counting.KubeMetrics(registry).observe("GET", "nodes", 200, 0.1)
    metrics.NodeMetrics(registry).initialised(NOON, NOON)
    daemon_metrics.LeaderMetrics("lease", registry).slow_path()
    metrics.ControllerMetrics(registry).started("cloud-node")
    metrics.BalancerMetrics(registry, OPENSTACK).ended(Operation.UPDATE, 1.0, True)
    health.observe("healthz", "ping", True)
    samples: dict[str, set[str]] = {}
    for family in (*registry.collect(), *health.registry.collect()):
        for sample in family.samples:
            samples.setdefault(sample.name, set()).update(sample.labels)
            samples.setdefault(family.name, set()).update(sample.labels)
    for name, (labels, reason) in REFERENCE.items():
        print(f"{name:62} {reason or 'kept'}")
        assert (name in samples) is not bool(reason)
        assert reason or set(labels) <= samples[name]


@pytest.mark.parametrize("operation", list(Operation))
@pytest.mark.parametrize("has_worked", [True, False])
def test_what_is_done_for_services_is_counted(
    operation: Operation, has_worked: bool
) -> None:
    """Under the reference's names; a failure counts as done, and as an error."""
    registry = prometheus_client.CollectorRegistry()
    metrics.BalancerMetrics(registry, OPENSTACK).ended(operation, 3.0, has_worked)
    labels = {"operation": str(operation)}
    reference = "cloudprovider_openstack_reconcile"
    value = registry.get_sample_value
    assert value(f"{reference}_total", labels) == 1
    assert value(f"{reference}_errors_total", labels) == (not has_worked)
    assert value(f"{reference}_duration_seconds_sum", labels) == 3
    is_sync = has_worked and operation is not Operation.DELETE
    is_update = operation is Operation.UPDATE
    framework = "service_controller"
    hosts = f"{framework}_update_loadbalancer_host_latency_seconds_count"
    assert value(f"{framework}_loadbalancer_sync_total") == is_sync
    assert value(f"{framework}_nodesync_error_total") == (is_update and not has_worked)
    assert value(hosts) == (is_update and has_worked)


def test_every_reason_of_a_problem_has_its_sample() -> None:
    """Also those that no Service has now, so that alerts see them fall."""
    registry = prometheus_client.CollectorRegistry()
    reasons: tuple[ProblemReason, ...] = (*CommonReason, *Reason)
    metrics.BalancerMetrics(registry).watch(lambda: {CommonReason.DRIFT: 2}, reasons)
    observed = {
        reason: registry.get_sample_value(
            "mooring_load_balancer_problem", {"reason": str(reason)}
        )
        for reason in reasons
    }
    assert observed == {
        reason: 2.0 * (reason is CommonReason.DRIFT) for reason in reasons
    }


@pytest.mark.parametrize(
    ("operation", "request_label"),
    [
        ("list servers", "server_list"),
        ("get server", "server_get"),
        ("list ports", "port_list"),
        ("find the service", "find_the_service"),
    ],
)
def test_calls_are_named_as_the_reference_names_them(
    operation: str, request_label: str
) -> None:
    """So that its dashboards show them."""
    registry = prometheus_client.CollectorRegistry()
    calls = counting.CloudMetrics("openstack", registry, OPENSTACK)
    calls.observe(operation, "ok", 0.1)
    labels = {"request": request_label}
    assert registry.get_sample_value("openstack_api_requests_total", labels) == 1


def test_events_are_counted_by_type_and_reason() -> None:
    """Those, too, that the API server never sees."""
    registry = prometheus_client.CollectorRegistry()
    emitted = daemon_metrics.EventMetrics(registry).emitted
    recorder = events.Recorder(api.FakeApi(), component="c", host="", emitted=emitted)
    about = events.ObjectRef("Node", "n1", "", "n1", "v1")
    for _ in range(2):
        recorder.emit(about, "Warning", "ProviderMismatch", "why")
    labels = {"type": "Warning", "reason": "ProviderMismatch"}
    assert registry.get_sample_value("mooring_events_recorded_total", labels) == 2
