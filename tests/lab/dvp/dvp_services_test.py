"""dvp-ccm serves Services through a real parent API server, and leaves others alone.

One daemon, one parent, two children in its project; every step prints its seconds.
"""

import collections
import json
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import click.testing
import pytest

from lib.cloud.dvp import needs
from lib.cloud.dvp.load_balancers import lb_names
from lib.doctor import rights
from lib.kube import client, resources
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.dvp.kinds import CHECKED_SERVICES, MACHINES
from lib.lab.dvp.project import Project
from lib.lab.kube import control_plane, kube_objects
from lib.lab.run import waiting
from mooring.commands import main
from tests.harness.dvp import dvp_manager, dvp_parent
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.kube import audit
from tests.harness.services.services import Services

HOSTS = ("worker-1", "worker-2", "worker-3")
SERVICES, SLICES = resources.SERVICES, resources.ENDPOINT_SLICES
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
OWNED = {"dvp.deckhouse.io/cluster-uuid", "mooring.io/owner-uid"}
IDLE_S = 5.0
SWITCH = "dvp-cloud-controller-manager-disable-lb"
Json = dict[str, Any]


class Scene:
    """A child with three Nodes, its parent, and dvp-ccm between them."""

    def __init__(
        self,
        parent: DvpParent,
        project: Project,
        where: places.Places,
        api: client.Api,
    ) -> None:
        self.parent = parent
        self.where = where
        self.project = project
        self.objects = parent.objects(project)
        self.api = api
        self.services = Services(api, "shop")
        self.child = kube_objects.Objects(api, "shop")
        self.rows: list[tuple[str, float]] = []

    def until(self, what: str, is_met: Callable[[], object]) -> None:
        self.rows.append((what, waiting.until(what, is_met)))

    def name(self, service: str) -> str:
        """Return the name of a Service's object in the parent."""
        document = self.services.get(service)
        assert document is not None
        return lb_names.object_name(document["metadata"]["uid"])

    def ingress(self, service: str) -> list[Json]:
        status = (self.services.get(service) or {}).get("status", {})
        return list(status.get("loadBalancer", {}).get("ingress", []))

    def parent_service(self, service: str) -> Json:
        document = self.objects.get(SERVICES, self.name(service))
        assert document is not None
        return document

    def labelled(self, name: str) -> list[str]:
        """Return the VMs with the label of a parent's object."""
        key = lb_names.label_key(name)
        vms = self.objects.all(MACHINES)
        return sorted(
            vm["metadata"]["name"]
            for vm in vms
            if key in vm["metadata"].get("labels", {})
        )

    def endpoints(self, name: str) -> set[str]:
        """Return the addresses to which the parent sends traffic of a Service."""
        return {
            address
            for row in self.objects.all(SLICES)
            if row["metadata"]["labels"].get("kubernetes.io/service-name") == name
            for endpoint in row.get("endpoints") or []
            for address in endpoint["addresses"]
        }

    def writes(self) -> collections.Counter[tuple[str, str]]:
        """Count the writes of the project's user, once no more come."""
        return collections.Counter(
            (row.verb, row.resource)
            for row in self.parent.settled(self.project)
            if row.verb not in ("get", "list")
        )

    def log(self) -> str:
        """Return the log of dvp-ccm."""
        return dvp_manager.log_of(self.where)

    def others(self) -> Json:
        """Return the objects of the other child, whole."""
        vm = self.objects.get(MACHINES, "theirs")
        return {"vm": vm, "service": self.objects.get(SERVICES, "atheirs")}


