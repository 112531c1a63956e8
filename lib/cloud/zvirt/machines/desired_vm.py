"""What a machine object asks of the engine, parsed. Pure.

Source: deckhouse modules/030-cloud-provider-zvirt, ZvirtMachine (fields, defaults);
ovirt-engine-api-model, Vm.
"""

import dataclasses
import uuid
from collections.abc import Iterator, Mapping

from lib.cloud import provider_id
from lib.cloud.machines import Bootstrap, Facts, Problems, Reason, Spec
from lib.cloud.steps import Problem
from lib.cloud.support.spec_fields import SpecFields
from lib.process import config

MEMORY_MIB = 8192
ROOT_DISK_GIB = 20
NIC = "nic1"
NICS_MAX = 28
"""Source: ovirt-engine, PCI devices of a VM."""
_UUID = "a UUID"
_SOCKETS, _CORES, _THREADS = 4, 1, 1
"""Defaults of the schema that the reference ships."""


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredNic:
    """One NIC. field: where it is in the spec."""

    name: str
    profile: str
    field: str


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredVm:
    """The desired state. cluster: ID of the engine cluster; empty: not known.

    domain: ID of the storage domain of the boot disk; empty: that of the template.
    vm_id: as recorded; empty: none.
    """

    name: str
    cluster: str
    template: str
    sockets: int
    cores: int
    threads: int
    memory_mib: int
    disk_gib: int
    nics: tuple[DesiredNic, ...]
    domain: str
    is_clone: bool
    dns_servers: tuple[str, ...]
    vm_id: str
    bootstrap: Bootstrap | None

    @property
    def is_recorded(self) -> bool:
        """Report whether the machine object has the ID of a VM."""
        return bool(self.vm_id)


def of(spec: Spec | None) -> DesiredVm | None:
    """Return the parsed state of a target; None: it is to be deleted."""
    if spec is None:
        return None
    if not isinstance(spec.native, DesiredVm):
        raise TypeError("the spec is of another provider package")
    return spec.native


def parse(facts: Facts) -> Spec | Problems:
    """See the protocol."""
    reader = SpecFields(facts.spec)
    desired = _read(facts, reader)
    problems = (*_ids(facts), *reader.problems)
    if problems:
        return Problems(
            tuple(
                Problem(Reason.INVALID_SPEC, str(problem), is_fatal=True)
                for problem in problems
            )
        )
    return Spec(desired)


def _ids(facts: Facts) -> Iterator[config.FieldProblem]:
    """Yield what is wrong with IDs that are recorded or set elsewhere."""
    if not facts.cluster_id:
        expected = "the UUID of this cluster, as in the tag cluster-UUID"
        yield config.not_set("ZVIRT_VM_TAGS", expected)
    own = facts.spec.get("id")
    if own not in (None, "") and not is_uuid(own):
        yield config.FieldProblem("spec.id", str(own), _UUID)
        return
    recorded = facts.provider_id
    if not recorded:
        return
    expected = provider_id.zvirt(str(own)) if own else "zvirt:// and the UUID of the VM"
    if not _id_of(recorded) or (own and recorded != expected):
        yield config.FieldProblem("spec.providerID", recorded, expected)


def _id_of(recorded: str) -> str:
    """Return the UUID of a provider ID; empty: it is of another form."""
    scheme, _, bare = recorded.partition("://")
    return bare if scheme == provider_id.ZVIRT and is_uuid(bare) else ""


def vm_id(facts: Facts) -> str:
    """Return the recorded ID of the VM: of the provider ID, or of spec.id alone."""
    own = facts.spec.get("id")
    return _id_of(facts.provider_id) or (str(own) if is_uuid(own) else "")


def is_uuid(value: object) -> bool:
    """Report whether a value is a UUID in its usual form."""
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


def _read(facts: Facts, reader: SpecFields) -> DesiredVm:
    cluster = (facts.cluster_spec or {}).get("id")
    return DesiredVm(
        facts.machine_name,
        str(cluster) if is_uuid(cluster) else "",
        reader.text("template", "the name of a template of the engine"),
        *shape(reader),
        reader.number("rootDiskSizeGb", ROOT_DISK_GIB),
        tuple(_nics(reader)),
        _uuid(reader, "storageDomainID", is_required=False),
        _is_clone(reader),
        tuple(_words(reader, "dnsServers")),
        vm_id(facts),
        facts.bootstrap,
    )


def shape(reader: SpecFields) -> tuple[int, int, int, int]:
    """Return sockets, cores, threads, and memory in MiB."""
    return (
        reader.number("cpu.sockets", _SOCKETS),
        reader.number("cpu.cores", _CORES),
        reader.number("cpu.threads", _THREADS),
        reader.number("memory", MEMORY_MIB),
    )


def cores_and_memory(spec: Mapping[str, object]) -> tuple[int, int] | None:
    """Return CPUs and MiB of a machine spec; None: those fields are invalid."""
    reader = SpecFields(spec)
    sockets, cores, threads, memory = shape(reader)
    return None if reader.problems else (sockets * cores * threads, memory)


def _uuid(reader: SpecFields, field: str, *, is_required: bool = True) -> str:
    value = reader.at(field)
    if value in (None, "") and not is_required:
        return ""
    if is_uuid(value):
        return str(value)
    reader.reject(field, value, _UUID)
    return ""


def _is_clone(reader: SpecFields) -> bool:
    value = reader.at("clone")
    if value not in (None, True, False):
        reader.reject("clone", value, "true or false")
    return value is not False


def _words(reader: SpecFields, field: str) -> Iterator[str]:
    value = reader.at(field)
    if value is not None and not isinstance(value, list | tuple):
        reader.reject(field, value, "a list of addresses")
        return
    for number, word in enumerate(value or ()):
        if isinstance(word, str) and word:
            yield word
        else:
            reader.reject(f"{field}[{number}]", word, "an address")


def _nics(reader: SpecFields) -> Iterator[DesiredNic]:
    """Yield the NICs, that of the reference's fields first."""
    name = reader.optional("nicName", "the name of a NIC") or NIC
    profile = _uuid(reader, "vnicProfileID")
    yield DesiredNic(name, profile, "spec.vnicProfileID")
    rows, names = tuple(reader.rows("additionalNICs")), {name}
    if len(rows) >= NICS_MAX:
        text = f"a list of at most {NICS_MAX - 1} NICs"
        reader.reject("additionalNICs", f"{len(rows)} NICs", text)
    for path, row in rows:
        below = SpecFields(row)
        other = below.text("name", "the name of a NIC")
        if other in names:
            below.reject("name", other, "another name than those of other NICs")
        names.add(other)
        nic = DesiredNic(other, _uuid(below, "vnicProfileID"), f"spec.{path}")
        for problem in below.problems:
            field = f"spec.{path}.{problem.field.removeprefix('spec.')}"
            reader.problems.append(dataclasses.replace(problem, field=field))
        yield nic
