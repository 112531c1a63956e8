"""What is repaired, and what only an administrator can: drift, fields, sizes."""

import pathlib
import random
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.helm.fake import helm as fake_helm
from lib.kube import resources
from lib.kube.fake import calls
from lib.osdpl.reconcile import work
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Process

KEYSTONE = "openstack-keystone"
Document = dict[str, Any]


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def steps(process: Process, count: int = 15) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


def change(cluster: Cluster, value: object) -> None:
    """Change a value of keystone."""
    values = {"keystone": {"values": {"of_the_test": value}}}
    cluster.change(services={"identity": values})


def job(values: Mapping[str, object], name: str = "bootstrap") -> Document:
    image = str(values.get("of_the_test"))
    pod = {"spec": {"containers": [{"image": image}]}}
    metadata = {"name": name, "namespace": ground.NAMESPACE}
    return {"kind": "Job", "metadata": metadata, "spec": {"template": pod}}


def stateful_set(values: Mapping[str, object]) -> Document:
    claims = [{"metadata": {"name": str(values.get("of_the_test"))}}]
    metadata = {"name": "keystone-data", "namespace": ground.NAMESPACE}
    spec = {"volumeClaimTemplates": claims}
    return {"kind": "StatefulSet", "metadata": metadata, "spec": spec}


def install(
    cluster: Cluster, objects: fake_helm.Objects, *live: resources.Resource
) -> Process:
    """Install with further objects of keystone, which exist if their kind is live."""
    cluster.helm.objects[KEYSTONE] = objects
    cluster.create()
    for kind in live:
        for item in objects({}):
            if item["kind"] == kind.kind:
                cluster.api.put(kind, dict(item))
    process = Process(cluster)
    process.settle()
    cluster.helm.runs.clear()
    cluster.api.calls.clear()
    return process


def deletions(cluster: Cluster) -> list[tuple[str, str]]:
    return [
        (call.resource, call.name or "")
        for call in cluster.api.calls
        if call.verb == "delete"
    ]


def test_a_job_whose_template_differs_is_deleted_first(cluster: Cluster) -> None:
    """Only that one: the hook Job and the equal Job are left as they are."""

    def objects(values: Mapping[str, object]) -> list[Mapping[str, object]]:
        hook = job(values, "hook")
        hook["metadata"]["annotations"] = {"helm.sh/hook": "post-install"}
        return [job(values), job({}, "equal"), hook]

    process = install(cluster, objects, resources.JOBS)
    change(cluster, 1)
    process.settle()
    assert deletions(cluster) == [("jobs", "bootstrap")]
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]
    assert cluster.condition("Applied")["status"] == "True"


def test_the_deletion_of_a_job_is_awaited(cluster: Cluster) -> None:
    """helm is run once the Job does not exist any more."""
    process = install(cluster, lambda values: [job(values)], resources.JOBS)
    document = cluster.documents(resources.JOBS)[0]
    document["metadata"]["finalizers"] = ["example.com/of-the-test"]
    cluster.api.put(resources.JOBS, document)
    looks = []

    def release(call: calls.Call) -> None:
        is_look = (call.verb, call.resource) == ("get", "jobs")
        if is_look and ("jobs", "bootstrap") in deletions(cluster):
            looks.append(list(cluster.helm.runs))
            observed = cluster.documents(resources.JOBS)[0]
            observed["metadata"]["finalizers"] = []
            cluster.api.before_call = None
            cluster.api.put(resources.JOBS, observed)

    cluster.api.before_call = release
    change(cluster, 1)
    process.settle()
    assert looks == [[]], "no run before the Job was deleted"
    assert cluster.documents(resources.JOBS) == []
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]


def test_a_failed_upgrade_does_not_hide_an_older_job(cluster: Cluster) -> None:
    process = install(cluster, lambda values: [job(values)], resources.JOBS)
    error = helm_errors.Failed("upgrade of openstack-keystone: Job x failed")
    cluster.helm.faults.append(fake_helm.Fault(KEYSTONE, error))
    change(cluster, 1)
    process.step()
    # The first attempt has deleted it; an administrator brings the old one back.
    cluster.api.put(resources.JOBS, job({}))
    process.settle()
    assert deletions(cluster) == [("jobs", "bootstrap")] * 2
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"] * 2


