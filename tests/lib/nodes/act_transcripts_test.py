"""What a user sees of a Node's life, word for word as the reference writes it.

Each row is one life: what happens to Node and server, then the Events (in order), the
Node's provider id, taints, labels, addresses and annotations. `differs` says where and
why we do not do as the reference does; elsewhere the row is the reference's own.

Source: k8s.io/cloud-provider v0.36 controllers/node (node_controller.go),
controllers/nodelifecycle (node_lifecycle_controller.go), node/helpers;
kubernetes/cloud-provider-openstack pkg/openstack (instancesv2.go); for static:// and
SKIP_NODE_DELETION what Deckhouse's builds of it do.
"""

import dataclasses
import datetime
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import rich.console
import rich.table

from lib.cloud import errors
from lib.cloud.fake import instances as fake_instances
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.kube import errors as kube_errors
from lib.kube import events, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.kube.fake import calls
from lib.nodes import act, flow, model, observe
from lib.reconcile import queue, runner

BORN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"
SYNCED = "cloud-node-controller Normal Synced: Node synced successfully"
DELETING = (
    "cloud-node-lifecycle-controller Normal DeletingNode:"
    " Deleting node n1 because it does not exist in the cloud provider"
)
TYPE = {
    "beta.kubernetes.io/instance-type": "m1.small",
    "node.kubernetes.io/instance-type": "m1.small",
}
ZONE = {
    "failure-domain.beta.kubernetes.io/zone": "az1",
    "topology.kubernetes.io/zone": "az1",
}
REGION = {
    "failure-domain.beta.kubernetes.io/region": "RegionOne",
    "topology.kubernetes.io/region": "RegionOne",
}
LOOK_S = 5.0
REST = "n2"
"""A Node, and its server, that stays as it is."""


def internal(ip: str) -> Address:
    return Address(AddressType.INTERNAL_IP, ip)


