"""Nothing is uninstalled by accident, whatever object of the operator is deleted."""

import pathlib
from collections.abc import Callable, Iterator

import pytest

from lib.helm import cache
from lib.kube import resources
from lib.osdpl.reconcile import caches, planning
from lib.osdpl.reconcile.snapshot import Refused
from lib.osdpl.values import graph
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import RELEASES, Cluster, Installed, Process

STEPS = 14
HYPERVISOR = frozenset({"openstack-nova", "openstack-libvirt"})
UNSUPPORTED = {
    "neutron": {"tunnel_interface": "ens3"},
    "nova": {"live_migration_interface": "ens3", "images": {"backend": "ceph"}},
}
"""Features of which one makes the service compute refused."""


@pytest.fixture()
def cluster(tmp_path: pathlib.Path) -> Cluster:
    return Cluster(tmp_path)


def advance(process: Process, count: int) -> None:
    for _ in range(count):
        _, wait_s = process.step()
        process.cluster.clock.seconds += max(wait_s or 0.1, ground.SHORTEST_S)


def lose(cluster: Cluster, kind: resources.Resource, name: str) -> None:
    """Delete an object, if it exists."""
    present = [item["metadata"]["name"] for item in cluster.documents(kind)]
    if name in present:
        cluster.api.remove(kind, name, ground.NAMESPACE)


def delete(cluster: Cluster) -> None:
    lose(cluster, resources.OPENSTACK_DEPLOYMENTS, "osh-dev")


def lose_definition(cluster: Cluster, kind: resources.Resource) -> None:
    """Delete a CustomResourceDefinition, and with it all objects of its kind."""
    name = f"{kind.plural}.{kind.group}"
    cluster.api.remove(resources.DEFINITIONS, name)
    for item in cluster.documents(kind):
        lose(cluster, kind, item["metadata"]["name"])


def uninstalled(cluster: Cluster) -> list[str]:
    return [run for run in cluster.helm.runs if run.startswith("uninstall ")]


Loss = Callable[[Cluster], None]


def losing(kind: resources.Resource, name: str) -> Loss:
    return lambda cluster: lose(cluster, kind, name)


def losing_definition(kind: resources.Resource) -> Loss:
    return lambda cluster: lose_definition(cluster, kind)


def losing_revision(release: str) -> Loss:
    return lambda cluster: lose_revision(cluster, release)


def losses() -> Iterator[tuple[str, Loss]]:
    """Yield each object that can be lost, and how."""
    for service in graph.RELEASES:
        name = f"openstack-{service}"
        yield f"HelmBundle {name}", losing(resources.HELM_BUNDLES, name)
    kind = resources.OPENSTACK_DEPLOYMENT_STATUSES
    yield "the status object", losing(kind, "osh-dev")
    for defined in ground.DEFINED:
        yield f"the definition {defined.plural}", losing_definition(defined)
    for release in sorted(RELEASES):
        yield f"the newest Secret of {release}", losing_revision(release)
    for secret in ("openstack-admin-users", "generated-compute-passwords"):
        yield f"Secret {secret}", losing(resources.SECRETS, secret)


def lose_revision(cluster: Cluster, release: str) -> None:
    names = [
        item["metadata"]["name"]
        for item in cluster.documents(resources.SECRETS)
        if item["metadata"].get("labels", {}).get("name") == release
    ]
    if names:
        lose(cluster, resources.SECRETS, max(names))