def test_what_cannot_be_changed_is_a_condition(cluster: Cluster) -> None:
    """It states what an administrator can do; once that is done, all goes on."""
    kinds = (resources.STATEFUL_SETS,)
    process = install(cluster, lambda values: [stateful_set(values)], *kinds)
    change(cluster, 1)
    steps(process, 5)
    message = cluster.condition("Applied")["message"]
    print(message)
    assert "StatefulSet keystone-data: spec.volumeClaimTemplates" in message
    assert "--cascade=orphan" in message
    assert (cluster.helm.runs, deletions(cluster)) == ([], [])
    cluster.api.remove(resources.STATEFUL_SETS, "keystone-data", ground.NAMESPACE)
    began_s = cluster.clock.seconds
    process.step()
    cluster.api.put(resources.STATEFUL_SETS, stateful_set({"of_the_test": 1}))
    process.settle()
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]
    assert cluster.condition("Applied")["status"] == "True"
    print(f"after {cluster.clock.seconds - began_s:.0f} s")


def test_it_can_also_be_reverted(cluster: Cluster) -> None:
    kinds = (resources.STATEFUL_SETS,)
    process = install(cluster, lambda values: [stateful_set(values)], *kinds)
    before = cluster.deployment()["spec"].get("services", {})
    change(cluster, 1)
    steps(process, 5)
    cluster.change(services=before)
    process.settle()
    assert (cluster.helm.runs, deletions(cluster)) == ([], [])
    assert cluster.condition("Applied")["status"] == "True"


def deployment(values: Mapping[str, object]) -> Document:
    del values
    metadata = {
        "name": "keystone-extra",
        "namespace": ground.NAMESPACE,
        "annotations": {"meta.helm.sh/release-name": KEYSTONE},
    }
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 0}}


def test_a_deleted_workload_is_restored_by_one_run(cluster: Cluster) -> None:
    process = install(
        cluster, lambda values: [deployment(values)], resources.DEPLOYMENTS
    )
    assert cluster.helm.runs == []
    cluster.api.remove(resources.DEPLOYMENTS, "keystone-extra", ground.NAMESPACE)
    process.step()
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]
    cluster.api.put(resources.DEPLOYMENTS, deployment({}))
    process.settle()
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]
    assert cluster.condition("Applied")["status"] == "True"


def test_a_late_watch_is_no_drift(cluster: Cluster) -> None:
    """What only the cache lacks is read before helm is run."""
    process = install(
        cluster, lambda values: [deployment(values)], resources.DEPLOYMENTS
    )
    document = deployment({})
    cluster.api.remove(resources.DEPLOYMENTS, "keystone-extra", ground.NAMESPACE)
    process.refresh()
    cluster.api.put(resources.DEPLOYMENTS, document)
    (snapshot,) = process.observer.observe(process.deployments.by_age()).values()
    assert set(snapshot.missing) == {KEYSTONE}
    process.act_on(snapshot)
    process.settle()
    assert cluster.helm.runs == []
    assert cluster.condition("Applied")["status"] == "True"


def restore(is_on: bool) -> dict[str, Any]:
    values = {"values": {"manifests": {"job_mariadb_phy_restore": is_on}}}
    return {"database": {"mariadb": values}}


FIELD = "spec.services.database.mariadb.values.manifests.job_mariadb_phy_restore"
MARIADB = "upgrade openstack-mariadb"


def test_a_new_deployment_does_not_restore_a_backup(cluster: Cluster) -> None:
    cluster.create(services=restore(True))
    process = Process(cluster)
    steps(process)
    assert MARIADB not in cluster.helm.runs
    assert FIELD in cluster.condition("Applied")["message"]
    cluster.change(services=restore(False))
    process.settle()
    assert cluster.deployed() == RELEASES