@pytest.fixture(scope="module")
def scene(
    parent: DvpParent, project: Project, where: places.Places, api: client.Api
) -> Iterator[Scene]:
    """Three VMs of this child, and one of another with the hostname of the first."""
    parent.machines(project, HOSTS)
    other = dvp_parent.OTHER_CLUSTER
    parent.machine(project, HOSTS[0], name="theirs", cluster=other)
    new = Scene(parent, project, where, api)
    new.objects.make(
        SERVICES,
        "atheirs",
        {"labels": {dvp_parent.CLUSTER_LABEL: other, "mooring.io/owner-uid": "x"}},
        spec={
            "type": "LoadBalancer",
            "selector": {"dvp.deckhouse.io/atheirs": "loadbalancer"},
            "ports": [{"port": 80, "targetPort": 30080}],
        },
    )
    adopted(new)
    kubelets = dvp_manager.Kubelets(api)
    kubelets.boot(*HOSTS)
    new.until("the other child's address", lambda: has_ingress(new, "atheirs"))
    yield new
    kubelets.end()
    for what, took_s in new.rows:
        print(f"{what:55} {took_s:6.2f} s")


def has_ingress(scene: Scene, name: str) -> bool:
    document = scene.objects.get(SERVICES, name) or {}
    return bool(document.get("status", {}).get("loadBalancer", {}).get("ingress"))


def adopted(scene: Scene) -> None:
    """Create Services as the reference leaves them: one of each kind, with labels."""
    scene.parent.serve_checked_services()
    for service, kind in (("old", SERVICES), ("oldcheck", CHECKED_SERVICES)):
        created = scene.services.make(service, {"example.com/a": "b"})
        uid = created["metadata"]["uid"]
        name = lb_names.object_name(uid)
        key = lb_names.label_key(name)
        port = created["spec"]["ports"][0]
        spec: Json = {
            "type": "LoadBalancer",
            "selector": {key: "loadbalancer"},
            "ports": [
                {
                    "name": port["name"],
                    "protocol": "TCP",
                    "port": 80,
                    "targetPort": port["nodePort"],
                }
            ],
            "externalTrafficPolicy": "Cluster",
        }
        if kind is CHECKED_SERVICES:
            probe = {"mode": "TCP", "tcp": {"targetPort": port["nodePort"]}}
            times = {"initialDelaySeconds": 10, "periodSeconds": 10}
            spec["healthcheck"] = {**times, "probes": [probe]}
        about: Json = {"annotations": {"example.com/a": "b"}}
        scene.objects.make(kind, name, about, spec=spec)
        for host in HOSTS:
            labels = {"labels": {key: "loadbalancer"}}
            scene.objects.patch(MACHINES, host, metadata=labels)


@pytest.fixture(scope="module")
def child(
    where: places.Places,
    api: client.Api,
    tmp_path_factory: pytest.TempPathFactory,
) -> pathlib.Path:
    """Return the kubeconfig of dvp-ccm: it has the rights of its manifest alone."""
    return dvp_manager.account(where, api, tmp_path_factory.mktemp("child"))


@pytest.fixture(scope="module")
def manager(
    scene: Scene, where: places.Places, project: Project, child: pathlib.Path
) -> Iterator[None]:
    """Run dvp-ccm with all its controllers; drift checks are an hour apart."""
    env = dvp_manager.environment(project)
    flags = ["--lb-drift-period=1h", "--leader-elect=false"]
    words = dvp_manager.arguments(where, project.kubeconfig, flags, child)
    with dvp_manager.running(where, pexes.beside("dvp-ccm"), words, env):
        yield


def without_labels(document: Json) -> Json:
    """Return an object without what adoption, and the parent itself, change."""
    copied: Json = json.loads(json.dumps(document))
    copied.pop("status", None)
    for key in ("resourceVersion", "managedFields", "generation"):
        copied["metadata"].pop(key, None)
    labels = copied["metadata"].get("labels", {})
    left = {key: value for key, value in labels.items() if key not in OWNED}
    copied["metadata"]["labels"] = left
    return copied


def wait_for_parent(scene: Scene, service: str) -> None:
    name = scene.name(service)
    scene.until(f"{service}: the parent's address", lambda: has_ingress(scene, name))


def wait_for_labels(scene: Scene, service: str, kind: resources.Resource) -> Json:
    """Return an object of the parent once it has both labels of its owner."""
    name = scene.name(service)

    def labels() -> set[str]:
        document = scene.objects.get(kind, name) or {}
        return set(document["metadata"].get("labels") or {})

    scene.until(f"{service}: its address", lambda: scene.ingress(service))
    scene.until(f"{service}: its labels", lambda: labels() >= OWNED)
    document = scene.objects.get(kind, name)
    assert document is not None
    return document


