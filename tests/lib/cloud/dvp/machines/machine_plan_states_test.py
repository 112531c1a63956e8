"""Any state of the parent: nothing of others is touched, nothing of ours is lost."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud import errors
from lib.cloud.dvp import kinds, ownership
from lib.cloud.dvp.machines import (
    machine_names,
    machine_ownership,
    machine_writes,
    observed_machine,
)
from lib.cloud.dvp.machines.cloud import DvpMachines
from lib.cloud.dvp.machines.observed_machine import ParentMachine
from lib.cloud.machines import Observed, Plan, Reason, Target
from lib.cloud.model import Seen
from lib.cloud.steps import Verb
from tests.contract import machines as contract
from tests.contract.dvp_machines import (
    DISKS,
    NAMESPACE,
    SECRETS,
    UUID,
    VMS,
    MachineParent,
)
from tests.lib.cloud.dvp.machines import machine_objects as objects
from tests.lib.cloud.dvp.machines.machine_objects import ID, NAME, NOW
from tests.lib.cloud.dvp.machines.stage import ListedParent

BOOT = machine_names.boot_disk(NAME)
MORE = machine_names.additional_disk(NAME, 0)
PHASES = (
    *("", "Pending", "Starting", "Running", "Stopping", "Stopped"),
    *("Terminating", "Migrating", "Pause", "Degraded", "Unheard-of"),
)
REASONS = ("Provisioning", "QuotaExceeded", "ProvisioningFailed", "PVCLost")
abouts = strategies.fixed_dictionaries(
    {
        "owner": strategies.sampled_from((objects.UID, "", "other")),
        "cluster": strategies.sampled_from((UUID, UUID, "", "other")),
        "age_s": strategies.sampled_from((1, 1000)),
    },
    optional={"deletionTimestamp": strategies.just(NOW.isoformat())},
)
conditions = strategies.lists(
    strategies.builds(
        objects.condition,
        strategies.sampled_from(("Ready", "Running", "SizingPolicyMatched")),
        strategies.sampled_from(REASONS),
        strategies.sampled_from(("", "exceeded quota: x", "because")),
    ),
    max_size=2,
)
specs = strategies.fixed_dictionaries(
    {},
    optional={
        "runPolicy": strategies.sampled_from(("AlwaysOn", "AlwaysOff", "Manual")),
        "memory": strategies.sampled_from(("1Gi", "4Gi")),
        "liveMigrationPolicy": strategies.just("AlwaysSafe"),
        "additionalDisks": strategies.just([]),
    },
)


@strategies.composite
def parents(draw: strategies.DrawFn) -> ParentMachine:
    """Return any combination of what may exist with the names of a machine."""
    vm = None
    if draw(strategies.booleans()):
        phase, about = draw(strategies.sampled_from(PHASES)), draw(abouts)
        vm = objects.vm(phase, about, conditions=draw(conditions))
    names = draw(strategies.sets(strategies.sampled_from((BOOT, MORE))))
    disks = {
        name: objects.disk(name, draw(abouts), conditions=draw(conditions))
        for name in sorted(names)
    }
    secret = objects.secret(draw(abouts)) if draw(strategies.booleans()) else None
    plugged = draw(strategies.lists(abouts, max_size=2))
    attachments = tuple(
        objects.attachment(f"volume-{number}", **about)
        for number, about in enumerate(plugged)
    )
    return ParentMachine(objects.identity(), vm, disks, secret, attachments)


facts = strategies.builds(
    lambda spec, recorded, has_data: objects.facts(
        spec=spec,
        provider_id=ID if recorded else "",
        bootstrap=contract.bootstrap(NAME) if has_data else None,
    ),
    specs,
    strategies.booleans(),
    strategies.booleans(),
)


def unowned(native: ParentMachine, provider_id: str) -> set[tuple[str, str]]:
    """Return kind and name of what is not the machine's."""
    machine = objects.identity(provider_id)
    return {
        (kind.resource.kind, about.name)
        for kind, about in machine_writes.objects(native)
        if machine_ownership.other_owner(machine, about)
    }


def written(planned: Plan) -> set[tuple[str, str]]:
    writes = [machine_writes.of(step) for step in planned.steps]
    return {(write.kind.resource.kind, write.name) for write in writes}


