"""Decisions by table: what is known of a machine, and the names of the actions."""

import dataclasses
import datetime
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.machines import (
    ConditionState,
    Facts,
    Observed,
    Plan,
    Reason,
    Ref,
    Results,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.steps import Gate, GateState, Problem, Step, Verb
from lib.kube.resources import Resource
from lib.machines import decide, kinds, model
from lib.machines.model import Assessment, MachineStage, Snapshot
from lib.plans import model as plans

NOW = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
KINDS = kinds.Kinds(
    Resource("infrastructure.cluster.x-k8s.io", "v1", "machines", "Machine", True),
    "example.com/machine",
    "VirtualMachineReady",
    "manager",
)
REF = Ref("cluster-1", "default", "one", "uid-1")
TARGET = Target(REF, Spec(None))
GONE = Target(REF, None)
SEEN = Seen(Observed(True, "vm-1", None))
STEP = Step(Verb.CHANGE, ("machine one",), "it is down", None)
CREATE = Step(Verb.CREATE, ("machine two",), "absent", None, is_repeatable=False)
RUNNING = Results(
    ConditionState(True, Reason.RUNNING), is_provisioned=True, provider_id="fake://1"
)
WAITS = ConditionState(False, Reason.WAITING_FOR_BOOTSTRAP)
FATAL = Problem(Reason.INVALID_SPEC, "spec.cores: is not valid", is_fatal=True)
ERROR = errors.Unavailable("503", operation="list")


def a_machine(**meta: Any) -> kinds.MachineObject:
    fields = {"finalizers": (KINDS.finalizer,), **meta}
    about = kinds.OwnedMeta(name="one", namespace="default", uid="uid-1", **fields)
    return kinds.MachineObject(about)


def snapshot(stage: MachineStage, **fields: Any) -> Snapshot:
    about = fields.pop("assessment", Assessment(stage))
    return Snapshot(fields.pop("machine", a_machine()), assessment=about, **fields)


def desired(**fields: Any) -> Snapshot:
    return snapshot(
        MachineStage.DESIRED, **{"target": TARGET, "observed": SEEN, **fields}
    )


def deleted(ago_s: float = 60.0, **fields: Any) -> Snapshot:
    machine = a_machine(deletion_timestamp=NOW - datetime.timedelta(seconds=ago_s))
    return snapshot(
        MachineStage.DELETED,
        **{"machine": machine, "target": GONE, "observed": SEEN, **fields},
    )


def resumed(state: GateState) -> plans.Resumed[Target]:
    topics = frozenset[str]()
    open_plan = plans.OpenPlan(TARGET, (STEP,), "vm-1", 0.0, 0.0, topics)
    return plans.Resumed(open_plan, Gate(state, 3.0))


WAITING = Assessment(MachineStage.WAITING, WAITS)
LEFT = Plan(steps=(STEP,), leftovers=("VM one",), abandoned=(("orphan", "one"),))
ASKED = dataclasses.replace(
    LEFT, steps=(), asked_at=NOW - datetime.timedelta(seconds=60)
)
LATE_S = 700.0
LATE = datetime.timedelta(seconds=LATE_S)
FINALIZER, STATUS, ID = "AddMachineFinalizer", "WriteMachineStatus", "SetProviderId"
RELEASE = "RemoveMachineFinalizer"

# What is known, the plan of the provider, the actions, and when it is due again.
ROWS: dict[str, tuple[Snapshot, Plan, list[str], float | None]] = {
    "ignored": (snapshot(MachineStage.IGNORED), Plan(), [], None),
    "paused": (snapshot(MachineStage.PAUSED), Plan(), [STATUS], None),
    "paused with a plan in progress": (
        snapshot(MachineStage.PAUSED, resumed=resumed(GateState.OPEN)),
        Plan(),
        [STATUS],
        None,
    ),
    "waits": (
        snapshot(MachineStage.WAITING, assessment=WAITING),
        Plan(),
        [STATUS],
        None,
    ),
    "waits, new": (
        snapshot(
            MachineStage.WAITING, assessment=WAITING, machine=a_machine(finalizers=())
        ),
        Plan(),
        [FINALIZER, STATUS],
        None,
    ),
    "waits for invalid data": (
        snapshot(
            MachineStage.WAITING,
            assessment=dataclasses.replace(WAITING, problem=FATAL),
        ),
        Plan(),
        [STATUS, "TellProblems"],
        None,
    ),
    "invalid spec": (
        desired(target=None, observed=None, problems=(FATAL,)),
        Plan(),
        [STATUS, "TellProblems"],
        None,
    ),
    "absent": (
        desired(machine=a_machine(finalizers=())),
        Plan((CREATE,)),
        [FINALIZER, STATUS, "ApplyStep"],
        None,
    ),
    "locked": (
        desired(),
        Plan(retry_after_s=2.0, object_id="vm-1"),
        [STATUS, "Await"],
        2.0,
    ),
    "half created": (desired(), Plan((STEP, STEP)), [STATUS, "ApplyStep"], None),
    "running": (
        desired(),
        Plan(settled=True, results=RUNNING),
        [ID, STATUS, "SettleMachine"],
        None,
    ),
    "refused by the provider": (
        desired(),
        Plan(problems=(FATAL,)),
        [STATUS, "TellProblems", "SettleMachine"],
        None,
    ),
    "failed, waits to be recreated": (
        desired(backoff_s=9.0),
        Plan((STEP,), backs_off=True),
        [STATUS],
        9.0,
    ),
    "failed, is recreated": (
        desired(),
        Plan((STEP,), backs_off=True),
        [STATUS, "StartBackoff", "ApplyStep"],
        None,
    ),
    "settled before": (
        desired(observed=None, settled=RUNNING),
        Plan(),
        [ID, STATUS],
        None,
    ),
    "gate closed": (
        desired(observed=None, resumed=resumed(GateState.CLOSED)),
        Plan(),
        [],
        3.0,
    ),
    "gate open": (
        desired(observed=None, resumed=resumed(GateState.OPEN)),
        Plan(),
        ["ApplyStep"],
        None,
    ),
    "cloud unreadable": (desired(observed=Unknown(ERROR)), Plan(), [STATUS], None),
    "deleted": (deleted(), LEFT, [STATUS, "ApplyStep"], None),
    "deleted, waits": (
        deleted(),
        Plan(retry_after_s=2.0, object_id="vm-1", leftovers=("VM one",)),
        [STATUS, "Await"],
        2.0,
    ),
    "deleted completely": (deleted(), Plan(settled=True), [RELEASE], None),
    "deleted long ago, nothing was asked for yet": (
        deleted(LATE_S),
        LEFT,
        [STATUS, "ApplyStep"],
        None,
    ),
    "deleted long ago, all was asked for a minute ago": (
        deleted(LATE_S),
        ASKED,
        [STATUS],
        540.0,
    ),
    "deleted a minute ago, parts by others long ago": (
        deleted(),
        dataclasses.replace(ASKED, asked_at=NOW - LATE),
        [STATUS],
        540.0,
    ),
    "deleted, late": (
        deleted(LATE_S),
        dataclasses.replace(ASKED, asked_at=NOW - LATE),
        ["AnnotateMachine", "RecordEvent", RELEASE],
        None,
    ),
    "deleted, refused for almost the whole limit": (
        deleted(LATE_S, refused_s={STEP.path: 599.0}),
        LEFT,
        [STATUS, "ApplyStep"],
        None,
    ),
    "deleted, refused for the whole limit": (
        deleted(LATE_S, refused_s={STEP.path: 600.0}),
        LEFT,
        ["AnnotateMachine", "RecordEvent", RELEASE],
        None,
    ),
    "deleted, another step is refused for the whole limit": (
        deleted(LATE_S, refused_s={("another",): 600.0}),
        LEFT,
        [STATUS, "ApplyStep"],
        None,
    ),
    "deleted, one of two steps is refused for the whole limit": (
        deleted(LATE_S, refused_s={STEP.path: 600.0}),
        dataclasses.replace(LEFT, steps=(STEP, CREATE)),
        [STATUS, "ApplyStep"],
        None,
    ),
    "deleted, late, unreadable": (
        deleted(LATE_S, observed=Unknown(ERROR)),
        Plan(),
        [STATUS],
        None,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_decision(name: str) -> None:
    known, plan, expected, due_s = ROWS[name]
    rules = decide.Rules(KINDS, lambda target, observed, now: plan)
    outcome = decide.decide(known, NOW, rules)
    assert outcome == decide.decide(known, NOW, rules)
    assert [type(action).__name__ for action in outcome.actions] == expected
    assert outcome.requeue_after_s == due_s
    assert (outcome.failure is ERROR) == (known.observed == Unknown(ERROR))


def test_each_action_is_in_a_row() -> None:
    actions = {name for _, _, names, _ in ROWS.values() for name in names}
    assert actions == {kind.__name__ for kind in model.Action.__args__}


def test_facts_have_no_place_for_bootstrap_data() -> None:
    """A field that could hold it would be printed and kept."""
    types = {field.name: str(field.type) for field in dataclasses.fields(Facts)}
    assert not [name for name, text in types.items() if "bytes" in text.lower()]