def external(ip: str) -> Address:
    return Address(AddressType.EXTERNAL_IP, ip)


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a user sees of the Node in the end."""

    provider_id: str = "openstack:///id-1"
    taints: tuple[str, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: {**TYPE, **ZONE, **REGION}
    )
    addresses: tuple[str, ...] = ("InternalIP=10.0.0.1", "Hostname=n1")
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


SERVER = Instance(
    id=InstanceId("id-1"),
    name="n1",
    phase=Phase.RUNNING,
    provider_id=fake_instances.provider_id("id-1"),
    addresses=(internal("10.0.0.1"),),
    instance_type="m1.small",
    zone="az1",
    region="RegionOne",
)


class Life:
    """One Node n1 and its server, and a daemon that looks every five seconds.

    Another Node, REST, shows which project is the cluster's.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.api = fake_api.FakeApi(lambda: BORN)
        self.cloud = fake_instances.FakeInstances()
        self.nodes = store.Store(self.api, resources.NODES, kube_nodes.Node)
        self.recorders = {
            source: events.Recorder(self.api, component=source, host="", poll_s=0.01)
            for source in model.Source
        }
        self.settings = model.NodeSettings()
        rest = fake_instances.provider_id(REST)
        self.cloud.put(
            dataclasses.replace(
                SERVER, id=InstanceId(REST), name=REST, provider_id=rest
            )
        )
        self.node(name=REST, shown=dataclasses.replace(Shown(), provider_id=rest))

    def server(self, **changed: Any) -> None:
        self.cloud.put(dataclasses.replace(SERVER, **changed))

    def node(
        self,
        *taints: str,
        ready: str = "True",
        provider_id: str = "",
        shown: Shown | None = None,
        annotations: Mapping[str, str] | None = None,
        name: str = "n1",
    ) -> None:
        """A Node as a kubelet registers it, or as `shown` when that is given."""
        labels = dict(shown.labels) if shown else {}
        addresses = shown.addresses if shown else ("Hostname=n1",)
        self.api.put(
            resources.NODES,
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": dict(annotations or {}),
                },
                "spec": {
                    "providerID": provider_id or (shown.provider_id if shown else ""),
                    "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
                },
                "status": {
                    "addresses": [
                        dict(zip(("type", "address"), each.split("="), strict=True))
                        for each in addresses
                    ],
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            },
        )

    def _nodes(self) -> list[dict[str, Any]]:
        nodes = (dict[str, Any](node) for node in self.api.all(resources.NODES))
        return [node for node in nodes if node["metadata"]["name"] != REST]

    def becomes(self, ready: str) -> None:
        """The kubelet reports, or is found to have stopped reporting."""
        (node,) = self._nodes()
        status = {**dict[str, Any](node)["status"]}
        status["conditions"] = [{"type": "Ready", "status": ready}]
        self.api.put(resources.NODES, {**node, "status": status})

    def passes(self, number: int = 1, every_s: float = LOOK_S) -> None:
        """Take the Node in for every topic so often; first of all begin afresh."""
        observer = observe.NodeObserver(
            self.nodes,
            self.api,
            lambda: self.cloud,
            self.settings,
            runner.Clocks(
                lambda: BORN + datetime.timedelta(0, self.now_s), lambda: self.now_s
            ),
        )
        actor = act.NodeActor(self.api, self.nodes, self.recorders)
        nodes = flow.NodesFlow(observer, actor, self.settings)
        for _ in range(number):
            self.nodes.relist()
            topics = frozenset(str(topic) for topic in model.Topic)
            claims = [queue.Claim(name, topics) for name in self.nodes.items()]
            for snapshot in nodes.observe(claims).values():
                self._act(nodes, snapshot)
            self.now_s += every_s

    def _act(self, nodes: flow.NodesFlow, snapshot: model.Snapshot) -> None:
        for action in runner.decide(nodes, snapshot, BORN).actions:
            try:
                snapshot = nodes.act(snapshot, action)
            except kube_errors.KubeError:
                return

    def events(self) -> list[str]:
        """Return the Events in the order in which they were recorded."""
        stop, senders = threading.Event(), list(self.recorders.values())
        threads = [
            threading.Thread(target=sender.run, args=(stop,)) for sender in senders
        ]
        for thread in threads:
            thread.start()
        for sender in senders:
            assert sender.flush(10)
        stop.set()
        for thread in threads:
            thread.join()
        sorted_events = sorted(
            (dict[str, Any](event) for event in self.api.all(resources.EVENTS)),
            key=lambda event: (event["firstTimestamp"], event["metadata"]["name"]),
        )
        assert {event["involvedObject"]["uid"] for event in sorted_events} <= {"n1"}
        return [
            f"{event['source']['component']} {event['type']} {event['reason']}:"
            f" {event['message']}"
            for event in sorted_events
        ]

    def shown(self) -> Shown | None:
        """Return what a user sees of the Node; None: it was deleted."""
        for whole in self._nodes():
            return Shown(
                whole["spec"].get("providerID", ""),
                tuple(
                    f"{taint['key']}:{taint['effect']}"
                    for taint in whole["spec"].get("taints", ())
                ),
                whole["metadata"].get("labels", {}),
                tuple(
                    f"{each['type']}={each['address']}"
                    for each in whole["status"]["addresses"]
                ),
                whole["metadata"].get("annotations", {}),
            )
        return None


@dataclasses.dataclass(frozen=True)
class Row:
    """One transcript. events: in order. shown: None when the Node is gone."""

    story: Callable[[Life], None]
    events: tuple[str, ...] = ()
    shown: Shown | None = dataclasses.field(default_factory=Shown)
    differs: str = ""


def _with_zone(life: Life) -> None:
    life.server()
    life.node(UNINITIALIZED)
    life.passes(3)


def _without_zone(life: Life) -> None:
    life.server(zone="", region="")
    life.node(UNINITIALIZED)
    life.passes(3)


