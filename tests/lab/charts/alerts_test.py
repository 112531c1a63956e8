"""The charts' alerts, judged and evaluated by Prometheus' own code.

That of `promtool check rules` and `promtool test rules`; promtool itself cannot be
built, for the module proxy lacks what its service discovery needs.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import yaml

from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.run import progress

ROOT = pathlib.Path("charts")
CCM = "openstack-ccm"
DVP = "dvp-ccm"
CAPDVP = "capdvp"
DVP_STATE = "cloud-provider-dvp"
DISCOVERER = "cloud-data-discoverer"
OSDPL = "osdpl-controller"
AFTER = 100
"""Minutes of each evaluation."""

Judge = Callable[[str, Sequence["Series"]], dict[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """One series with a sample for each minute."""

    name: str
    labels: Mapping[str, str]
    values: Sequence[float]

    def document(self) -> dict[str, object]:
        """Return the input format of the program."""
        return {
            "labels": {"__name__": self.name, **self.labels},
            "values": list(self.values),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """What one alert is about.

    labels: of the series, besides the job. minute: in which it fires when the trouble
    has begun in minute 0 and does not end. calm: minutes before, in which the trouble
    must have ended for it to stay quiet. words: part of its texts. others: series that
    the trouble is compared with.
    """

    chart: str
    alert: str
    series: str
    labels: Mapping[str, str]
    trouble: Callable[[int], Sequence[float]]
    minute: int
    words: str
    calm: int = 1
    others: Sequence["Series"] = ()


def gauge(ill: float, well: float) -> Callable[[int], Sequence[float]]:
    """Return the values of a gauge that is ill for so many minutes, then well."""
    return lambda minutes: [ill] * minutes + [well] * (AFTER - minutes)


def counter(minutes: int) -> Sequence[float]:
    """Return those of a counter that grows for so many minutes, then stands still."""
    return [min(minute, minutes) for minute in range(AFTER)]


RATE = 11
"""A rate over ten minutes is above 0 as long after its last increase."""
ROWS = (
    Row(CCM, "OpenstackCCMDown", "up", {}, gauge(0, 1), 10, "openstack-ccm is down"),
    Row(
        CCM,
        "OpenstackCCMHasNoLeader",
        "leader_election_master_status",
        {"name": "cloud-controller-manager"},
        gauge(0, 1),
        5,
        "the Lease cloud-controller-manager.",
    ),
    Row(
        CCM,
        "OpenstackCCMCloudServiceFails",
        "mooring_cloud_circuit_open",
        {"provider": "openstack", "service": "compute"},
        gauge(1, 0),
        10,
        "The service compute of OpenStack",
    ),
    Row(
        CCM,
        "OpenstackCCMInstancesUnknown",
        "mooring_instance_observations_total",
        {"result": "unknown"},
        counter,
        31,
        "unknown for some Nodes",
        calm=RATE,
    ),
    Row(
        CCM,
        "OpenstackCCMReconciliationsFail",
        "mooring_reconcile_total",
        {"controller": "service", "outcome": "failure"},
        counter,
        31,
        "failing for controller service",
        calm=RATE,
    ),
    Row(
        CCM,
        "OpenstackCCMNodeDeletionsBlocked",
        "mooring_node_deletions_blocked",
        {},
        gauge(7, 0),
        5,
        "The instances of 7 Nodes",
    ),
    Row(
        CCM,
        "OpenstackCCMNodeDeletionsWait",
        "mooring_node_deletions_waiting",
        {},
        gauge(2, 0),
        15,
        "The instances of 2 Nodes",
    ),
    Row(
        CCM,
        "OpenstackCCMNodeProblem",
        "mooring_node_problem",
        {"reason": "InstanceNotFound"},
        gauge(2, 0),
        15,
        "2 Nodes are affected",
    ),
    Row(
        CCM,
        "OpenstackCCMLoadBalancerProblem",
        "mooring_load_balancer_problem",
        {"reason": "quota"},
        gauge(2, 0),
        15,
        "errors: quota. 2 Services",
    ),
    Row(
        CCM,
        "OpenstackCCMRouteProblem",
        "mooring_route_problem",
        {"reason": "RouteConflict"},
        gauge(2, 0),
        15,
        "errors: RouteConflict. 2 Nodes",
    ),
    Row(
        DVP_STATE,
        "D8CloudProviderDVPDefaultStorageClassDrifted",
        "d8_cloud_provider_dvp_default_storage_class_drifted",
        {},
        gauge(1, 0),
        10,
        "default class of the parent has changed",
    ),
    Row(
        DVP_STATE,
        "D8CloudProviderDVPMigrationPending",
        "d8_cloud_provider_dvp_migration_pending",
        {},
        gauge(1, 0),
        1,
        "settings of the first generation",
    ),
    Row(DVP, "DvpCCMDown", "up", {}, gauge(0, 1), 10, "dvp-ccm is down"),
    Row(
        DVP,
        "DvpCCMHasNoLeader",
        "leader_election_master_status",
        {"name": "dvp-cloud-controller-manager"},
        gauge(0, 1),
        5,
        "the Lease dvp-cloud-controller-manager.",
    ),
    Row(
        DVP,
        "DvpCCMParentFails",
        "mooring_cloud_circuit_open",
        {"provider": "dvp", "service": "parent"},
        gauge(1, 0),
        10,
        "does not answer (parent)",
    ),
    Row(
        DVP,
        "DvpCCMVMsUnknown",
        "mooring_instance_observations_total",
        {"result": "unknown"},
        counter,
        31,
        "unknown for some Nodes",
        calm=RATE,
    ),
    Row(
        DVP,
        "DvpCCMReconciliationsFail",
        "mooring_reconcile_total",
        {"controller": "service", "outcome": "failure"},
        counter,
        31,
        "failing for controller service",
        calm=RATE,
    ),
    Row(
        DVP,
        "DvpCCMNodeDeletionsBlocked",
        "mooring_node_deletions_blocked",
        {},
        gauge(7, 0),
        5,
        "The VMs of 7 Nodes",
    ),
    Row(
        DVP,
        "DvpCCMNodeDeletionsWait",
        "mooring_node_deletions_waiting",
        {},
        gauge(2, 0),
        15,
        "The VMs of 2 Nodes",
    ),
    Row(
        DVP,
        "DvpCCMNodeProblem",
        "mooring_node_problem",
        {"reason": "InstanceNotFound"},
        gauge(2, 0),
        15,
        "2 Nodes are affected",
    ),
    Row(
        DVP,
        "DvpCCMLoadBalancerProblem",
        "mooring_load_balancer_problem",
        {"reason": "NoParentAddress"},
        gauge(2, 0),
        15,
        "errors: NoParentAddress. 2 Services",
    ),
    Row(CAPDVP, "CapdvpDown", "up", {}, gauge(0, 1), 10, "capdvp is down"),
    Row(
        CAPDVP,
        "CapdvpHasNoLeader",
        "leader_election_master_status",
        {"name": "70c82521.cluster.x-k8s.io"},
        gauge(0, 1),
        5,
        "the Lease 70c82521.cluster.x-k8s.io.",
    ),
    Row(
        CAPDVP,
        "CapdvpParentFails",
        "mooring_cloud_circuit_open",
        {"provider": "dvp", "service": "parent"},
        gauge(1, 0),
        10,
        "does not answer (parent)",
    ),
    Row(
        CAPDVP,
        "CapdvpReconciliationsFail",
        "mooring_reconcile_total",
        {"controller": "machines", "outcome": "failure"},
        counter,
        31,
        "failing for controller machines",
        calm=RATE,
    ),
    Row(
        CAPDVP,
        "CapdvpMachineProblem",
        "mooring_machine_problem",
        {"reason": "QuotaExceeded"},
        gauge(2, 0),
        15,
        "errors: QuotaExceeded. 2 Machines",
    ),
    Row(
        CAPDVP,
        "CapdvpMachinesNotProvisioned",
        "mooring_machines",
        {"provisioned": "false"},
        gauge(3, 0),
        30,
        "3 Machines have been without a usable VM",
    ),
    Row(
        DISCOVERER,
        "D8OpenstackCloudDataDiscovererCloudRequestError",
        "cloud_data_discovery_cloud_request_error",
        {"type": "disks_meta"},
        gauge(1, 0),
        60,
        "cannot read the cloud",
    ),
    Row(
        DISCOVERER,
        "D8OpenstackCloudDataDiscovererSaveError",
        "cloud_data_discovery_update_resource_error",
        {},
        gauge(1, 0),
        60,
        "cannot publish",
    ),
    Row(
        DISCOVERER,
        "CloudDataDiscovererStepFails",
        "mooring_discovery_step_error",
        {"step": "catalog"},
        gauge(1, 0),
        60,
        "The step catalog",
    ),
    Row(
        DISCOVERER,
        "CloudDataDiscovererOrphanedDisks",
        "cloud_data_discovery_orphaned_disk_info",
        {"id": "7", "name": "pvc-7"},
        # A disk that is gone has no series.
        lambda minutes: [1.0] * minutes,
        60,
        "1 volumes have",
        # Prometheus looks five minutes back for a series that has ended.
        calm=6,
    ),
    Row(OSDPL, "OsdplControllerDown", "up", {}, gauge(0, 1), 10, "controller is down"),
    Row(
        OSDPL,
        "OsdplReconciliationsFail",
        "mooring_reconcile_total",
        {"controller": "osdpl", "outcome": "unexpected_error"},
        counter,
        31,
        "Reconciliations of the OpenStackDeployment fail",
        calm=RATE,
    ),
    Row(
        OSDPL,
        "OsdplHelmRunsFail",
        "mooring_osdpl_helm_runs_total",
        {"operation": "upgrade", "chart": "nova", "result": "timed_out"},
        counter,
        31,
        "for the chart nova",
        calm=16,
    ),
    Row(
        OSDPL,
        "OsdplReleaseFailed",
        "mooring_osdpl_releases",
        {"status": "failed"},
        gauge(2, 0),
        30,
        "2 releases failed",
    ),
    Row(
        OSDPL,
        "OsdplReleasePending",
        "mooring_osdpl_oldest_pending_release_age_seconds",
        {},
        gauge(3601, 0),
        5,
        "pending for more than an hour",
    ),
    Row(
        OSDPL,
        "OsdplHelmSlotsBusy",
        "mooring_osdpl_helm_slots_in_use",
        {},
        gauge(4, 3),
        60,
        "4 helm runs",
        others=(Series("mooring_osdpl_helm_slots", {"job": OSDPL}, [4] * AFTER),),
    ),
    Row(
        OSDPL,
        "OsdplWebhookCertificateEnds",
        "mooring_osdpl_webhook_certificate_end_timestamp_seconds",
        {},
        # The first minute is that of the epoch.
        gauge(29 * 86400, 300 * 86400),
        60,
        "ends within 30 days",
    ),
)
EVERY = [pytest.param(row, id=row.alert) for row in ROWS]


def rules(chart: str) -> str:
    return (ROOT / chart / "files" / "alerts.yaml").read_text()


def series(row: Row, minutes: int, job: str) -> tuple[Series, ...]:
    """Return the trouble, and what shows that Prometheus reaches the program."""
    trouble = Series(row.series, {"job": job, **row.labels}, row.trouble(minutes))
    well = Series("up", {"job": row.chart}, [1] * AFTER)
    if trouble.name == well.name:
        return (trouble,)
    return (trouble, well, *row.others)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Return the program that reads rules and series."""
    place = places.Places(places.default().cache, tmp_path_factory.mktemp("alerts"))
    programs.build(place, ["alerts"], progress.Lines(sys.stderr))
    program = programs.path(place, "alerts")

    def ask(text: str, received: Sequence[Series]) -> dict[str, Any]:
        job = {"rules": text, "series": [item.document() for item in received]}
        result = subprocess.run(
            [program],
            input=json.dumps([job]),
            capture_output=True,
            text=True,
            check=True,
            timeout=900,
        )
        (answer,) = json.loads(result.stdout)
        assert isinstance(answer, dict)
        return answer

    return ask


