"""The flow converges from any state, also when it is killed, and then does nothing."""

import collections
import pathlib
import threading
from typing import Any

import pytest

from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.helm.fake import helm as fake_helm
from lib.kube import errors, resources
from lib.kube.fake import calls
from lib.osdpl.reconcile import actions, bundles, states, work
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Death, Process


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_fresh_install_runs_helm_once_per_release(cluster: Cluster) -> None:
    cluster.create()
    process = Process(cluster)
    process.settle()
    assert cluster.deployed() == RELEASES
    assert sorted(cluster.upgrades()) == sorted(f"upgrade {item}" for item in RELEASES)
    assert cluster.condition("Accepted")["status"] == "True"
    assert cluster.condition("Applied")["status"] == "True"
    assert process.most <= 4
    status = cluster.documents(resources.OPENSTACK_DEPLOYMENT_STATUSES)[0]["status"]
    assert status["osdpl"]["state"] == "APPLIED"
    assert {item["state"] for item in status["services"].values()} == {"APPLIED"}
    assert len(status["services"]) == 10
    bundles = cluster.documents(resources.HELM_BUNDLES)
    assert len(bundles) == 10
    assert "password" not in str(bundles)


def test_an_install_writes_few_statuses(cluster: Cluster) -> None:
    """Results are written immediately, progress at most every half a minute."""
    cluster.create()
    Process(cluster).settle()
    rows = collections.Counter(
        (call.verb, call.resource, call.subresource or "")
        for call in cluster.api.calls
        if call.is_write
    )
    for row, count in sorted(rows.items()):
        print(f"{count:4} {' '.join(row)}")
    bundles = len(cluster.documents(resources.HELM_BUNDLES))
    # The digest of each chart, once it is read.
    assert rows["patch", "helmbundles", ""] <= len(RELEASES)
    # The first one of each HelmBundle, and the readiness of each release.
    assert rows["patch", "helmbundles", "status"] <= bundles + len(RELEASES)
    for bundle in cluster.documents(resources.HELM_BUNDLES):
        for release in bundle["status"]["releaseStatuses"].values():
            assert release["ready"] is True
            assert release["revision"] == 1