def _own_id_and_labels(life: Life) -> None:
    life.server()
    old = Shown(labels={**TYPE, "topology.kubernetes.io/zone": "wrong", "mine": "x"})
    life.node(UNINITIALIZED, shown=old)
    life.passes(3)


def _dual_stack(life: Life) -> None:
    life.server(addresses=(internal("10.0.0.1"), internal("fd00::1")))
    life.node(UNINITIALIZED)
    life.passes(3)


def _floating_ip(life: Life) -> None:
    _with_zone(life)
    life.server(addresses=(internal("10.0.0.1"), external("203.0.113.9")))
    life.passes(2)


def _provided_ip(life: Life) -> None:
    several = (internal("10.0.0.1"), internal("10.0.0.2"), external("203.0.113.9"))
    life.server(addresses=several)
    life.node(UNINITIALIZED, annotations={PROVIDED_IP: "10.0.0.2"})
    life.passes(3)


def _provided_ip_unknown(life: Life) -> None:
    life.server()
    life.node(UNINITIALIZED, annotations={PROVIDED_IP: "10.9.9.9"})
    life.passes(3)


def _no_addresses(life: Life) -> None:
    life.server(addresses=())
    life.node(UNINITIALIZED)
    life.passes(3)


def _renamed(life: Life) -> None:
    _with_zone(life)
    life.server(name="another")
    life.passes(3)
    life.becomes("Unknown")
    life.passes(6)


def _shut_down(life: Life) -> None:
    life.server(phase=Phase.STOPPED)
    life.node(shown=Shown(), ready="Unknown")
    life.passes(3)


def _started_again(life: Life) -> None:
    _shut_down(life)
    life.server()
    life.passes(2)
    life.becomes("True")
    life.passes(2)


def _suspended(life: Life) -> None:
    life.server(phase=Phase.SUSPENDED)
    life.node(shown=Shown(), ready="Unknown")
    life.passes(6)


def _deleted(life: Life) -> None:
    life.node(shown=Shown(), ready="Unknown")
    life.passes(5)


def _deleted_at_first_look(life: Life) -> None:
    life.node(shown=Shown(), ready="Unknown")
    life.passes(1)


def _deleted_while_ready(life: Life) -> None:
    life.node(shown=Shown())
    life.passes(6)


def _deletion_refused(life: Life) -> None:
    refusal = kube_errors.Forbidden(
        'nodes "n1" is forbidden', operation="DELETE /api/v1/nodes/n1"
    )
    life.api.faults.append(calls.Fault(refusal, "delete", "nodes", "n1"))
    life.node(shown=Shown(), ready="Unknown")
    life.passes(4)


def _not_ready(life: Life) -> None:
    life.server()
    life.node(shown=Shown(), ready="False")
    life.passes(6)


def _cloud_down(life: Life) -> None:
    life.cloud.faults = [errors.Unavailable("503", operation="list servers")] * 60
    life.node(shown=Shown(), ready="Unknown")
    life.passes(6)


def _new_and_gone(life: Life) -> None:
    life.node(UNINITIALIZED, ready="Unknown")
    life.passes(8, every_s=100.0)


def _two_of_one_name(life: Life) -> None:
    life.server()
    life.server(id=InstanceId("id-2"), provider_id=fake_instances.provider_id("id-2"))
    life.node(UNINITIALIZED)
    life.passes(2)


def _beta_only(life: Life) -> None:
    life.server()
    beta = {key: value for key, value in Shown().labels.items() if "beta" in key}
    life.node(shown=Shown(labels=beta))
    life.passes(2)


def _beta_and_stable_differ(life: Life) -> None:
    life.server()
    odd = {**Shown().labels, "failure-domain.beta.kubernetes.io/zone": "az9"}
    life.node(shown=Shown(labels=odd))
    life.passes(2)


