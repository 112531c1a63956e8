"""The pods of all components: images, chart, helm, kubelet and containerd are real.

The node is a server of the lab's OpenStack, which openstack-ccm initializes; a pod
writes to a volume that csi-controller creates and csi-node mounts.
"""

import base64
import collections
import dataclasses
import functools
import http.client
import json
import os
import pathlib
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lib.doctor import judge, pod_states
from lib.doctor.model import CheckState, PodProblem, PodReport, Read
from lib.kube import resources
from lib.lab.daemons import csi_node
from lib.lab.kube import kube_objects
from lib.lab.openstack import layout
from lib.lab.run import tls
from lib.lab.slots import leases
from tests.harness.kube import audit
from tests.harness.pods import containers, mistakes, pod_node, rights, users
from tests.harness.pods.containers import Permissions

ROOT = pathlib.Path()
USER = "64535"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
DISCOVERED = ("d8-cloud-provider-discovery-data", "discovery-data.json")
RESTRICTED = Permissions(USER, USER, "0", "1", "2", "ro")
PRIVILEGED = Permissions("0", "0", "all", "0", "0", "ro")
"""A privileged container has all capabilities and no seccomp profile, whatever the
rest of its security context contains. Source: Kubernetes, Pod Security Standards."""
EXPECTED: Mapping[tuple[str, str], Permissions] = {
    (component, container): PRIVILEGED if component == "csi-node" else RESTRICTED
    for component, names in pod_node.COMPONENTS.items()
    for container in names
}
PROGRAMS = {
    ("openstack-ccm", "openstack-ccm"): ("livenessProbe", "readinessProbe"),
    ("cloud-data-discoverer", "cloud-data-discoverer"): (
        "livenessProbe",
        "readinessProbe",
    ),
    ("csi-controller", "controller"): ("livenessProbe",),
    ("csi-node", "node"): ("livenessProbe",),
}
"""Containers of our own programs, with their probes."""
RELOADED = "configuration reloaded"
SECOND = "openstack-ccm-second"
TIMEOUT_S = 10.0
SERVICES = ("a", "b", "c")
BALANCERS_PATH = "/lbaas/loadbalancers"


@pytest.fixture(scope="module")
def node(
    lease: leases.Lease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pod_node.PodNode]:
    """Run the node, and install the chart on it."""
    with pod_node.running(lease, tmp_path_factory.mktemp("images")) as running:
        pod_node.prepare(running)
        running.install(ROOT / "charts" / pod_node.CHART)
        yield running


@pytest.fixture(scope="module")
def user(node: pod_node.PodNode) -> users.Users[pod_node.PodNode]:
    return users.Users(node)


def test_the_pods_of_all_components_become_ready(node: pod_node.PodNode) -> None:
    """openstack-ccm initializes the Node of its own host, csi-node registers its
    driver, and the discoverer writes its Secret."""

    def has_driver() -> bool:
        shown = node.default.get(kube_objects.CSI_NODE, node.name) or {"spec": {}}
        drivers = shown["spec"].get("drivers") or ()
        return any(driver["name"] == csi_node.DRIVER for driver in drivers)

    for component in pod_node.COMPONENTS:
        is_ready = functools.partial(lambda name: name in node.pods.ready(), component)
        node.until(f"{component}: ready", is_ready)
    node.until("the Node is initialized", lambda: is_initialized(node))
    node.until("CSINode has the driver", has_driver)
    node.until("the discoverer has written its Secret", lambda: discovered(node))
    assert set(node.pods.statuses()) == set(EXPECTED)
    shown = node.default.get(resources.NODES, node.name)
    assert shown is not None
    internal = [x for x in shown["status"]["addresses"] if x["type"] == "InternalIP"]
    assert [x["address"] for x in internal] == [node.address]


def is_initialized(node: pod_node.PodNode) -> bool:
    """Report whether the Node has a provider ID, and the taint has been removed."""
    shown = node.default.get(resources.NODES, node.name) or {"spec": {}}
    taints = [x["key"] for x in shown["spec"].get("taints", ())]
    return UNINITIALIZED not in taints and bool(shown["spec"].get("providerID"))