@pytest.mark.parametrize("chart", [CAPDVP, CCM, DISCOVERER, DVP, DVP_STATE, OSDPL])
def test_prometheus_takes_the_rules(judge: Judge, chart: str) -> None:
    """Fields, expressions and the templates of texts; each alert has its row."""
    assert judge(rules(chart), ())["problems"] == []
    (group,) = yaml.safe_load(rules(chart))["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert sorted(names) == sorted(row.alert for row in ROWS if row.chart == chart)
    for rule in group["rules"]:
        texts = set(rule["annotations"])
        assert_runbook(chart, rule)
        assert texts == {"summary", "description", "runbook"}
        assert rule["labels"]["d8_component"] == chart


def assert_runbook(chart: str, rule: Mapping[str, Any]) -> None:
    """The chart's README.md has a section with at least one step to take."""
    file, _, anchor = rule["annotations"]["runbook"].partition("#")
    sections = (ROOT / chart / file).read_text().split("\n### ")
    by_anchor = {section.partition("\n")[0].lower(): section for section in sections}
    assert anchor == rule["alert"].lower()
    assert "\n1. " in by_anchor[anchor], rule["alert"]


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        pytest.param(
            "absent(up", "absent(up(", "could not parse expression", id="expr"
        ),
        pytest.param("for: 10m", "for: ten", "not a valid duration", id="time"),
        pytest.param("annotations:", "notes:", "field notes not found", id="field"),
        pytest.param("$labels.name", "$label.name", "undefined variable", id="text"),
    ],
)
def test_prometheus_refuses_wrong_ones(
    judge: Judge, right: str, wrong: str, problem: str
) -> None:
    """So the test above can fail."""
    text = rules(CCM)
    assert right in text
    problems = judge(text.replace(right, wrong), ())["problems"]
    assert problem in " ".join(problems)


