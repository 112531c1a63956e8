"""Plans for Services on DVP: what is written to the parent, and what is not."""

import dataclasses
import datetime
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.load_balancers import lb_names
from lib.cloud.dvp.load_balancers.cloud import UNKEPT_S, DvpLoadBalancers
from lib.cloud.dvp.load_balancers.desired_service import DvpReason, Forwarding
from lib.cloud.load_balancers import (
    Depth,
    Facts,
    Ingress,
    IpFamily,
    IpMode,
    Node,
    NotOwned,
    Owned,
    Plan,
    Port,
    PortProtocol,
    Problems,
    Reason,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import CommonReason, ProblemReason
from lib.kube import errors as kube_errors
from lib.kube.fake import calls
from lib.lab.run import waiting
from tests.contract.dvp_balancers import (
    NAMESPACE,
    UUID,
    FakeParent,
    Json,
    ParentBalancers,
)
from tests.contract.load_balancers import Served
from tests.harness.dvp import parent_api

UID = "0a6f5f0c-57a4-4a4e-9c19-0f1b2d3c4e5f"
NAME = "a0a6f5f0c57a44a4e9c190f1b2d3c4e5"
LABEL = f"dvp.deckhouse.io/{NAME}"
SERVICES, CHECKED = kinds.SERVICES, kinds.HEALTHCHECKED_SERVICES
VMS = kinds.VIRTUAL_MACHINES
NOW = datetime.datetime.now(datetime.UTC)


class Scene(ParentBalancers):
    """One project, one process, and one Service of two Nodes with one port."""

    def __init__(
        self,
        *,
        serves_checked: bool = False,
        nodes: int = 2,
        parent: FakeParent | None = None,
    ) -> None:
        self.parent = parent or FakeParent(serves_checked=serves_checked)
        hosts = tuple(f"node-{number}" for number in range(1, nodes + 1))
        for host in hosts:
            self.parent.add_vm(host)
        super().__init__(self.parent, tuple(map(Node, hosts)), lambda s: time.sleep(0))
        self.served = Served(self, self.web())

    def web(self) -> Facts:
        """Return the facts of the Service with all Nodes."""
        return dataclasses.replace(self.facts("web"), uid=UID, nodes=self.nodes)

    def put(self, kind: kinds.ParentKind[Any], document: Json) -> None:
        self.parent.put(kind.resource, document)

    def forward(self, forwarding: Forwarding) -> None:
        """Serve the Service with another configuration."""
        assert self._parent is not None
        self.balancers = DvpLoadBalancers(self._parent, forwarding)

    def plan(self, **changes: Any) -> Plan:
        self.served.facts = dataclasses.replace(self.served.facts, **changes)
        return self.served.plan()

    def settle(self, **changes: Any) -> list[str]:
        """Settle after changes of the facts; return the writes."""
        self.served.facts = dataclasses.replace(self.served.facts, **changes)
        before = len(self.parent.calls)
        self.served.settle()
        return writes(self.parent.calls[before:])

    def shows(self, kind: kinds.ParentKind[Any], document: Json) -> None:
        """Change an object as others would, and wait until the watch shows it."""
        self.put(kind, document)
        name = document["metadata"]["name"]
        access = self._parent
        assert access is not None
        stored: Any = next(
            each
            for each in self.parent.all(kind.resource)
            if FakeParent._name(each) == name
        )
        version = stored["metadata"]["resourceVersion"]

        def is_shown() -> bool:
            held = access.items(kind).get(access.key(kind, name))
            return held is not None and held.metadata.resource_version == version

        waiting.until("the watch of the parent", is_shown)


def writes(sent: list[calls.Call]) -> list[str]:
    return [f"{call.verb} {call.resource}" for call in sent if call.is_write]


@pytest.fixture()
def scene() -> Iterator[Scene]:
    opened = Scene()
    yield opened
    opened.close()


@pytest.fixture()
def checked() -> Iterator[Scene]:
    opened = Scene(serves_checked=True)
    yield opened
    opened.close()


def referenced() -> Json:
    """Return a Service as the reference leaves it."""
    ports = [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 30080}]
    return {
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "annotations": {"example.com/a": "b"},
        },
        "spec": {
            "type": "LoadBalancer",
            "selector": {LABEL: "loadbalancer"},
            "ports": [{**ports[0], "nodePort": 31000}],
            "externalTrafficPolicy": "Cluster",
            "clusterIP": "10.96.0.7",
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.99"}]}},
    }


