"""What a machine object asks of the parent, parsed. Pure.

Source: deckhouse modules/030-cloud-provider-dvp, DeckhouseMachine (fields, defaults);
deckhouse/virtualization api/core/v1alpha2 (VirtualMachine).
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping

import msgspec

from lib.cloud.dvp import ownership
from lib.cloud.dvp.machines import machine_names
from lib.cloud.dvp.machines.spec_reader import SpecReader
from lib.cloud.machines import Bootstrap, Facts, Problems, Reason, Spec
from lib.cloud.steps import Problem
from lib.process import config

RUN_POLICY = "AlwaysOnUnlessStoppedManually"
RUN_POLICIES = ("AlwaysOn", "AlwaysOff", "Manual", RUN_POLICY)
MIGRATION_POLICIES = ("AlwaysSafe", "PreferSafe", "AlwaysForced", "PreferForced")
"""The parent rejects Manual and Never, which schemas of the reference list."""
BOOTLOADERS = ("BIOS", "EFI", "EFIWithSecureBoot")
IMAGE_KINDS = ("ClusterVirtualImage", "VirtualImage", "VirtualDiskSnapshot")
ADDITIONAL_DISKS_MAX = 15
"""Block devices of a VM are limited to 16."""
RESERVED = "virtualization.deckhouse.io"
"""The parent rejects keys of labels and annotations that contain it."""
_FRACTION = re.compile(r"100%|[1-9][0-9]?%")
_OWN_KEYS = frozenset(
    {
        ownership.CLUSTER,
        ownership.HOSTNAME,
        ownership.MANAGED_BY,
        ownership.OWNER_UID,
        machine_names.MACHINE_ANNOTATION,
    }
)
_STORAGE_CLASS = "the name of a StorageClass of the parent cluster"


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredDisk:
    """One disk. field, class_field: where its size and class are in the spec."""

    name: str
    size: str
    storage_class: str
    field: str
    class_field: str


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredMachine:
    """The desired state. disks: the boot disk first. image: kind and name.

    run_policy, live_migration_policy: empty: not set, so that the VM keeps its own.
    zone: of the failure domain. tolerations: each as sorted pairs of JSON.
    provider_id: as recorded; empty: none.
    """

    name: str
    class_name: str
    cores: int
    core_fraction: str
    memory: str
    disks: tuple[DesiredDisk, ...]
    image: tuple[str, str]
    bootloader: str
    run_policy: str
    live_migration_policy: str
    is_control_plane: bool
    zone: str
    node_selector: tuple[tuple[str, str], ...]
    tolerations: tuple[str, ...]
    priority_class: str
    labels: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    provider_id: str
    bootstrap: Bootstrap | None

    @property
    def is_recorded(self) -> bool:
        """Report whether the machine object has the provider ID of this VM."""
        return self.provider_id == machine_names.provider_id(self.name)

    @property
    def selector(self) -> dict[str, str]:
        """The node selector of the VM, with the zone in it."""
        zone = {machine_names.ZONE: self.zone} if self.zone else {}
        return {**dict(self.node_selector), **zone}


def parse(facts: Facts, cluster_uuid: str) -> Spec | Problems:
    """See the protocol. cluster_uuid: of the cluster whose parent this is."""
    reader = SpecReader(facts.spec)
    desired = _read(facts, reader)
    wrong = [*_names(facts, desired, cluster_uuid), *reader.problems]
    if wrong:
        return Problems(
            tuple(
                Problem(Reason.INVALID_SPEC, str(problem), is_fatal=True)
                for problem in wrong
            )
        )
    return Spec(desired)


def of(spec: Spec | None) -> DesiredMachine | None:
    """Return the parsed state of a target; None: it is to be deleted."""
    if spec is None:
        return None
    if not isinstance(spec.native, DesiredMachine):
        raise TypeError("the spec is of another provider package")
    return spec.native


def _names(
    facts: Facts, desired: DesiredMachine, cluster_uuid: str
) -> Iterator[config.FieldProblem]:
    """Yield what is wrong with names and IDs; they are not in the spec."""
    expected = f"the UUID of this cluster, value of the label {ownership.CLUSTER}"
    if not facts.cluster_id:
        yield config.not_set("CLUSTER_UUID", expected)
    elif facts.cluster_id != cluster_uuid:
        yield config.FieldProblem("CLUSTER_UUID", facts.cluster_id, cluster_uuid)
    longest = machine_names.longest(facts.name, len(desired.disks) - 1)
    if not machine_names.is_name(facts.name) or len(facts.name) > longest:
        text = f"a DNS label of at most {longest} characters"
        if len(desired.disks) > 1:
            text += f" with {len(desired.disks) - 1} additional disks"
        yield config.FieldProblem("metadata.name", facts.name, text)
    recorded, own = facts.provider_id, machine_names.provider_id(facts.name)
    if recorded not in ("", own):
        yield config.FieldProblem("spec.providerID", recorded, own)


def _read(facts: Facts, reader: SpecReader) -> DesiredMachine:
    zone = facts.failure_domain or reader.optional("failureDomain", "a zone")
    selector = reader.words("nodeSelector")
    if zone and selector.get(machine_names.ZONE, zone) != zone:
        field = f"nodeSelector[{machine_names.ZONE}]"
        reader.reject(field, selector[machine_names.ZONE], f"{zone}, the failureDomain")
    return DesiredMachine(
        facts.name,
        reader.text(
            "vmClassName", "the name of a VirtualMachineClass of the parent cluster"
        ),
        _cores(reader),
        _fraction(reader),
        _memory(reader),
        tuple(_disks(facts.name, reader)),
        (
            reader.choice("bootDiskImageRef.kind", IMAGE_KINDS, "VirtualImage"),
            reader.text("bootDiskImageRef.name", "the name of an image"),
        ),
        reader.choice("bootloader", BOOTLOADERS, "EFI"),
        reader.choice("runPolicy", RUN_POLICIES),
        reader.choice("liveMigrationPolicy", MIGRATION_POLICIES),
        facts.is_control_plane,
        zone,
        tuple(sorted(selector.items())),
        tuple(canonical(row) for _, row in reader.rows("tolerations")),
        reader.optional("priorityClassName", "the name of a PriorityClass"),
        _pairs(reader, "additionalLabels"),
        _pairs(reader, "additionalAnnotations"),
        facts.provider_id,
        facts.bootstrap,
    )


def cores_and_memory(spec: Mapping[str, object]) -> tuple[int, str] | None:
    """Return what a VM of a machine spec has; None: those fields are invalid."""
    reader = SpecReader(spec)
    result = _cores(reader), _memory(reader)
    return None if reader.problems else result


def _cores(reader: SpecReader) -> int:
    return reader.number("cpu.cores", 4)


def _memory(reader: SpecReader) -> str:
    return reader.quantity("memory", "8Gi")


def canonical(value: Mapping[str, object]) -> str:
    """Return an object as JSON whose keys are sorted."""
    return msgspec.json.encode(value, order="sorted").decode()


def _fraction(reader: SpecReader) -> str:
    field = "cpu.cpuFraction"
    value = reader.at(field)
    if value in (None, ""):
        return "100%"
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        reader.reject(field, value, "a percentage from 1% to 100%")
    return str(value)


def _disks(name: str, reader: SpecReader) -> Iterator[DesiredDisk]:
    yield DesiredDisk(
        machine_names.boot_disk(name),
        reader.quantity("rootDiskSize"),
        reader.text("rootDiskStorageClass", _STORAGE_CLASS),
        "spec.rootDiskSize",
        "spec.rootDiskStorageClass",
    )
    rows = tuple(reader.rows("additionalDisks"))
    if len(rows) > ADDITIONAL_DISKS_MAX:
        text = f"a list of at most {ADDITIONAL_DISKS_MAX} disks"
        reader.reject("additionalDisks", f"{len(rows)} disks", text)
    for number, (path, row) in enumerate(rows):
        below = SpecReader(row)
        disk = DesiredDisk(
            machine_names.additional_disk(name, number),
            below.quantity("size"),
            below.text("storageClass", _STORAGE_CLASS),
            f"spec.{path}.size",
            f"spec.{path}.storageClass",
        )
        for problem in below.problems:
            field = f"spec.{path}.{problem.field.removeprefix('spec.')}"
            reader.problems.append(dataclasses.replace(problem, field=field))
        yield disk


def _pairs(reader: SpecReader, field: str) -> tuple[tuple[str, str], ...]:
    """Return labels or annotations; some keys are not for users."""
    words = reader.words(field)
    for key in words:
        if key in _OWN_KEYS or RESERVED in key:
            text = f"without reserved keys such as {RESERVED} and those of ownership"
            reader.reject(field, key, text)
    return tuple(sorted(words.items()))