def test_nothing_changed_means_no_call(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.api.calls.clear()
    installed.helm.runs.clear()
    assert process.step() == ([], None)
    assert installed.api.calls == []
    assert installed.helm.runs == []


def test_a_restart_writes_and_runs_nothing(cluster: Cluster) -> None:
    cluster.create()
    Process(cluster).settle()
    cluster.api.calls.clear()
    cluster.helm.runs.clear()
    Process(cluster).settle()
    written = [call for call in cluster.api.calls if call.is_write]
    # The dry run of a pod, which creates nothing.
    assert [(item.verb, item.resource) for item in written] == [("create", "pods")]
    assert cluster.helm.runs == []


def test_one_changed_value_is_one_run(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    values = {"keystone": {"values": {"conf": {"keystone": {"DEFAULT": {"debug": 1}}}}}}
    installed.change(services={"identity": values})
    process.settle()
    assert installed.helm.runs == ["upgrade openstack-keystone"]
    assert installed.condition("Applied")["status"] == "True"


def test_gates_hold_back_what_waits(cluster: Cluster) -> None:
    cluster.opens_gates = False
    cluster.create()
    process = Process(cluster)
    for _ in range(15):
        process.step()
    assert "upgrade openstack-keystone" not in cluster.upgrades()
    assert "upgrade openstack-openvswitch" in cluster.upgrades()
    condition = cluster.condition("Applied")
    assert (condition["status"], condition["reason"]) == ("False", "Waiting")
    assert "mariadb-server" in condition["message"]
    for release in ground.GATES:
        if release != "openstack-keystone":
            cluster.ready(release)
    for _ in range(5):
        process.step()
    assert "upgrade openstack-keystone" in cluster.upgrades()
    assert "upgrade openstack-nova" not in cluster.upgrades()
    cluster.ready("openstack-keystone")
    process.settle()
    assert cluster.deployed() == RELEASES


def test_what_lasts_longest_is_started_first(cluster: Cluster) -> None:
    """Once keystone is Ready five releases can be installed, with four slots."""
    cluster.create()
    Process(cluster).settle()
    runs = cluster.upgrades()
    after = runs[runs.index("upgrade openstack-keystone") + 1 :]
    print(after)
    assert {item.removeprefix("upgrade openstack-") for item in after[:4]} > {
        "nova",
        "neutron",
    }


def test_one_slot_is_enough(cluster: Cluster) -> None:
    cluster.create()
    process = Process(cluster, slots=1)
    process.settle(200)
    assert cluster.deployed() == RELEASES
    assert process.most <= 1


def test_a_failed_run_is_repeated_and_the_others_go_on(cluster: Cluster) -> None:
    error = helm_errors.Failed("upgrade of openstack-glance: Job glance-db-sync failed")
    cluster.helm.faults.append(fake_helm.Fault("openstack-glance", error))
    cluster.create()
    process = Process(cluster)
    for _ in range(12):
        process.step()
    assert cluster.deployed() == RELEASES - {"openstack-glance"}
    condition = cluster.condition("Applied")
    assert condition["reason"] == "Failed"
    assert "glance-db-sync" in condition["message"]
    process.settle()
    assert cluster.deployed() == RELEASES
    assert cluster.upgrades().count("upgrade openstack-glance") == 2


def test_existing_credentials_are_kept(cluster: Cluster) -> None:
    data = {"mariadb": "eA=="}
    old: dict[str, object] = {
        "type": "Opaque",
        "metadata": {"name": "other", "namespace": "openstack"},
        "data": data,
    }
    cluster.api.put(resources.SECRETS, old)
    cluster.create()
    Process(cluster).settle()
    assert cluster.credentials()["other"] == data


def test_a_service_that_is_not_desired_any_more(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    extra = {"features": {**installed.deployment()["spec"]["features"], "services": []}}
    installed.change(**extra)
    process.settle()
    assert installed.helm.runs == [], "a preset's services cannot be dropped by a list"


def test_deletion_uninstalls_in_reverse_order(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    installed.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", "openstack")
    process.settle()
    runs = [run.removeprefix("uninstall ") for run in installed.helm.runs]
    assert sorted(runs) == sorted(RELEASES)
    assert runs.index("openstack-nova") < runs.index("openstack-keystone")
    assert runs.index("openstack-keystone") < runs.index("openstack-mariadb")
    assert installed.documents(resources.OPENSTACK_DEPLOYMENTS) == []
    assert installed.deployed() == frozenset()


def left(cluster: Cluster, kind: resources.Resource) -> list[str]:
    return sorted(document["metadata"]["name"] for document in cluster.documents(kind))


def install_heat(cluster: Cluster) -> None:
    """Leave a service behind that the OpenStackDeployment does not name any more."""
    labels = {
        states.OWNER_LABEL: cluster.deployment()["metadata"]["uid"],
        states.HASH_LABEL: "x",
    }
    run_by_hand(cluster, "openstack-heat", labels)
    metadata = {
        "name": "openstack-orchestration",
        "namespace": "openstack",
        "labels": {bundles.MANAGED_BY: bundles.MANAGER},
    }
    releases = [{"name": "openstack-heat", "requires": ["openstack-keystone"]}]
    bundle = {"metadata": metadata, "spec": {"releases": releases}}
    cluster.api.put(resources.HELM_BUNDLES, bundle)
    cluster.leave("openstack-heat")
    cluster.leave("openstack-glance")


@pytest.mark.parametrize("has_database", [True, False])
@pytest.mark.parametrize("is_purged", [True, False])
def test_a_service_that_is_removed(
    installed: Cluster, has_database: bool, is_purged: bool
) -> None:
    """Its leftovers go; what holds data stays, unless an annotation says otherwise."""
    process = Process(installed)
    process.settle()
    install_heat(installed)
    if is_purged:
        annotate(installed, purge="image, orchestration")
    if not has_database:
        installed.api.remove(resources.STATEFUL_SETS, "mariadb-server", "openstack")
    process.settle()
    assert installed.helm.runs == ["uninstall openstack-heat"]
    assert installed.helm.hooks == {"openstack-heat": has_database}
    assert installed.deployed() == RELEASES
    assert "openstack-orchestration" not in left(installed, resources.HELM_BUNDLES)
    assert left(installed, resources.JOBS) == ["openstack-glance-left"]
    claims = {"openstack-glance-left", "openstack-heat-left"}
    expected = claims - {"openstack-heat-left"} if is_purged else claims
    assert set(left(installed, resources.CLAIMS)) == expected
    # Of a service that is still desired nothing is purged.
    assert "generated-image-passwords" in installed.credentials()


def test_the_deletion_leaves_data_and_nothing_else(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    before = installed.credentials()
    for release in RELEASES:
        installed.leave(release)
    annotate(installed, purge="compute,messaging")
    installed.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", "openstack")
    process.settle()
    assert left(installed, resources.JOBS) == []
    assert left(installed, resources.HELM_BUNDLES) == []
    purged = {"openstack-nova", "openstack-libvirt", "openstack-rabbitmq"}
    kept = {f"{release}-left" for release in RELEASES - purged}
    assert set(left(installed, resources.CLAIMS)) == kept
    gone = {
        *("generated-compute-passwords", "generated-nova-ssh-creds"),
        "generated-rabbitmq-password",
    }
    assert set(before) - set(installed.credentials()) == gone
    assert left(installed, resources.OPENSTACK_DEPLOYMENTS) == []


def test_a_second_deployment_gets_a_condition_and_nothing_else(
    cluster: Cluster,
) -> None:
    cluster.create()
    cluster.create("second")
    process = Process(cluster)
    process.settle()
    condition = cluster.condition("Accepted", "second")
    assert condition["reason"] == "SecondDeployment"
    assert "openstack/osh-dev" in condition["message"]
    assert "finalizers" not in cluster.deployment("second")["metadata"]
    assert cluster.deployed() == RELEASES


def test_a_release_of_another_program_is_refused(cluster: Cluster) -> None:
    other = helm.Upgrade(
        "openstack-glance",
        "openstack",
        pathlib.Path("x.tgz"),
        {},
        {},
        timeout_s=1,
        limit_s=1,
    )
    cluster.helm.upgrade(other, threading.Event())
    cluster.helm.runs.clear()
    cluster.create()
    process = Process(cluster)
    for _ in range(15):
        process.step()
    assert "upgrade openstack-glance" not in cluster.upgrades()
    assert len(cluster.upgrades()) == len(RELEASES) - 1
    assert "owned by another program" in cluster.condition("Applied")["message"]


def annotate(cluster: Cluster, **annotations: str) -> None:
    """Set annotations of the OpenStackDeployment; `adopt` is mooring.io/adopt."""
    document = cluster.deployment()
    named = {f"mooring.io/{name}": value for name, value in annotations.items()}
    document["metadata"]["annotations"] = named
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)


def run_by_hand(
    cluster: Cluster, release: str, labels: dict[str, str] | None = None
) -> None:
    """Run helm as an administrator does, who is no part of the controller."""
    chart = pathlib.Path("x.tgz")
    run = helm.Upgrade(
        release, "openstack", chart, {"by": "hand"}, labels or {}, 1, limit_s=1
    )
    cluster.helm.upgrade(run, threading.Event())
    cluster.helm.runs.clear()


def test_a_release_of_another_program_is_adopted_when_told(cluster: Cluster) -> None:
    run_by_hand(cluster, "openstack-glance")
    cluster.create()
    process = Process(cluster)
    for _ in range(15):
        process.step()
    assert "upgrade openstack-glance" not in cluster.upgrades()
    message = cluster.condition("Applied")["message"]
    assert "mooring.io/adopt: openstack-glance" in message
    annotate(cluster, adopt="openstack-glance")
    process.settle()
    assert cluster.upgrades().count("upgrade openstack-glance") == 1
    assert cluster.deployed() == RELEASES
    assert cluster.condition("Accepted")["reason"] == "Accepted"
    # It is owned from now on, also without the annotation.
    annotate(cluster)
    process.settle()
    assert cluster.upgrades().count("upgrade openstack-glance") == 1
    assert cluster.condition("Applied")["status"] == "True"


def test_an_annotation_that_names_no_release_is_reported(cluster: Cluster) -> None:
    cluster.create()
    annotate(cluster, adopt="glance", purge="etcd,dashboard")
    ((reason, message),) = warnings(Process(cluster), 30)
    assert reason == "FieldsIgnored"
    assert (
        'annotation mooring.io/adopt: unsupported value "glance": must be one of etcd'
        in message
    )
    assert (
        'annotation mooring.io/purge: unsupported value "etcd": must be one of compute'
        in message
    )
    assert "dashboard:" not in message
    assert cluster.deployed() == RELEASES


def test_a_helm_process_of_an_administrator_is_awaited(installed: Cluster) -> None:
    """Until the time is over that a run may last: then it was killed."""
    process = Process(installed)
    process.settle()
    (labels,) = {
        tuple(document["metadata"]["labels"].items())
        for document in installed.documents(resources.SECRETS)
        if document["metadata"]["name"] == "sh.helm.release.v1.openstack-glance.v1"
    }
    installed.death = ("pending", "openstack-glance")
    with pytest.raises(Death):
        run_by_hand(installed, "openstack-glance", dict(labels))
    installed.helm.runs.clear()
    began_s = installed.clock.seconds
    done, wait_s = process.step()
    assert installed.helm.runs == []
    assert wait_s is not None
    assert wait_s > 600
    assert "another helm process" in installed.condition("Applied")["message"]
    installed.clock.seconds = began_s + wait_s
    process.settle()
    assert installed.helm.runs == ["upgrade openstack-glance"]
    assert installed.deployed() == RELEASES


def test_a_helm_process_that_is_killed_alone(cluster: Cluster) -> None:
    """The controller goes on, and repairs what the run left."""
    killed = helm_errors.Failed("upgrade of openstack-glance: exit -9")
    leaves = helm.Status.PENDING_INSTALL
    cluster.helm.faults.append(fake_helm.Fault("openstack-glance", killed, leaves))
    cluster.create()
    Process(cluster).settle()
    assert cluster.upgrades().count("upgrade openstack-glance") == 2
    assert len(cluster.upgrades()) == len(RELEASES) + 1
    assert cluster.deployed() == RELEASES


def test_a_release_that_is_removed_by_hand_is_restored(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    run = helm.Uninstall("openstack-glance", "openstack", 1, limit_s=1)
    installed.helm.uninstall(run, threading.Event())
    installed.helm.runs.clear()
    process.settle()
    assert installed.helm.runs == ["upgrade openstack-glance"]
    assert installed.deployed() == RELEASES


def test_a_release_that_is_rolled_back_by_hand_is_restored(installed: Cluster) -> None:
    """helm gives the new revision the labels of the one that it restores.

    Source: helm.sh/helm/v4 pkg/action, rollback.go.
    """
    process = Process(installed)
    process.settle()
    owner = installed.deployment()["metadata"]["uid"]
    labels = {states.OWNER_LABEL: owner, states.HASH_LABEL: "of-an-older-revision"}
    run_by_hand(installed, "openstack-glance", labels)
    process.settle()
    assert installed.helm.runs == ["upgrade openstack-glance"]
    assert installed.condition("Applied")["status"] == "True"


def test_a_release_that_cannot_be_read_is_named(installed: Cluster) -> None:
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    name = "sh.helm.release.v1.openstack-glance.v1"
    secret = next(
        document
        for document in installed.documents(resources.SECRETS)
        if document["metadata"]["name"] == name
    )
    installed.api.put(resources.SECRETS, {**secret, "data": {"release": "eA=="}})
    ((reason, message),) = warnings(process, 5)
    assert reason == "Failed"
    assert f"Secret openstack/{name}" in message
    assert installed.helm.runs == []
    installed.api.remove(resources.SECRETS, name, "openstack")
    process.settle()
    assert installed.helm.runs == ["upgrade openstack-glance"]
    assert installed.deployed() == RELEASES


def test_helm_s_words_decide_nothing(cluster: Cluster) -> None:
    """Each class of error that is known from its output is repeated alike."""
    kinds = (
        *(helm_errors.Busy, helm_errors.DoesNotRender, helm_errors.Failed),
        *(helm_errors.Forbidden, helm_errors.ImmutableField, helm_errors.NotOwned),
        *(helm_errors.TimedOut, helm_errors.Unreachable),
    )
    releases = sorted(RELEASES)[: len(kinds)]
    for release, kind in zip(releases, kinds, strict=True):
        error = kind(f"upgrade of {release}")
        cluster.helm.faults += [fake_helm.Fault(release, error)] * 2
    cluster.create()
    began_s = cluster.clock.seconds
    Process(cluster).settle()
    assert cluster.deployed() == RELEASES
    counts = collections.Counter(cluster.upgrades())
    assert {counts[f"upgrade {release}"] for release in releases} == {3}
    assert cluster.clock.seconds - began_s < work.FINAL_S


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"size": "huge"}, "InvalidSpec", "spec.size"),
        ({"sizes": "tiny"}, "InvalidSpec", "spec.sizes"),
        ({"preset": None}, "InvalidSpec", "spec.preset"),
        (
            {"region_name": {"value_from": {}}},
            "InvalidSpec",
            "spec.region_name",
        ),
    ],
)
def test_bad_specs(
    cluster: Cluster, changes: dict[str, Any], reason: str, words: str
) -> None:
    cluster.create(**changes)
    Process(cluster).settle()
    condition = cluster.condition("Accepted")
    assert (condition["status"], condition["reason"]) == ("False", reason)
    assert words in condition["message"]
    assert cluster.helm.runs == []
    assert cluster.credentials() == {}


def test_a_rule_beyond_the_schema_is_a_refusal(cluster: Cluster) -> None:
    """Whichever way the spec came in, and before anything is generated."""
    features = ground.spec("x")["features"]
    themes = [{"name": "x", "url": "https://x", "sha256summ": "x"}]
    cluster.create(features={**features, "horizon": {"themes": themes}})
    ((reason, message),) = warnings(Process(cluster), 5)
    assert reason == "InvalidSpec"
    assert message.startswith(
        "spec.features.horizon.themes[0].description: not set: must be "
    )
    assert cluster.credentials() == {}
    assert cluster.helm.runs == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("gazpacho", "flamingo", "there is no downgrade"),
        ("epoxy", "gazpacho", ""),
        ("epoxy", "flamingo", ""),
    ],
)
def test_another_openstack_version(
    cluster: Cluster, before: str, after: str, words: str
) -> None:
    cluster.create(openstack_version=before)
    process = Process(cluster)
    process.settle()
    cluster.helm.runs.clear()
    cluster.change(openstack_version=after)
    process.settle(120)
    accepted = cluster.condition("Accepted")
    if words:
        assert accepted["reason"] == "InvalidSpec"
        assert words in accepted["message"]
        assert cluster.helm.runs == []
        cluster.change(openstack_version=before)
        process.settle()
        assert cluster.helm.runs == []
    else:
        assert len(cluster.upgrades()) == len(set(cluster.upgrades())) > 1
    assert cluster.condition("Accepted")["status"] == "True"
    assert cluster.condition("Applied")["status"] == "True"