def labelled_vm(host: str) -> Json:
    labels = {ownership.CLUSTER: UUID, ownership.HOSTNAME: host, LABEL: "loadbalancer"}
    about = {"name": host, "namespace": NAMESPACE, "labels": labels}
    return {"metadata": about, "spec": parent_api.vm_spec()}


def test_names_are_those_of_the_reference() -> None:
    assert lb_names.object_name(UID) == NAME
    assert len(NAME) == 32
    assert lb_names.label_key(NAME) == LABEL
    assert len(lb_names.label_key("a" * 90)) == 63


def test_a_new_service_is_created_with_labels_of_its_owner(scene: Scene) -> None:
    facts: Json = {
        "annotations": {"example.com/a": "b", "kubectl.kubernetes.io/x": "{}"},
        "external_ips": ("192.0.2.9",),
        "load_balancer_ip": "192.0.2.8",
        "source_ranges": ("192.0.2.0/24",),
    }
    assert scene.settle(**facts) == ["create services"] + 2 * ["patch virtualmachines"]
    service = scene.parent.only(SERVICES)
    about = service["metadata"]
    assert about["name"] == NAME
    assert about["labels"] == {
        "deckhouse.io/managed-by": "deckhouse",
        "dvp.deckhouse.io/cluster-uuid": UUID,
        "mooring.io/owner-uid": UID,
    }
    assert about["annotations"] == {
        "example.com/a": "b",
        "mooring.io/service": "default/web",
        "mooring.io/copied-annotations": "example.com/a",
    }
    assert service["spec"] == {
        "type": "LoadBalancer",
        "selector": {LABEL: "loadbalancer"},
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 30080}],
        "externalTrafficPolicy": "Cluster",
        "externalIPs": ["192.0.2.9"],
        "loadBalancerIP": "192.0.2.8",
        "loadBalancerSourceRanges": ["192.0.2.0/24"],
    }
    assert scene.parent.labelled(UID) == ["node-1", "node-2"]
    ingress = scene.served.facts.ingress
    assert ingress == (Ingress(ip="198.51.100.1", ip_mode=IpMode.VIP),)


def test_a_service_with_healthchecks_probes_tcp_ports(checked: Scene) -> None:
    """Where the parent serves that kind; its Service has the address."""
    ports = (
        Port(80, PortProtocol.TCP, 30080, "http"),
        Port(53, PortProtocol.UDP, 30053, "dns"),
    )
    writes_of_it = checked.settle(ports=ports)
    assert writes_of_it[0] == "create servicewithhealthchecks"
    spec = checked.parent.only(CHECKED)["spec"]
    assert spec["healthcheck"] == {
        "initialDelaySeconds": 10,
        "periodSeconds": 10,
        "probes": [{"mode": "TCP", "tcp": {"targetPort": 30080}, "timeoutSeconds": 1}],
    }
    assert checked.served.facts.ingress == (
        Ingress(ip="198.51.100.1", ip_mode=IpMode.VIP),
    )
    changed = (*ports, Port(443, PortProtocol.TCP, 30443, "https"))
    assert checked.settle(ports=changed) == ["patch servicewithhealthchecks"]
    probes = checked.parent.only(CHECKED)["spec"]["healthcheck"]["probes"]
    assert [probe["tcp"]["targetPort"] for probe in probes] == [30080, 30443]


def test_an_existing_plain_service_stays_plain(checked: Scene) -> None:
    checked.put(SERVICES, referenced())
    assert checked.settle() == ["patch services"] + 2 * ["patch virtualmachines"]
    assert not checked.parent.all(CHECKED.resource)


