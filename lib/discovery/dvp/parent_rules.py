"""Checks a valid configuration against the rules of the parent. Pure.

What the parent would reject, or could not schedule, is reported before anything is
created: policies, reserved labels, counts of disks and addresses, names of VMs, zones.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from lib.discovery.dvp import kubeconfig_text, model
from lib.discovery.findings import is_document, part_of, text_of
from lib.process import config

Document = Mapping[str, object]

REJECTED_POLICIES = ("Manual", "Never")
"""Schemas of Deckhouse list them. Source: the CRD of VirtualMachine."""
ACCEPTED_POLICIES = ("AlwaysForced", "AlwaysSafe", "PreferForced", "PreferSafe")
RESERVED = "virtualization.deckhouse.io"
"""Source: deckhouse/virtualization, validators of VirtualMachine."""
DEVICES_MAX = 16
"""Block devices of a VM. Source: as above."""
NAME_MAX = 63
"""Characters of a VM's name. Source: as above."""
_SUFFIX = len("-00-") + 6
"""Of a VM's name: index of up to two digits, and the hash of its parameters."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MACHINE = "virtualMachine"


def problems(configuration: Document, prefix: str) -> Iterator[config.FieldProblem]:
    """Yield the problems of a DVPClusterConfiguration. prefix: of names; or empty."""
    field = "provider.kubeconfigDataBase64"
    encoded = text_of(part_of(configuration, "provider"), "kubeconfigDataBase64")
    yield from kubeconfig_text.problems(field, kubeconfig_text.decode(encoded))
    yield from _reserved(
        "provider.additionalVMLabels",
        part_of(configuration, "provider", "additionalVMLabels"),
    )
    taken: set[str] = set()
    for field, group in groups(configuration):
        name = text_of(group, "name") or "master"
        yield from _of_name(f"{field}.name", name, prefix, taken)
        taken.add(name)
        yield from _of_zones(f"{field}.zones", group, configuration)
        own = part_of(group, "instanceClass")
        yield from of_class(f"{field}.instanceClass", own)
        yield from _of_addresses(f"{field}.instanceClass", group)


def groups(configuration: Document) -> Iterator[tuple[str, Document]]:
    """Yield each group of nodes with the name of its field, that of masters first."""
    yield "masterNodeGroup", part_of(configuration, "masterNodeGroup")
    listed = configuration.get("nodeGroups")
    for index, group in enumerate(listed if isinstance(listed, list) else ()):
        if is_document(group):
            yield f"nodeGroups[{index}]", group


def of_class(field: str, spec: model.Spec) -> Iterator[config.FieldProblem]:
    """Yield the problems of an instance class. field: empty: that of its spec."""
    prefix = f"{field}." if field else ""
    machine = part_of(spec, _MACHINE)
    policy = text_of(machine, "liveMigrationPolicy")
    if policy in REJECTED_POLICIES:
        expected = (
            f"one of {', '.join(ACCEPTED_POLICIES)}: the parent rejects"
            f" {' and '.join(REJECTED_POLICIES)}"
        )
        name = f"{prefix}{_MACHINE}.liveMigrationPolicy"
        yield config.FieldProblem(name, policy, expected)
    for key in ("additionalLabels", "additionalAnnotations"):
        yield from _reserved(f"{prefix}{_MACHINE}.{key}", part_of(machine, key))
    yield from _reserved(f"{prefix}additionalLabels", part_of(spec, "additionalLabels"))
    disks = spec.get("additionalDisks")
    count = len(disks) if isinstance(disks, list) else 0
    most = DEVICES_MAX - 1 - ("etcdDisk" in spec)
    if count > most:
        expected = f"at most {most} disks: a VM has at most {DEVICES_MAX} devices"
        yield config.FieldProblem(
            f"{prefix}additionalDisks", f"{count} disks", expected
        )


def _of_name(
    field: str, name: str, prefix: str, taken: set[str]
) -> Iterator[config.FieldProblem]:
    if name in taken:
        yield config.FieldProblem(field, name, "a name that no other group has")
    if not _LABEL.fullmatch(name):
        yield config.FieldProblem(field, name, "a DNS label, such as worker")
    most = NAME_MAX - len(prefix) - len("-") - _SUFFIX
    if prefix and len(name) > most:
        expected = (
            f"at most {most} characters: names of VMs begin with the prefix"
            f" {config.quoted(prefix)} and have at most {NAME_MAX}"
        )
        yield config.FieldProblem(field, name, expected)


def _of_zones(
    field: str, group: Document, configuration: Document
) -> Iterator[config.FieldProblem]:
    """Yield the problem of a group without a zone of the cluster."""
    own, all_zones = group.get("zones"), configuration.get("zones")
    if not isinstance(own, list) or not isinstance(all_zones, list):
        return
    if own and all_zones and not set(own) & set(all_zones):
        expected = f"at least one of the zones {', '.join(map(str, all_zones))}"
        yield config.FieldProblem(field, ", ".join(map(str, own)), expected)


def _of_addresses(field: str, group: Document) -> Iterator[config.FieldProblem]:
    listed = part_of(group, "instanceClass", _MACHINE).get("ipAddresses")
    addresses: Sequence[object] = listed if isinstance(listed, list) else ()
    field = f"{field}.{_MACHINE}.ipAddresses"
    replicas = group.get("replicas")
    if isinstance(replicas, int) and len(addresses) > replicas:
        expected = f"at most {replicas} addresses, one for each replica"
        yield config.FieldProblem(field, f"{len(addresses)} addresses", expected)
    fixed = [address for address in addresses if address != "Auto"]
    for address in sorted({str(a) for a in fixed if fixed.count(a) > 1}):
        yield config.FieldProblem(field, address, "an address of one VM alone")


def _reserved(field: str, keys: Document) -> Iterator[config.FieldProblem]:
    for key in keys:
        if RESERVED in key:
            expected = f"a key without {RESERVED}: the parent reserves it"
            yield config.FieldProblem(field, key, expected)
