"""dvp-ccm on a real child and a parent with real CRDs: each Node as its VM says."""

import collections
import pathlib
import re
import time
from collections.abc import Iterator

import click.testing
import pytest

from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp import project as projects
from lib.lab.dvp.kinds import MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane
from mooring.commands import main
from tests.harness.dvp import dvp_manager, dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent

SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
PLACED = {ZONE: "a", REGION: "parent"}
"""Of hypervisor-1 of the parent, which the VM may leave no more."""
IDLE_S = 5.0
VERBS = ("get", "list", "watch")
"""Of virtualmachines, and of nothing else in the parent."""
DOCTOR = (
    r"credentials +authenticated as system:serviceaccount:dvp-nodes-test:child"
    r" for project dvp-nodes-test; the credential expires at",
    r"virtualmachines at .+: version virtualization.deckhouse.io/v1alpha2",
    r"virtualdisks at .+: version virtualization.deckhouse.io/v1alpha2",
    r"servicewithhealthchecks: not in the catalogue",
    r"storageclasses at .+: version storage.k8s.io/v1",
    r"rights in the cloud +dvp-ccm: all 10",
    r"rights in the cloud +csi-controller: all 14",
    r"rights in the cloud +capdvp: all 33",
    r"rights in the cloud +cloud-data-discoverer: all 3",
    r"rights +the kubeconfig's user has all 22 permissions of the manifest",
    r"load balancers +version v1; all objects named in the configuration exist",
)
"""What `mooring doctor` reports of a parent."""


@pytest.fixture(scope="module")
def pex() -> pathlib.Path:
    """Return the PEX file of dvp-ccm."""
    return pexes.beside("dvp-ccm")


@pytest.fixture()
def nodes(api: client.Api) -> dvp_manager.SeenNodes:
    return dvp_manager.SeenNodes(api)


@pytest.fixture()
def kubelets(api: client.Api) -> Iterator[dvp_manager.Kubelets]:
    running = dvp_manager.Kubelets(api)
    yield running
    running.end()


@pytest.fixture()
def minimal(parent: DvpParent, project: Project) -> Iterator[None]:
    """Leave the project's user only the rights that dvp-ccm needs for Nodes."""
    objects = parent.objects(project)
    role = objects.get(resources.ROLES, projects.USER)
    assert role is not None
    rules = [
        {
            "apiGroups": [MACHINES.group],
            "resources": [MACHINES.plural],
            "verbs": list(VERBS),
        }
    ]
    objects.patch(resources.ROLES, projects.USER, rules=rules)
    yield
    objects.patch(resources.ROLES, projects.USER, rules=role["rules"])


@pytest.fixture()
def manager(
    where: places.Places, pex: pathlib.Path, project: Project
) -> Iterator[None]:
    """Run dvp-ccm with the reference's command line and environment alone."""
    env = dvp_manager.environment(project)
    env["DVP_KUBERNETES_CONFIG_BASE64"] = project.encoded()
    words = dvp_manager.arguments(where, None, [dvp_manager.NODES_ONLY])
    with dvp_manager.running(where, pex, words, env):
        yield


def created(parent: DvpParent, project: Project) -> dict[str, str]:
    """Create VMs as Cluster API and Terraform have them; return names by hostname.

    And one of another cluster in the project, with the hostname of a VM of this one.
    """
    names = {
        "machine-1": parent.machine(project, "machine-1"),
        "terraform-1": parent.machine(
            project, "terraform-1", name="terraform-1-5f2c", nodeSelector=PLACED
        ),
        "goes-1": parent.machine(project, "goes-1"),
    }
    parent.machine(
        project, "machine-1", name="theirs", cluster=dvp_parent.OTHER_CLUSTER
    )
    for name in (*names.values(), "theirs"):
        parent.wait_phase(MACHINES, project, name, "Running")
    return names


@pytest.mark.usefixtures("minimal", "manager")
def test_nodes_follow_their_vms(
    parent: DvpParent,
    project: Project,
    nodes: dvp_manager.SeenNodes,
    kubelets: dvp_manager.Kubelets,
) -> None:
    """Initialise, renumber, migrate, stop, start, relabel, delete; requests at the end.

    A VM of another cluster and a Node of another provider stay as they are.
    """
    names = created(parent, project)
    nodes.register_foreign("static-1", "static://rack/1")
    static = nodes.get("static-1")
    objects = parent.objects(project)
    other = objects.get(MACHINES, "theirs")
    kubelets.boot(*names)
    try:
        for hostname, name in names.items():
            check_initialised(parent, project, nodes, hostname, name)
        check_renumbered(parent, project, nodes)
        check_idle(parent, project)
        check_silent(parent, project, nodes, kubelets)
        assert desired(objects.get(MACHINES, "theirs")) == desired(other)
        check_untouched(static, nodes.get("static-1"))
        check_requests(parent, project)
    finally:
        nodes.show()


