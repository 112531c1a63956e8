"""The umbrella chart for DVP in real pods: previous release, this one, and back.

The node is a VM of a simulated parent, which dvp-ccm initializes; a pod writes to a
disk of the parent that csi-controller creates and csi-node mounts; capdvp creates a VM.
The Machines of Cluster API are written by the test, without the core.
"""

import functools
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.dvp import pod_values, workload_objects
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import cluster, kube_objects, kubelet_files
from tests.harness.dvp import csi_dvp, parent_fixtures
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.kube import audit
from tests.harness.machines import dvp_child
from tests.harness.pods import (
    dvp_pod_node,
    idle,
    installed_node,
    releases,
    rights,
    secret_search,
    upgrades,
    users,
)
from tests.harness.pods.dvp_pod_node import DvpPodNode
from tests.harness.pods.upgrades import Releases

parent = parent_fixtures.parent
project = parent_fixtures.project
where = parent_fixtures.where

CHART = pathlib.Path("charts") / dvp_pod_node.CHART
SYSTEM = installed_node.SYSTEM
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
MOUNTED: Mapping[str, set[str]] = {
    "capdvp": {pod_values.MACHINES_SECRET},
    "cloud-data-discoverer-dvp": {pod_values.SECRET},
    "csi-controller-dvp": {pod_values.SECRET},
    "csi-node-dvp": set(),
    "dvp-ccm": {pod_values.SECRET},
}
"""Secrets with credentials, by the label of the pods."""
ACCOUNTS = tuple(name for name in MOUNTED if name != "csi-node-dvp")
CONTAINERS = {
    *dvp_pod_node.OWN.values(),
    *(("csi-controller-dvp", x) for x in ("provisioner", "attacher", "resizer")),
}
"""Of all pods: no snapshotter, and the programs of sidecars are built in."""
MACHINE = "worker-1"
Scene = Releases[DvpPodNode]


@pytest.fixture(scope="module")
def scene(
    where: places.Places,
    api: client.Api,
    parent: DvpParent,
    project: Project,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    """Install the previous release."""
    folder = tmp_path_factory.mktemp("releases")
    images = tmp_path_factory.mktemp("images")
    with dvp_pod_node.running(where, api, parent, project, images) as node:
        node.prepare()
        create_core(api)
        previous = releases.chart(CHART, folder)
        old = releases.load_images(node, folder)
        new = {name: image.reference for name, image in node.images.items()}
        node.install(previous)
        yield Releases(users.Users(node), dvp_pod_node.OWN, previous, old, new)


def create_core(api: client.Api) -> None:
    """Create the kinds of Cluster API that capdvp reads, and a namespace."""
    kinds = (workload_objects.CLUSTERS, workload_objects.MACHINES)
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": dvp_child.SPACE},
    }
    by_name = {x.kind: x for x in (resources.NAMESPACES, resources.DEFINITIONS)}
    documents = (*map(workload_objects.open_definition, kinds), space)
    cluster.create_documents(api, documents, by_name)


@pytest.fixture(scope="module")
def child(where: places.Places, api: client.Api, project: Project) -> Any:
    return dvp_child.DvpChild(where, api, project)


def test_the_pods_of_all_components_become_ready(scene: Scene) -> None:
    """dvp-ccm initializes the Node of its own host, csi-node registers its driver, and
    the discoverer creates a StorageClass for each one of the parent."""
    node = scene.user.node
    scene.until_running(scene.old)

    def is_initialized() -> bool:
        shown = node.default.get(resources.NODES, node.name) or {"spec": {}}
        taints = [x["key"] for x in shown["spec"].get("taints", ())]
        identity = shown["spec"].get("providerID")
        return UNINITIALIZED not in taints and identity == f"dvp://{node.name}"

    def drivers() -> list[Any]:
        shown = node.default.get(kube_objects.CSI_NODE, node.name) or {"spec": {}}
        listed = shown["spec"].get("drivers") or ()
        return [driver for driver in listed if driver["name"] == csi_dvp.DRIVER]

    node.until("the Node is initialized", is_initialized)
    node.until("CSINode has the driver", drivers)
    assert [driver.get("topologyKeys") for driver in drivers()] == [None]
    assert set(node.pods.statuses()) == CONTAINERS
    node.until(
        "the StorageClass exists",
        lambda: node.default.get(resources.STORAGE_CLASSES, projects.STORAGE),
    )


