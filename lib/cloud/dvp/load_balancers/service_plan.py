"""The plan for one Service: its object in the parent, and labels of VMs. Pure.

Rules: no step has to wait for another one, and each may be repeated: names and labels
follow from the UID of the Service. A VM whose label the parent refuses keeps no other
VM from receiving traffic. Objects of other owners are never touched.
"""

import dataclasses
import datetime
from collections.abc import Iterator

from lib.cloud.dvp import kinds
from lib.cloud.dvp.kinds import ParentKind, ParentService
from lib.cloud.dvp.load_balancers import (
    desired_service,
    differences_of_service,
    lb_names,
    observed_service,
)
from lib.cloud.dvp.load_balancers.desired_service import DesiredService, DvpReason
from lib.cloud.dvp.load_balancers.observed_service import LabelledVm, ParentObjects
from lib.cloud.explained import FieldChange
from lib.cloud.load_balancers import Observed, Plan, Reason, Results, Target
from lib.cloud.steps import CommonReason, Problem, ProblemReason, Step, Verb

DELETION_POLL_S = 10.0
ADDRESS_POLL_S = 30.0
"""Both cost no call, and the watch reports the change before."""
ADDRESS_LATE_S = 300.0
"""Source: the reference waits for this time in its reconciliation."""

Json = dict[str, object]


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceWrite:
    """One write of an object. uid: of that object; empty: it is created.

    document: of a creation, or a merge patch; None: it is deleted. changes: for people.
    desired: what a merge patch is to bring about.
    """

    kind: ParentKind[ParentService]
    name: str
    uid: str = ""
    document: Json | None = None
    changes: tuple[FieldChange, ...] = ()
    desired: DesiredService | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class LabelWrite:
    """One merge patch of the labels of a VM, by its name. changes: for people.

    key, value: the label; None: it is removed.
    """

    name: str
    key: str
    value: str | None
    document: Json
    changes: tuple[FieldChange, ...] = ()


def of(step: Step) -> ServiceWrite | LabelWrite:
    """Return the request of a step."""
    if not isinstance(step.native, ServiceWrite | LabelWrite):
        raise TypeError(f"not of this cloud: {step!r}")
    return step.native


def plan(target: Target, observed: Observed, now: datetime.datetime) -> Plan:
    """See the protocol."""
    native = observed_service.of(observed)
    desired = desired_service.of(target.spec)
    if desired is None or target.spec is None:
        return _deletion(target, native)
    name = lb_names.object_name(target.ref.uid)
    problems = target.spec.problems
    refusals = tuple(_refusals(native, name, target.ref.uid))
    if refusals:
        return Plan(problems=(*problems, *refusals))
    existing = native.main
    if existing is not None and existing[1].metadata.deletion_timestamp is not None:
        return Plan(retry_after_s=DELETION_POLL_S, problems=problems)
    steps = (*_object(desired, native), *_labels(desired, native))
    ingress = native.ingress
    return Plan(
        steps=steps,
        settled=not steps and bool(ingress),
        retry_after_s=None if steps or ingress else ADDRESS_POLL_S,
        problems=(*problems, *_unkept(steps, native), *_reported(desired, native, now)),
        results=Results(ingress=ingress or None),
    )


# ---------------------------------------------------------------- ownership


def _refusals(native: ParentObjects, name: str, uid: str) -> Iterator[Problem]:
    for kind, service in native.all:
        owner = observed_service.other_owner(service, native.cluster_uuid, uid)
        if owner:
            text = f"{kind.resource.kind} {name} of the parent: {owner}; not changed"
            yield Problem(Reason.NOT_OWNED, text, is_fatal=True)


def _is_owned(native: ParentObjects, service: ParentService, uid: str) -> bool:
    return not observed_service.other_owner(service, native.cluster_uuid, uid)


# ---------------------------------------------------------------- the object


def _object(desired: DesiredService, native: ParentObjects) -> Iterator[Step]:
    if native.main is None:
        kind = kinds.SERVICES
        if native.serves_checked and not desired.only_plain:
            kind = kinds.HEALTHCHECKED_SERVICES
        yield _creation(desired, kind, native.cluster_uuid)
        return
    kind, service = native.main
    differences = differences_of_service.of(desired, kind, service, native.cluster_uuid)
    if differences:
        uid = service.metadata.uid
        write = ServiceWrite(
            kind,
            desired.name,
            uid,
            differences_of_service.patch(uid, differences),
            tuple(difference.change for difference in differences),
            desired,
        )
        fields = ", ".join(f"{each.section}.{each.key}" for each in differences)
        yield _step(Verb.CHANGE, write, f"{fields} differ from the desired state")


def _creation(
    desired: DesiredService, kind: ParentKind[ParentService], cluster_uuid: str
) -> Step:
    nothing = ParentService(kinds.ParentServiceMeta())
    changes = differences_of_service.of(desired, kind, nothing, cluster_uuid)
    write = ServiceWrite(
        kind,
        desired.name,
        document=differences_of_service.document(desired, kind, cluster_uuid),
        changes=tuple(difference.change for difference in changes),
    )
    return _step(Verb.CREATE, write, "there is none")


def _step(verb: Verb, write: ServiceWrite, why: str) -> Step:
    path = (f"{write.kind.resource.kind} {write.name} of the parent",)
    return Step(verb, path, why, write, is_gated=False, group=path[0])


# ---------------------------------------------------------------- labels of VMs


