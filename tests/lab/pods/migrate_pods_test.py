"""From the reference in pods to the chart by the printed steps, and back.

A Service and a volume are used all the time. The inventories of cloud and cluster are
equal before, between and after, but for ownership tags.
"""

import dataclasses
import json
import pathlib
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import yaml
from click import testing as click_testing

from lib.kube import resources
from lib.lab.artifacts import programs
from lib.lab.daemons import csi_node
from lib.lab.images import images
from lib.lab.kube import control_plane, kube_objects
from lib.lab.openstack import cloud
from lib.lab.slots import leases
from mooring.commands import main
from tests.harness import testing
from tests.harness.openstack import balancers, inventory
from tests.harness.pods import pod_node, reference_pods, users

ROOT = pathlib.Path()
COMMAND_S = 900
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
OURS = frozenset({"openstack-ccm", "csi-controller", "csi-node"})
TAGS = frozenset({(balancers.BALANCERS, "tags"), (balancers.LISTENERS, "tags")})
"""Fields of the cloud in which ownership tags are added."""
KINDS = {
    "claims": resources.CLAIMS,
    "volumes": resources.PERSISTENT_VOLUMES,
    "attachments": resources.VOLUME_ATTACHMENTS,
    "services": resources.SERVICES,
}
Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Inventories:
    """Objects of users: in the cloud, and UIDs and specs in the cluster."""

    balancers: inventory.Inventory
    volumes: Mapping[str, Json]
    cluster: Mapping[str, Mapping[str, Json]]
    mounts: Sequence[str]
    ingress: Sequence[Mapping[str, str]]