def test_a_service_a_claim_and_a_machine(
    scene: Scene, child: dvp_child.DvpChild
) -> None:
    user, node = scene.user, scene.user.node
    user.add_service()
    user.add_writer()
    child.create_cluster()
    node.until(
        "the cluster is provisioned",
        lambda: child.is_provisioned(workload_objects.DVP_CLUSTERS, "one"),
    )
    child.provision_cluster()
    child.create_machine(MACHINE)
    node.until("the Service has an address", user.ingress)
    node.until(
        "the machine is provisioned",
        lambda: child.is_provisioned(workload_objects.DVP_MACHINES, MACHINE),
    )
    node.parent.wait_phase(MACHINES, node.project, MACHINE, "Running")
    node.until("the pod has written", lambda: user.written() >= 0)
    print(user.ingress(), user.mounts())


def test_an_upgrade_is_not_noticed(scene: Scene) -> None:
    """No VM restarts, nothing is written in the parent, and no mount is lost.

    Component by component, back, and as a whole.
    """
    node = scene.user.node
    settle(node)
    before, writes = scene.in_use(), len(node.writes())
    assert all(names for _, names in before.cloud)
    assert before.mounts
    scene.upgrade_each(before, writes)
    node.install(CHART, "upgrade")
    scene.until_running(scene.new)
    scene.check("previous -> this release as a whole", before, writes)


def settle(node: DvpPodNode) -> None:
    """Wait until no request of the project's user has come for a while."""
    node.parent.settled(node.project)


def test_only_pods_that_use_credentials_have_them(scene: Scene) -> None:
    """Read from the pods: their Secrets, environment and files."""
    node = scene.user.node
    token = token_of(node)
    shared = (str(kubelet_files.kubelet_room(node.where)),)
    rows = {}
    for app, pod in node.pods.newest().items():
        spec = pod["spec"]
        names = {x["secret"]["secretName"] for x in spec["volumes"] if "secret" in x}
        names |= {
            source["secretKeyRef"]["name"]
            for container in spec["containers"]
            for variable in container.get("env", ())
            if "secretKeyRef" in (source := variable.get("valueFrom", {}))
        }
        rows[app] = names
        for container in spec["containers"]:
            process = node.process(app, container["name"])
            places_of_token = secret_search.places(process, token, shared)
            is_user = (app, container["name"]) in dvp_pod_node.OWN.values()
            print(f"{app:28} {container['name']:22} {sorted(names)} {places_of_token}")
            assert bool(places_of_token) == (is_user and bool(names)), places_of_token
            assert all(place.startswith("/etc/parent/") for place in places_of_token)
    assert rows == MOUNTED


def token_of(node: DvpPodNode) -> str:
    text = node.project.kubeconfig.read_text()
    (line,) = (line for line in text.splitlines() if "token:" in line)
    token = line.partition("token:")[2].strip().strip('"')
    assert len(token) > 100
    return token


def test_a_rotated_secret_takes_effect_without_a_restart(
    scene: Scene, child: dvp_child.DvpChild
) -> None:
    """The old token is revoked; Service, claim and machine change with the new one."""
    user, node = scene.user, scene.user.node
    before = identities(node)
    node.parent.revoke(node.project)
    node.parent.rotate(node.project)
    text, token = node.project.kubeconfig.read_text(), token_of(node)
    for name in (pod_values.SECRET, pod_values.MACHINES_SECRET):
        node.secret(name, text)
    for app in ACCOUNTS:
        own = next(own for own in dvp_pod_node.OWN.values() if own[0] == app)
        has = functools.partial(mounts_token, node, own, token)
        node.until(f"{app}: the new Secret is mounted", has)
    user.add_service("second")
    user.expand()
    child.create_machine("worker-2")
    ingress = functools.partial(user.ingress, "second")
    node.until("the second Service has an address", ingress)
    node.until("the claim has 2 GiB", lambda: user.capacity() == "2Gi")
    node.until(
        "the second machine is provisioned",
        lambda: child.is_provisioned(workload_objects.DVP_MACHINES, "worker-2"),
    )
    user.writes_on()
    assert identities(node) == before


def mounts_token(node: DvpPodNode, own: tuple[str, str], token: str) -> bool:
    root = pathlib.Path(f"/proc/{node.process(*own).pid}/root")
    return token in (root / "etc/parent" / pod_values.KEY).read_text()


def identities(node: DvpPodNode) -> Mapping[tuple[str, str], tuple[str, int]]:
    """Return the ID and the restarts of each container."""
    statuses = node.pods.statuses().items()
    return {key: (x["containerID"], x["restartCount"]) for key, x in statuses}