@pytest.mark.parametrize("serves_checked", [False, True])
def test_the_references_state_is_adopted_by_labels_alone(serves_checked: bool) -> None:
    """And nothing else of it is changed, so that the reference can go on with it."""
    scene = Scene(serves_checked=serves_checked)
    scene.put(SERVICES, referenced())
    for host in ("node-1", "node-2"):
        scene.put(VMS, labelled_vm(host))
    annotations = {"example.com/a": "b"}
    assert scene.settle(annotations=annotations) == ["patch services"]
    service = scene.parent.only(SERVICES)
    labels = service["metadata"].pop("labels")
    assert set(labels) == {ownership.CLUSTER, ownership.OWNER_UID}
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        service["metadata"].pop(key, None)
    expected = referenced()
    assert service == expected
    assert scene.settle() == []
    scene.close()


FOREIGN = {
    "another cluster": ({"labels": {ownership.CLUSTER: "other"}}, {}, "other"),
    "another Service": (
        {"labels": {ownership.CLUSTER: UUID, ownership.OWNER_UID: "u2"}},
        {},
        "u2",
    ),
    "a controller": (
        {"ownerReferences": [{"kind": "Gateway", "name": "g"}]},
        {},
        "Gateway g",
    ),
    "an internal Service": ({}, {"type": "ClusterIP"}, "ClusterIP"),
}


@pytest.mark.parametrize("row", FOREIGN, ids=FOREIGN)
def test_a_name_taken_by_another_owner_is_refused(scene: Scene, row: str) -> None:
    about, spec, words = FOREIGN[row]
    document = referenced()
    document["metadata"] |= about
    document["spec"] |= spec
    scene.shows(SERVICES, document)
    plan = scene.plan()
    (problem,) = plan.problems
    print(f"{row:20} {problem.message}")
    assert (problem.reason, problem.is_fatal) == (Reason.NOT_OWNED, True)
    assert words in problem.message
    assert NAME in problem.message
    assert (plan.steps, plan.settled) == ((), False)
    gone = scene.served.plan(gone=True)
    assert (gone.steps, gone.settled) == ((), True), "it is not deleted, either"


def test_annotations_are_copied_on_change_and_removed_if_they_were_copied(
    scene: Scene,
) -> None:
    scene.settle(annotations={"a": "1", "b": "2"})
    service = scene.parent.only(SERVICES)
    service["metadata"]["annotations"]["metallb.io/pool"] = "x"
    scene.shows(SERVICES, service)
    assert scene.settle(annotations={"b": "3"}) == ["patch services"]
    annotations = scene.parent.only(SERVICES)["metadata"]["annotations"]
    assert annotations == {
        "b": "3",
        "metallb.io/pool": "x",
        "mooring.io/service": "default/web",
        "mooring.io/copied-annotations": "b",
    }
    assert scene.settle(annotations={}) == ["patch services"]
    annotations = scene.parent.only(SERVICES)["metadata"]["annotations"]
    assert set(annotations) == {"metallb.io/pool", "mooring.io/service"}


