"""Machines that are refused, lost, late or not ours, and what the flow writes."""

import datetime
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud import errors
from lib.cloud.fake import machine_plans
from lib.cloud.machines import Bootstrap
from lib.kube import errors as kube_errors
from lib.kube import resources
from lib.machines import bootstrap, decide, model

SECRET = "join-token-that-no-one-may-see"
Run = Callable[..., Any]


@pytest.fixture()
def run(ground: Any, make_process: Any) -> Run:
    """Return a function that runs one process until it settles."""

    def settle(*, drift: bool = False, quiet_s: float = 30.0) -> Any:
        process = make_process(ground)
        process.settle(quiet_s)
        if drift:
            process.drift()
            process.settle(quiet_s)
        process.send_events()
        return process

    return settle


def writes(ground: Any, subresource: str | None = None) -> int:
    return sum(
        call.is_write
        and (call.resource, call.subresource) == ("fakemachines", subresource)
        for call in ground.api.calls
    )


def test_a_machine_costs_few_writes(ground: Any, run: Run) -> None:
    ground.machine("one")
    run()
    counts = {"object": writes(ground), "status": writes(ground, "status")}
    steps = [call for call in ground.cloud.calls if not call.startswith(("list", "r"))]
    lists = ground.cloud.calls.count("list machines")
    print(f"writes: {counts}, steps: {len(steps)}, lists: {lists}")
    assert counts == {"object": 2, "status": 3}
    assert (len(steps), lists) == (5, 4)


