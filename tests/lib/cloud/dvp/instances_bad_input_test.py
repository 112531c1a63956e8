"""Bad input of Nodes on DVP: one message each, and other Nodes are served.

Prints case and message; each case has a row in docs/troubleshooting.md.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import pytest

from lib.cloud.dvp import kinds, ownership, parent
from lib.cloud.dvp.instances import cloud
from lib.cloud.model import InstanceRef
from lib.kube import errors as kube_errors
from lib.kube import nodes as kube_nodes
from lib.kube import objects
from lib.kube.fake import calls
from lib.nodes import decide, model
from lib.reconcile.outcome import Outcome
from tests.harness.dvp import parent_api

NAMESPACE = "project-a"
UUID = "uuid-a"
VMS = kinds.VIRTUAL_MACHINES.resource


def vm(
    name: str,
    labels: Mapping[str, str] | None = None,
    status: Mapping[str, object] | None = None,
    hostname: str = "",
) -> dict[str, object]:
    own = {ownership.CLUSTER: UUID, ownership.HOSTNAME: hostname or name}
    shown = {"phase": "Running", "ipAddress": "10.0.0.1"}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": own if labels is None else dict(labels),
        },
        "spec": parent_api.vm_spec(),
        "status": shown if status is None else dict(status),
    }


@dataclasses.dataclass(frozen=True)
class Case:
    """VMs beside a good one; what the parent answers; what the Node "bad" becomes.

    message: of the Event of the Node; empty: none. is_initialised: the Node is. Node
    "good" is initialised whenever the parent answers at all. is_possible: their
    definition admits the VMs.
    """

    vms: Sequence[dict[str, object]] = ()
    fault: kube_errors.KubeError | None = None
    message: str = ""
    reason: str = ""
    is_initialised: bool = False
    is_possible: bool = True


def refusal(
    kind: type[kube_errors.KubeError], status: int, text: str
) -> kube_errors.KubeError:
    return kind(text, operation="GET /x", status=status)


CASES: Mapping[str, Case] = {
    "two VMs with one hostname": Case(
        [vm("a", hostname="bad"), vm("b", hostname="bad")],
        message="find VM bad: 2 VMs have this name; rename all of them but one",
        reason="AmbiguousMatch",
    ),
    "VM without address": Case(
        [vm("bad", status={"phase": "Pending"})], is_initialised=True
    ),
    "VM without status": Case([vm("bad", status={})], is_initialised=True),
    "unknown phase": Case(
        [vm("bad", status={"phase": "Quantum", "ipAddress": "10.0.0.2"})],
        is_initialised=True,
        is_possible=False,
    ),
    "VM without labels": Case(
        [vm("bad", labels={})],
        message="the cloud has no instance with the name bad",
        reason="InstanceNotFound",
    ),
    "VM of another cluster": Case(
        [
            vm(
                "bad",
                labels={ownership.CLUSTER: "uuid-b", ownership.HOSTNAME: "bad"},
            )
        ],
        message="the cloud has no instance with the name bad",
        reason="InstanceNotFound",
    ),
    "expired token": Case(
        fault=refusal(kube_errors.Unauthorized, 401, "Unauthorized"),
        message="list virtualmachines: Unauthorized; correct the credentials",
        reason="CredentialsRejected",
    ),
    "kubeconfig of another project": Case(
        fault=refusal(
            kube_errors.Forbidden,
            403,
            'virtualmachines.virtualization.deckhouse.io is forbidden: User "u" cannot'
            " list resource",
        ),
        message="list virtualmachines: virtualmachines.virtualization.deckhouse.io is"
        ' forbidden: User "u" cannot list resource; check the roles of the credentials'
        " in the project",
        reason="CredentialsRejected",
    ),
    "API group missing": Case(
        fault=refusal(kube_errors.NotFound, 404, "404 page not found"),
        message="list virtualmachines: the parent does not serve virtualmachines: 404"
        " page not found",
        reason="CloudUnavailable",
    ),
    "parent does not answer": Case(
        fault=refusal(kube_errors.Unavailable, 0, "connection refused"),
        message="list virtualmachines: connection refused",
        reason="CloudUnavailable",
    ),
    "parent throttles": Case(
        fault=refusal(kube_errors.Unavailable, 429, "too many requests"),
        message="list virtualmachines: too many requests",
        reason="CloudUnavailable",
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture()
def access(case: Case) -> Iterator[parent.Parent]:
    """Return a parent as the case describes it."""
    fake = parent_api.ParentApi()
    for document in (*case.vms, vm("good")):
        put = fake.put if case.is_possible else fake.put_impossible
        put(VMS, document)
    if case.fault is not None:
        fake.faults += [calls.Fault(case.fault, "list") for _ in range(99)]
    opened = parent.Parent(fake, NAMESPACE, UUID)
    yield opened
    opened.close()


def new_node(name: str) -> kube_nodes.Node:
    taint = kube_nodes.Taint(kube_nodes.UNINITIALIZED_TAINT, "NoSchedule")
    return kube_nodes.Node(
        metadata=objects.ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=kube_nodes.NodeSpec(taints=(taint,)),
    )


def decided(access: parent.Parent, name: str) -> Outcome[model.Action]:
    """Return what the flow does about a new Node, one minute after it registered."""
    ref = InstanceRef(name)
    instance = cloud.ParentInstances(access).observe({ref}, 0.0)[ref]
    topics = frozenset({model.Topic.SYNC})
    snapshot = model.Snapshot(new_node(name), topics, age_s=60.0, instance=instance)
    return decide.decide(snapshot, model.NodeSettings())


def test_each_case_is_one_message_and_no_hot_loop(
    case: Case, access: parent.Parent, request: pytest.FixtureRequest
) -> None:
    """The message names object, field or cause; the good Node is still served."""
    outcome = decided(access, "bad")
    warnings = [
        action
        for action in outcome.actions
        if isinstance(action, model.RecordEvent) and action.is_warning
    ]
    shown = [(warning.reason, warning.message) for warning in warnings]
    print(f"{request.node.callspec.id:32} {shown}")
    assert shown == ([(case.reason, case.message)] if case.message else [])
    is_initialised = any(
        isinstance(action, model.InitialiseNode) for action in outcome.actions
    )
    assert is_initialised is case.is_initialised
    if not is_initialised:
        assert outcome.requeue_after_s is not None
        assert outcome.requeue_after_s >= decide.POLL_S
    good = decided(access, "good").actions
    is_served = any(isinstance(action, model.InitialiseNode) for action in good)
    assert is_served is (case.fault is None)
    addresses = [a for a in good if isinstance(a, model.SetAddresses)]
    assert all(each.address for action in addresses for each in action.addresses)


def test_a_vm_without_an_address_sets_none(request: pytest.FixtureRequest) -> None:
    """No empty address is written, and the Node is reconciled again."""
    fake = parent_api.ParentApi()
    fake.put(VMS, vm("bad", status={"phase": "Pending"}))
    access = parent.Parent(fake, NAMESPACE, UUID)
    request.addfinalizer(access.close)
    outcome = decided(access, "bad")
    assert not [a for a in outcome.actions if isinstance(a, model.SetAddresses)]
    assert outcome.requeue_after_s is not None