CHANGES: dict[str, Json] = {
    "ports": {"ports": (Port(443, PortProtocol.TCP, 30443, "https"),)},
    "class": {"annotations": {lb_names.CLASS_ANNOTATION: "second"}},
    "policy": {"is_local": True},
    "external IPs": {"external_ips": ("192.0.2.1",)},
    "address": {"load_balancer_ip": "192.0.2.2"},
    "source ranges": {"source_ranges": ("192.0.2.0/24",)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_one_write_and_can_be_undone(scene: Scene, change: str) -> None:
    facts = scene.served.facts
    scene.settle()
    before = scene.parent.only(SERVICES)["spec"]
    assert scene.settle(**CHANGES[change]) == ["patch services"]
    assert scene.settle() == []
    undone = {key: getattr(facts, key) for key in CHANGES[change]}
    assert scene.settle(**undone) == ["patch services"]
    assert scene.parent.only(SERVICES)["spec"] == before


class Mutating(FakeParent):
    """A parent whose admission drops annotations and labels of what is written."""

    dropped: tuple[str, ...] = ("a", LABEL)

    def request(self, method: str, path: str, **more: Any) -> bytes:
        if more.get("body") and method in ("POST", "PATCH"):
            document: Json = msgspec.json.decode(more["body"])
            for section in ("annotations", "labels"):
                for key in self.dropped:
                    document["metadata"].get(section, {}).pop(key, None)
            more["body"] = msgspec.json.encode(document)
        return super().request(method, path, **more)


def test_what_the_parent_does_not_keep_is_reported_and_written_rarely() -> None:
    """Once it keeps the field, nothing is left of it."""
    parent = Mutating()
    scene = Scene(parent=parent, nodes=1)
    for step in scene.plan(annotations={"a": "1", "b": "2"}).steps:
        scene.balancers.apply(step)
    for _ in range(2):
        steps = scene.plan().steps
        waits = [scene.balancers.apply(step).opens_after_s for step in steps]
        assert waits == [UNKEPT_S, UNKEPT_S]
        (problem,) = scene.plan().problems
        assert problem.reason is CommonReason.REFUSED
        assert problem.message.startswith(
            f"Service {NAME} of the parent: metadata.annotations.a;"
            f" VirtualMachine node-1: metadata.labels.{LABEL}: the parent does not keep"
        )
    parent.dropped = ()
    waits = [scene.balancers.apply(step).opens_after_s for step in scene.plan().steps]
    assert waits == [0, 0]
    assert (scene.plan().steps, scene.plan().problems) == ((), ())
    scene.close()


def test_a_selector_of_a_former_version_is_replaced(scene: Scene) -> None:
    """That of its last Node, which an old version of the reference wrote."""
    document = referenced()
    document["spec"]["selector"] = {ownership.HOSTNAME: "node-2"}
    scene.shows(SERVICES, document)
    scene.settle()
    selector = scene.parent.only(SERVICES)["spec"]["selector"]
    assert selector == {LABEL: "loadbalancer"}


def test_counts_of_a_service_with_100_nodes() -> None:
    """101 writes at first, 1 for one more Node or one less, none at rest."""
    scene = Scene(nodes=101)
    nodes = scene.nodes
    first = scene.settle(nodes=nodes[:100])
    rows = [("created", len(first), 101)]
    rows.append(("one more", len(scene.settle(nodes=nodes)), 1))
    rows.append(("one less", len(scene.settle(nodes=nodes[1:])), 1))
    before = len(scene.parent.calls)
    scene.settle()
    rows.append(("at rest, also reads", len(scene.parent.calls) - before, 0))
    scene.restart()
    rows.append(("restart", len(scene.settle()), 0))
    for what, count, expected in rows:
        print(f"{what:20} {count:4} of {expected}")
    assert [count for _, count, _ in rows] == [expected for *_, expected in rows]
    assert len(scene.parent.labelled(UID)) == 100
    scene.close()


def test_a_restart_with_100_services_reads_each_kind_once_and_writes_nothing() -> None:
    scene = Scene()
    all_served = [Served(scene, scene.facts(f"s-{number}")) for number in range(100)]
    for served in all_served:
        served.settle()
    scene.restart()
    before = len(scene.parent.calls)
    targets = [served.target() for served in all_served]
    observed = scene.balancers.observe(targets, Depth.CHANGED)
    for target in targets:
        observation = observed[target.ref]
        assert isinstance(observation, Seen)
        assert scene.balancers.plan(target, observation.value, NOW).settled
    sent = [(call.verb, call.resource) for call in scene.parent.calls[before:]]
    print(sent)
    assert sorted(row for row in sent if row[0] != "watch") == [
        ("list", "services"),
        ("list", "virtualmachines"),
    ]
    scene.close()


def test_only_nodes_with_ready_endpoints_serve_a_local_service(scene: Scene) -> None:
    scene.settle(is_local=True, serving_nodes=frozenset({"node-2"}))
    assert scene.parent.labelled(UID) == ["node-2"]
    assert scene.parent.only(SERVICES)["spec"]["externalTrafficPolicy"] == "Local"
    assert scene.settle(serving_nodes=frozenset({"node-1"})) == [
        "patch virtualmachines",
        "patch virtualmachines",
    ]
    assert scene.parent.labelled(UID) == ["node-1"]
    scene.settle(serving_nodes=frozenset())
    assert scene.parent.labelled(UID) == []
    scene.settle(is_local=False)
    assert scene.parent.labelled(UID) == ["node-1", "node-2"]


def test_vms_of_another_cluster_are_not_touched(scene: Scene) -> None:
    """Neither one with the name of a Node, nor one that carries the label."""
    scene.parent.add_vm("node-1", name="other", cluster="other")
    stranger = labelled_vm("stranger")
    stranger["metadata"]["labels"][ownership.CLUSTER] = "other"
    scene.put(VMS, stranger)
    before = [vm for vm in scene.parent.all(VMS.resource) if named(vm) in OTHERS]
    scene.settle()
    scene.served.settle(gone=True)
    after = [vm for vm in scene.parent.all(VMS.resource) if named(vm) in OTHERS]
    assert len(before) == 2
    assert after == before
    assert scene.parent.labelled(UID) == ["stranger"]


OTHERS = ("other", "stranger")


def named(document: Any) -> str:
    return FakeParent._name(document)


def test_two_vms_with_one_hostname_are_told_apart_by_the_provider_id(
    scene: Scene,
) -> None:
    """Without one, the Node gets no traffic, and an Event names both VMs."""
    scene.parent.add_vm("node-1", name="node-1-old")
    scene.settle()
    assert scene.parent.labelled(UID) == ["node-2"]
    plan = scene.served.plan()
    (problem,) = plan.problems
    print(problem.message)
    assert (problem.reason, problem.is_fatal) == (CommonReason.AMBIGUOUS, False)
    assert "node-1, node-1-old" in problem.message
    nodes = (Node("node-1", "dvp://node-1"), Node("node-2", "dvp://node-2"))
    scene.settle(nodes=nodes)
    assert scene.parent.labelled(UID) == ["node-1", "node-2"]


def test_nodes_of_other_providers_are_omitted(scene: Scene) -> None:
    nodes = (*scene.nodes, Node("metal", "static://"), Node("far", "openstack:///1"))
    scene.settle(nodes=nodes)
    assert scene.served.plan().problems == ()


BAD: dict[str, tuple[Json, ProblemReason, str]] = {
    "no port": ({"ports": ()}, Reason.INVALID_SERVICE, "spec.ports: not set"),
    "no node port": (
        {"ports": (Port(80, PortProtocol.TCP),)},
        Reason.NO_NODE_PORT,
        "port 80/TCP has no nodePort",
    ),
    "no nodes": ({"nodes": ()}, Reason.NO_NODES, "no available Nodes"),
    "no VMs": (
        {"nodes": (Node("metal", "static://"),)},
        Reason.NO_NODES,
        "none of the 1 Nodes is a VM",
    ),
    "class": (
        {"annotations": {lb_names.CLASS_ANNOTATION: "A B"}},
        Reason.INVALID_ANNOTATION,
        f'annotation {lb_names.CLASS_ANNOTATION}: invalid value "A B"',
    ),
    "address": (
        {"load_balancer_ip": "1.2.3"},
        Reason.INVALID_SERVICE,
        'spec.loadBalancerIP: invalid value "1.2.3": must be an IP address',
    ),
}


@pytest.mark.parametrize("row", BAD)
def test_what_cannot_be_served_is_a_fatal_problem(scene: Scene, row: str) -> None:
    changes, reason, words = BAD[row]
    parsed = scene.balancers.parse(dataclasses.replace(scene.web(), **changes))
    assert isinstance(parsed, Problems)
    print([problem.message for problem in parsed.problems])
    assert [problem.reason for problem in parsed.problems] == [reason]
    assert words in parsed.problems[0].message


def test_a_node_without_a_vm_is_reported_and_the_others_serve(scene: Scene) -> None:
    scene.settle(nodes=(*scene.nodes, Node("node-9")))
    (problem,) = scene.served.plan().problems
    assert problem.reason is DvpReason.NO_VIRTUAL_MACHINE
    assert problem.message.startswith("Node node-9: no VirtualMachine")
    assert scene.parent.labelled(UID) == ["node-1", "node-2"]


@pytest.mark.parametrize(
    ("annotations", "reason", "words"),
    [
        ({}, DvpReason.NO_PARENT_ADDRESS, "its pool may be exhausted"),
        (
            {lb_names.CLASS_ANNOTATION: "gold"},
            Reason.UNKNOWN_CLASS,
            'class "gold" may be unknown, or its pool may be exhausted',
        ),
    ],
    ids=["no class", "class"],
)
def test_an_address_that_does_not_come_is_reported_after_five_minutes(
    scene: Scene, annotations: dict[str, str], reason: ProblemReason, words: str
) -> None:
    """The Service waits for the watch: no request is sent."""
    scene.parent.gives_addresses = False
    plan = scene.plan(annotations=annotations)
    for step in plan.steps:
        scene.served.apply(step)
    waits = scene.served.plan()
    assert (waits.steps, waits.settled, waits.problems) == ((), False, ())
    assert waits.retry_after_s
    assert waits.results.ingress is None
    target = scene.served.target()
    observed = scene.served.observe(target)
    late = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=6)
    (problem,) = scene.balancers.plan(target, observed, late).problems
    print(problem.message)
    assert (problem.reason, problem.is_fatal) == (reason, False)
    assert words in problem.message


ONLY_PLAIN: dict[str, Json] = {
    "spec.loadBalancerSourceRanges": {"source_ranges": ("192.0.2.0/24",)},
    "spec.loadBalancerClass": {"load_balancer_class": "internal"},
    "spec.loadBalancerIP": {"load_balancer_ip": "198.51.100.9"},
    "spec.externalIPs": {"external_ips": ("192.0.2.3",)},
}
"""Fields that no ServiceWithHealthchecks passes on to its Service."""


@pytest.mark.parametrize("field", ONLY_PLAIN)
def test_a_service_with_a_field_that_health_checks_lose_is_plain(
    checked: Scene, field: str
) -> None:
    assert checked.settle(**ONLY_PLAIN[field])[0] == "create services"
    spec = checked.parent.only(SERVICES)["spec"]
    (value,) = ONLY_PLAIN[field].values()
    shown = list(value) if isinstance(value, tuple) else value
    assert spec[field.removeprefix("spec.")] == shown
    assert checked.plan().problems == ()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"has_affinity": True}, "spec.sessionAffinity: ClientIP is not supported"),
        ({"ip_families": (IpFamily.IPV6,)}, "spec.ipFamilies: IPv6 is not supported"),
        (
            {"ip_families": (IpFamily.IPV4, IpFamily.IPV6)},
            "spec.ipFamilies: IPv6 is not supported",
        ),
    ],
    ids=["session affinity", "IPv6", "two families"],
)
@pytest.mark.parametrize("serves_checked", [False, True], ids=["plain", "both kinds"])
def test_a_field_that_no_object_of_the_parent_has_is_reported(
    changes: Json, text: str, *, serves_checked: bool
) -> None:
    """The Service is served without it; nothing is written for it."""
    scene = Scene(serves_checked=serves_checked)
    scene.settle()
    assert scene.settle(**changes) == []
    (problem,) = scene.plan().problems
    print(problem.message)
    assert (problem.reason, problem.is_fatal) == (CommonReason.UNSUPPORTED, False)
    assert problem.message.startswith(text)


