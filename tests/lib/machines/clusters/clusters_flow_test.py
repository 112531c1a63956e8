"""Infrastructure clusters on the fakes: created, paused, deleted, and crashes."""

import collections
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud import errors
from lib.cloud.fake.machine_plans import Vm, VmState
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.machines.clusters import decide, model

Make = Callable[..., Any]
LIVES_MAX = 20


def left(clusters: Any, name: str, cluster: str = "cluster-1") -> None:
    """Have a VM whose machine object does not exist."""
    owner = (cluster, f"uid-{name}")
    clusters.ground.cloud.vms[name] = Vm(name, name, owner, state=VmState.DOWN)


def test_a_cluster_is_provisioned_with_three_writes(
    clusters: Any, make_cluster_process: Make
) -> None:
    make_cluster_process(clusters).settle()
    infra = clusters.get()
    assert infra["metadata"]["finalizers"] == [clusters.kinds.finalizer]
    assert infra["spec"]["controlPlaneEndpoint"] == {"host": "10.0.0.1", "port": 6443}
    status = infra["status"]
    begun = {"provisioned": True, "infrastructureProvisioned": True}
    assert (status["initialization"], status["ready"]) == (begun, True)
    assert [domain["name"] for domain in status["failureDomains"]] == list(
        clusters.zones
    )
    generations = {row["observedGeneration"] for row in status["conditions"]}
    assert generations == {infra["metadata"]["generation"]}
    assert clusters.condition() == ("True", "Provisioned", "")
    assert clusters.writes() == 3
    make_cluster_process(clusters).settle()
    assert clusters.writes() == 3


def test_an_endpoint_of_a_user_stays(clusters: Any, make_cluster_process: Make) -> None:
    mine = {"controlPlaneEndpoint": {"host": "example.com", "port": 443}}
    clusters.ground.put(clusters.kinds.cluster, "infra", spec=mine)
    make_cluster_process(clusters).settle()
    assert clusters.get()["spec"] == mine


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_managed_cluster_is_not_touched(
    clusters: Any, make_cluster_process: Make, where: str
) -> None:
    clusters.create("infra", **{where: {"cluster.x-k8s.io/managed-by": "x"}})
    make_cluster_process(clusters).settle()
    assert clusters.writes() == 0


def test_a_pause_is_shown_and_ends(clusters: Any, make_cluster_process: Make) -> None:
    clusters.ground.cluster(paused=True)
    process = make_cluster_process(clusters)
    process.settle()
    assert clusters.condition("Paused")[:2] == ("True", "Paused")
    assert "finalizers" not in clusters.get()["metadata"]
    clusters.ground.cluster()
    process.settle()
    assert clusters.condition("Paused")[:2] == ("False", "NotPaused")
    assert clusters.condition()[:2] == ("True", "Provisioned")


def test_a_status_that_is_lost_is_rebuilt(
    clusters: Any, make_cluster_process: Make
) -> None:
    process = make_cluster_process(clusters)
    process.settle()
    before = clusters.get()["status"]
    clusters.ground.put(clusters.kinds.cluster, "infra", status=None)
    process.settle()
    after = clusters.get()["status"]
    for row in (*before["conditions"], *after["conditions"]):
        del row["lastTransitionTime"]
    assert after == before


def test_a_deletion_waits_for_machines_and_then_for_what_they_left(
    clusters: Any, make_process: Make, make_cluster_process: Make
) -> None:
    ground = clusters.ground
    ground.machine("alive")
    make_process(ground).settle()
    left(clusters, "left")
    left(clusters, "of-another", "cluster-2")
    process = make_cluster_process(clusters)
    process.settle()
    clusters.delete()
    process.settle()
    waits = ("True", "WaitingForMachines", "alive")
    assert clusters.condition("Deleting") == waits
    assert "left" in ground.cloud.vms
    calls_before = len(ground.cloud.calls)
    process.settle(quiet_s=600)
    assert len(ground.cloud.calls) == calls_before
    ground.delete("alive")
    make_process(ground).settle()
    process.relist()
    process.turn()
    assert clusters.condition("Deleting") == (
        "True",
        "CleaningUp",
        "waiting for: VM left",
    )
    process.settle()
    assert clusters.get() is None
    assert set(ground.cloud.vms) == {"of-another"}


