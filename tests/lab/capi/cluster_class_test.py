"""A ClusterClass creates a Cluster on DVP, its machines, and deletes them.

Real: the core of Cluster API with its webhooks and its topology controller, API servers
of parent and child, capdvp and dvp-ccm as they are packaged. Control plane and
bootstrap data are of kinds of the lab: the test writes their status as their providers
do.
"""

from collections.abc import Iterator

import pytest

from lib.kube.resources import Resource
from lib.lab import places
from lib.lab.capi import core as core_manager
from lib.lab.capi import core_program
from lib.lab.dvp.project import Project
from lib.lab.run import waiting
from tests.harness import testing
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.machines import capi_stage, cluster_objects, life
from tests.harness.machines.capi_stage import CapiStage
from tests.harness.machines.cluster_objects import (
    CLUSTERS,
    CONTROL_PLANES,
    DVP_CLUSTER_TEMPLATES,
    DVP_CLUSTERS,
    DVP_TEMPLATES,
    GROUP,
    Json,
)

COUNT = 2
VERSION = "v1.34.0"
_BOOTSTRAP = f"bootstrap.{GROUP}"
CONTROL_TEMPLATES = Resource(
    CONTROL_PLANES.group,
    CONTROL_PLANES.version,
    "externalcontrolplanetemplates",
    "ExternalControlPlaneTemplate",
    True,
)
BOOTSTRAPS = Resource(_BOOTSTRAP, "v1alpha1", "givenconfigs", "GivenConfig", True)
BOOTSTRAP_TEMPLATES = Resource(
    _BOOTSTRAP, "v1alpha1", "givenconfigtemplates", "GivenConfigTemplate", True
)
CLASSES = Resource(GROUP, "v1beta2", "clusterclasses", "ClusterClass", True)


@pytest.fixture(scope="module")
def stage(
    parent: DvpParent, project: Project, where: places.Places
) -> Iterator[CapiStage]:
    """Run the core with ClusterClasses, and all that Machines on DVP need."""
    core_program.build(where, testing.shown())
    core_manager.up(where, testing.shown(), ["--feature-gates=ClusterTopology=true"])
    try:
        with capi_stage.opened(parent, project, where) as opened:
            replicas = opened.capdvp()
            try:
                replicas.start()
                yield opened
            finally:
                replicas.stop()
    finally:
        core_manager.down(where)


def template_of(kind: Resource, name: str) -> Json:
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
    return {"templateRef": reference}


def class_spec() -> Json:
    """Return a class with the templates of capdvp; all of them have one name."""
    worker = {
        "class": "worker",
        "bootstrap": template_of(BOOTSTRAP_TEMPLATES, "class"),
        "infrastructure": template_of(DVP_TEMPLATES, "class"),
    }
    return {
        "controlPlane": template_of(CONTROL_TEMPLATES, "class"),
        "infrastructure": template_of(DVP_CLUSTER_TEMPLATES, "class"),
        "workers": {"machineDeployments": [worker]},
    }


def cluster_spec() -> Json:
    workers = {"class": "worker", "name": "workers", "replicas": COUNT}
    topology = {
        "classRef": {"name": "class"},
        "version": VERSION,
        "workers": {"machineDeployments": [workers]},
    }
    return {"topology": topology}


def play_providers(stage: CapiStage) -> None:
    """Report what the providers of control plane and bootstrap data report."""
    fleet = stage.fleet
    secret = {
        "initialization": {"dataSecretCreated": True},
        "dataSecretName": cluster_objects.BOOTSTRAP,
    }
    control = {**cluster_objects.CONTROL_PLANE_STATUS, "version": VERSION}
    for kind, status in ((CONTROL_PLANES, control), (BOOTSTRAPS, secret)):
        for item in fleet.objects.all(kind):
            if not item.get("status"):
                fleet.report(kind, item["metadata"]["name"], status)


def test_a_class_creates_a_cluster_and_its_machines(stage: CapiStage) -> None:
    """One DeckhouseCluster of the template; Machines that run; nothing is left."""
    fleet = stage.fleet
    fleet.create_surroundings(
        CONTROL_PLANES, CONTROL_TEMPLATES, BOOTSTRAPS, BOOTSTRAP_TEMPLATES
    )
    empty: Json = {"template": {"spec": {}}}
    for kind in (CONTROL_TEMPLATES, BOOTSTRAP_TEMPLATES, DVP_CLUSTER_TEMPLATES):
        fleet.objects.make(kind, "class", spec=empty)
    fleet.create_template("class")
    fleet.objects.make(CLASSES, "class", spec=class_spec())
    fleet.objects.make(CLUSTERS, fleet.name, spec=cluster_spec())
    picture = fleet.until_whole(COUNT, lambda _: play_providers(stage))
    (created,) = fleet.objects.all(DVP_CLUSTERS)
    print(f"{created['metadata']['name']}: {picture}")
    assert created["status"]["initialization"]["provisioned"] is True
    assert not stage.duplicates()
    whole = fleet.objects.get(CLUSTERS, fleet.name) or {}
    assert life.condition(whole, "InfrastructureReady")["status"] == "True"
    assert life.condition(whole, "TopologyReconciled")["status"] == "True"
    fleet.delete_cluster()
    left = {kind: names for kind, names in fleet.owned().items() if names}
    assert not left
    assert not fleet.objects.all(DVP_CLUSTERS)


def test_a_rollout_of_the_class_is_accepted(stage: CapiStage) -> None:
    """The topology controller compares templates by a dry run: nothing is replaced."""
    fleet = stage.fleet
    fleet.objects.make(CLUSTERS, fleet.name, spec=cluster_spec())
    first = fleet.until_whole(COUNT, lambda _: play_providers(stage))
    spec = cluster_objects.template_spec(memory="320Mi")
    fleet.objects.make(DVP_TEMPLATES, "larger", spec=spec)
    changed = class_spec()
    worker = changed["workers"]["machineDeployments"][0]
    worker["infrastructure"] = template_of(DVP_TEMPLATES, "larger")
    fleet.objects.patch(CLASSES, "class", spec={"workers": changed["workers"]})
    second = fleet.until_whole(
        COUNT, lambda _: play_providers(stage), without=first.machines
    )
    print(f"before: {first}; after: {second}")
    waiting.until(
        "the topology is reconciled",
        lambda: life.condition(
            fleet.objects.get(CLUSTERS, fleet.name) or {}, "TopologyReconciled"
        ).get("status")
        == "True",
    )
    fleet.delete_cluster()
    assert not any(fleet.owned().values())