def test_no_upgrade_before_all_is_applied(cluster: Cluster) -> None:
    cluster.opens_gates = False
    cluster.create(openstack_version="epoxy")
    process = Process(cluster)
    for _ in range(15):
        process.step()
    cluster.change(openstack_version="flamingo")
    process.step()
    accepted = cluster.condition("Accepted")
    assert accepted["reason"] == "InvalidSpec"
    assert "epoxy until all services are APPLIED" in accepted["message"]


def test_a_spec_that_requires_ceph_waits(cluster: Cluster) -> None:
    """It is no failure; the services without Ceph are installed."""
    features = ground.spec("x")["features"]
    nova = {**features["nova"], "images": {"backend": "ceph"}}
    cluster.create(features={**features, "nova": nova})
    assert warnings(Process(cluster), 40) == []
    condition = cluster.condition("Applied")
    assert (condition["status"], condition["reason"]) == ("False", "Waiting")
    assert "RequiresCeph: spec.features.nova.images.backend" in condition["message"]
    of_compute = {"openstack-nova", "openstack-libvirt"}
    assert cluster.deployed() == RELEASES - of_compute
    status = cluster.documents(resources.OPENSTACK_DEPLOYMENT_STATUSES)[0]["status"]
    assert status["services"]["compute"]["state"] == "WAITING"