def _labels(desired: DesiredService, native: ParentObjects) -> Iterator[Step]:
    """Label the VMs that lack it first, so that traffic always has a receiver."""
    key = lb_names.label_key(desired.name)
    labelled = {vm.name for vm in native.labelled}
    chosen = tuple(_chosen(desired, native))
    for vm in chosen:
        if vm.name not in labelled:
            yield _label(vm, key, "its Node is to receive traffic")
    names = {vm.name for vm in chosen}
    for vm in native.labelled:
        if vm.name not in names:
            yield _unlabel(vm, key, "its Node is not eligible for traffic")


def _chosen(desired: DesiredService, native: ParentObjects) -> Iterator[LabelledVm]:
    ids = dict(desired.virtual_machines)
    for host in sorted(desired.hosts):
        vm = _vm(native.vms.get(host, ()), ids.get(host, ""))
        if vm is not None:
            yield vm


def _vm(vms: tuple[LabelledVm, ...], name: str) -> LabelledVm | None:
    """Return the VM of a Node. name: from its provider ID; empty: unknown."""
    if len(vms) == 1:
        return vms[0]
    return next((vm for vm in vms if vm.name == name), None)


def _label(vm: LabelledVm, key: str, why: str) -> Step:
    return _of_vm(vm, key, lb_names.LABEL_VALUE, why)


def _unlabel(vm: LabelledVm, key: str, why: str) -> Step:
    return _of_vm(vm, key, None, why)


def _of_vm(vm: LabelledVm, key: str, value: str | None, why: str) -> Step:
    document: Json = {"metadata": {"uid": vm.uid, "labels": {key: value}}}
    old, new = ("", value) if value else (lb_names.LABEL_VALUE, "")
    change = FieldChange(f"metadata.labels.{key}", old, new or "")
    write = LabelWrite(vm.name, key, value, document, (change,))
    path = (f"VirtualMachine {vm.name}", "label")
    return Step(Verb.CHANGE, path, why, write, is_gated=False, group=path[0])


# ---------------------------------------------------------------- deletion


def _deletion(target: Target, native: ParentObjects) -> Plan:
    uid = target.ref.uid
    name = lb_names.object_name(uid)
    if target.only is not None and name not in target.only:
        return Plan(settled=True)
    owned = [row for row in native.all if _is_owned(native, row[1], uid)]
    steps: list[Step] = []
    for kind, service in owned:
        if service.metadata.deletion_timestamp is None:
            write = ServiceWrite(kind, name, service.metadata.uid)
            steps.append(_step(Verb.DELETE, write, "no Service requires it"))
    key = lb_names.label_key(name)
    steps += [_unlabel(vm, key, "no Service requires it") for vm in native.removable]
    retry_after_s = DELETION_POLL_S if owned and not steps else None
    is_settled = not owned and not steps
    return Plan(tuple(steps), settled=is_settled, retry_after_s=retry_after_s)


# ---------------------------------------------------------------- reports


def _unkept(steps: tuple[Step, ...], native: ParentObjects) -> Iterator[Problem]:
    """Report what is written repeatedly."""
    if steps and native.unkept:
        text = (
            f"{native.unkept}: the parent does not keep what is written; check its"
            " admission rules"
        )
        yield Problem(CommonReason.REFUSED, text)


def _reported(
    desired: DesiredService, native: ParentObjects, now: datetime.datetime
) -> Iterator[Problem]:
    """Return what is wrong without being fatal."""
    yield from _of_vms(desired, native)
    existing = native.main
    if existing is None:
        return
    kind, service = existing
    if kind is not kinds.SERVICES:
        yield from _without_effect(desired, kind)
    class_now = service.spec.load_balancer_class or ""
    if (
        kind is kinds.SERVICES
        and desired.load_balancer_class
        and class_now != desired.load_balancer_class
    ):
        text = (
            f"spec.loadBalancerClass: the load balancer in the parent has class"
            f' "{class_now}", and cannot change it to "{desired.load_balancer_class}"'
        )
        yield Problem(CommonReason.IMMUTABLE, text)
    if native.ingress or observed_service.age_s(service, now) < ADDRESS_LATE_S:
        return
    class_name = desired.requested_class
    advice = f'class "{class_name}" may be unknown, or' if class_name else "its pool"
    rest = "its pool may be exhausted" if class_name else "may be exhausted"
    text = (
        f"{kind.resource.kind} {desired.name} of the parent has had no address for"
        f" {ADDRESS_LATE_S / 60:.0f} minutes: {advice} {rest}"
    )
    reason: ProblemReason = DvpReason.NO_PARENT_ADDRESS
    yield Problem(Reason.UNKNOWN_CLASS if class_name else reason, text)


def _without_effect(
    desired: DesiredService, kind: ParentKind[ParentService]
) -> Iterator[Problem]:
    for field in desired.only_plain:
        text = (
            f"{field}: not supported by the {kind.resource.kind} that exists in the"
            " parent; ignored. A Service that is deleted and created again gets a"
            " plain Service there, and another address"
        )
        if field == "spec.loadBalancerSourceRanges":
            text = text.replace("ignored", "ignored: all addresses have access")
        yield Problem(CommonReason.UNSUPPORTED, text)


def _of_vms(desired: DesiredService, native: ParentObjects) -> Iterator[Problem]:
    ids = dict(desired.virtual_machines)
    for host in sorted(desired.hosts):
        vms = native.vms.get(host, ())
        if _vm(vms, ids.get(host, "")) is not None:
            continue
        text = f"Node {host}: no VirtualMachine of this cluster has its name"
        if vms:
            names = ", ".join(vm.name for vm in vms)
            text = f"Node {host}: several VirtualMachines have its name: {names}"
        reason = CommonReason.AMBIGUOUS if vms else DvpReason.NO_VIRTUAL_MACHINE
        yield Problem(reason, f"{text}; it receives no traffic")