@pytest.mark.parametrize("field", ONLY_PLAIN)
def test_a_field_that_an_existing_service_with_health_checks_loses_is_reported(
    checked: Scene, field: str
) -> None:
    """It is not written: a definition that drops it would be written for ever."""
    checked.settle()
    assert checked.settle(**ONLY_PLAIN[field]) == []
    (problem,) = checked.plan().problems
    print(problem.message)
    assert problem.reason is CommonReason.UNSUPPORTED
    assert f"{field}: not supported" in problem.message
    is_open = field == "spec.loadBalancerSourceRanges"
    assert ("all addresses have access" in problem.message) is is_open


ANNOTATIONS = {
    "metallb.universe.tf/loadBalancerIPs": "10.0.0.1",
    "metallb.universe.tf/allow-shared-ip": "shared",
    "external-dns.alpha.kubernetes.io/hostname": "victim.example.com",
    "network.deckhouse.io/load-balancer-class": "public",
}
OUTSIDE: Json = {"annotations": ANNOTATIONS, "external_ips": ("10.222.0.10",)}


def test_by_default_all_annotations_and_external_ips_are_passed_on(
    scene: Scene,
) -> None:
    """As by the reference; see docs/SECURITY.md."""
    scene.settle(**OUTSIDE)
    document = scene.parent.only(SERVICES)
    assert ANNOTATIONS.items() <= document["metadata"]["annotations"].items()
    assert document["spec"]["externalIPs"] == ["10.222.0.10"]
    assert scene.plan().problems == ()