@pytest.mark.parametrize("row", EVERY)
def test_an_alert_fires_when_trouble_lasts(judge: Judge, row: Row) -> None:
    """In the minute after its time, once, alone, and with texts that say of what."""
    answer = judge(rules(row.chart), series(row, AFTER, row.chart))
    assert answer["problems"] == []
    fired = [(alert["alert"], alert["minute"]) for alert in answer["firing"]]
    print(f"{row.alert:50} after {row.minute} minutes: {answer['firing'][:1]}")
    assert fired == [(row.alert, row.minute)]
    texts = answer["firing"][0]["annotations"]
    assert row.words in f"{texts['summary']} {texts['description']}"


@pytest.mark.parametrize("row", EVERY)
def test_an_alert_is_quiet_when_trouble_ends_in_time(judge: Judge, row: Row) -> None:
    received = series(row, row.minute - row.calm, row.chart)
    assert judge(rules(row.chart), received)["firing"] == []


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.chart not in (DISCOVERER, DVP_STATE)]
)
def test_trouble_of_others_is_theirs(judge: Judge, row: Row) -> None:
    """Our programs have series of the same names; the job tells whose they are.

    Those of the discoverer, and of the state of DVP, have names of their own.
    """
    received = (
        *series(row, AFTER, "csi-controller"),
        Series("up", {"job": row.chart}, [1] * 99),
    )
    assert judge(rules(row.chart), received)["firing"] == []