def _stable_only(life: Life) -> None:
    life.server()
    life.node(shown=Shown(labels={"topology.kubernetes.io/zone": "az9"}))
    life.passes(2)


def _static(life: Life) -> None:
    life.node(shown=Shown(provider_id="static://a"), ready="Unknown")
    life.passes(6)


def _skip_deletion(life: Life) -> None:
    life.settings = model.NodeSettings(deletes=False)
    _deleted(life)


TRANSCRIPTS = {
    "initialised, with zone and region": Row(_with_zone, (SYNCED,)),
    "initialised, the cloud has neither zone nor region": Row(
        _without_zone, (SYNCED,), Shown(labels=TYPE)
    ),
    "initialised with provider id and labels of its own": Row(
        _own_id_and_labels,
        (SYNCED,),
        Shown(labels={**TYPE, **ZONE, **REGION, "mine": "x"}),
    ),
    "initialised, dual stack": Row(
        _dual_stack,
        (SYNCED,),
        Shown(addresses=("InternalIP=10.0.0.1", "InternalIP=fd00::1", "Hostname=n1")),
        "the reference patches the same addresses again at every pass",
    ),
    "a floating IP is added": Row(
        _floating_ip,
        (SYNCED,),
        Shown(
            addresses=("InternalIP=10.0.0.1", "ExternalIP=203.0.113.9", "Hostname=n1")
        ),
    ),
    "provided-node-ip is one of its addresses": Row(
        _provided_ip,
        (SYNCED,),
        Shown(
            addresses=("InternalIP=10.0.0.2", "ExternalIP=203.0.113.9", "Hostname=n1"),
            annotations={PROVIDED_IP: "10.0.0.2"},
        ),
    ),
    "provided-node-ip is not one of its addresses": Row(
        _provided_ip_unknown,
        (
            "cloud-node-controller Warning ProvidedNodeIPUnknown: annotation"
            ' alpha.kubernetes.io/provided-node-ip: unsupported value "10.9.9.9": must'
            " be an address of the instance: 10.0.0.1, n1",
        ),
        Shown(
            provider_id="",
            taints=(f"{UNINITIALIZED}:NoSchedule",),
            labels={},
            addresses=("Hostname=n1",),
            annotations={PROVIDED_IP: "10.9.9.9"},
        ),
        "the reference only logs it; the taint stays there, too",
    ),
    "initialised before its ports are active": Row(
        _no_addresses, (SYNCED,), Shown(addresses=("Hostname=n1",))
    ),
    "its server is renamed": Row(_renamed, (SYNCED,)),
    "its server is shut down": Row(
        _shut_down, shown=Shown(taints=(f"{SHUTDOWN}:NoSchedule",))
    ),
    "its server is started again": Row(_started_again),
    "its server is suspended": Row(_suspended),
    "its server is deleted": Row(
        _deleted,
        (DELETING,),
        None,
        "the reference deletes at the first look; we look twice, 15 s apart",
    ),
    "its server is not found once": Row(
        _deleted_at_first_look,
        (),
        Shown(),
        "the reference has deleted the Node by now",
    ),
    "its server is deleted, it still reports": Row(_deleted_while_ready),
    "it may not be deleted": Row(
        _deletion_refused,
        (
            DELETING,
            "cloud-node-lifecycle-controller Warning DeletingNodeFailed:"
            " Failed deleting node n1: DELETE /api/v1/nodes/n1:"
            ' nodes "n1" is forbidden',
        ),
        Shown(),
        "our error also names the request",
    ),
    "not Ready, its server runs": Row(_not_ready),
    "not Ready, the cloud does not answer": Row(_cloud_down),
    "never initialised, its server is gone": Row(
        _new_and_gone,
        (
            "cloud-node-controller Warning InstanceNotFound:"
            " the cloud has no instance with the name n1",
            DELETING,
        ),
        None,
        "the reference keeps such a Node for ever; we delete it after ten minutes",
    ),
    "two servers have its name": Row(
        _two_of_one_name,
        (
            "cloud-node-controller Warning AmbiguousMatch: find instance:"
            " 2 instances have the name 'n1'; rename all of them but one",
        ),
        Shown(
            provider_id="",
            taints=(f"{UNINITIALIZED}:NoSchedule",),
            labels={},
            addresses=("Hostname=n1",),
        ),
        "the reference only logs it; the taint stays there, too",
    ),
    "labels: old keys only": Row(_beta_only),
    "labels: old and new keys differ": Row(
        _beta_and_stable_differ,
        shown=Shown(
            labels={
                **Shown().labels,
                "failure-domain.beta.kubernetes.io/zone": "az9",
                "topology.kubernetes.io/zone": "az9",
            }
        ),
    ),
    "labels: new keys only": Row(
        _stable_only, shown=Shown(labels={"topology.kubernetes.io/zone": "az9"})
    ),
    "a static:// Node is not Ready": Row(
        _static, shown=Shown(provider_id="static://a")
    ),
    "deleted, with SKIP_NODE_DELETION": Row(_skip_deletion),
}

