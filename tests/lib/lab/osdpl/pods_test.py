"""What pods wait for, and what the workload simulator does about it."""

import dataclasses
import datetime
import json
import types
from collections.abc import Mapping

import pytest

from lib.kube import objects
from lib.lab.osdpl import pods, simulator

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def pod(
    name: str = "waiting",
    *,
    node: str = "node-1",
    is_ready: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    restart: str = "Always",
    deleted: bool = False,
    env: Mapping[str, str] = types.MappingProxyType({}),
) -> pods.Pod:
    variables = tuple(pods.Variable(name, text) for name, text in env.items())
    conditions = (pods.Condition("Ready", "True"),) if is_ready else ()
    return pods.Pod(
        objects.ObjectMeta(
            name=name,
            namespace="openstack",
            uid=f"uid-{name}",
            labels=labels or {},
            annotations=annotations or {},
            deletion_timestamp=NOW if deleted else None,
        ),
        pods.PodSpec(
            node_name=node,
            restart_policy=restart,
            init_containers=(pods.Container("init", env=variables),),
            containers=(pods.Container("main", "registry/main:1"),),
        ),
        pods.PodStatus("Running" if is_ready else "Pending", conditions),
    )


def job(name: str, succeeded: int, **labels: str) -> pods.JobState:
    meta = objects.ObjectMeta(name=name, namespace="openstack", labels=labels)
    return pods.JobState(meta, pods.JobStatus(succeeded))


def seen(
    *objects_: pods.Pod | pods.JobState, services: tuple[str, ...] = ()
) -> pods.Snapshot:
    return pods.Snapshot(
        {each.metadata.key: each for each in objects_ if isinstance(each, pods.Pod)},
        {
            each.metadata.key: each
            for each in objects_
            if isinstance(each, pods.JobState)
        },
        frozenset(services),
    )


AGENT = {"application": "neutron", "component": "agent"}
ON_NODE = json.dumps([{"requireSameNode": True, "labels": AGENT}])
ANYWHERE = json.dumps([{"requireSameNode": False, "labels": AGENT}])
BY_LABEL = json.dumps([{"labels": {"application": "nova"}}])


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    env: dict[str, str]
    observed: pods.Snapshot
    unmet: tuple[str, ...]