@pytest.mark.parametrize("is_adopted", [False, True], ids=["new", "of the reference"])
def test_what_is_not_allowed_is_withheld_removed_and_reported(
    scene: Scene, *, is_adopted: bool
) -> None:
    if is_adopted:
        document = referenced()
        document["metadata"]["annotations"] = dict(ANNOTATIONS)
        document["spec"]["externalIPs"] = ["10.222.0.10"]
        scene.shows(SERVICES, document)
    scene.forward(Forwarding(("network.deckhouse.io/",), external_ips=False))
    scene.settle(**OUTSIDE)
    document = scene.parent.only(SERVICES)
    copied = document["metadata"]["annotations"]
    assert copied["network.deckhouse.io/load-balancer-class"] == "public"
    assert not [key for key in copied if key.startswith(("metallb", "external-dns"))]
    assert not document["spec"].get("externalIPs")
    (problem,) = scene.plan().problems
    print(problem.message)
    assert (problem.reason, problem.is_fatal) == (DvpReason.NOT_FORWARDED, False)
    withheld = [key for key in ANNOTATIONS if not key.startswith("network")]
    assert all(key in problem.message for key in (*withheld, "spec.externalIPs"))
    assert "load-balancer-class" not in problem.message
    assert scene.settle() == []


def test_a_shorter_list_of_prefixes_removes_what_was_copied_before(
    scene: Scene,
) -> None:
    scene.settle(**OUTSIDE)
    scene.forward(Forwarding((), external_ips=False))
    assert scene.settle() == ["patch services"]
    document = scene.parent.only(SERVICES)
    assert not ANNOTATIONS.keys() & document["metadata"]["annotations"].keys()
    assert not document["spec"].get("externalIPs")