def test_the_references_objects_are_adopted_by_labels_alone(
    scene: Scene, request: pytest.FixtureRequest
) -> None:
    """Both kinds; VMs are not written, and nothing else of the objects is."""
    kinds = {"old": SERVICES, "oldcheck": CHECKED_SERVICES}
    for service in kinds:
        wait_for_parent(scene, service)
    before = {
        service: scene.objects.get(kind, scene.name(service))
        for service, kind in kinds.items()
    }
    vms = {vm["metadata"]["name"]: vm for vm in scene.objects.all(MACHINES)}
    request.getfixturevalue("manager")
    for service, kind in kinds.items():
        new, old = wait_for_labels(scene, service, kind), before[service]
        assert old is not None
        assert without_labels(new) == without_labels(old)
    for name, vm in vms.items():
        now = scene.objects.get(MACHINES, name)
        assert now is not None
        assert now["metadata"]["labels"] == vm["metadata"]["labels"]
    writes = scene.writes()
    print(dict(writes))
    assert writes == {("patch", "services"): 1, ("patch", CHECKED_SERVICES.plural): 1}


@pytest.mark.usefixtures("manager")
def test_a_service_reaches_its_nodes_through_the_parent(scene: Scene) -> None:
    """Created, changed, damaged by others, disabled and deleted; counts at the end."""
    others = scene.others()
    before = scene.writes()
    scene.services.make("web")
    scene.until("web: its address", lambda: scene.ingress("web"))
    name = scene.name("web")
    assert scene.ingress("web") == status_of(scene, name)
    assert scene.labelled(name) == list(HOSTS)
    vms = [scene.objects.get(MACHINES, host) or {} for host in HOSTS]
    ips = {vm["status"]["ipAddress"] for vm in vms}
    scene.until("the parent's endpoints", lambda: scene.endpoints(name) == ips)
    sent = scene.writes() - before
    print(f"a new Service of {len(HOSTS)} Nodes: {dict(sent)}")
    assert sum(sent.values()) == len(HOSTS) + 1
    check_repairs(scene, name)
    check_local(scene, name)
    check_switch(scene)
    check_refusals(scene)
    check_idle(scene)
    check_deleted(scene, name)
    assert scene.others() == others


def status_of(scene: Scene, name: str) -> list[Json]:
    document = scene.objects.get(SERVICES, name) or {}
    return list(document["status"]["loadBalancer"]["ingress"])


def check_repairs(scene: Scene, name: str) -> None:
    """What others delete or relabel is repaired when the watch shows it."""
    key = lb_names.label_key(name)
    scene.objects.patch(MACHINES, HOSTS[1], metadata={"labels": {key: None}})
    scene.until("a removed label is back", lambda: scene.labelled(name) == list(HOSTS))
    kind = CHECKED_SERVICES
    owner = {"labels": {"mooring.io/owner-uid": None}}
    scene.objects.patch(kind, name, metadata=owner)
    scene.until(
        "a removed ownership label is back",
        lambda: "mooring.io/owner-uid"
        in (scene.objects.get(kind, name) or {})["metadata"]["labels"],
    )
    old = (scene.objects.get(kind, name) or {})["metadata"]["uid"]
    scene.objects.delete(kind, name)

    def is_new() -> bool:
        now = scene.objects.get(kind, name)
        return now is not None and now["metadata"]["uid"] != old

    scene.until("a deleted object is back", is_new)
    scene.until(
        "and its address is shown",
        lambda: has_ingress(scene, name)
        and scene.ingress("web") == status_of(scene, name),
    )


