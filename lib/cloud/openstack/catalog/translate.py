"""From what the services list to what discovery publishes: pure.

The published document is OpenStackCloudProviderDiscoveryData in its newest shape; every
list of it is there, if empty.

Source: deckhouse, formats of the cloud-data-discoverer of OpenStack (deckhouse.io/
v1alpha1).
"""

import dataclasses
import datetime
from collections.abc import Iterable, Mapping

import msgspec

from lib.cloud import catalog, errors
from lib.cloud.openstack.catalog import native

_GIVEN = "read the input document"
_IN_CREATION = ("creating", "downloading")
"""Source: Cinder API, "Volumes (volumes)", volume statuses."""


class _VolumeType(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    description: str = ""
    extra_specs: dict[str, str] = {}
    is_public: bool = False
    qos_specs_id: str = msgspec.field(default="", name="qosSpecID")
    is_default: bool = False


class _Flavor(msgspec.Struct, frozen=True):
    name: str
    ram: int
    vcpus: int
    disk: int


class _Image(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    id: str
    name: str
    created_at: str
    default_volume_type: str = ""


class _Document(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """In the order in which the fields are written."""

    api_version: str = "deckhouse.io/v1alpha1"
    kind: str = "OpenStackCloudProviderDiscoveryData"
    flavors: tuple[str, ...]
    additional_networks: tuple[str, ...]
    additional_security_groups: tuple[str, ...]
    default_image_name: str
    images: tuple[str, ...]
    main_network: str
    zones: tuple[str, ...]
    volume_types: tuple[_VolumeType, ...]
    server_groups: tuple[str, ...]
    flavors_details: tuple[_Flavor, ...]
    images_details: tuple[_Image, ...]


class _Instances(msgspec.Struct, frozen=True, rename="camel"):
    image_name: str = ""
    main_network: str = ""


class Given(msgspec.Struct, frozen=True):
    """The fields of the input document that are used; all others are ignored."""

    zones: tuple[str, ...] | None = None
    instances: _Instances | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Lists:
    """All that the document is made of. default_type: an id, or empty."""

    flavors: tuple[native.Flavor, ...]
    zones: tuple[str, ...]
    server_groups: tuple[native.ServerGroup, ...]
    networks: tuple[native.Named, ...]
    security_groups: tuple[native.Named, ...]
    images: tuple[native.Image, ...]
    volume_types: tuple[native.VolumeType, ...]
    default_type: str


def installer_document(document: Mapping[str, object]) -> Given:
    """Take from the input document what counts.

    Raises:
        InvalidRequest: a field that counts is of another type.
    """
    try:
        return msgspec.convert(document, Given)
    except msgspec.ValidationError as error:
        raise errors.InvalidRequest(str(error), operation=_GIVEN) from None


def instance_types(
    flavors: Iterable[native.Flavor],
) -> tuple[catalog.InstanceType, ...]:
    """Return the sizes; a flavor without a root disk counts by its ephemeral one."""
    return tuple(
        catalog.InstanceType(
            flavor.name, flavor.vcpus, flavor.ram, flavor.disk or flavor.ephemeral
        )
        for flavor in flavors
    )


def storage_types(
    types: Iterable[native.VolumeType],
) -> tuple[catalog.StorageType, ...]:
    """Return the kinds of storage."""
    return tuple(
        catalog.StorageType(volume_type.name, volume_type.id) for volume_type in types
    )


def volumes(natives: Iterable[native.Volume]) -> tuple[catalog.CatalogVolume, ...]:
    """Return the volumes; Cinder's times are UTC without saying so."""
    return tuple(
        catalog.CatalogVolume(
            volume.id,
            volume.name or "",
            _utc(volume.created_at),
            volume.status in _IN_CREATION,
        )
        for volume in natives
    )


def document(lists: Lists, by: Given) -> catalog.Document:
    """Compose the published document."""
    instances = by.instances or _Instances()
    images = _first_of_each_name(lists.images)
    whole = _Document(
        flavors=tuple(flavor.name for flavor in lists.flavors),
        additional_networks=_names(lists.networks),
        additional_security_groups=_names(lists.security_groups),
        default_image_name=instances.image_name,
        images=tuple(image.name or "" for image in images),
        main_network=instances.main_network,
        zones=lists.zones,
        volume_types=tuple(
            _volume_type(volume_type, lists.default_type)
            for volume_type in lists.volume_types
        ),
        server_groups=_names(lists.server_groups),
        flavors_details=tuple(
            _Flavor(f.name, f.ram, f.vcpus, f.disk) for f in lists.flavors
        ),
        images_details=tuple(
            _Image(
                image.id, image.name or "", image.created_at, image.volume_type or ""
            )
            for image in images
        ),
    )
    return catalog.Document(msgspec.json.encode(whole))


def _volume_type(volume_type: native.VolumeType, default: str) -> _VolumeType:
    return _VolumeType(
        id=volume_type.id,
        name=volume_type.name,
        description=volume_type.description or "",
        extra_specs=volume_type.extra_specs or {},
        is_public=volume_type.is_public,
        qos_specs_id=volume_type.qos_specs_id or "",
        is_default=volume_type.id == default,
    )


def _first_of_each_name(images: Iterable[native.Image]) -> tuple[native.Image, ...]:
    kept: dict[str, native.Image] = {}
    for image in images:
        if image.name:
            kept.setdefault(image.name, image)
    return tuple(kept.values())


def _names(things: Iterable[native.Named | native.ServerGroup]) -> tuple[str, ...]:
    """Return each name once, in order, none of them empty."""
    return tuple(dict.fromkeys(thing.name for thing in things if thing.name))


def _utc(at: datetime.datetime | None) -> datetime.datetime | None:
    if at is None or at.tzinfo is not None:
        return at
    return at.replace(tzinfo=datetime.UTC)