def test_a_backup_is_restored_once(installed: Cluster) -> None:
    """Neither a change, nor a deleted workload, nor a restart restores it again."""
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    installed.change(services=restore(True))
    process.settle()
    assert installed.helm.runs == [MARIADB]
    both = restore(True)
    both["database"]["mariadb"]["values"]["of_the_test"] = 1
    installed.change(services=both)
    steps(process)
    steps(Process(installed))
    assert installed.helm.runs == [MARIADB]
    assert FIELD in installed.condition("Applied")["message"]
    off = restore(False)
    off["database"]["mariadb"]["values"]["of_the_test"] = 1
    installed.change(services=off)
    Process(installed).settle()
    assert installed.helm.runs == [MARIADB] * 2
    assert installed.condition("Applied")["status"] == "True"


def test_a_restore_that_failed_is_not_repeated(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    error = helm_errors.Failed("upgrade of openstack-mariadb: Job restore failed")
    installed.helm.faults.append(fake_helm.Fault("openstack-mariadb", error))
    installed.change(services=restore(True))
    steps(process)
    steps(Process(installed))
    assert installed.helm.runs == [MARIADB]
    assert FIELD in installed.condition("Applied")["message"]
    installed.change(services=restore(False))
    Process(installed).settle()
    assert installed.condition("Applied")["status"] == "True"


def test_a_database_of_which_a_workload_is_missing_is_not_restored(
    cluster: Cluster,
) -> None:
    workload = {"kind": "StatefulSet", "metadata": {"name": "mariadb-server"}}
    cluster.helm.objects["openstack-mariadb"] = lambda values: [workload]
    cluster.create()
    process = Process(cluster)
    process.settle()
    cluster.change(services=restore(True))
    process.settle()
    cluster.helm.runs.clear()
    cluster.api.remove(resources.STATEFUL_SETS, "mariadb-server", ground.NAMESPACE)
    steps(process)
    assert cluster.helm.runs == []
    assert FIELD in cluster.condition("Applied")["message"]


def test_values_too_large_for_a_secret(cluster: Cluster) -> None:
    """One message with the release, its size and the limit; helm is not run."""
    process = install(cluster, lambda values: [])
    noise = random.Random(1).randbytes(700_000)  # noqa: S311 # cannot be packed
    change(cluster, noise.hex())
    steps(process, 6)
    message = cluster.condition("Applied")["message"]
    print(message)
    assert f"values of release {KEYSTONE}: " in message
    assert "must be at most 1048576" in message
    assert cluster.helm.runs == []
    change(cluster, "x")
    process.settle()
    assert cluster.helm.runs == [f"upgrade {KEYSTONE}"]


def test_each_hook_of_a_run_has_the_whole_time_out(cluster: Cluster) -> None:
    """A run that is killed in its second hook never ends, at any attempt."""

    def hooks(values: Mapping[str, object]) -> list[Mapping[str, object]]:
        annotations = {"helm.sh/hook": "post-install", "helm.sh/hook-weight": "1"}
        names = [{"name": f"j{number}", "annotations": annotations} for number in "123"]
        return [{"kind": "Job", "metadata": metadata} for metadata in names]

    install(cluster, hooks)
    run = cluster.helm.upgrades[KEYSTONE]
    assert (run.timeout_s, run.limit_s) == (600, 3 * 600 + work.MARGIN_S)


def test_a_rollback_by_hand_to_an_equal_revision_is_no_drift(cluster: Cluster) -> None:
    process = install(cluster, lambda values: [])
    arguments = cluster.helm.upgrades[KEYSTONE]
    run = helm.Upgrade(
        KEYSTONE,
        ground.NAMESPACE,
        arguments.chart,
        arguments.values,
        arguments.labels,
        1,
        limit_s=1,
    )
    cluster.helm.upgrade(run, threading.Event())
    cluster.helm.runs.clear()
    process.settle()
    assert cluster.helm.runs == []