def test_bootstrap_data_is_in_nothing_that_is_written_or_kept(
    ground: Any, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    ground.machine("one")
    ground.cloud.faults = [None, errors.Unavailable("no", operation="clone")]
    process = run()
    assert any(SECRET in data.decode() for data in ground.cloud.received.values())
    kept = repr([dict(kept.items()) for kept in vars_of(process.stores)])
    memory = repr(process.flow._memory._records)
    shown = repr([ground.api.all(kind) for kind in (resources.EVENTS,)])
    shown += repr(ground.state()) + repr(ground.cloud.calls) + caplog.text
    assert "bootstrap" in kept
    assert SECRET not in kept + memory + shown


def vars_of(stores: model.Stores) -> tuple[Any, ...]:
    return stores.machines, stores.owners, stores.clusters, stores.secrets


def test_the_reader_maps_errors_of_the_api_server(ground: Any) -> None:
    reader = bootstrap.Reader(ground.api)
    ground.secret("data")
    reference = Bootstrap("machines", "data", "1", 1)
    assert SECRET in reader(reference).reveal().decode()
    missing = Bootstrap("machines", "missing", "1", 1)
    with pytest.raises(errors.NotFound):
        reader(missing)

    def fail(call: object) -> None:
        raise kube_errors.Unavailable("time-out", operation="GET")

    ground.api.before_call = fail
    with pytest.raises(errors.Unavailable) as raised:
        reader(reference)
    assert raised.value.was_rejected


def test_a_quota_is_reported_once_and_the_machine_is_created_later(
    ground: Any, run: Run
) -> None:
    ground.machine("one")
    full = errors.QuotaExceeded("quota exceeded", operation="clone", resource="one")
    ground.cloud.faults = [item for _ in range(4) for item in (None, full)]
    run(quiet_s=120)
    assert ground.conditions("one")["Ready"] == ("True", "VMRunning")
    refused = [event for event in ground.events() if "quota" in event]
    print(refused)
    assert len(refused) == 1
    # Two more than without it: the rejection, and its end.
    assert writes(ground, "status") == 5


def test_a_refused_write_stays_in_the_condition(ground: Any, make_process: Any) -> None:
    """Retries do not alternate between two messages."""
    ground.machine("one")

    def refuse(operation: str) -> None:
        if operation.startswith("create"):
            raise errors.QuotaExceeded("quota exceeded", operation="clone")

    ground.cloud.before_call = refuse
    process = make_process(ground)
    for _ in range(400):
        process.relist()
        process.turn()
        ground.now_s += 0.5
    tries = len(ground.cloud.calls)
    print(f"{tries} calls of the cloud in 200 s, {writes(ground, 'status')} writes")
    assert ground.conditions("one")["Ready"] == ("False", "VMError")
    assert writes(ground, "status") == 2


@pytest.mark.parametrize(
    ("arrange", "expected"),
    [
        ("invalid", ("False", "InvalidMachineSpec")),
        ("taken", ("False", "VMNotOwned")),
        ("missing", ("False", "VMMissing")),
        ("no data", ("False", "InvalidBootstrapData")),
    ],
)
def test_what_cannot_be_served_is_a_condition_and_one_event(
    ground: Any, run: Run, arrange: str, expected: tuple[str, str]
) -> None:
    """Other machines are served, and nothing is retried without a change."""
    ground.machine("other")
    secret = "missing" if arrange == "no data" else ""
    ground.machine("one", secret, cores=0 if arrange == "invalid" else 2)
    if arrange == "taken":
        other = machine_plans.Vm("x", "one", state=machine_plans.VmState.UP)
        ground.cloud.vms["x"] = other
    process = run()
    if arrange == "missing":
        ids = [vm.id for vm in ground.cloud.vms.values() if vm.name == "one"]
        del ground.cloud.vms[ids[0]]
        process.drift()
        process.settle()
    process.send_events()
    before = len(ground.cloud.calls), writes(ground, "status")
    process.settle()
    assert (len(ground.cloud.calls), writes(ground, "status")) == before
    assert ground.conditions("one")["Ready"] == expected
    assert ground.conditions("other")["Ready"] == ("True", "VMRunning")
    events = [event for event in ground.events() if f" {expected[1]}:" in event]
    print(events)
    assert len(events) == 1


def test_a_cloud_that_cannot_be_read_changes_a_condition_alone(
    ground: Any, make_process: Any
) -> None:
    ground.machine("one")
    process = make_process(ground)
    process.settle()
    before = ground.state()["machines"]["one"]
    error = errors.Unavailable("503", operation="list machines")
    ground.cloud.faults = [error] * 1000
    process.drift()
    process.turn()
    after = ground.state()["machines"]["one"]
    assert after["conditions"].pop("Ready") == ("Unknown", "VMError")
    assert after["conditions"].pop("VirtualMachineReady") == ("Unknown", "VMError")
    for type_ in ("Ready", "VirtualMachineReady"):
        del before["conditions"][type_]
    assert after == before
    ground.delete("one")
    ground.now_s += 10_000
    process.relist()
    process.turn()
    assert ground.get(ground.kinds.machine, "one") is not None
    ground.cloud.faults = []
    process.settle(quiet_s=400)
    assert ground.get(ground.kinds.machine, "one") is None


def test_a_deletion_that_takes_too_long_releases_the_object(
    ground: Any, make_process: Any
) -> None:
    """With annotations and an Event; another finalizer shows the object.

    The cloud has refused it for ten minutes: the last time up to five minutes later.
    """
    ground.machine("one")
    process = make_process(ground)
    process.settle()
    mine = ground.get(ground.kinds.machine, "one")["metadata"]["finalizers"]
    metadata = {"finalizers": [*mine, "example.com/keep"]}
    ground.put(ground.kinds.machine, "one", metadata=metadata)

    def refuse(operation: str) -> None:
        if operation.startswith("delete"):
            raise errors.Forbidden("403", operation="remove")

    ground.cloud.before_call = refuse
    ground.delete("one")
    deleting: set[tuple[str, str]] = set()
    for _ in range(2600):
        process.relist()
        process.turn()
        ground.now_s += 0.5
        deleting.add(ground.conditions("one").get("Deleting", ("", "")))
    process.send_events()
    left = ground.get(ground.kinds.machine, "one")["metadata"]
    print(left["annotations"], ground.events()[-1])
    assert ("True", "Deleting") in deleting
    assert left["finalizers"] == ["example.com/keep"]
    assert left["annotations"][machine_plans.ORPHANED] == "one"
    events = [event for event in ground.events() if "DeletionTimedOut" in event]
    assert len(events) == 1
    assert "VM one" in events[0]


def test_fields_of_the_reference_are_adopted(ground: Any, run: Run) -> None:
    """Ready, failed and half created, as the reference leaves them."""
    ground.machine("one")
    run()
    kind = ground.kinds.machine
    machine = ground.get(kind, "one")
    old = {
        "ready": True,
        "failureReason": "UpdateError",
        "failureMessage": "VM is degraded",
        "conditions": [{"type": "Old", "status": "True", "severity": ""}],
    }
    ground.put(kind, "one", status=old, spec=machine["spec"])
    steps = [call for call in ground.cloud.calls if call.startswith(("c", "d"))]
    run()
    status = ground.get(kind, "one")["status"]
    assert "failureReason" not in status
    assert "failureMessage" not in status
    assert status["initialization"]["provisioned"] is True
    after = [call for call in ground.cloud.calls if call.startswith(("c", "d"))]
    assert after == steps


def test_a_provisioned_machine_waits_for_nothing(ground: Any, run: Run) -> None:
    """Its bootstrap data may be deleted once it is not needed any more."""
    ground.machine("one")
    run()
    before = writes(ground), writes(ground, "status")
    ground.api.remove(resources.SECRETS, "one-bootstrap", "machines")
    run(drift=True)
    assert ground.conditions("one")["Ready"] == ("True", "VMRunning")
    assert (writes(ground), writes(ground, "status")) == before


EVENTS = ("up", "down", "lose", "delete", "pause", "resume", "status", "fail", "kill")


@hypothesis.given(strategies.lists(strategies.sampled_from(EVENTS), max_size=6))
@hypothesis.settings(max_examples=40, deadline=None)
def test_machines_in_any_state(
    make_ground: Any, make_process: Any, happenings: list[str]
) -> None:
    """Whatever happens in whichever order: what holds of every machine.

    provisioned and the provider ID never change back, at most one instance exists, one
    that was provisioned is never recreated, and a deleted machine leaves nothing.
    """
    ground = make_ground()
    ground.machine("one")
    process = make_process(ground)
    ids: set[str] = set()
    for happening in (*happenings, "resume"):
        _happen(ground, happening)
        process = make_process(ground) if happening == "kill" else process
        for _ in range(8):
            process.relist()
            process.turn()
            ground.now_s += 1.0
            ids |= _checked(ground)
    process.settle(quiet_s=200)
    ids |= _checked(ground)
    assert len(ids) <= 1
    if ground.get(ground.kinds.machine, "one") is None:
        assert not ground.cloud.vms


def _happen(ground: Any, happening: str) -> None:
    kind = ground.kinds.machine
    machine = ground.get(kind, "one")
    for vm in tuple(ground.cloud.vms.values()):
        if happening in ("up", "down") and vm.has_run and vm.next_state is None:
            vm.state = machine_plans.VmState[happening.upper()]
        if happening == "lose":
            del ground.cloud.vms[vm.id]
    if happening == "fail":
        ground.cloud.lost = [errors.Unavailable("503", operation="any")] * 2
    if happening in ("pause", "resume"):
        ground.cluster(paused=happening == "pause")
    if happening == "delete" and machine is not None:
        ground.delete("one")
    if happening == "status" and machine is not None:
        ground.put(kind, "one", status=None)


def _checked(ground: Any) -> set[str]:
    """Check what always holds; return the provider ID."""
    machine = ground.get(ground.kinds.machine, "one")
    assert len(ground.cloud.vms) <= 1
    if machine is None:
        return set()
    provider_id = machine["spec"].get("providerID", "")
    begun = machine.get("status", {}).get("initialization", {})
    assert begun.get("provisioned") in (None, True)
    assert not begun.get("provisioned") or provider_id
    return {provider_id} - {""}


def test_the_time_left_of_a_deletion() -> None:
    now = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
    since = now - datetime.timedelta(seconds=400)
    assert decide.left_s(since, now, 600.0) == 200.0
    assert decide.left_s(since, now, 300.0) == 0.0


def test_a_change_of_the_cloud_is_written_once(ground: Any, run: Run) -> None:
    """Our own write brings the machine back; it must not show the earlier state."""
    ground.machine("one")
    process = run()
    before = writes(ground, "status")
    (vm,) = ground.cloud.vms.values()
    vm.next_state, vm.locked_until = machine_plans.VmState.UP, ground.now_s + 20
    process.drift()
    process.settle()
    assert writes(ground, "status") == before + 2
    ground.cloud.vms.clear()
    process.drift()
    process.settle()
    assert writes(ground, "status") == before + 3