def test_a_deleted_service_is_confirmed_by_direct_reads(scene: Scene) -> None:
    """Object and labels are deleted; others with them stay."""
    scene.settle()
    before = len(scene.parent.calls)
    scene.served.settle(gone=True)
    sent = scene.parent.calls[before:]
    assert writes(sent) == ["delete services"] + 2 * ["patch virtualmachines"]
    reads = [(call.verb, call.resource) for call in sent if not call.is_write]
    assert reads == [("get", "services"), ("list", "virtualmachines")]
    assert scene.parent.labelled(UID) == []
    labels: Any = scene.parent.all(VMS.resource)[0]["metadata"]
    assert set(labels["labels"]) == {ownership.CLUSTER, ownership.HOSTNAME}


def test_a_kind_that_may_not_be_listed_concerns_only_what_needs_it() -> None:
    """A plain Service is served on; a new one is unknown, and says why."""
    scene = Scene(serves_checked=True)
    refusal = kube_errors.Forbidden("not yours", operation="GET x", status=403)
    scene.put(SERVICES, referenced())
    resource = CHECKED.resource.plural

    def refuse(call: calls.Call) -> None:
        if call.resource == resource:
            raise refusal

    scene.parent.before_call = refuse
    assert scene.settle()[0] == "patch services"
    other = Served(scene, scene.facts("other")).target()
    observation = scene.balancers.observe([other], Depth.TREE)[other.ref]
    assert isinstance(observation, Unknown)
    assert isinstance(observation.error, errors.Forbidden)
    assert "servicewithhealthchecks" in observation.error.summary
    scene.close()