def test_a_rejected_deletion_is_reported_and_others_go_on(
    clusters: Any, make_cluster_process: Make
) -> None:
    ground = clusters.ground
    process = make_cluster_process(clusters)
    process.settle()
    for name in ("one", "two"):
        left(clusters, name)

    def refuse(operation: str) -> None:
        if operation.startswith("delete") and "one" in operation:
            raise errors.Forbidden("403", operation="remove", resource="one")

    ground.cloud.before_call = refuse
    clusters.delete()
    for _ in range(600):
        process.relist()
        process.turn()
        ground.now_s += 0.5
    assert set(ground.cloud.vms) == {"one"}
    status, reason, message = clusters.condition("Deleting")
    print(message)
    assert (status, reason) == ("True", "CleanupFailed")
    assert "VM one" in message
    assert "403" in message
    tries = [call for call in ground.cloud.calls if call.startswith("delete")]
    assert len(tries) < 10
    events = [event for event in process.events() if "CleanupFailed" in event]
    assert 1 <= len(events) <= 2
    ground.cloud.before_call = lambda operation: None
    process.settle(quiet_s=120)
    assert clusters.get() is None


def test_many_rejected_deletions_do_not_stop_the_others(
    clusters: Any, make_cluster_process: Make
) -> None:
    """More than are deleted in one reconciliation; they are tried after the others."""
    ground = clusters.ground
    process = make_cluster_process(clusters)
    process.settle()
    refused = {f"a-{number:02}" for number in range(2 * decide.AT_A_TIME)}
    for name in (*refused, "z-1", "z-2"):
        left(clusters, name)

    def refuse(operation: str) -> None:
        if operation.startswith("delete") and "a-" in operation:
            raise errors.Forbidden("403", operation="remove", resource="a")

    ground.cloud.before_call = refuse
    clusters.delete()
    for _ in range(2400):
        process.relist()
        process.turn()
        ground.now_s += 0.5
    assert set(ground.cloud.vms) == refused
    ground.cloud.before_call = lambda operation: None
    process.settle(quiet_s=400)
    assert clusters.get() is None


def test_a_machine_that_is_created_while_the_cloud_is_read_is_not_left(
    clusters: Any, make_cluster_process: Make
) -> None:
    process = make_cluster_process(clusters)
    process.settle()
    clusters.delete()

    def create(operation: str) -> None:
        if operation == "list owned" and "m" not in clusters.ground.cloud.vms:
            uid = clusters.ground.machine("m")["metadata"]["uid"]
            vm = Vm("m", "m", ("cluster-1", uid), state=VmState.DOWN)
            clusters.ground.cloud.vms["m"] = vm
            process.stores.machines.relist()

    clusters.ground.cloud.before_call = create
    process.relist()
    process.turn()
    assert set(clusters.ground.cloud.vms) == {"m"}


