"""What Nova, Glance, Neutron and Cinder send, as far as discovery reads it."""

import datetime

import msgspec

from lib.cloud.openstack.native import PageLink, page


class Flavor(msgspec.Struct, frozen=True):
    """A Nova flavor. ram: MiB; disk, ephemeral: GiB."""

    id: str
    name: str
    ram: int
    vcpus: int
    disk: int
    ephemeral: int = msgspec.field(default=0, name="OS-FLV-EXT-DATA:ephemeral")


FlavorsPage = page("flavors", Flavor)
"""GET /flavors/detail."""


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


NetworksPage = page("networks", Named)
"""GET /v2.0/networks."""


SecurityGroupsPage = page("security_groups", Named)
"""GET /v2.0/security-groups."""


class Image(msgspec.Struct, frozen=True):
    """A Glance image. volume_type: what Cinder makes of it when asked for no type.

    min_disk: GiB. size, virtual_size: bytes; None: not known yet.
    """

    id: str
    name: str | None = None
    created_at: str = ""
    min_disk: int = 0
    size: int | None = None
    virtual_size: int | None = None
    volume_type: str | None = msgspec.field(default=None, name="cinder_img_volume_type")


class ImagesPage(msgspec.Struct, frozen=True):
    """GET /v2/images; next: the path of the next page, if there is one."""

    items: tuple[Image, ...] = msgspec.field(name="images")
    next: str = ""

    @property
    def links(self) -> tuple[PageLink, ...]:
        """The next page in the form of the other services."""
        return (PageLink("next", self.next),) if self.next else ()


class VolumeType(msgspec.Struct, frozen=True):
    """A Cinder volume type."""

    id: str
    name: str
    description: str | None = None
    extra_specs: dict[str, str] | None = None
    is_public: bool = False
    qos_specs_id: str | None = None


VolumeTypesPage = page("volume_types", VolumeType, "volume_type_links")
"""GET /v3/types."""


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


VolumesPage = page("volumes", Volume)
"""GET /v3/volumes/detail."""
