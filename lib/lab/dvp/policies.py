"""Admission rules of a parent cluster, as ValidatingAdmissionPolicies. Pure.

They stand for the webhooks of virtualization. What needs other objects than the one
that is changed is decided by the simulator, see `transitions.py`.
"""

import dataclasses
from collections.abc import Sequence

from lib.kube.resources import Resource
from lib.lab.dvp import kinds
from lib.lab.dvp.kinds import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """One rule. fact: the behaviour of the platform that it is based on.

    expression: CEL, true for what is admitted. operations: CREATE, UPDATE. params: kind
    of which every object is `params` of the expression once; None: none is. reason: of
    the refusal; a webhook of the platform answers Forbidden.
    """

    name: str
    kind: Resource
    operations: tuple[str, ...]
    expression: str
    message: str
    fact: str
    params: Resource | None = None
    reason: str = "Invalid"


_BOTH = ("CREATE", "UPDATE")
_RESERVED = "!k.contains('virtualization.deckhouse.io')"
_SIZE = "spec.persistentVolumeClaim.size"
_HAS_SIZE = (
    "has({0}.spec.persistentVolumeClaim) && has({0}.spec.persistentVolumeClaim.size)"
)
_BOTH_SIZES = f"({_HAS_SIZE.format('oldObject')} && {_HAS_SIZE.format('object')})"
_PHASE = "(has(oldObject.status) && has(oldObject.status.phase))"


def _when(*phases: str) -> str:
    listed = ", ".join(f"'{phase}'" for phase in phases)
    return f"({_PHASE} && oldObject.status.phase in [{listed}])"


_EARLY = _when("Pending", "Provisioning", "WaitForFirstConsumer")
_SAME_SIZE = f"object.{_SIZE} == oldObject.{_SIZE}"
_GROWS = (
    f"quantity(string(object.{_SIZE})).compareTo("
    f"quantity(string(oldObject.{_SIZE}))) >= 0"
)
_SOURCE = "has({0}.spec.dataSource)"
_SAME_SOURCE = (
    f"({_SOURCE.format('object')} == {_SOURCE.format('oldObject')} &&"
    f" (!{_SOURCE.format('object')} ||"
    " object.spec.dataSource == oldObject.spec.dataSource))"
)

_CORES = "object.spec.cpu.cores"
_MEMORY = "quantity(string(object.spec.memory.size))"
_FRACTION = (
    "(has(object.spec.cpu.coreFraction) ? object.spec.cpu.coreFraction : '100%')"
)
_ALLOWED = (
    # The policy of which the range contains the number of cores; they do not overlap.
    f"has(p.cores) && {_CORES} >= p.cores.min && {_CORES} <= p.cores.max"
    f" && (!has(p.cores.step) || p.cores.step == 0 || {_CORES} == p.cores.max"
    f" || ({_CORES} - p.cores.min) % p.cores.step == 0)"
    " && (!has(p.coreFractions) || p.coreFractions.size() == 0"
    f" || p.coreFractions.exists(f, string(f) + '%' == {_FRACTION}))"
    " && (!has(p.memory) || !has(p.memory.min)"
    f" || {_MEMORY}.compareTo(quantity(string(p.memory.min))) >= 0)"
    " && (!has(p.memory) || !has(p.memory.max)"
    f" || {_MEMORY}.compareTo(quantity(string(p.memory.max))) <= 0)"
)