def test_orphans_are_listed_with_the_service_they_were_created_for(
    scene: Scene,
) -> None:
    scene.settle()
    unlabelled = referenced()
    unlabelled["metadata"]["name"] = "a" + "1" * 31
    unlabelled["spec"]["selector"] = {f"dvp.deckhouse.io/a{'1' * 31}": "loadbalancer"}
    scene.shows(SERVICES, unlabelled)
    scene.shows(
        SERVICES,
        {
            "metadata": {"name": "user", "namespace": NAMESPACE},
            "spec": {"type": "LoadBalancer"},
        },
    )
    rows = list(scene.balancers.owned(UUID))
    (owned,) = (row for row in rows if isinstance(row, Owned))
    assert (owned.kind, owned.id, owned.uid) == ("Service", NAME, UID)
    assert owned.service == "default/web"
    (not_owned,) = (row for row in rows if isinstance(row, NotOwned))
    assert not_owned.id == "a" + "1" * 31
    assert isinstance(scene.balancers, DvpLoadBalancers)
    assert owned.ref is not None
    target = Target(owned.ref, None, frozenset({owned.id}))
    plan = scene.balancers.plan(target, scene.served.observe(target), NOW)
    assert [step.verb.value for step in plan.steps] == ["delete", "change", "change"]


def test_an_unadopted_object_that_exists_already_is_read_again(scene: Scene) -> None:
    """Another process has created it in the meantime."""
    (create, *_) = scene.plan().steps
    scene.balancers.apply(create)
    with pytest.raises(errors.Busy, match="it exists"):
        scene.balancers.apply(create)


REFUSED: dict[str, tuple[kube_errors.KubeError, type[errors.CloudError], str]] = {
    "expired token": (
        kube_errors.Unauthorized("Unauthorized", operation="x", status=401),
        errors.Unauthenticated,
        "Unauthorized",
    ),
    "kubeconfig of another project": (
        kube_errors.Forbidden('User "u" cannot list', operation="x", status=403),
        errors.Forbidden,
        'User "u" cannot list',
    ),
    "API group missing": (
        kube_errors.NotFound("404 page not found", operation="x", status=404),
        errors.Unavailable,
        "the parent does not serve virtualmachines: 404 page not found",
    ),
}


@pytest.mark.parametrize("row", REFUSED)
def test_what_the_parent_refuses_is_unknown_and_named(row: str) -> None:
    """The Event of the Service has this text; nothing is written meanwhile."""
    refusal, kind, text = REFUSED[row]
    scene = Scene()
    machines = VMS.resource.plural

    def refuse(call: calls.Call) -> None:
        if call.resource == machines:
            raise refusal

    scene.parent.before_call = refuse
    target = scene.served.target()
    observation = scene.balancers.observe([target], Depth.TREE)[target.ref]
    assert isinstance(observation, Unknown)
    print(f"{row:30} {observation.error.reason:22} {observation.error.summary}")
    assert isinstance(observation.error, kind)
    assert text in observation.error.summary
    assert writes(scene.parent.calls) == []
    assert scene.parent.discoveries == 0, "nothing is asked while a watch fails"
    scene.close()
