"""The reads of this room: one volume, those of a name, all of them, and what is known
besides: messages, reservations, servers, types, zones, quotas."""

import dataclasses
import urllib.parse

import msgspec
import structlog

from lib.cloud import errors
from lib.cloud.openstack import native as shared
from lib.cloud.openstack.http import client
from lib.cloud.openstack.http.client import Get, Service
from lib.cloud.openstack.http.endpoints import Version
from lib.cloud.openstack.volumes import native
from lib.process import decoding

PAGE = 1000
"""Source: Cinder configuration, osapi_max_limit, default."""
_MESSAGES = (3, 3)
"""Messages. Source, both: Cinder API microversion history."""
_RESERVATIONS = (3, 27)


@dataclasses.dataclass(frozen=True, slots=True)
class VolumesListing:
    """Volumes of one list. unreadable: IDs of those that can't be decoded."""

    volumes: tuple[native.Volume, ...]
    unreadable: tuple[str, ...] = ()


class VolumeReads:
    """Reads Cinder. newest: asks for at most this microversion, None: for ours."""

    def __init__(self, api: client.Client, newest: Version | None) -> None:
        self._api = api
        self._newest = newest
        self._reported: set[str] = set()
        self._log = structlog.stdlib.get_logger()

    def volume(self, volume_id: str, deadline: float) -> native.Volume | None:
        """Return one volume; None when Cinder reports that there is none."""
        call = self._get("volumes/" + _quoted(volume_id), "get volume", volume_id)
        try:
            return self._api.read(call, native.VolumeAnswer, deadline).volume
        except errors.NotFound:
            return None

    def named(self, name: str, deadline: float) -> tuple[native.Volume, ...]:
        """List the volumes of exactly this name; Cinder's filter ignores case.

        Raises:
            Unavailable: one of them can't be decoded; it may be the one of this name.
        """
        call = self._get("volumes/detail", "find volumes", name, (("name", name),))
        listing = self._decoded(call, deadline)
        if listing.unreadable:
            ids = ", ".join(listing.unreadable)
            raise errors.Unavailable(
                f"volume {ids} can't be decoded",
                operation="find volumes",
                resource=name,
            )
        return tuple(v for v in listing.volumes if (v.name or "") == name)

    def volumes(self, deadline: float) -> VolumesListing:
        """List all volumes of our project, each once."""
        return self._decoded(self._get("volumes/detail", "list volumes"), deadline)

    def _decoded(self, call: Get, deadline: float) -> VolumesListing:
        """Decode a list item by item: what can't be read affects no other volume."""
        volumes: dict[str, native.Volume] = {}
        unreadable: list[str] = []
        decoder = decoding.decoder(native.Volume)
        for item in self._api.items(call, PAGE, native.VolumesPage, deadline):
            try:
                volume = decoder.decode(item)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                unreadable.append(self._skip(item, error))
            else:
                volumes[volume.id] = volume
        return VolumesListing(tuple(volumes.values()), tuple(unreadable))

    def _skip(self, item: msgspec.Raw, error: Exception) -> str:
        """Count and log an item that can't be decoded; return its ID."""
        try:
            volume_id = decoding.decode(item, native.Name).id
        except (msgspec.DecodeError, UnicodeDecodeError):
            volume_id = "without a readable ID"
        self._api.count("decode volume", "skipped")
        if volume_id not in self._reported:
            self._reported.add(volume_id)
            self._log.warning("volume skipped", volume_id=volume_id, error=str(error))
        return volume_id

    def messages(self, volume_id: str, deadline: float) -> tuple[native.Message, ...]:
        """List Cinder's messages on a volume, newest first; () where it has none."""
        if self._version() < _MESSAGES:
            return ()
        query = (("resource_uuid", volume_id), ("sort", "created_at:desc"))
        call = self._get("messages", "list messages", volume_id, query)
        return self._api.items(call, PAGE, native.MessagesPage, deadline)

    def reservations(
        self, volume_id: str, deadline: float
    ) -> tuple[native.Reservation, ...]:
        """List a volume's attachments, unfinished ones too; () where Cinder can't."""
        if self._version() < _RESERVATIONS:
            return ()
        query = (("volume_id", volume_id),)
        call = self._get("attachments", "list attachments", volume_id, query)
        return self._api.items(call, PAGE, native.ReservationsPage, deadline)

    def has_server(self, server_id: str, deadline: float) -> bool:
        """Report whether Nova knows a server."""
        path = "servers/" + _quoted(server_id)
        call = Get(Service.COMPUTE, path, "get server", resource=server_id)
        try:
            self._api.read(call, shared.ServerAnswer, deadline)
        except errors.NotFound:
            return False
        return True

    def types(self, deadline: float) -> tuple[native.VolumeType, ...]:
        """List the volume types that we may use."""
        call = self._get("types", "list volume types")
        return self._api.items(call, PAGE, native.VolumeTypesPage, deadline)

    def default_type(self, deadline: float) -> native.VolumeType:
        """Return the type of volumes for which no type is asked for."""
        call = self._get("types/default", "get default volume type")
        return self._api.read(call, native.VolumeTypeAnswer, deadline).volume_type

    def zones(self, deadline: float) -> tuple[str, ...]:
        """List the zones that take volumes."""
        call = self._get("os-availability-zone", "list zones")
        zones = self._api.read(call, shared.Zones, deadline).items
        return tuple(sorted(zone.name for zone in zones if zone.state.available))

    def quotas(self, deadline: float) -> native.QuotaAnswer:
        """Return our project's quotas, and how far they are used."""
        path = "os-quota-sets/" + _quoted(self._api.project_id())
        call = self._get(path, "get quotas", query=(("usage", "true"),))
        return self._api.read(call, native.QuotaAnswer, deadline)

    def can_list_reservations(self) -> bool:
        """Report whether Cinder shows attachments that are not finished."""
        return self._version() >= _RESERVATIONS

    def can_extend_in_use(self) -> bool:
        """Report whether volumes grow while attached.

        Source: Cinder API microversion history, 3.42.
        """
        return self._version() >= (3, 42)

    def _version(self) -> Version:
        return self._api.microversion(Service.VOLUME, self._newest) or ()

    def _get(
        self, path: str, operation: str, resource: str = "", query: client.Query = ()
    ) -> Get:
        volume = Service.VOLUME
        return Get(volume, path, operation, query, resource, newest=self._newest)


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def has_multiattach(volume_type: native.VolumeType) -> bool | None:
    """Report whether volumes of a type can be shared; None: we may not see it.

    Source: Cinder documentation, "Volume multi-attach": the extra spec multiattach.
    """
    if volume_type.extra_specs is None:
        return None
    return (volume_type.extra_specs.get("multiattach") or "").lower() == "<is> true"