@pytest.fixture(scope="module")
def user(
    lease: leases.Lease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[users.Users[pod_node.PodNode]]:
    """Run the reference on a node, with a Service and a volume that are used."""
    programs.build(lease.where, [reference_pods.GROUP], testing.shown())
    folder = tmp_path_factory.mktemp("images")
    with pod_node.running(lease, folder) as node, reference_pods.surroundings(node):
        pod_node.prepare(node)
        reference_pods.load(node, folder)
        reference_pods.apply(node)
        yield users.Users(node)


def until_reference_runs(node: pod_node.PodNode) -> None:
    """Wait for the pods of the reference, its driver and the taint that it removes."""
    expected = set(reference_pods.WORKLOADS)
    node.until("the reference's pods are ready", lambda: node.pods.ready() >= expected)
    node.until("the Node is initialized", lambda: is_initialized(node))
    node.until("CSINode has the driver", lambda: has_driver(node))


def is_initialized(node: pod_node.PodNode) -> bool:
    shown = node.default.get(resources.NODES, node.name) or {"spec": {}}
    return UNINITIALIZED not in {x["key"] for x in shown["spec"].get("taints", ())}


def has_driver(node: pod_node.PodNode) -> bool:
    shown = node.default.get(kube_objects.CSI_NODE, node.name) or {"spec": {}}
    drivers = shown["spec"].get("drivers") or ()
    return any(driver["name"] == csi_node.DRIVER for driver in drivers)


def take(user: users.Users[pod_node.PodNode]) -> Inventories:
    node = user.node
    connection = node.project.connection
    with cloud.sentences():
        volumes = {x.id: x.to_dict() for x in connection.block_storage.volumes()}
    rows = {
        name: {
            item["metadata"]["name"]: {
                "uid": item["metadata"]["uid"],
                "spec": item["spec"],
            }
            for item in node.default.all(kind)
        }
        for name, kind in KINDS.items()
    }
    return Inventories(
        inventory.take(connection), volumes, rows, user.mounts(), user.ingress()
    )


def check_equal(before: Inventories, after: Inventories) -> None:
    """Print what differs; only ownership tags may be added."""
    assert after.cluster == before.cluster
    assert (after.mounts, after.ingress) == (before.mounts, before.ingress)
    assert after.volumes.keys() == before.volumes.keys()
    for id_, volume in before.volumes.items():
        for field in ("size", "metadata", "attachments", "status", "name"):
            assert after.volumes[id_][field] == volume[field], field
    changes = inventory.changes(before.balancers, after.balancers)
    for change in changes:
        print(f"{change.kind:16} {change.field:16} {change.before} -> {change.after}")
    assert [x for x in changes if (x.kind, x.field) not in TAGS] == []
    assert [x for x in changes if not x.is_addition] == []


def printed(node: pod_node.PodNode, part: str) -> str:
    """Return a part of what `mooring migrate openstack` prints."""
    admin = str(control_plane.admin_kubeconfig(node.where))
    words = ["migrate", "openstack", "--kubeconfig", admin, "--only", part]
    done = click_testing.CliRunner().invoke(main.commands, words)
    print(done.output)
    assert done.exit_code == 0, done.output
    return done.output


def steps(text: str) -> list[str]:
    """Return the commands of kubectl among printed steps, in their order."""
    lines = [line.strip() for line in text.splitlines()]
    return [x for x in lines if x.startswith("kubectl -n ")]


def run(node: pod_node.PodNode, command: str) -> None:
    """Run a printed command of kubectl."""
    _, *words = shlex.split(command)
    kubectl = programs.path(node.where, "kubectl")
    admin = control_plane.admin_kubeconfig(node.where)
    subprocess.run(
        [kubectl, "--kubeconfig", admin, *words], timeout=COMMAND_S, check=True
    )


def values(node: pod_node.PodNode) -> pathlib.Path:
    """Write the values that are printed, with the registry; return the file."""
    file = node.where.state / "printed.values.yaml"
    text = printed(node, "values").replace("REGISTRY", images.REGISTRY)
    assert yaml.safe_load(text)["openstack-ccm"]["clusterName"] == node.name
    file.write_text(text)
    return file


def install(node: pod_node.PodNode, printed_values: pathlib.Path) -> None:
    """Install by the printed values, and those of this lab (ports, local images)."""
    file = node.where.state / "lab.values.yaml"
    file.write_text(json.dumps(node.values))
    chart = ROOT / "charts" / pod_node.CHART
    layers = ("--values", file, "--values", printed_values)
    node.helm("install", pod_node.CHART, chart, *layers, "--take-ownership")


def test_the_chart_replaces_the_reference_and_back(
    user: users.Users[pod_node.PodNode],
) -> None:
    """By the printed values and commands."""
    node = user.node
    until_reference_runs(node)
    user.add_service()
    user.add_writer()
    node.until("the Service has an address", user.ingress)
    node.until("the pod has written", lambda: user.written() >= 0)
    before, file = take(user), values(node)
    assert before.mounts
    commands = steps(printed(node, "steps"))
    count = len(reference_pods.WORKLOADS)
    stops, starts = commands[:count], commands[-count:]
    for command in stops:
        run(node, command)
    until_no_pods(node, reference_pods.WORKLOADS)
    install(node, file)
    node.until("the chart's pods are ready", lambda: node.pods.ready() >= OURS)
    node.until("CSINode has the driver", lambda: has_driver(node))
    node.until("the owner's tags", lambda: are_tagged(node, before.balancers))
    user.writes_on()
    print("After the change to the chart:")
    check_equal(before, take(user))
    user.expand()
    node.until("the claim has 2 GiB", lambda: user.capacity() == "2Gi")
    before = take(user)
    node.helm("uninstall", pod_node.CHART)
    until_no_pods(node, OURS)
    for command in starts:
        run(node, command)
    until_reference_runs(node)
    user.writes_on()
    print("After the rollback:")
    check_equal(before, take(user))
    user.add_service("later")
    node.until("another Service has an address", lambda: user.ingress("later"))


def until_no_pods(node: pod_node.PodNode, components: Iterable[str]) -> None:
    names = set(components)

    def left() -> set[str]:
        pods = node.system.all(resources.PODS)
        return names & {x["metadata"].get("labels", {}).get("app") for x in pods}

    node.until(f"no pod of {', '.join(sorted(names))}", lambda: not left())


def are_tagged(node: pod_node.PodNode, before: inventory.Inventory) -> bool:
    """Report whether each load balancer and listener has more tags than before."""
    connection = node.project.connection
    return all(
        set(item["tags"]) > set(before[kind][id_]["tags"])
        for kind, _ in TAGS
        for id_, item in balancers.listed(connection, kind).items()
    )