def check_local(scene: Scene, name: str) -> None:
    """With the policy Local, VMs with a ready endpoint have the label."""
    about = {"labels": {"kubernetes.io/service-name": "web"}}
    ready = {"conditions": {"ready": True}, "addresses": ["10.244.0.9"]}
    scene.child.make(
        SLICES,
        "web-1",
        about,
        addressType="IPv4",
        endpoints=[{**ready, "nodeName": HOSTS[0]}],
    )
    scene.services.change("web", externalTrafficPolicy="Local")
    scene.until("Local: one VM", lambda: scene.labelled(name) == [HOSTS[0]])
    moved = [{**ready, "nodeName": HOSTS[2]}]
    scene.child.patch(SLICES, "web-1", endpoints=moved)
    scene.until("its Pod has moved", lambda: scene.labelled(name) == [HOSTS[2]])
    scene.services.change("web", externalTrafficPolicy="Cluster")
    scene.until("Cluster: all VMs", lambda: scene.labelled(name) == list(HOSTS))


def check_switch(scene: Scene) -> None:
    """While the ConfigMap exists, a new Service gets nothing."""
    switch = kube_objects.Objects(scene.api, dvp_manager.SWITCH_NAMESPACE)
    switch.make(resources.CONFIG_MAPS, SWITCH)
    scene.until("disabled", lambda: "load balancers are disabled" in scene.log())
    before = scene.writes()
    scene.services.make("late")
    time.sleep(2.0)
    assert scene.writes() == before
    switch.delete(resources.CONFIG_MAPS, SWITCH)
    scene.until("enabled again: its address", lambda: scene.ingress("late"))


def check_refusals(scene: Scene) -> None:
    """Each has one Event with field and value; the other Services are served."""
    bad_class = {lb_names.CLASS_ANNOTATION: "A B"}
    scene.services.make("class", bad_class)
    scene.services.make("portless", allocateLoadBalancerNodePorts=False)
    created = scene.services.make("taken", type="ClusterIP")
    taken = lb_names.object_name(created["metadata"]["uid"])
    scene.objects.make(
        SERVICES,
        taken,
        {"labels": {dvp_parent.CLUSTER_LABEL: dvp_parent.OTHER_CLUSTER}},
        spec={"type": "ClusterIP", "ports": [{"port": 80}]},
    )
    other_service = scene.objects.get(SERVICES, taken)
    scene.services.change("taken", type="LoadBalancer")
    expected = {
        "class": f'annotation {lb_names.CLASS_ANNOTATION}: invalid value "A B"',
        "portless": "port 80/TCP has no nodePort",
        "taken": f'label {dvp_parent.CLUSTER_LABEL} is "{dvp_parent.OTHER_CLUSTER}"',
    }
    for service, words in expected.items():
        wait_for_event(scene, service, words)
    assert scene.objects.get(SERVICES, taken) == other_service
    for service in expected:
        assert scene.ingress(service) == []
        scene.child.delete(SERVICES, service)
    scene.until("they are deleted", lambda: "taken" not in scene.services.all())
    assert scene.objects.get(SERVICES, taken) == other_service


def wait_for_event(scene: Scene, service: str, words: str) -> None:
    scene.until(f"{service}: its Event", lambda: events_of(scene, service, words))
    print(f"{service:10} {events_of(scene, service, words)}")


def events_of(scene: Scene, service: str, words: str) -> list[str]:
    return [
        f"{event.reason} x{event.count}: {event.message}"
        for event in scene.services.events().get(service, [])
        if words in event.message
    ]


def check_idle(scene: Scene) -> None:
    """At rest, the parent gets no request but watches."""
    before = len(scene.parent.settled(scene.project))
    time.sleep(IDLE_S)
    after = len(scene.parent.settled(scene.project))
    print(f"idle {IDLE_S:.0f} s: {after - before} requests")
    assert after == before


def check_deleted(scene: Scene, name: str) -> None:
    """Object and labels are gone, then the finalizer, then the Service."""
    service = scene.services.get("web")
    assert service is not None
    assert FINALIZER in service["metadata"]["finalizers"]
    scene.child.delete(SERVICES, "web")
    scene.until("the Service is deleted", lambda: scene.services.get("web") is None)
    assert scene.objects.get(CHECKED_SERVICES, name) is None
    assert scene.labelled(name) == []
    used = {
        (row.group, row.resource, row.verb)
        for row in scene.parent.requests(scene.project)
        if row.resource
    }
    for row in sorted(used):
        print(*row)
    group, second = "virtualization.deckhouse.io", CHECKED_SERVICES
    reads, writes = ("get", "list", "watch"), ("create", "patch", "delete")
    assert used <= {
        *((group, "virtualmachines", verb) for verb in (*reads, "patch")),
        *(("", "services", verb) for verb in (*reads, *writes)),
        *((second.group, second.plural, verb) for verb in (*reads, *writes)),
    }