def discovered(node: pod_node.PodNode) -> Any:
    """Return the document of the discoverer, {} without it."""
    name, key = DISCOVERED
    secret = node.system.get(resources.SECRETS, name) or {}
    text = base64.b64decode(secret.get("data", {}).get(key, ""))
    return json.loads(text) if text else {}


def test_a_service_gets_its_address(user: users.Users[pod_node.PodNode]) -> None:
    user.add_service()
    user.node.until("the Service has an address", user.ingress)
    print(user.ingress())


def test_a_pod_writes_to_its_claim(user: users.Users[pod_node.PodNode]) -> None:
    """Created, attached, formatted and mounted; expanded while the pod writes."""
    user.add_writer()
    user.node.until("the pod has written", lambda: user.written() >= 0)
    print(user.mounts())
    user.expand()
    user.node.until("the claim has 2 GiB", lambda: user.capacity() == "2Gi")
    user.writes_on()


def test_containers_have_no_more_than_they_require(node: pod_node.PodNode) -> None:
    """One row for each container; memory of our programs is within the request."""
    every = containers.bounding_set(os.getpid())
    observed, exceeded = {}, []
    print(
        f"{'pod':22} {'container':22}",
        *(f.name for f in dataclasses.fields(Permissions)),
    )
    for key in node.pods.statuses():
        process = node.process(*key)
        shown = containers.permissions(process)
        if shown.capabilities == every:
            shown = dataclasses.replace(shown, capabilities="all")
        observed[key] = shown
        used, requested = node.memory(key)
        texts = " ".join(map(str, dataclasses.astuple(shown)))
        print(f"{key[0]:22} {key[1]:22} {texts:24} {used:4.0f} of {requested:.0f} MiB")
        if key in PROGRAMS and used > requested:
            exceeded.append(key)
    assert observed == EXPECTED
    assert exceeded == []


def test_probes_answer(node: pod_node.PodNode) -> None:
    """As the kubelet sends them: each probe of each container."""
    observed: dict[tuple[str, str], list[str]] = {}
    for key in node.pods.statuses():
        spec = node.container_spec(key)
        for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
            if kind in spec:
                observed.setdefault(key, []).append(kind)
                address = node.pods.newest()[key[0]]["status"]["podIP"]
                code = probed(spec[kind]["httpGet"], address)
                print(f"{key[0]:22} {key[1]:22} {kind:15} {code}")
                assert code == http.client.OK
    assert {key: tuple(kinds) for key, kinds in observed.items()} == PROGRAMS