def test_fields_without_effect_are_reported_once(cluster: Cluster) -> None:
    cluster.create(migration={"ingress": {"state": "absent"}})
    process = Process(cluster)
    reported = [
        event
        for _ in range(15)
        for action in process.step()[0]
        if isinstance(action, actions.ApplyConditions)
        for event in action.events
        if event[1] == "FieldsIgnored"
    ]
    ((type, _, message),) = reported
    assert type == "Warning"
    assert "spec.migration" in message
    condition = cluster.condition("Accepted")
    assert (condition["status"], condition["reason"]) == ("True", "FieldsIgnored")
    assert cluster.deployed() == RELEASES


def test_a_namespace_that_forbids_privileged_pods(cluster: Cluster) -> None:
    refused = errors.Forbidden(
        'pods "x" is forbidden: violates PodSecurity "baseline:latest"', operation="p"
    )
    cluster.api.faults += [calls.Fault(refused, "create", "pods")] * 1
    cluster.create()
    process = Process(cluster)
    done, wait_s = process.step()
    condition = cluster.condition("Accepted")
    assert condition["reason"] == "PodSecurity"
    assert "pod-security.kubernetes.io/enforce=privileged" in condition["message"]
    assert cluster.helm.runs == []
    assert wait_s is not None
    process.settle()
    assert cluster.deployed() == RELEASES