LOSSES = dict(losses())


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_in_an_installation_uninstalls_nothing(
    cluster: Cluster, loss: str
) -> None:
    cluster.create()
    for count in range(STEPS):
        process = Process(cluster)
        advance(process, count % 3 + 1)
        LOSSES[loss](cluster)
    advance(Process(cluster), STEPS)
    assert uninstalled(cluster) == []
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_in_an_upgrade_uninstalls_nothing_and_lifts_no_rule(
    installed_version: Installed, loss: str
) -> None:
    cluster = installed_version("flamingo")
    cluster.change(openstack_version="gazpacho")
    for _ in range(STEPS):
        process = Process(cluster)
        advance(process, 2)
        LOSSES[loss](cluster)
    advance(Process(cluster), STEPS)
    before = list(cluster.helm.runs)
    LOSSES[loss](cluster)
    cluster.change(openstack_version="epoxy")
    advance(Process(cluster), STEPS)
    assert uninstalled(cluster) == []
    assert cluster.helm.runs[len(before) :] == []
    assert cluster.condition("Accepted")["status"] == "False"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_in_a_removal_keeps_the_order_and_leaves_nothing(
    installed_version: Installed, loss: str
) -> None:
    cluster = installed_version("gazpacho")
    delete(cluster)
    process = Process(cluster, slots=1)
    for _ in range(40):
        advance(process, 1)
        if not loss.startswith("the definition openstackdeployments"):
            LOSSES[loss](cluster)
    runs = [run.removeprefix("uninstall ") for run in uninstalled(cluster)]
    for item in cluster.documents(resources.STATEFUL_SETS) + cluster.documents(
        resources.DEPLOYMENTS
    ):
        # Without a record, helm cannot uninstall it: an administrator does.
        release = item["metadata"]["annotations"][caches.RELEASE]
        assert loss == f"the newest Secret of {release}"
        assert release in cluster.condition("Accepted")["message"]
        for kind in (resources.STATEFUL_SETS, resources.DEPLOYMENTS):
            lose(cluster, kind, item["metadata"]["name"])
    advance(process, 2)
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []
    assert cluster.deployed() == frozenset()
    for first, later in (
        ("openstack-nova", "openstack-keystone"),
        ("openstack-neutron", "openstack-keystone"),
        ("openstack-keystone", "openstack-mariadb"),
        ("openstack-horizon", "openstack-memcached"),
        ("openstack-glance", "openstack-rabbitmq"),
    ):
        if {first, later} <= set(runs):
            assert runs.index(first) < runs.index(later)


@pytest.mark.parametrize("end", ["restored", "deleted", "forced"])
def test_workloads_without_a_record_keep_the_object(
    installed_version: Installed, end: str
) -> None:
    """What runs on would be owned by nothing."""
    cluster = installed_version("gazpacho")
    name = "openstack-mariadb"
    (revision,) = (
        item
        for item in cluster.documents(resources.SECRETS)
        if item["metadata"].get("labels", {}).get("name") == name
    )
    lose_revision(cluster, name)
    delete(cluster)
    advance(Process(cluster), 40)
    assert cluster.deployed() == frozenset()
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == Refused.DELETION_REFUSED
    assert f"StatefulSet mariadb-server of release {name}" in accepted["message"]
    lose(cluster, resources.OPENSTACK_DEPLOYMENT_STATUSES, "osh-dev")
    advance(Process(cluster), STEPS)
    assert cluster.condition("Accepted")["message"] == accepted["message"]
    if end == "restored":
        del revision["metadata"]["resourceVersion"]
        cluster.api.put(resources.SECRETS, revision)
    elif end == "deleted":
        lose(cluster, resources.STATEFUL_SETS, "mariadb-server")
    else:
        document = cluster.deployment()
        document["metadata"]["annotations"] = {"mooring.io/force": "deletion"}
        cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    advance(Process(cluster), STEPS)
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []
    left = cluster.documents(resources.STATEFUL_SETS)
    assert bool(left) is (end == "forced")