def test_with_a_second_cluster_nothing_is_deleted(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.create("second")
    process = make_cluster_process(clusters)
    process.settle()
    left(clusters, "left")
    clusters.delete()
    process.settle()
    assert clusters.get() is None
    assert set(clusters.ground.cloud.vms) == {"left"}
    assert "Warning CleanupSkipped" in process.events()


def test_a_cloud_that_cannot_be_read_releases_nothing(
    clusters: Any, make_cluster_process: Make
) -> None:
    process = make_cluster_process(clusters)
    process.settle()
    error = errors.Unavailable("503", operation="list owned")
    clusters.ground.cloud.faults = [error] * 3
    clusters.delete()
    process.relist()
    process.turn()
    assert clusters.condition("Deleting")[:2] == ("True", "CleanupFailed")
    process.settle(quiet_s=120)
    assert clusters.get() is None


# ------------------------------------------------------------ crashes


def life(clusters: Any, make_cluster_process: Make, death: Any) -> None:
    """Run processes, each until it crashes, until one settles."""
    for _ in range(LIVES_MAX):
        try:
            make_cluster_process(clusters).settle()
        except death:
            continue
        return
    raise AssertionError("the flow does not settle")


@pytest.fixture(scope="module")
def story(make_clusters: Make, make_cluster_process: Make, death: Any) -> Make:
    def tell(
        die_at: int | None = None, arrange: Callable[[Any], None] = lambda ground: None
    ) -> Any:
        clusters = make_clusters()
        left(clusters, "left")
        left(clusters, "of-another", "cluster-2")
        arrange(clusters)
        clusters.ground.die_at = die_at
        life(clusters, make_cluster_process, death)
        clusters.shown = clusters.get()
        clusters.delete()
        life(clusters, make_cluster_process, death)
        return clusters

    return tell


def deaths(story: Make) -> Iterator[Any]:
    at = 0
    while (clusters := story(at)).ground.died_in:
        yield clusters
        at += 1


def test_death_at_every_call_ends_the_same(story: Make) -> None:
    """Prints the action at each crash and its result; each must appear."""
    table: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for clusters in deaths(story):
        is_same = clusters.get() is None and set(clusters.ground.cloud.vms) == {
            "of-another"
        }
        is_same &= clusters.shown["status"]["ready"] is True
        table[clusters.ground.died_in]["converged" if is_same else "differs"] += 1
    for name, results in sorted(table.items()):
        print(f"{name:24} killed {results.total():3} times: {dict(results)}")
    writing = {kind.__name__ for kind in model.Action.__args__}
    assert set(table) == {"reading", *writing} - {"RecordClusterEvent"}
    assert not any(results["differs"] for results in table.values())


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "response lost"])
@pytest.mark.parametrize(
    "error",
    [
        kube_errors.Conflict("changed", operation="PATCH"),
        kube_errors.Unavailable("time-out", operation="PATCH"),
    ],
    ids=["conflict", "time-out"],
)
def test_every_write_may_fail(
    story: Make, error: kube_errors.KubeError, lost: bool
) -> None:
    def arrange(clusters: Any) -> None:
        clusters.ground.api.faults += [
            calls.Fault(error, "patch", "fakeclusters", "infra", after=lost)
            for _ in range(3)
        ]

    clusters = story(arrange=arrange)
    assert clusters.get() is None
    assert set(clusters.ground.cloud.vms) == {"of-another"}


HAPPENINGS = ("pause", "resume", "status", "machine", "gone", "delete", "left", "kill")


@hypothesis.given(strategies.lists(strategies.sampled_from(HAPPENINGS), max_size=6))
@hypothesis.settings(max_examples=40, deadline=None)
def test_clusters_in_any_state(
    make_clusters: Make, make_cluster_process: Make, happenings: list[str]
) -> None:
    """Whatever happens in whichever order: what holds of every cluster.

    provisioned never reverts unless the whole status is lost, nothing of another
    cluster is deleted, and a released cluster leaves nothing.
    """
    clusters = make_clusters()
    left(clusters, "of-another", "cluster-2")
    process = make_cluster_process(clusters)
    process.settle()
    for happening in (*happenings, "resume", "gone"):
        _happen(clusters, happening)
        if happening == "kill":
            process = make_cluster_process(clusters)
        for _ in range(4):
            process.relist()
            process.turn()
            clusters.ground.now_s += 1.0
        infra = clusters.get()
        if infra is not None and happening != "status":
            begun = infra.get("status", {}).get("initialization", {})
            assert begun.get("provisioned") in (None, True)
        assert "of-another" in clusters.ground.cloud.vms
    process.settle(quiet_s=120)
    if clusters.get() is None:
        own = set(clusters.ground.cloud.vms) - {"of-another"}
        assert own <= {"late"}
    else:
        assert clusters.condition()[:2] == ("True", "Provisioned")


def _happen(clusters: Any, happening: str) -> None:
    ground, is_there = clusters.ground, clusters.get() is not None
    if happening in ("pause", "resume"):
        ground.cluster(paused=happening == "pause")
    if happening == "status" and is_there:
        ground.put(clusters.kinds.cluster, "infra", status=None)
    if happening == "machine":
        ground.machine("m")
    if happening == "gone" and ground.get(ground.kinds.machine, "m") is not None:
        ground.delete("m")
    if happening == "left":
        left(clusters, "left" if is_there else "late")
    if happening == "delete" and is_there:
        clusters.delete()