def test_a_namespace_that_does_not_exist(cluster: Cluster) -> None:
    """It can be deleted while the controller runs."""
    refused = errors.NotFound('namespaces "openstack" not found', operation="p")
    cluster.api.faults.append(calls.Fault(refused, "create", "pods"))
    cluster.create()
    process = Process(cluster)
    ((reason, message),) = warnings(process, 1)
    assert reason == "NamespaceMissing"
    assert message == "namespace openstack: not found"
    assert cluster.condition("Accepted")["reason"] == reason
    assert cluster.helm.runs == []
    process.settle()
    assert cluster.deployed() == RELEASES


def test_a_definition_of_another_controller(cluster: Cluster) -> None:
    cluster.api.put(
        resources.DEFINITIONS, {"metadata": {"name": "helmbundles.lcm.mirantis.com"}}
    )
    cluster.create()
    Process(cluster).step()
    assert cluster.condition("Accepted")["reason"] == "HelmBundleNotOwned"
    writes = {call.resource for call in cluster.api.calls if call.is_write}
    assert writes == {"openstackdeployments", "pods"}


def test_a_bundle_of_another_controller(cluster: Cluster) -> None:
    metadata = {"name": "openstack-identity", "namespace": "openstack"}
    cluster.api.put(resources.HELM_BUNDLES, {"metadata": metadata, "spec": {"x": 1}})
    cluster.create()
    Process(cluster).step()
    condition = cluster.condition("Accepted")
    assert condition["reason"] == "HelmBundleNotOwned"
    assert "openstack-identity" in condition["message"]
    assert cluster.helm.runs == []


