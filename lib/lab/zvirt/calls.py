"""One request to the API and its answer; bodies are checked here.

Source: 1.2 of the facts, and the inputs of each service in ovirt-engine-api-model. The
tables of elements are those that the model lists for an operation.
"""

import dataclasses
from collections.abc import Callable, Mapping

from lib.lab.zvirt import kinds, xml_documents
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import Entity

XML = "application/xml;charset=UTF-8"
_EXPECT = "expect"


@dataclasses.dataclass(frozen=True, slots=True)
class ApiCall:
    """One request. path: below the root of the API. headers: by lower-case name."""

    method: str
    path: str
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    body: bytes = dataclasses.field(default=b"", repr=False)
    user: str = ""

    @property
    def correlation_id(self) -> str:
        """ID that the job and the events of the request carry; may be empty."""
        return self.query.get("correlation_id", self.headers.get("correlation-id", ""))

    @property
    def blocks(self) -> bool:
        """Whether the answer comes once all tasks have ended."""
        return self.headers.get(_EXPECT, "").lower() == "201-created"

    @property
    def is_async(self) -> bool:
        """Whether the client does not wait for an action."""
        is_expected = self.headers.get(_EXPECT, "").lower() == "202-accepted"
        return is_expected or self.flag("async")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a parameter of the query that is true or false."""
        text = self.query.get(name)
        return default if text is None else text.lower() in ("true", "")


@dataclasses.dataclass(frozen=True, slots=True)
class ApiAnswer:
    """One answer. job: it is sent once this job has ended, with the entity of then."""

    status: int = 200
    body: bytes = b""
    content_type: str = XML
    location: str = ""
    job: str = ""
    entity: Entity = None


Handler = Callable[..., ApiAnswer]
"""Takes engine, call and the IDs of the path."""

_VM = frozenset(
    "bios comment console cpu cpu_profile custom_compatibility_version"
    " custom_properties delete_protected description display domain"
    " external_host_provider high_availability initialization instance_type io"
    " large_icon lease memory memory_policy migration migration_downtime"
    " multi_queues_enabled name numa_tune_mode origin os placement_policy quota"
    " rng_device serial_number small_icon soundcard_enabled sso start_paused stateless"
    " storage_error_resume_behaviour time_zone tpm_enabled tunnel_migration type usb"
    " use_latest_template_version virtio_scsi virtio_scsi_multi_queues"
    " virtio_scsi_multi_queues_enabled cluster numa_nodes payloads"
    " auto_pinning_policy".split()
)
_DISK = frozenset(
    "alias name description provisioned_size format sparse shareable"
    " wipe_after_delete propagate_errors quota disk_profile read_only sgio"
    " uses_scsi_reservation bootable interface storage_type backup content_type"
    " qcow_version".split()
)
_ATTACHMENT = frozenset(
    "active bootable interface pass_discard read_only uses_scsi_reservation"
    " logical_name disk".split()
)
_NIC = frozenset(
    "name interface mac vnic_profile linked plugged network_filter_parameters"
    " comment description network boot_protocol on_boot".split()
)
_ACTION = frozenset(
    "async force reason grace_period vm use_cloud_init use_sysprep use_ignition"
    " use_initialization pause filter volatile authorized_key".split()
)
_PROFILE = frozenset(
    "name network description comment pass_through port_mirroring custom_properties"
    " migratable qos network_filter failover".split()
)
_GROUP = frozenset(
    "name description priority positive enforcing vms_rule hosts_rule vms hosts"
    " vm_labels host_labels broken comment".split()
)


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """Elements of a request. required: paths, with alternatives after the last dot."""

    allowed: frozenset[str]
    required: tuple[str, ...] = ()


SHAPES: Mapping[tuple[str, str], Shape] = {
    ("vm", "add"): Shape(
        _VM | {"template", "disk_attachments", "tags", "permissions"},
        ("name", "cluster.id|name", "template.id|name"),
    ),
    ("vm", "update"): Shape(_VM | {"template"}),
    ("disk", "add"): Shape(
        _DISK | {"storage_domains", "storage_domain", "initial_size", "lun_storage"},
        ("provisioned_size", "format"),
    ),
    ("disk", "update"): Shape(_DISK | {"storage_domains", "storage_domain"}),
    ("disk_attachment", "add"): Shape(_ATTACHMENT, ("interface",)),
    ("disk_attachment", "update"): Shape(_ATTACHMENT),
    ("nic", "add"): Shape(_NIC, ("name",)),
    ("nic", "update"): Shape(_NIC),
    ("vnic_profile", "add"): Shape(_PROFILE, ("name", "network.id")),
    ("vnic_profile", "update"): Shape(_PROFILE),
    ("tag", "add"): Shape(frozenset({"name", "description", "parent"}), ("name",)),
    ("tag", "update"): Shape(frozenset({"name", "description", "parent"})),
    ("tag", "assign"): Shape(frozenset({"name", "description"}), ("id|name",)),
    ("affinity_group", "add"): Shape(_GROUP, ("name",)),
    ("affinity_group", "update"): Shape(_GROUP),
    ("vm", "assign"): Shape(frozenset({"name"}), ("id|name",)),
    ("job", "add"): Shape(
        frozenset({"description", "auto_cleared", "external", "status"}),
        ("description",),
    ),
    ("event", "add"): Shape(
        frozenset(
            "description severity origin custom_id flood_rate cluster data_center host"
            " storage_domain template user vm".split()
        ),
        ("description", "severity", "origin", "custom_id"),
    ),
    ("action", "start"): Shape(_ACTION),
    ("action", "stop"): Shape(_ACTION),
    ("action", "migrate"): Shape(_ACTION | {"host", "cluster"}),
    ("action", "shutdown"): Shape(_ACTION),
    ("action", "end"): Shape(_ACTION | {"succeeded"}),
    ("action", "clear"): Shape(_ACTION),
}


def read(engine: Engine, call: ApiCall, tag: str, operation: str) -> Entity:
    """Return the object of a request's body.

    Raises:
        Refused: it is malformed, an element is missing or has no meaning here.
    """
    try:
        entity, root = xml_documents.read(call.body, tag)
    except xml_documents.Malformed as error:
        engine.refuse(
            "call-malformed-body", "Request syntactically incorrect", why=error
        )
    shape = SHAPES[tag, operation]
    for name in sorted(xml_documents.elements(root) - shape.allowed):
        engine.refuse("call-element", name=name, operation=f"{tag} {operation}")
    for path, text, is_enum in xml_documents.lost(entity, root):
        if is_enum:
            engine.refuse("call-enum", "Invalid value", value=text, name=path)
        engine.refuse("call-element", name=path, operation=f"{tag} {operation}")
    _require(engine, tag, operation, entity)
    return entity


def _require(engine: Engine, tag: str, operation: str, entity: Entity) -> None:
    missing = [
        path
        for path in SHAPES[tag, operation].required
        if not _is_given(entity, path.split("."))
    ]
    if missing:
        title = kinds.KINDS[tag].title if tag in kinds.KINDS else tag.title()
        engine.refuse(
            "call-incomplete",
            "Incomplete parameters",
            type=title,
            names=", ".join(missing),
            operation=operation,
        )


def _is_given(entity: Entity, names: list[str]) -> bool:
    if entity is None:
        return False
    if len(names) > 1:
        return _is_given(getattr(entity, names[0], None), names[1:])
    return any(getattr(entity, name, None) is not None for name in names[0].split("|"))