POLICIES = (
    Policy(
        "machine-sizing",
        kinds.MACHINES,
        _BOTH,
        "has(object.metadata.deletionTimestamp)"
        " || params.metadata.name != object.spec.virtualMachineClassName"
        " || !has(params.spec.sizingPolicies)"
        " || params.spec.sizingPolicies.size() == 0"
        f" || params.spec.sizingPolicies.exists(p, {_ALLOWED})",
        "does not match any sizing policy of VirtualMachineClass",
        "VirtualMachine: sizing_policy_validator.go, at each CREATE and UPDATE, also of"
        " a label; size_policy_service.go, without steps of memory and memory per core",
        kinds.CLASSES,
        "Forbidden",
    ),
    Policy(
        "machine-cpu-count",
        kinds.MACHINES,
        _BOTH,
        f"{_CORES} <= 248 && ({_CORES} <= 16 || ({_CORES} <= 32 && {_CORES} % 2 == 0)"
        f" || ({_CORES} <= 64 && {_CORES} % 4 == 0) || {_CORES} % 8 == 0)",
        "the number of cores must be 248 at most, and a multiple of the sockets",
        "VirtualMachine: cpu_count_validator.go, common/vm CalculateCoresAndSockets",
    ),
    Policy(
        "disk-name",
        kinds.DISKS,
        ("CREATE",),
        "!object.metadata.name.contains('.')",
        "the name of a VirtualDisk must not contain a dot",
        "VirtualDisk: name_validator.go",
    ),
    Policy(
        "machine-name",
        kinds.MACHINES,
        ("CREATE",),
        "object.metadata.name.size() <= 63",
        "the name of a VirtualMachine has 63 characters at most",
        "VirtualMachine: admission",
    ),
    Policy(
        "machine-reserved-keys",
        kinds.MACHINES,
        _BOTH,
        f"(!has(object.metadata.labels) || object.metadata.labels.all(k, {_RESERVED}))"
        " && (!has(object.metadata.annotations) ||"
        f" object.metadata.annotations.all(k, {_RESERVED}))",
        "keys of labels and annotations must not contain virtualization.deckhouse.io",
        "VirtualMachine: admission",
    ),
    Policy(
        "machine-devices-once",
        kinds.MACHINES,
        _BOTH,
        "object.spec.blockDeviceRefs.all(a, object.spec.blockDeviceRefs"
        ".filter(b, a.kind == b.kind && a.name == b.name).size() == 1)",
        "spec.blockDeviceRefs lists a block device more than once",
        "VirtualMachine: admission",
    ),
    Policy(
        "attachment-unchanged",
        kinds.ATTACHMENTS,
        ("UPDATE",),
        "object.spec == oldObject.spec",
        "the spec of an attachment cannot be changed",
        "VirtualMachineBlockDeviceAttachment: spec immutable by admission",
    ),
    Policy(
        "image-unchanged",
        kinds.IMAGES,
        ("UPDATE",),
        "object.spec == oldObject.spec",
        "the spec of an image cannot be changed",
        "VirtualImage: not modifiable after creation",
    ),
    Policy(
        "disk-size",
        kinds.DISKS,
        ("CREATE",),
        f"!({_HAS_SIZE.format('object')}) ||"
        f" quantity(string(object.{_SIZE})).isGreaterThan(quantity('0'))",
        "spec.persistentVolumeClaim.size must be greater than zero",
        "VirtualDisk: a blank disk needs a size that is not zero",
    ),
    Policy(
        "disk-size-grows",
        kinds.DISKS,
        ("UPDATE",),
        f"!({_HAS_SIZE.format('oldObject')}) || !{_PHASE} || {_EARLY} ||"
        f" ({_BOTH_SIZES} && {_GROWS})",
        "spec.persistentVolumeClaim.size can only grow once the disk is provisioned",
        "VirtualDisk: mutability",
    ),
    Policy(
        "disk-size-migrating",
        kinds.DISKS,
        ("UPDATE",),
        f"!{_when('Migrating')} || !{_BOTH_SIZES} || {_SAME_SIZE}",
        "spec.persistentVolumeClaim.size cannot change while the disk migrates",
        "VirtualDisk: mutability",
    ),
    Policy(
        "disk-source-frozen",
        kinds.DISKS,
        ("UPDATE",),
        f"!{_when('Ready', 'Migrating', 'PVCLost')} || {_SAME_SOURCE}",
        "spec.dataSource cannot change once the disk is Ready",
        "VirtualDisk: mutability",
    ),
    Policy(
        "disk-terminating",
        kinds.DISKS,
        ("UPDATE",),
        f"!{_when('Terminating')} || object.spec == oldObject.spec",
        "the spec of a disk that is being deleted cannot be changed",
        "VirtualDisk: mutability",
    ),
)


def documents() -> Sequence[Json]:
    """Return all policies and their bindings."""
    return [
        document
        for policy in POLICIES
        for document in (_policy(policy), _binding(policy))
    ]


def _name(policy: Policy) -> str:
    return f"{policy.name}.lab.{kinds.GROUP}"


def _policy(policy: Policy) -> Json:
    rules: list[Json] = [
        {
            "apiGroups": [policy.kind.group],
            "apiVersions": ["*"],
            "operations": list(policy.operations),
            "resources": [policy.kind.plural],
        }
    ]
    validation = {
        "expression": policy.expression,
        "message": policy.message,
        "reason": policy.reason,
    }
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "validations": [validation],
    }
    if policy.params is not None:
        kind = policy.params
        spec["paramKind"] = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _name(policy)},
        "spec": spec,
    }


def _binding(policy: Policy) -> Json:
    spec: Json = {"policyName": _name(policy), "validationActions": ["Deny"]}
    if policy.params is not None:
        spec["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _name(policy)},
        "spec": spec,
    }