def test_a_draft_changes_nothing(cluster: Cluster) -> None:
    cluster.create(draft=True)
    Process(cluster).settle()
    assert cluster.condition("Applied")["reason"] == "Draft"
    assert cluster.helm.runs == []


def test_a_pause_stops_all_writes(installed: Cluster) -> None:
    """Also a deletion; what has begun goes on, and after it all is done."""
    process = Process(installed)
    process.settle()
    installed.helm.runs.clear()
    annotate(installed, paused="true")
    process.settle()
    condition = installed.condition("Applied")
    assert (condition["status"], condition["reason"]) == ("False", "Paused")
    assert "mooring.io/paused" in condition["message"]
    installed.api.calls.clear()
    values = {"keystone": {"values": {"conf": {"keystone": {"DEFAULT": {"debug": 1}}}}}}
    installed.change(services={"identity": values})
    process.settle()
    # The condition names the generation that was observed.
    written = {(write.resource, write.subresource) for write in writes(installed)}
    assert written <= {("openstackdeployments", "status")}
    installed.api.remove(resources.OPENSTACK_DEPLOYMENTS, "osh-dev", "openstack")
    process.settle()
    assert installed.helm.runs == []
    annotate(installed, paused="no")
    process.settle()
    assert len(installed.helm.runs) == len(RELEASES)
    assert installed.deployed() == frozenset()