@pytest.mark.usefixtures("manager")
def test_the_tool_plans_services_and_deletes_orphans(
    scene: Scene, where: places.Places
) -> None:
    """An object of this cluster without a Service is listed, and deleted on request."""
    planned = run_tool(scene, where, "plan", "services")
    print(planned.output)
    assert planned.exit_code == 0, planned.output
    assert "No changes: 3 Services checked" in planned.output
    uid = "5e7f0000-0000-4000-8000-000000000001"
    name = lb_names.object_name(uid)
    owned = {dvp_parent.CLUSTER_LABEL: dvp_parent.CLUSTER, "mooring.io/owner-uid": uid}
    key = lb_names.label_key(name)
    scene.objects.make(
        SERVICES,
        name,
        {"labels": owned},
        spec={
            "type": "LoadBalancer",
            "selector": {key: "loadbalancer"},
            "ports": [{"port": 80, "targetPort": 30080}],
        },
    )
    label = {"labels": {key: "loadbalancer"}}
    scene.objects.patch(MACHINES, HOSTS[0], metadata=label)
    words = ("orphans", "--kind=load-balancer", "--min-age=0s")
    listed = run_tool(scene, where, *words)
    print(listed.output)
    assert listed.exit_code == 3, listed.output
    assert name in listed.output
    assert "atheirs" not in listed.output
    deleted = run_tool(scene, where, *words, "--delete", "--yes")
    assert deleted.exit_code == 0, deleted.output
    assert scene.objects.get(SERVICES, name) is None
    assert scene.labelled(name) == []
    assert scene.labelled(scene.name("old")) == list(HOSTS)


def run_tool(scene: Scene, where: places.Places, *words: str) -> click.testing.Result:
    reach = (
        "--cloud=dvp",
        f"--cloud-config={scene.project.kubeconfig}",
        f"--kubeconfig={control_plane.admin_kubeconfig(where)}",
    )
    env = {**dvp_manager.environment(scene.project), "NO_COLOR": "1", "COLUMNS": "400"}
    return click.testing.CliRunner().invoke(main.commands, [*words, *reach], env=env)


def test_rights_in_the_child_are_those_of_the_manifest(where: places.Places) -> None:
    """Nothing was forbidden, and nothing is used that the manifest does not list."""
    rows = audit.rows(where, dvp_manager.ACCOUNT)
    assert not [row for row in rows if row.code == 403]
    used = {(row.verb, row.group, row.resource, row.subresource) for row in rows}
    used = {right for right in used if right[2]}
    granted = {
        (right.verb, right.group, right.resource, right.subresource)
        for right in rights.parse(needs.manifest())
    }
    print("used:", *sorted(" ".join(filter(None, right)) for right in used))
    unused = granted - used
    print("not used here:", *sorted(" ".join(filter(None, right)) for right in unused))
    assert used <= granted
    assert {right[2] for right in unused} <= {
        *("events", "leases", "nodes", "services"),
        *("subjectaccessreviews", "tokenreviews"),
    }


def test_the_reference_can_go_on_with_what_is_left(scene: Scene) -> None:
    """Names, labels of VMs, selector and ports of an adopted Service are its own."""
    document = scene.parent_service("old")
    name = scene.name("old")
    key = lb_names.label_key(name)
    assert document["spec"]["selector"] == {key: "loadbalancer"}
    assert document["metadata"]["name"] == name
    assert scene.labelled(name) == list(HOSTS)
    labels = {host: scene.objects.get(MACHINES, host) for host in HOSTS}
    values = {(vm or {})["metadata"]["labels"][key] for vm in labels.values()}
    assert values == {"loadbalancer"}