RULES = {
    "provider id": "initialised, with zone and region",
    "provider id already there": "initialised with provider id and labels of its own",
    "labels in both generations": "initialised, with zone and region",
    "no label without a value": "initialised, the cloud has neither zone nor region",
    "labels overwritten on init": "initialised with provider id and labels of its own",
    "Hostname of the kubelet kept": "initialised, with zone and region",
    "addresses compared": "initialised, dual stack",
    "address pass": "a floating IP is added",
    "provided-node-ip": "provided-node-ip is one of its addresses",
    "provided-node-ip wrong": "provided-node-ip is not one of its addresses",
    "empty addresses skipped": "initialised before its ports are active",
    "provider id beats name": "its server is renamed",
    "shutdown taint": "its server is shut down",
    "shutdown taint removed on Ready": "its server is started again",
    "only SHUTOFF is shut down": "its server is suspended",
    "DeletingNode": "its server is deleted",
    "Ready is never looked at": "its server is deleted, it still reports",
    "DeletingNodeFailed": "it may not be deleted",
    "not Ready alone changes nothing": "not Ready, its server runs",
    "an error is no absence": "not Ready, the cloud does not answer",
    "more than one match": "two servers have its name",
    "beta key adds the stable one": "labels: old keys only",
    "beta key beats the stable one": "labels: old and new keys differ",
    "no beta key, no change": "labels: new keys only",
    "static://": "a static:// Node is not Ready",
    "SKIP_NODE_DELETION": "deleted, with SKIP_NODE_DELETION",
}
"""The reference's rules of both controllers, and the row that shows each."""


@pytest.mark.parametrize("title", TRANSCRIPTS)
def test_a_node_s_life_reads_as_the_reference_writes_it(title: str) -> None:
    """Events, provider id, taints, labels, addresses and annotations, exactly."""
    row, life = TRANSCRIPTS[title], Life()
    row.story(life)
    assert life.events() == list(row.events)
    assert life.shown() == row.shown


def test_every_rule_of_the_reference_has_its_transcript() -> None:
    """Prints rule, life, Events and difference; a rule without a row fails."""
    table = rich.table.Table("rule", "life", "Events", "where we differ")
    for rule, title in RULES.items():
        row = TRANSCRIPTS[title]
        reasons = ", ".join(line.split(":")[0].split()[-1] for line in row.events)
        table.add_row(rule, title, reasons or "-", row.differs)
    rich.console.Console(width=140).print(table)
    extra = {"its server is not found once", "never initialised, its server is gone"}
    assert set(RULES.values()) == set(TRANSCRIPTS) - extra
    assert all(TRANSCRIPTS[title].differs for title in extra), "ours alone"
    assert len(TRANSCRIPTS) >= 12