SENDERS = frozenset(
    {
        ("child", "capdvp", "capdvp"),
        ("child", "cloud-data-discoverer-dvp", "cloud-data-discoverer"),
        *(
            ("child", "csi-controller-dvp", f"csi-{name}")
            for name in ("provisioner", "attacher", "resizer")
        ),
        ("child", "csi-node-dvp", idle.NO_PROGRAM),
        ("child", "dvp-ccm", "dvp-ccm"),
        *(
            ("parent", projects.USER, name)
            for name in ("capdvp", "cloud-data-discoverer", "csi-controller", "dvp-ccm")
        ),
    }
)
"""Programs of all pods that send requests; both Secrets have the same account."""


def test_an_idle_hour_is_no_request(scene: Scene) -> None:
    """Besides watches, Leases and discovery, in child and parent; prints memory.

    A row for each program. All periodic work but that of the discoverer is that of an
    hour.
    """
    node = scene.user.node
    settle(node)
    before = requests(node)
    time.sleep(dvp_pod_node.HOUR_S)
    table = idle.between(before, requests(node))
    exceeded = []
    for key in node.pods.statuses():
        used, requested = node.memory(key)
        print(f"{key[0]:28} {key[1]:22} {used:4.0f} of {requested:.0f} MiB")
        exceeded += (
            [key] if key in dvp_pod_node.OWN.values() and used > requested else []
        )
    idle.check(table, SENDERS)
    assert exceeded == []


def requests(node: DvpPodNode) -> idle.Log:
    """Return the requests of all pods since the start."""
    log = {("child", app): audit.rows(node.where, (SYSTEM, app)) for app in MOUNTED}
    return {**log, ("parent", projects.USER): node.parent.requests(node.project)}


UNUSED: rights.Reasons = {
    **rights.COMMON,
    **rights.of_sidecars("csi-controller-dvp"),
    ("", "watch", "leases"): "there is one replica",
    ("capdvp", "create", "events"): "no machine fails",
    ("capdvp", "get", "deckhouseclusters"): rights.LATE,
    ("capdvp", "get", "deckhousemachines"): rights.LATE,
    ("capdvp", "patch", "deckhousemachinetemplates/status"): "no template exists",
    ("cloud-data-discoverer-dvp", "list", "persistentvolumeclaims"): "no disk is lost",
    ("cloud-data-discoverer-dvp", "update", "secrets"): "the parent does not change",
    ("cloud-data-discoverer-dvp", "delete", "storageclasses"): "the same",
    ("cloud-data-discoverer-dvp", "patch", "storageclasses"): "the same",
    ("dvp-ccm", "delete", "nodes"): "no VM is deleted: tests/lab/dvp/dvp_nodes_test.py",
    ("dvp-ccm", "get", "nodes"): rights.LATE,
    ("dvp-ccm", "get", "services"): rights.LATE,
}
"""Verbs that no step of this test needs, by account (empty: any), with the reason."""


def test_each_verb_that_is_granted_is_used(
    scene: Scene, child: dvp_child.DvpChild
) -> None:
    """In the child, by its audit log, under exactly the roles of the chart."""
    node = scene.user.node
    node.default.delete(resources.SERVICES, "second", grace_s=None)
    gone = functools.partial(lambda: not scene.user.has_service("second"))
    node.until("the second Service is deleted", gone)
    for kind in (workload_objects.MACHINES, workload_objects.DVP_MACHINES):
        child.objects.delete(kind, "worker-2", grace_s=None)
    node.until(
        "the second machine is deleted",
        lambda: child.objects.get(workload_objects.DVP_MACHINES, "worker-2") is None,
    )
    rights.check_used(node, SYSTEM, ACCOUNTS, UNUSED)


def test_a_rollback_and_the_removal_are_not_noticed(scene: Scene) -> None:
    """helm rollback to the previous release; then helm uninstall keeps everything."""
    node = scene.user.node
    settle(node)
    before, writes = scene.in_use(), len(node.writes())
    node.helm("rollback", dvp_pod_node.CHART, upgrades.FIRST)
    scene.until_running(scene.old)
    scene.check("helm rollback to the previous release", before, writes)
    node.helm("uninstall", dvp_pod_node.CHART)
    node.until("no pod of the chart is left", lambda: not node.pods.newest())
    scene.check("helm uninstall", before, writes)
    assert node.default.get(kube_objects.CSI_DRIVER, csi_dvp.DRIVER) is not None
    names = {x["metadata"]["name"] for x in node.default.all(resources.DEFINITIONS)}
    assert "dvpinstanceclasses.deckhouse.io" in names
