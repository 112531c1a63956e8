"""What the flow decides, as a table of snapshots and outcomes."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    NotManaged,
    Phase,
    Seen,
    Unknown,
)
from lib.kube import nodes as kube_nodes
from lib.nodes import decide, deletion_budget, model
from lib.nodes.model import (
    AddShutdownTaint,
    DeleteNode,
    HoldNodeBack,
    InitialiseNode,
    RecordEvent,
    RemoveShutdownTaint,
    SetAddresses,
    SetLabels,
    Snapshot,
    Topic,
)

Make = Callable[..., Any]

NEW = (kube_nodes.UNINITIALIZED_TAINT,)
SHUT = (kube_nodes.SHUTDOWN_TAINT,)
SYNC = frozenset({Topic.SYNC})
REFRESH = frozenset({Topic.ADDRESSES})
LIVENESS = frozenset({Topic.LIVENESS})
IP = Address(AddressType.INTERNAL_IP, "10.0.0.1")
OTHER_IP = Address(AddressType.INTERNAL_IP, "10.0.0.2")
SETTINGS = model.NodeSettings()
LABELS = (
    ("beta.kubernetes.io/instance-type", "m1.small"),
    ("node.kubernetes.io/instance-type", "m1.small"),
    ("failure-domain.beta.kubernetes.io/zone", "az1"),
    ("topology.kubernetes.io/zone", "az1"),
    ("failure-domain.beta.kubernetes.io/region", "RegionOne"),
    ("topology.kubernetes.io/region", "RegionOne"),
)
SYNCED = RecordEvent(model.Source.NODE, False, "Synced", "Node synced successfully")
DELETING = RecordEvent(
    model.Source.LIFECYCLE,
    False,
    "DeletingNode",
    "Deleting node node-1 because it does not exist in the cloud provider",
)
DOWN = errors.Unavailable("503", operation="list servers")
THROTTLED = errors.Unavailable("429", operation="list servers", retry_after_s=7)
DENIED = errors.Forbidden("403", operation="list servers")


def told(error: errors.CloudError) -> RecordEvent:
    return RecordEvent(model.Source.NODE, True, error.reason, error.advice)


INITIALISING = [
    pytest.param(
        {"taints": NEW, "provider_id": "", "addresses": ()},
        {},
        (SetAddresses((IP,)), InitialiseNode("openstack:///id-1", LABELS), SYNCED),
        None,
        id="a new Node gets addresses, then all the rest with its taint's removal",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": ""},
        {},
        (InitialiseNode("openstack:///id-1", LABELS), SYNCED),
        None,
        id="addresses that a killed pass has already written are not written again",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": "openstack://RegionOne/id-1"},
        {},
        (InitialiseNode(None, LABELS), SYNCED),
        None,
        id="a provider id that is set already is left in its form",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": "", "addresses": ()},
        {"addresses": ()},
        (InitialiseNode("openstack:///id-1", LABELS), SYNCED),
        decide.POLL_S,
        id="an instance without addresses yet is looked at again soon",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": "", "addresses": (("Hostname", "node-1"),)},
        {},
        (
            SetAddresses((IP, Address(AddressType.HOSTNAME, "node-1"))),
            InitialiseNode("openstack:///id-1", LABELS),
            SYNCED,
        ),
        None,
        id="the Hostname that the kubelet wrote stays when the cloud has none",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": ""},
        {"zone": "", "region": "", "instance_type": "m1"},
        (
            InitialiseNode(
                "openstack:///id-1",
                (
                    ("beta.kubernetes.io/instance-type", "m1"),
                    ("node.kubernetes.io/instance-type", "m1"),
                ),
            ),
            SYNCED,
        ),
        None,
        id="labels without a value are not set",
    ),
    pytest.param(
        {"taints": NEW, "provider_id": "", "labels": {"rack": "mine"}},
        {
            "labels": (
                ("rack", "cloud's"),
                ("row", "7"),
                ("x.kubernetes.io/y", "no"),
                ("k8s.io/z", "no"),
            )
        },
        (InitialiseNode("openstack:///id-1", (*LABELS, ("row", "7"))), SYNCED),
        None,
        id="further labels are added only where absent and never in reserved domains",
    ),
]


@pytest.mark.parametrize(("node", "instance", "actions", "again"), INITIALISING)
def test_initialise(
    make_node: Make,
    make_instance: Make,
    node: dict[str, Any],
    instance: dict[str, Any],
    actions: tuple[model.Action, ...],
    again: float | None,
) -> None:
    snapshot = Snapshot(
        make_node(**node), SYNC, instance=Seen(make_instance(**instance))
    )
    outcome = decide.decide(snapshot, model.NodeSettings())
    assert outcome.actions == actions
    assert outcome.requeue_after_s == again


@pytest.mark.parametrize(
    ("observed", "actions", "again"),
    [
        pytest.param(Unknown(DOWN), (told(DOWN),), 5, id="a cloud that is down"),
        pytest.param(
            Unknown(THROTTLED), (told(THROTTLED),), 7, id="the cloud's own delay"
        ),
        pytest.param(Unknown(DENIED), (told(DENIED),), 60, id="refused credentials"),
        pytest.param(Absent(by_id=False), (), 5, id="no such instance yet"),
        pytest.param(
            NotManaged("static"),
            (RecordEvent(model.Source.NODE, True, "ProviderMismatch", "static"),),
            300.0,
            id="nothing, being another cloud's",
        ),
    ],
)
def test_an_uninitialised_node_waits_for(
    make_node: Make,
    observed: Any,
    actions: tuple[model.Action, ...],
    again: float | None,
) -> None:
    snapshot = Snapshot(make_node(taints=NEW, provider_id=""), SYNC, instance=observed)
    outcome = decide.decide(snapshot, model.NodeSettings())
    assert (outcome.actions, outcome.requeue_after_s) == (actions, again)


def test_a_provided_ip_that_the_instance_lacks_keeps_the_taint(
    make_node: Make, make_instance: Make
) -> None:
    asks = {model.PROVIDED_IP_ANNOTATION: "10.9.9.9"}
    node = make_node(taints=NEW, provider_id="", annotations=asks)
    outcome = decide.decide(
        Snapshot(node, SYNC, instance=Seen(make_instance())), model.NodeSettings()
    )
    (event,) = outcome.actions
    assert isinstance(event, RecordEvent)
    assert event.reason == "ProvidedNodeIPUnknown"
    assert "10.9.9.9" in event.message
    assert outcome.requeue_after_s == decide.POLL_S


@pytest.mark.parametrize(
    ("age_s", "again_s", "is_reported"),
    [(0, 5, False), (29, 5, False), (30, 5, True), (600, 50, True), (9999, 300, True)],
)
def test_an_instance_that_does_not_come_is_looked_for_more_and_more_seldom(
    make_node: Make, age_s: float, again_s: float, is_reported: bool
) -> None:
    node = make_node(taints=NEW, provider_id="")
    snapshot = Snapshot(node, SYNC, age_s=age_s, instance=Absent(by_id=False))
    outcome = decide.decide(snapshot, SETTINGS)
    assert outcome.requeue_after_s == again_s
    events = [a.reason for a in outcome.actions if isinstance(a, RecordEvent)]
    assert events == (["InstanceNotFound"] if is_reported else [])


@pytest.mark.parametrize(
    ("taints", "provider_id", "ages_s", "goes"),
    [
        pytest.param(NEW, "", (599, 599), False, id="by name, but young"),
        pytest.param(NEW, "", (4200, 20), False, id="a clock that is an hour ahead"),
        pytest.param(NEW, "", (20, 4200), False, id="a clock that is behind"),
        pytest.param(NEW, "", (600, 600), True, id="by name, uninitialised and old"),
        pytest.param((), "", (9999, 9999), False, id="by name, once initialised"),
        pytest.param((), "openstack:///id-1", (0, 0), True, id="by id"),
    ],
)
def test_who_may_be_deleted(
    make_node: Make,
    taints: Any,
    provider_id: str,
    ages_s: tuple[float, float],
    goes: bool,
) -> None:
    node = make_node(taints=taints, provider_id=provider_id, ready="Unknown")
    snapshot = Snapshot(
        node,
        LIVENESS,
        age_s=ages_s[0],
        known_for_s=ages_s[1],
        instance=Absent(by_id=bool(provider_id)),
        gone_for_s=20.0,
    )
    outcome = decide.decide(snapshot, SETTINGS)
    assert (DeleteNode() in outcome.actions) is goes


@pytest.mark.parametrize("is_confirmed", [False, True])
@pytest.mark.parametrize(
    ("deleting_for_s", "events"),
    [
        pytest.param(0.0, [], id="just deleted"),
        pytest.param(299.0, [], id="other controllers have their time"),
        pytest.param(300.0, ["NodeDeletionWaits"], id="for minutes"),
        pytest.param(1e6, ["NodeDeletionWaits"], id="for days"),
        pytest.param(-60.0, [], id="by a clock that is behind"),
    ],
)
def test_a_node_that_is_being_deleted_is_not_deleted_again(
    make_node: Make, deleting_for_s: float, events: list[str], is_confirmed: bool
) -> None:
    node = make_node(
        ready="Unknown",
        finalizers=("karpenter.sh/termination", "example.org/x"),
        annotations={deletion_budget.CONFIRM_ANNOTATION: ""} if is_confirmed else {},
    )
    snapshot = Snapshot(
        node,
        LIVENESS,
        instance=Absent(by_id=True),
        gone_for_s=20.0,
        budget=deletion_budget.DeletionBudget(8, 3, {"uid-1": 0}),
        deleting_for_s=deleting_for_s,
    )
    actions = decide.decide(snapshot, SETTINGS).actions
    assert [a.reason for a in actions if isinstance(a, RecordEvent)] == events
    assert len(actions) == len(events)
    for event in actions:
        assert isinstance(event, RecordEvent)
        assert "karpenter.sh/termination, example.org/x" in event.message


def test_the_text_of_an_event_is_the_same_for_every_request(make_node: Make) -> None:
    """Else each failed request would be an Event of its own."""
    texts = set()
    for request_id in ("req-1", "req-2"):
        error = errors.Unavailable("503", operation="list", request_id=request_id)
        node = make_node(taints=NEW, provider_id="")
        (event,) = decide.decide(
            Snapshot(node, SYNC, instance=Unknown(error)), SETTINGS
        ).actions
        assert isinstance(event, RecordEvent)
        texts.add(event.message)
    assert len(texts) == 1


def test_the_other_topics_are_not_lost_when_liveness_acts(make_node: Make) -> None:
    topics = frozenset({Topic.LIVENESS, Topic.ADDRESSES})
    outcome = decide.decide(Snapshot(make_node(taints=SHUT), topics), SETTINGS)
    assert outcome.actions == (RemoveShutdownTaint(),)
    assert outcome.requeue_after_s == 0


def test_addresses_that_could_not_be_read_keep_the_taint(
    make_node: Make, make_instance: Make
) -> None:
    node = make_node(taints=NEW, provider_id="")
    instance = dataclasses.replace(make_instance(addresses=()), addresses_known=False)
    outcome = decide.decide(Snapshot(node, SYNC, instance=Seen(instance)), SETTINGS)
    assert (outcome.actions, outcome.requeue_after_s) == ((), decide.POLL_S)


@pytest.mark.parametrize("age_s", [0.0, decide.NO_ADDRESS_S - 1, decide.NO_ADDRESS_S])
def test_an_instance_without_addresses_keeps_the_taint_and_is_reported_late(
    age_s: float, make_node: Make, make_instance: Make
) -> None:
    """The cloud knows why; the text of the Event does not change."""
    node = make_node(taints=NEW, provider_id="")
    instance = dataclasses.replace(
        make_instance(addresses=()),
        addresses_known=False,
        no_addresses_reason="no guest agent",
    )
    snapshot = Snapshot(node, SYNC, age_s=age_s, instance=Seen(instance))
    outcome = decide.decide(snapshot, SETTINGS)
    events = [action for action in outcome.actions if isinstance(action, RecordEvent)]
    assert len(events) == len(outcome.actions) == (age_s >= decide.NO_ADDRESS_S)
    assert {(event.reason, event.message) for event in events} <= {
        (
            "AddressesUnknown",
            "the instance's addresses are unknown: no guest agent",
        )
    }
    assert outcome.requeue_after_s == max(decide.POLL_S, age_s * decide.POLL_PER_AGE)


def test_a_flavor_that_is_gone_keeps_the_taint(
    make_node: Make, make_instance: Make
) -> None:
    node = make_node(taints=NEW, provider_id="")
    snapshot = Snapshot(node, SYNC, instance=Seen(make_instance(instance_type=None)))
    outcome = decide.decide(snapshot, model.NodeSettings())
    (event,) = outcome.actions
    assert isinstance(event, RecordEvent)
    assert event.reason == "InstanceTypeUnknown"


OLD_ZONE = {"failure-domain.beta.kubernetes.io/zone": "az1"}

KEEPING = [
    pytest.param({}, SYNC, None, (), id="an unread, complete Node needs nothing"),
    pytest.param({}, REFRESH, {}, (), id="equal addresses are not written"),
    pytest.param(
        {},
        REFRESH,
        {"addresses": (IP, OTHER_IP)},
        (SetAddresses((IP, OTHER_IP)),),
        id="one address more is written",
    ),
    pytest.param(
        {"addresses": (("InternalIP", "10.0.0.2"), ("InternalIP", "10.0.0.1"))},
        REFRESH,
        {"addresses": (IP, OTHER_IP)},
        (SetAddresses((IP, OTHER_IP)),),
        id="another order is written",
    ),
    pytest.param(
        {"addresses": (("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2"))},
        REFRESH,
        {"addresses": (IP, OTHER_IP)},
        (),
        id="two equal addresses of one type are not written on every pass",
    ),
    pytest.param(
        {}, REFRESH, {"addresses": ()}, (), id="no addresses never replace some"
    ),
    pytest.param(
        {"labels": OLD_ZONE},
        SYNC,
        None,
        (SetLabels((("topology.kubernetes.io/zone", "az1"),)),),
        id="a new key follows the old one",
    ),
    pytest.param(
        {"labels": {**OLD_ZONE, "topology.kubernetes.io/zone": "other"}},
        SYNC,
        None,
        (SetLabels((("topology.kubernetes.io/zone", "az1"),)),),
        id="the old key wins",
    ),
    pytest.param(
        {"labels": {"topology.kubernetes.io/zone": "az1"}},
        SYNC,
        None,
        (),
        id="without the old key nothing happens",
    ),
]


@pytest.mark.parametrize(("node", "topics", "instance", "actions"), KEEPING)
def test_keep(
    make_node: Make,
    make_instance: Make,
    node: dict[str, Any],
    topics: frozenset[Topic],
    instance: dict[str, Any] | None,
    actions: tuple[model.Action, ...],
) -> None:
    observed = None if instance is None else Seen(make_instance(**instance))
    snapshot = Snapshot(make_node(**node), topics, instance=observed)
    assert decide.decide(snapshot, model.NodeSettings()).actions == actions


LIVING = [
    pytest.param(
        {"taints": SHUT}, None, None, (RemoveShutdownTaint(),), id="Ready: untaint"
    ),
    pytest.param({}, None, None, (), id="Ready and untainted: nothing"),
    pytest.param(
        {"ready": "Unknown"},
        Phase.STOPPED,
        None,
        (AddShutdownTaint(),),
        id="not Ready and shut down: taint",
    ),
    pytest.param(
        {"ready": "False", "taints": SHUT},
        Phase.STOPPED,
        None,
        (),
        id="shut down and tainted: nothing",
    ),
    pytest.param(
        {"ready": "False", "taints": SHUT},
        Phase.RUNNING,
        None,
        (RemoveShutdownTaint(),),
        id="powered on but not Ready yet: untaint",
    ),
    pytest.param(
        {"ready": "Unknown"},
        Phase.SUSPENDED,
        None,
        (),
        id="suspended, paused or shelved is not shut down",
    ),
    pytest.param({"ready": "Unknown"}, "absent", None, (), id="absent by list only"),
    pytest.param({"ready": "Unknown"}, "absent", 0.0, (), id="absent, confirmed once"),
    pytest.param(
        {"ready": "Unknown"},
        "absent",
        14.9,
        (),
        id="absent, confirmed twice but too close together",
    ),
    pytest.param(
        {"ready": "Unknown"},
        "absent",
        15.0,
        (DELETING, DeleteNode()),
        id="absent, confirmed twice: deleted",
    ),
    pytest.param({"ready": "Unknown"}, "unknown", None, (), id="unknown is not absent"),
    pytest.param({"ready": "Unknown"}, "foreign", None, (), id="foreign: left alone"),
]


@pytest.mark.parametrize(("node", "instance", "gone_for_s", "actions"), LIVING)
def test_liveness(
    make_node: Make,
    make_instance: Make,
    node: dict[str, Any],
    instance: object,
    gone_for_s: float | None,
    actions: tuple[model.Action, ...],
) -> None:
    observed: Any = None
    if isinstance(instance, Phase):
        observed = Seen(make_instance(phase=instance))
    elif instance is not None:
        named = {
            "absent": Absent(by_id=True),
            "unknown": Unknown(DOWN),
            "foreign": NotManaged("static"),
        }
        observed = named[str(instance)]
    snapshot = Snapshot(
        make_node(**node), LIVENESS, instance=observed, gone_for_s=gone_for_s
    )
    assert decide.decide(snapshot, model.NodeSettings()).actions == actions


def absences(
    nodes: int, place: int, *, of: int, deleted: int = 0, is_young: bool = False
) -> deletion_budget.DeletionBudget:
    """Return a budget in which node-1 has a place, from 1, among so many absences."""
    uids = [f"other-{number}" for number in range(of)]
    uids[place - 1] = "uid-1"
    pending = {uid: ahead for ahead, uid in enumerate(uids)}
    return deletion_budget.DeletionBudget(nodes, deleted, pending, is_young)


HOLDING = [
    pytest.param(absences(5, 3, of=3), {}, False, "deleted", id="few"),
    pytest.param(absences(5, 1, of=4), {}, False, "told", id="most are absent"),
    pytest.param(absences(5, 1, of=4), {}, True, "kept", id="told lately"),
    pytest.param(absences(100, 30, of=30), {}, False, "deleted", id="30 %"),
    pytest.param(absences(100, 30, of=55), {}, False, "deleted", id="oldest first"),
    pytest.param(absences(100, 31, of=55), {}, False, "told", id="31st of 100"),
    pytest.param(absences(103, 31, of=31), {}, False, "told", id="30.1 %"),
    pytest.param(absences(100, 1, of=56), {}, False, "told", id="56 % are absent"),
    pytest.param(
        absences(100, 1, of=20, deleted=30), {}, False, "told", id="30 went lately"
    ),
    pytest.param(
        absences(100, 10, of=10, deleted=20), {}, False, "deleted", id="10 more may go"
    ),
    pytest.param(
        absences(100, 11, of=11, deleted=20), {}, False, "told", id="11 more may not"
    ),
    pytest.param(
        absences(100, 4, of=30, is_young=True),
        {},
        False,
        "told",
        id="in a young process only the number counts",
    ),
    pytest.param(
        absences(100, 3, of=30, is_young=True),
        {},
        False,
        "deleted",
        id="the first three, in a young process",
    ),
    pytest.param(
        absences(5, 1, of=5),
        {deletion_budget.CONFIRM_ANNOTATION: ""},
        False,
        "deleted",
        id="a human has confirmed it; the value says nothing",
    ),
    pytest.param(
        absences(5, 1, of=5),
        {"mooring.io/confirm": "yes"},
        False,
        "told",
        id="another annotation confirms nothing",
    ),
]


@pytest.mark.parametrize(("budget", "annotations", "was_reported", "end"), HOLDING)
def test_too_many_deletions_at_once_are_held_back(
    make_node: Make,
    budget: deletion_budget.DeletionBudget,
    annotations: dict[str, str],
    was_reported: bool,
    end: str,
) -> None:
    """A Node whose instance is surely gone waits while too many others go."""
    snapshot = Snapshot(
        make_node(ready="Unknown", annotations=annotations),
        LIVENESS,
        instance=Absent(by_id=True),
        gone_for_s=15.0,
        budget=budget,
        was_reported=was_reported,
    )
    actions = decide.decide(snapshot, model.NodeSettings()).actions
    match end:
        case "deleted":
            assert actions == (DELETING, DeleteNode())
        case "told":
            (told_so,) = actions
            assert isinstance(told_so, HoldNodeBack)
            assert deletion_budget.CONFIRM_ANNOTATION in told_so.message
        case "kept":
            assert actions == ()


def test_a_node_seen_to_be_gone_once_is_looked_at_when_the_time_has_come(
    make_node: Make,
) -> None:
    """It does not wait for a period that may be longer."""
    snapshot = Snapshot(
        make_node(ready="Unknown"),
        LIVENESS,
        instance=Absent(by_id=True),
        gone_for_s=5.0,
    )
    assert decide.decide(snapshot, model.NodeSettings()).requeue_after_s == 10.0


def test_deletion_can_be_switched_off(make_node: Make) -> None:
    snapshot = Snapshot(
        make_node(ready="Unknown"),
        LIVENESS,
        instance=Absent(by_id=True),
        gone_for_s=99.0,
    )
    assert decide.decide(snapshot, model.NodeSettings(deletes=False)).actions == ()


@pytest.mark.parametrize(
    ("settings", "topics"),
    [
        pytest.param(
            model.NodeSettings(initialises=False), SYNC, id="cloud-node-controller off"
        ),
        pytest.param(
            model.NodeSettings(watches_lifecycle=False),
            LIVENESS,
            id="cloud-node-lifecycle-controller off",
        ),
    ],
)
def test_a_controller_that_is_switched_off_writes_nothing(
    make_node: Make, make_instance: Make, settings: model.NodeSettings, topics: Any
) -> None:
    node = make_node(taints=NEW if topics is SYNC else SHUT)
    snapshot = Snapshot(node, topics, instance=Seen(make_instance()))
    assert decide.decide(snapshot, settings).actions == ()


def test_a_node_that_is_gone_needs_nothing() -> None:
    assert decide.decide(Snapshot(None, SYNC), model.NodeSettings()).actions == ()