@hypothesis.given(native=parents(), of=facts)
@hypothesis.settings(max_examples=200, deadline=None)
def test_a_plan_never_touches_what_others_own(native: ParentMachine, of: Any) -> None:
    for is_gone in (False, True):
        provider_id = of.provider_id
        planned = objects.plan(native, of, gone=is_gone, provider_id=provider_id)
        assert not written(planned) & unowned(native, provider_id)
        verbs = {step.verb for step in planned.steps}
        assert verbs <= ({Verb.DELETE} if is_gone else {Verb.CREATE, Verb.CHANGE})
        is_fatal = any(problem.is_fatal for problem in planned.problems)
        assert not (is_fatal and planned.steps)
        assert planned.settled or is_fatal or planned.steps or planned.retry_after_s
        existing = {
            (kind.resource.kind, about.name)
            for kind, about in machine_writes.objects(native)
        }
        created = [step for step in planned.steps if step.verb is Verb.CREATE]
        for step in created:
            write = machine_writes.of(step)
            assert (write.kind.resource.kind, write.name) not in existing
            is_vm = write.kind is kinds.VIRTUAL_MACHINES
            assert step.is_repeatable is not is_vm
            assert not (is_vm and provider_id)
        types = dict(planned.results.conditions)
        assert set(types) <= set(DvpMachines.conditions)
        assert contract.SECRET not in repr(planned)


# ---------------------------------------------------------------- convergence


def filled(native: ParentMachine) -> MachineParent:
    """Return a parent that holds what was drawn, and moves on from there."""
    fake = MachineParent(lambda: NOW)
    for kind, part in (
        (VMS, native.vm),
        (SECRETS, native.secret),
        *((DISKS, disk) for disk in native.disks.values()),
    ):
        if part is not None:
            fake.put_impossible(kind, _document(part))
    return fake


def _document(part: Any) -> dict[str, Any]:
    about, name = part.metadata, part.metadata.name
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": dict(about.labels),
        }
    }
    if isinstance(part, kinds.VirtualMachine):
        rows = [
            {"kind": r.kind, "name": r.name} for r in part.spec.block_device_refs or ()
        ]
        document["spec"] = {
            "virtualMachineClassName": part.spec.virtual_machine_class_name,
            "runPolicy": part.spec.run_policy,
            "blockDeviceRefs": rows,
            "cpu": {"cores": 2, "coreFraction": "50%"},
            "memory": {"size": "2Gi"},
        }
        document["status"] = {"phase": part.status.phase or "Pending"}
    elif isinstance(part, kinds.VirtualDisk):
        size = part.spec.persistent_volume_claim.size
        document["spec"] = {"persistentVolumeClaim": {"size": size}}
    else:
        document["type"], document["data"] = part.type, {"userData": ""}
    return document


class Loop:
    """Reconciles one machine on a parent until nothing is left to do."""

    def __init__(self, fake: MachineParent) -> None:
        self.fake = fake
        self.access = ListedParent(fake, UUID)
        self.machines = DvpMachines(self.access, contract.read_bootstrap)

    def settle(self, target: Target) -> Plan:
        for _ in range(20):
            self.fake.turn()
            self.access.relist()
            answer = self.machines.observe([target])[target.ref]
            assert isinstance(answer, Seen), answer
            planned = self.machines.plan(target, answer.value, NOW)
            if not planned.steps:
                return planned
            # What no store shows is taken: it is read again.
            with contextlib.suppress(errors.Busy):
                for step in planned.steps:
                    self.machines.apply(step)
        raise AssertionError("does not settle")


@hypothesis.given(native=parents(), of=facts)
@hypothesis.settings(max_examples=40, deadline=None)
def test_any_state_converges_and_is_deleted_without_what_others_own(
    native: ParentMachine, of: Any
) -> None:
    fake = filled(dataclasses.replace(native, attachments=()))
    others = unowned(native, of.provider_id)
    before = _all(fake, others)
    loop = Loop(fake)
    planned = loop.settle(objects.target(of))
    state = planned.results.state
    known = {*Reason, *loop.machines.reasons}
    assert state.reason in known
    if state.reason is Reason.RUNNING:
        assert planned.results.is_provisioned
    deleted = loop.settle(objects.gone(of.provider_id))
    if ("VirtualMachine", NAME) in others and native.disks and not deleted.settled:
        # Another's VM holds our disk: it is named once the time limit has passed.
        assert deleted.abandoned
        return
    assert deleted.settled, deleted
    # Without the label of the cluster an object is not watched.
    left = {
        key
        for key, labels in _all(fake, None).items()
        if key not in others and ownership.is_owned(labels, UUID)
    }
    assert not left
    assert _all(fake, others).keys() == before.keys()


def _all(
    fake: MachineParent, only: set[tuple[str, str]] | None
) -> Mapping[tuple[str, str], Mapping[str, str]]:
    """Return labels of all objects, or of these."""
    rows = {
        (kind.kind, row["metadata"]["name"]): row["metadata"]["labels"]
        for kind in (VMS, DISKS, SECRETS)
        for row in fake.each(kind)
    }
    return {key: row for key, row in rows.items() if only is None or key in only}


def test_observations_of_other_packages_are_refused() -> None:
    with pytest.raises(TypeError, match="another provider"):
        observed_machine.of(Observed(True, "id", object()))