def check_initialised(
    parent: DvpParent,
    project: Project,
    nodes: dvp_manager.SeenNodes,
    hostname: str,
    name: str,
) -> None:
    nodes.until(f"{hostname} is initialised", lambda: not nodes.is_new(hostname))
    node, vm = nodes.get(hostname), parent.objects(project).get(MACHINES, name)
    assert node is not None
    assert vm is not None
    ip_address = vm["status"]["ipAddress"]
    assert node["spec"]["providerID"] == f"dvp://{name}"
    assert nodes.addresses(hostname) == [
        ("ExternalIP", ip_address),
        ("InternalIP", ip_address),
        ("Hostname", hostname),
    ]
    labels = node["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "generic"
    placed = {key: labels[key] for key in PLACED if key in labels}
    assert placed == (PLACED if hostname == "terraform-1" else {})


def check_renumbered(
    parent: DvpParent, project: Project, nodes: dvp_manager.SeenNodes
) -> None:
    """A changed address reaches the Node by the watch; a migration changes no label."""
    before = nodes.get("machine-1")
    parent.set_status(MACHINES, project, "machine-1", {"ipAddress": "10.99.0.1"})
    nodes.until(
        "a changed address is shown",
        lambda: ("InternalIP", "10.99.0.1") in nodes.addresses("machine-1"),
    )
    migrated = {"phase": "Migrating", "nodeName": "hypervisor-9"}
    parent.set_status(MACHINES, project, "machine-1", migrated)
    parent.set_status(MACHINES, project, "machine-1", {"phase": "Running"})
    after = nodes.get("machine-1")
    assert before is not None
    assert after is not None
    assert after["metadata"]["labels"] == before["metadata"]["labels"]


def check_idle(parent: DvpParent, project: Project) -> None:
    """While nothing changes, the parent gets no request but watches."""
    before = len(parent.settled(project))
    time.sleep(IDLE_S)
    after = len(parent.settled(project))
    print(f"idle {IDLE_S:.0f} s: {after - before} requests")
    assert after == before


def check_silent(
    parent: DvpParent,
    project: Project,
    nodes: dvp_manager.SeenNodes,
    kubelets: dvp_manager.Kubelets,
) -> None:
    """One VM is stopped, one loses the cluster's label, one is deleted.

    Only Stopped gets the taint, until the Node is Ready again. A VM without the label
    is not watched, but it exists: its Node stays. The Node of the deleted VM goes.
    """
    objects = parent.objects(project)
    parent.operate(project, "machine-1", "Stop")
    parent.wait_phase(MACHINES, project, "machine-1", "Stopped")
    label = {"labels": {dvp_parent.CLUSTER_LABEL: None}}
    objects.patch(MACHINES, "terraform-1-5f2c", metadata=label)
    objects.delete(MACHINES, "goes-1")
    kubelets.fall_silent("machine-1", "terraform-1", "goes-1")
    nodes.until("not Ready", lambda: not nodes.is_ready("terraform-1"))
    nodes.until("shutdown taint", lambda: SHUTDOWN in nodes.taints("machine-1"))
    parent.operate(project, "machine-1", "Start")
    kubelets.boot("machine-1")
    nodes.until("no shutdown taint", lambda: SHUTDOWN not in nodes.taints("machine-1"))
    nodes.until("the Node is deleted", lambda: nodes.get("goes-1") is None)
    nodes.until(
        "the relabelled VM is read directly",
        lambda: any(
            row.verb == "get" and row.name == "terraform-1-5f2c"
            for row in parent.requests(project)
        ),
    )
    assert SHUTDOWN not in nodes.taints("terraform-1")
    assert nodes.names() == {"machine-1", "terraform-1", "static-1"}


def desired(vm: dvp_manager.Json | None) -> tuple[object, ...]:
    """Return all of a VM that users write; its status is the parent's."""
    assert vm is not None
    metadata = vm["metadata"]
    return vm["spec"], metadata["labels"], metadata.get("annotations")


def check_untouched(
    before: dvp_manager.Json | None, after: dvp_manager.Json | None
) -> None:
    """The Node of another provider has no address, label or taint of ours."""
    assert before is not None
    assert after is not None
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["status"]["addresses"] == before["status"]["addresses"]
    assert after["spec"]["providerID"] == "static://rack/1"
    assert SHUTDOWN not in {taint["key"] for taint in after["spec"].get("taints", [])}


def check_requests(parent: DvpParent, project: Project) -> None:
    """Verbs used in the parent are those granted, and those that docs/dvp.md names."""
    rows = parent.requests(project)
    used = {(row.group, row.resource, row.verb) for row in rows}
    group = "virtualization.deckhouse.io"
    counts = collections.Counter((r.verb, r.resource, r.code) for r in rows)
    for (verb, resource, code), count in sorted(counts.items()):
        print(f"{verb:6} {resource:20} {code} {count:4}")
    assert used == {(group, "virtualmachines", verb) for verb in VERBS}


@pytest.mark.usefixtures("manager")
def test_the_tool_reads_the_parent(where: places.Places, project: Project) -> None:
    """`plan nodes` finds nothing to do, `doctor` what the parent has."""
    planned = run_tool(where, project, "plan", "nodes")
    assert planned.exit_code == 0, planned.output
    judged = run_tool(where, project, "doctor", "ccm")
    print(planned.output, judged.output, sep="\n")
    for line in DOCTOR:
        assert re.search(line, judged.output), line
    assert judged.exit_code == 0


@pytest.mark.usefixtures("minimal")
def test_the_doctor_names_missing_rights(
    where: places.Places, project: Project
) -> None:
    """A failure for dvp-ccm, warnings for components with other credentials."""
    judged = run_tool(where, project, "doctor", "ccm")
    lines = [line for line in judged.output.splitlines() if "in the cloud" in line]
    print(*lines, sep="\n")
    assert judged.exit_code == 1
    assert lines[0].startswith("FAIL")
    assert f"cannot patch virtualmachines in namespace {project.namespace}" in lines[0]
    assert [line.split()[0] for line in lines[1:]] == ["WARN"] * 3


def run_tool(
    where: places.Places, project: Project, *words: str
) -> click.testing.Result:
    reach = (
        "--cloud=dvp",
        f"--cloud-config={project.kubeconfig}",
        f"--kubeconfig={control_plane.admin_kubeconfig(where)}",
    )
    env = {**dvp_manager.environment(project), "NO_COLOR": "1", "COLUMNS": "400"}
    return click.testing.CliRunner().invoke(main.commands, [*words, *reach], env=env)