def test_a_refused_service_without_its_helm_bundle_stays_installed(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    cluster.change(features=UNSUPPORTED)
    Process(cluster).settle()
    lose(cluster, resources.HELM_BUNDLES, "openstack-compute")
    Process(cluster).settle()
    assert uninstalled(cluster) == []
    assert cluster.deployed() == RELEASES
    bundles = cluster.documents(resources.HELM_BUNDLES)
    (compute,) = (b for b in bundles if b["metadata"]["name"] == "openstack-compute")
    names = {release["name"] for release in compute["spec"]["releases"]}
    assert names == HYPERVISOR
    cluster.change(features=ground.spec("")["features"])
    runs = list(cluster.helm.runs)
    Process(cluster).settle()
    assert cluster.helm.runs == runs
    assert cluster.condition("Applied")["status"] == "True"


def test_a_release_of_an_unknown_service_is_never_surplus(
    installed_version: Installed,
) -> None:
    """It may be of another version of the operator, with the same owner."""
    cluster = installed_version("gazpacho")
    (secret,) = (
        item
        for item in cluster.documents(resources.SECRETS)
        if item["metadata"].get("labels", {}).get("name") == "openstack-horizon"
    )
    labels = {**secret["metadata"]["labels"], "name": "openstack-heat"}
    metadata = {"namespace": ground.NAMESPACE, "labels": labels}
    metadata["name"] = "sh.helm.release.v1.openstack-heat.v1"
    cluster.api.put(resources.SECRETS, {**secret, "metadata": metadata})
    Process(cluster).settle()
    assert uninstalled(cluster) == []
    delete(cluster)
    Process(cluster).settle()
    assert "uninstall openstack-heat" in uninstalled(cluster)


def test_the_deletion_of_the_definition_needs_the_annotation(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    lose_definition(cluster, resources.OPENSTACK_DEPLOYMENTS)
    advance(Process(cluster), STEPS)
    assert uninstalled(cluster) == []
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == Refused.DELETION_REFUSED
    document = cluster.deployment()
    document["metadata"]["annotations"] = {"mooring.io/force": "deletion"}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    Process(cluster).settle()
    assert cluster.deployed() == frozenset()


@pytest.mark.parametrize("kind", ["secrets", "helmbundles", "daemonsets"])
def test_a_deletion_waits_until_all_kinds_are_listed(
    installed_version: Installed, kind: str
) -> None:
    cluster = installed_version("gazpacho")
    delete(cluster)
    process = Process(cluster)
    process.unlisted = frozenset({kind})
    advance(process, STEPS)
    assert uninstalled(cluster) == []
    assert cluster.deployed() == RELEASES
    assert len(cluster.documents(resources.OPENSTACK_DEPLOYMENTS)) == 1
    accepted = cluster.condition("Accepted")
    print(accepted)
    assert accepted["reason"] == Refused.UNKNOWN
    assert kind in accepted["message"]
    process.unlisted = frozenset()
    process.settle()
    assert cluster.deployed() == frozenset()


@pytest.mark.parametrize("is_in_file", [True, False])
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("epoxy", "gazpacho or later: there is no downgrade"),
        ("flamingo", "gazpacho or later: there is no downgrade"),
        ("master", "a version with images"),
    ],
)
def test_the_version_of_the_releases_counts_without_a_status(
    installed_version: Installed, version: str, expected: str, is_in_file: bool
) -> None:
    """By the controller and by `mooring plan osdpl`."""
    cluster = installed_version("gazpacho")
    lose(cluster, resources.OPENSTACK_DEPLOYMENT_STATUSES, "osh-dev")
    runs = list(cluster.helm.runs)
    if is_in_file:
        document = cluster.deployment()
        document["spec"]["openstack_version"] = version
        charts = cache.Charts(cluster.folder / "plan")
        planner = planning.Planner(cluster.api, cluster.helm, charts)
        message = planner.plan(document).refused
    else:
        cluster.change(openstack_version=version)
        advance(Process(cluster), STEPS)
        message = cluster.condition("Accepted")["message"]
    assert expected in message
    assert cluster.helm.runs == runs