CASES = (
    Case("nothing", {}, seen(), ()),
    Case(
        "services: one is ready",
        {"DEPENDENCY_SERVICE": "openstack:mariadb,openstack:keystone-api"},
        seen(services=("openstack/mariadb",)),
        ("Service keystone-api",),
    ),
    Case(
        "service of another namespace",
        {"DEPENDENCY_SERVICE": "other:mariadb"},
        seen(services=("openstack/mariadb",)),
        ("Service mariadb",),
    ),
    Case(
        "jobs: absent, running, succeeded",
        {"DEPENDENCY_JOBS": "db-init,db-sync,ks-user"},
        seen(job("db-sync", 0), job("ks-user", 1)),
        ("Job db-init", "Job db-sync"),
    ),
    Case(
        "jobs by label: one still runs",
        {"DEPENDENCY_JOBS_JSON": BY_LABEL},
        seen(job("a", 1, application="nova"), job("b", 0, application="nova")),
        ("Job nova",),
    ),
    Case(
        "pod on the same node: ready elsewhere only",
        {"DEPENDENCY_POD_JSON": ON_NODE},
        seen(pod("agent", node="node-2", is_ready=True, labels=AGENT)),
        ("Pod neutron/agent",),
    ),
    Case(
        "pod on the same node: ready",
        {"DEPENDENCY_POD_JSON": ON_NODE},
        seen(pod("agent", is_ready=True, labels=AGENT)),
        (),
    ),
    Case(
        "pod on any node: ready, but being deleted",
        {"DEPENDENCY_POD_JSON": ANYWHERE},
        seen(pod("agent", is_ready=True, labels=AGENT, deleted=True)),
        ("Pod neutron/agent",),
    ),
    Case(
        "pod on any node: ready on another",
        {"DEPENDENCY_POD_JSON": ANYWHERE},
        seen(pod("agent", node="node-2", is_ready=True, labels=AGENT)),
        (),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_unmet_names_each_missing_dependency(case: Case) -> None:
    assert pods.unmet(pod(env=case.env), case.observed) == case.unmet


def decided(
    waiting: pods.Pod, hold: str = "", services: tuple[str, ...] = ()
) -> tuple[str, ...]:
    meta = objects.ObjectMeta(name=simulator.SETTINGS, namespace="openstack")
    settings = {meta.key: simulator.Settings(meta, {"hold": hold})}
    observed = seen(waiting, services=services)
    actions = simulator.decide(observed, {}, settings)
    return tuple(type(action).__name__ for action in actions)


def test_a_pod_starts_once_its_dependencies_hold() -> None:
    waiting = pod(env={"DEPENDENCY_SERVICE": "openstack:mariadb"})
    assert decided(waiting) == ()
    assert decided(waiting, services=("openstack/mariadb",)) == ("Start",)


def test_what_becomes_of_a_pod() -> None:
    labels = {"application": "keystone", "component": "api"}
    assert decided(pod(restart="OnFailure")) == ("Finish",)
    assert decided(pod(is_ready=True)) == ()
    assert decided(pod(node="")) == ()
    assert decided(pod(deleted=True)) == ("Remove",)
    assert decided(pod(annotations={"sim/hold": "yes"})) == ()
    assert decided(pod(labels=labels), hold="glance/api\nkeystone/api") == ()
    assert decided(pod(labels=labels), hold="glance/api") == ("Start",)


def test_a_pod_of_a_listed_job_fails() -> None:
    labels = {"application": "glance", "component": "db-sync"}
    settings = {
        "openstack/workload-simulator": simulator.Settings(
            objects.ObjectMeta(name=simulator.SETTINGS, namespace="openstack"),
            {"fail": "glance/db-sync"},
        )
    }
    failing, serving = pod(labels=labels, restart="Never"), pod(labels=labels)
    (action,) = simulator.decide(seen(failing), {}, settings)
    assert action == simulator.Fail(failing)
    assert simulator.decide(seen(serving), {}, settings) == (simulator.Start(serving),)
    status = simulator.finished(failing, NOW, has_failed=True)
    assert status["phase"] == "Failed"
    exits = [
        row["state"]["terminated"]["exitCode"]
        for row in status["containerStatuses"]  # type: ignore[attr-defined]
    ]
    assert exits == [1]


def test_only_a_claim_without_volume_is_provisioned() -> None:
    meta = objects.ObjectMeta(name="data", namespace="openstack", uid="u1")
    claim = simulator.Claim(
        meta,
        simulator.ClaimSpec(
            ("ReadWriteOnce",), "lab-local", "", {"requests": {"storage": "1Gi"}}
        ),
    )
    bound = simulator.Claim(meta, simulator.ClaimSpec(volume_name="lab-u1"))
    assert simulator.decide(seen(), {"a": claim, "b": bound}, {}) == (
        simulator.Provision(claim),
    )
    volume = simulator.volume(claim)
    assert volume["spec"]["claimRef"]["uid"] == "u1"  # type: ignore[index]
    assert volume["spec"]["capacity"] == {"storage": "1Gi"}  # type: ignore[index]


def test_the_status_of_a_started_pod_is_ready_for_each_container() -> None:
    status = simulator.running(pod(), NOW)
    conditions = {row["type"]: row["status"] for row in status["conditions"]}  # type: ignore[attr-defined]
    assert conditions == dict.fromkeys(
        ("Initialized", "ContainersReady", "Ready"), "True"
    )
    assert [row["ready"] for row in status["containerStatuses"]] == [True]  # type: ignore[attr-defined]
    assert simulator.finished(pod(), NOW)["phase"] == "Succeeded"