def probed(probe: Mapping[str, Any], address: str) -> int:
    """Return the status of the answer to a probe. address: of its pod."""
    host, port = probe.get("host", address), int(probe["port"])
    connection: http.client.HTTPConnection
    if probe.get("scheme") == "HTTPS":
        context = tls.unverified()
        connection = http.client.HTTPSConnection(
            host, port, timeout=30, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("GET", probe["path"])
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_rotated_secret_takes_effect_without_a_restart(
    node: pod_node.PodNode,
) -> None:
    """In each program with credentials."""
    before = node.pods.statuses()
    text = f"{node.conf}\n# rotated\n"
    secret = {pod_node.KEY: pod_node.encoded(text)}
    node.system.patch(resources.SECRETS, pod_node.SECRET, data=secret)
    for key in PROGRAMS:
        if key[0] != "csi-node":
            has_read = functools.partial(lambda k: RELOADED in node.pods.log(*k), key)
            node.until(f"{key[0]}: {RELOADED}", has_read)
    assert identities(node.pods.statuses()) == identities(before)


def identities(
    statuses: Mapping[tuple[str, str], Mapping[str, Any]],
) -> Mapping[tuple[str, str], tuple[str, int]]:
    """Return the ID and the restarts of each container."""
    return {key: (x["containerID"], x["restartCount"]) for key, x in statuses.items()}


def test_processes_that_hang_are_restarted(user: users.Users[pod_node.PodNode]) -> None:
    """Each liveness probe fails; the mount of the volume and its pod remain."""
    node, mounts = user.node, user.mounts()
    before = node.pods.statuses()
    for key in PROGRAMS:
        node.process(*key).suspend()

    def is_restarted(key: tuple[str, str]) -> bool:
        return bool(
            node.pods.statuses()[key]["restartCount"] > before[key]["restartCount"]
        )

    for key in PROGRAMS:
        what = f"{key[0]}: the container is restarted"
        node.until(what, functools.partial(is_restarted, key))
    everything = set(pod_node.COMPONENTS)
    node.until("all pods are ready again", lambda: node.pods.ready() >= everything)
    assert user.mounts() == mounts
    user.writes_on()


def test_deleted_pods_are_replaced(user: users.Users[pod_node.PodNode]) -> None:
    """Ports of the host are free again, and sockets and registration replaced."""
    node, mounts = user.node, user.mounts()
    old = {name: pod["metadata"]["uid"] for name, pod in node.pods.newest().items()}
    for pod in node.pods.newest().values():
        node.system.delete(resources.PODS, pod["metadata"]["name"], grace_s=None)

    def are_replaced() -> bool:
        pods = node.pods.newest()
        return node.pods.ready() >= set(old) and all(
            pods[name]["metadata"]["uid"] != uid for name, uid in old.items()
        )

    node.until("other pods are ready", are_replaced)
    assert user.mounts() == mounts
    user.writes_on()


def test_pods_that_cannot_run_are_reported_with_a_remedy(
    node: pod_node.PodNode, tmp_path: pathlib.Path
) -> None:
    """By `mooring doctor`: one row for each mistake, none of them silent."""
    mistakes.load(node, tmp_path)
    names = {f"mistake-{x}": key for x, key in enumerate(mistakes.MISTAKES)}
    for name, key in names.items():
        mistakes.create(node, name, mistakes.MISTAKES[key])
    reported: dict[str, PodProblem] = {}

    def are_reported() -> bool:
        report = pod_states.read(node.system.api, (mistakes.COMPONENT,), TIMEOUT_S)
        for problem in report.problems:
            mistake = mistakes.MISTAKES[names[problem.pod]]
            if problem.reason in mistake.reasons and mistake.text in problem.text:
                reported[names[problem.pod]] = problem
        return reported.keys() == mistakes.MISTAKES.keys()

    try:
        node.until("all mistakes are reported", are_reported)
    finally:
        for key, problem in reported.items():
            print(f"{key:34} {problem.reason}: {problem.text}")
        for name in names:
            node.system.delete(resources.PODS, name)
    for key, problem in reported.items():
        (line,) = judge.pods(Read(PodReport(1, (problem,))))
        assert line.state is CheckState.FAILED
        assert mistakes.MISTAKES[key].remedy in line.remedy


def test_another_replica_takes_over_and_writes_nothing_twice(
    user: users.Users[pod_node.PodNode],
) -> None:
    """The leader's pod is deleted while it creates load balancers.

    One kubelet runs one replica of the chart, as replicas exclude each other on a
    host; the second one is a copy of its Deployment with another port.
    """
    node = user.node
    node.system.make(resources.DEPLOYMENTS, SECOND, spec=second_replica(node)["spec"])
    node.until("the second replica is ready", lambda: SECOND in node.pods.ready())
    assert "became leader" not in node.pods.log(SECOND, "openstack-ccm")
    before = len(node.cloud.calls)
    for name in SERVICES:
        user.add_service(name)

    def created() -> list[str]:
        return [
            call.path
            for call in node.cloud.calls[before:]
            if call.method == "POST" and call.path.endswith(BALANCERS_PATH)
        ]

    node.until("the leader has sent a creation", created)
    leader = node.pods.newest()["openstack-ccm"]["metadata"]["name"]
    node.system.delete(resources.PODS, leader, grace_s=None)
    node.until(
        "the second replica leads",
        lambda: "became leader" in node.pods.log(SECOND, "openstack-ccm"),
    )
    for name in SERVICES:
        node.until(
            f"Service {name} has an address", functools.partial(user.ingress, name)
        )
    writes = collections.Counter(
        (call.method, urllib.parse.urlsplit(call.path).path)
        for call in node.cloud.calls[before:]
        if call.method != "GET" and call.service != layout.KEYSTONE
    )
    for (method, path), count in writes.items():
        print(f"{count} {method} {path}")
    assert len(created()) == len(SERVICES)
    assert [x for x, count in writes.items() if count > 1 and x[0] != "POST"] == []
    assert len(node.in_cloud()["load balancers"]) == len(SERVICES) + 1
    changes = changes_of_services(node)
    for name in (users.SERVICE, *SERVICES):
        print(f"{name:22} {dict(changes[name])}")
    # As many as for the Service that was created without a takeover.
    once = changes[users.SERVICE]
    assert once.total() > 0
    assert [x for x in SERVICES if not changes[x] <= once] == []
    for name in SERVICES:
        node.default.delete(resources.SERVICES, name, grace_s=None)
        is_gone = functools.partial(lambda x: not user.has_service(x), name)
        node.until(f"Service {name} is deleted", is_gone)


def changes_of_services(
    node: pod_node.PodNode,
) -> Mapping[str, collections.Counter[tuple[str, str]]]:
    """Return how often openstack-ccm has written each Service, by verb and part."""
    changes: dict[str, collections.Counter[tuple[str, str]]] = {}
    for row in audit.rows(node.where, (pod_node.SYSTEM, "openstack-ccm")):
        is_write = row.verb not in ("get", "list", "watch")
        if row.resource == "services" and is_write and row.code == http.client.OK:
            counter = changes.setdefault(row.name, collections.Counter())
            counter[row.verb, row.subresource or "object"] += 1
    return changes


def second_replica(node: pod_node.PodNode) -> dict[str, Any]:
    """Return the Deployment of openstack-ccm with other labels and another port."""
    document = node.system.get(resources.DEPLOYMENTS, "openstack-ccm")
    port = node.where.port("cloud-controller-manager")
    other = node.where.port("osdpl-controller")
    text = json.dumps(document).replace(str(port), str(other))
    copy = dict(json.loads(text))
    copy["spec"]["selector"] = {"matchLabels": {"app": SECOND}}
    copy["spec"]["template"]["metadata"] = {"labels": {"app": SECOND}}
    return copy


UNCHANGED = "the cloud does not change: tests/lab/discovery"
UNUSED: rights.Reasons = {
    **rights.COMMON,
    **rights.of_sidecars("csi-controller"),
    ("cloud-data-discoverer", "list", "persistentvolumeclaims"): "no disk is lost",
    ("cloud-data-discoverer", "update", "instancetypescatalogs"): UNCHANGED,
    ("cloud-data-discoverer", "update", "secrets"): UNCHANGED,
    ("cloud-data-discoverer", "delete", "storageclasses"): UNCHANGED,
    ("cloud-data-discoverer", "patch", "storageclasses"): UNCHANGED,
    ("openstack-ccm", "delete", "nodes"): "no server is deleted: tests/lab/nodes",
    ("openstack-ccm", "get", "nodes"): rights.LATE,
    ("openstack-ccm", "get", "services"): rights.LATE,
    ("openstack-ccm", "get", "namespaces"): "the cluster ID is a value of the chart",
    ("openstack-ccm", "patch", "nodes/status"): "the kubelet reports the addresses",
    **{
        ("openstack-ccm", verb, "configmaps"): "Pods are not routed: tests/lab/routes"
        for verb in ("create", "get", "patch")
    },
}
"""Verbs that no step of this test needs, by account (empty: any), with the reason."""


def test_each_verb_that_is_granted_is_used(user: users.Users[pod_node.PodNode]) -> None:
    """By the audit log, under exactly the roles of the chart."""
    rights.check_used(user.node, pod_node.SYSTEM, tuple(pod_node.COMPONENTS), UNUSED)


def test_uninstalling_keeps_what_is_in_use(user: users.Users[pod_node.PodNode]) -> None:
    """Load balancer, volume, mount, open file, CRDs and CSIDriver remain."""
    node, mounts = user.node, user.mounts()
    node.system.delete(resources.DEPLOYMENTS, SECOND, grace_s=None)
    before = node.in_cloud()
    writes = len(node.writes())
    node.helm("uninstall", pod_node.CHART)
    node.until("no pod of the chart is left", lambda: not node.pods.newest())
    assert node.writes()[writes:] == []
    assert node.in_cloud() == before
    assert all(before.values())
    assert node.default.get(kube_objects.CSI_DRIVER, csi_node.DRIVER) is not None
    names = {x["metadata"]["name"] for x in node.default.all(resources.DEFINITIONS)}
    assert "instancetypescatalogs.deckhouse.io" in names
    assert user.mounts() == mounts
    user.writes_on()