def test_an_upgrade_waits_until_the_status_is_written_again(
    installed_version: Installed,
) -> None:
    """Without its record another change of the spec could not be recognised."""
    cluster = installed_version("flamingo")
    lose(cluster, resources.OPENSTACK_DEPLOYMENT_STATUSES, "osh-dev")
    cluster.change(openstack_version="gazpacho", size="small")
    runs = list(cluster.helm.runs)
    advance(Process(cluster), STEPS)
    assert cluster.helm.runs == runs
    message = cluster.condition("Accepted")["message"]
    assert "flamingo until all services are APPLIED" in message
    cluster.change(openstack_version="flamingo", size="tiny")
    Process(cluster).settle()
    cluster.change(openstack_version="gazpacho")
    Process(cluster).settle(120)
    assert cluster.condition("Applied")["status"] == "True"


def test_a_recreated_object_cannot_downgrade_what_it_adopts(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    document = cluster.deployment()
    document["metadata"]["finalizers"] = []
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    delete(cluster)
    lose(cluster, resources.OPENSTACK_DEPLOYMENT_STATUSES, "osh-dev")
    cluster.create(openstack_version="flamingo")
    document = cluster.deployment()
    adopted = ",".join(sorted(RELEASES))
    document["metadata"]["annotations"] = {"mooring.io/adopt": adopted}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    runs = list(cluster.helm.runs)
    advance(Process(cluster), STEPS)
    assert cluster.helm.runs == runs
    assert "there is no downgrade" in cluster.condition("Accepted")["message"]


def test_a_recreated_object_owns_what_it_adopts_unchanged(
    installed_version: Installed,
) -> None:
    """Without the annotation, too; its deletion uninstalls it."""
    cluster = installed_version("gazpacho")
    document = cluster.deployment()
    document["metadata"]["finalizers"] = []
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    delete(cluster)
    cluster.create()
    document = cluster.deployment()
    assert document["metadata"]["uid"]
    adopted = ",".join(sorted(RELEASES))
    document["metadata"]["annotations"] = {"mooring.io/adopt": adopted}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    runs = list(cluster.helm.runs)
    Process(cluster).settle()
    assert cluster.helm.runs == runs
    document = cluster.deployment()
    document["metadata"]["annotations"] = {}
    cluster.api.put(resources.OPENSTACK_DEPLOYMENTS, document)
    Process(cluster).settle()
    assert cluster.condition("Applied")["status"] == "True"
    delete(cluster)
    Process(cluster).settle()
    assert cluster.deployed() == frozenset()
    assert cluster.documents(resources.OPENSTACK_DEPLOYMENTS) == []


def test_the_pin_of_a_chart_survives_the_loss_of_its_helm_bundle(
    installed_version: Installed,
) -> None:
    """A chart that changed under its version is not installed by accident."""
    cluster = installed_version("gazpacho")
    before = cluster.documents(resources.HELM_BUNDLES)
    file = cluster.folder / "charts" / "nova" / "Chart.yaml"
    text = file.read_text()
    file.write_text(f"{text}description: changed\n")
    lose(cluster, resources.HELM_BUNDLES, "openstack-compute")
    runs = list(cluster.helm.runs)
    try:
        Process(cluster).settle()
    finally:
        file.write_text(text)
    assert cluster.helm.runs == runs
    after = cluster.documents(resources.HELM_BUNDLES)
    assert [b["spec"] for b in after] == [b["spec"] for b in before]


def test_passwords_of_installed_releases_are_not_generated_again(
    installed_version: Installed,
) -> None:
    cluster = installed_version("gazpacho")
    lose(cluster, resources.SECRETS, "generated-compute-passwords")
    runs, before = list(cluster.helm.runs), cluster.credentials()
    advance(Process(cluster), STEPS)
    accepted = cluster.condition("Accepted")
    print(accepted["message"])
    assert accepted["reason"] == Refused.SECRET_MISSING
    assert "generated-compute-passwords" in accepted["message"]
    assert (cluster.helm.runs, cluster.credentials()) == (runs, before)
    metadata = {"name": "generated-compute-passwords", "namespace": ground.NAMESPACE}
    cluster.api.put(
        resources.SECRETS, {"metadata": metadata, "type": "Opaque", "data": {}}
    )
    Process(cluster).settle()
    assert cluster.condition("Applied")["status"] == "True"
