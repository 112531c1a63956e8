"""What Nova, Glance, Neutron and Cinder send, as far as discovery reads it."""

import datetime

import msgspec

from lib.cloud.openstack.native import PageLink


class Flavor(msgspec.Struct, frozen=True):
    """A Nova flavor. ram: MiB; disk, ephemeral: GiB."""

    id: str
    name: str
    ram: int
    vcpus: int
    disk: int
    ephemeral: int = msgspec.field(default=0, name="OS-FLV-EXT-DATA:ephemeral")


class FlavorsPage(msgspec.Struct, frozen=True):
    """GET /flavors/detail."""

    items: tuple[Flavor, ...] = msgspec.field(name="flavors")
    links: tuple[PageLink, ...] = msgspec.field(default=(), name="flavors_links")


class ServerGroup(msgspec.Struct, frozen=True):
    """A Nova server group."""

    id: str
    name: str | None = None


class ServerGroups(msgspec.Struct, frozen=True):
    """GET /os-server-groups, which has no links to further pages."""

    items: tuple[ServerGroup, ...] = msgspec.field(name="server_groups")


class Named(msgspec.Struct, frozen=True):
    """A Neutron network or security group."""

    id: str
    name: str | None = None


class NetworksPage(msgspec.Struct, frozen=True):
    """GET /v2.0/networks."""

    items: tuple[Named, ...] = msgspec.field(name="networks")
    links: tuple[PageLink, ...] = msgspec.field(default=(), name="networks_links")


class SecurityGroupsPage(msgspec.Struct, frozen=True):
    """GET /v2.0/security-groups."""

    items: tuple[Named, ...] = msgspec.field(name="security_groups")
    links: tuple[PageLink, ...] = msgspec.field(
        default=(), name="security_groups_links"
    )


class Image(msgspec.Struct, frozen=True):
    """A Glance image. volume_type: what Cinder makes of it when asked for no type."""

    id: str
    name: str | None = None
    created_at: str = ""
    volume_type: str | None = msgspec.field(default=None, name="cinder_img_volume_type")


class ImagesPage(msgspec.Struct, frozen=True):
    """GET /v2/images; next: the path of the next page, if there is one."""

    items: tuple[Image, ...] = msgspec.field(name="images")
    next: str = ""

    @property
    def links(self) -> tuple[PageLink, ...]:
        """The next page in the form in which the other services tell it."""
        return (PageLink("next", self.next),) if self.next else ()


class VolumeType(msgspec.Struct, frozen=True):
    """A Cinder volume type."""

    id: str
    name: str
    description: str | None = None
    extra_specs: dict[str, str] | None = None
    is_public: bool = False
    qos_specs_id: str | None = None


class VolumeTypesPage(msgspec.Struct, frozen=True):
    """GET /v3/types."""

    items: tuple[VolumeType, ...] = msgspec.field(name="volume_types")
    links: tuple[PageLink, ...] = msgspec.field(default=(), name="volume_type_links")


class VolumeTypeId(msgspec.Struct, frozen=True):
    """A volume type of which only the id matters."""

    id: str = ""


class VolumeTypeAnswer(msgspec.Struct, frozen=True):
    """GET /v3/types/default."""

    volume_type: VolumeTypeId


class Volume(msgspec.Struct, frozen=True):
    """A Cinder volume. created_at: UTC, without a zone."""

    id: str
    name: str | None = None
    created_at: datetime.datetime | None = None
    status: str = ""
    metadata: dict[str, str] = {}


class VolumesPage(msgspec.Struct, frozen=True):
    """GET /v3/volumes/detail."""

    items: tuple[Volume, ...] = msgspec.field(name="volumes")
    links: tuple[PageLink, ...] = msgspec.field(default=(), name="volumes_links")