def test_a_pause_before_the_first_install(cluster: Cluster) -> None:
    cluster.create()
    annotate(cluster, paused="true")
    process = Process(cluster)
    process.settle()
    assert cluster.condition("Applied")["reason"] == "Paused"
    assert cluster.credentials() == {}
    annotate(cluster)
    process.settle()
    assert cluster.deployed() == RELEASES


def writes(cluster: Cluster) -> list[calls.Call]:
    return [call for call in cluster.api.calls if call.is_write]


def test_a_missing_permission_is_a_condition(cluster: Cluster) -> None:
    refused = errors.Forbidden("helmbundles is forbidden", operation="PATCH x")
    cluster.api.faults.append(calls.Fault(refused, "patch", "helmbundles"))
    cluster.create()
    process = Process(cluster)
    with pytest.raises(errors.Forbidden):
        process.settle()
    process.settle()
    assert cluster.deployed() == RELEASES


def warnings(process: Process, steps: int) -> list[tuple[str, str]]:
    """Reconcile; return reason and message of each Event of the type Warning."""
    observed = []
    for _ in range(steps):
        done, wait_s = process.step()
        process.cluster.clock.seconds += wait_s or 0.1
        for action in done:
            if isinstance(action, actions.ApplyConditions):
                observed += [row[1:] for row in action.events if row[0] == "Warning"]
    return observed


def test_an_unreachable_source_is_one_condition_and_one_event(
    cluster: Cluster,
) -> None:
    """Also when it is tried again: 12 charts fail, one after the other."""
    cluster.url = "http://127.0.0.1:9"
    cluster.create()
    ((reason, message),) = warnings(Process(cluster), 30)
    assert reason == "Failed"
    assert message == cluster.condition("Applied")["message"]
    for service in ("database", "identity", "compute"):
        assert service in message
    assert "127.0.0.1:9" in message
    assert cluster.helm.runs == []


def test_one_release_that_fails_is_one_event(cluster: Cluster) -> None:
    """The others are installed meanwhile; their progress is no further Event."""
    error = helm_errors.DoesNotRender("upgrade of etcd: execution error at (etcd/x)")
    cluster.helm.faults += [fake_helm.Fault("etcd", error)] * 100
    cluster.create()
    ((reason, message),) = warnings(Process(cluster), 30)
    assert reason == "Failed"
    assert message.startswith("coordination: upgrade of etcd")
    assert cluster.deployed() == RELEASES - {"etcd"}
    assert len(cluster.upgrades()) >= len(RELEASES)


def test_a_refusal_is_one_event(cluster: Cluster) -> None:
    cluster.create(size="huge")
    ((reason, message),) = warnings(Process(cluster), 5)
    assert reason == "InvalidSpec"
    assert "spec.size" in message
    conditions = cluster.deployment()["status"]["conditions"]
    assert [condition["status"] for condition in conditions] == ["False", "False"]
