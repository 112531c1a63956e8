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

    expression: CEL, true for what is admitted. operations: CREATE, UPDATE.
    """

    name: str
    kind: Resource
    operations: tuple[str, ...]
    expression: str
    message: str
    fact: str


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

POLICIES = (
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
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _name(policy)},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [
                {"expression": policy.expression, "message": policy.message}
            ],
        },
    }


def _binding(policy: Policy) -> Json:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _name(policy)},
        "spec": {"policyName": _name(policy), "validationActions": ["Deny"]},
    }
