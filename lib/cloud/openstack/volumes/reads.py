"""The reads of this room: one volume, those of a name, all of them, and what is known
besides: messages, reservations, types, zones, quotas."""

import urllib.parse

from lib.cloud import errors
from lib.cloud.openstack import client
from lib.cloud.openstack.client import Get, Service
from lib.cloud.openstack.endpoints import Version
from lib.cloud.openstack.volumes import native

PAGE = 1000
"""Source: Cinder configuration, osapi_max_limit, default."""
_MESSAGES = (3, 3)
"""Messages. Source, both: Cinder API microversion history."""
_RESERVATIONS = (3, 27)


class Reads:
    """Reads Cinder. newest: asks for at most this microversion, None: for ours."""

    def __init__(self, api: client.Client, newest: Version | None) -> None:
        self._api = api
        self._newest = newest

    def volume(self, volume_id: str, deadline: float) -> native.Volume | None:
        """Give one volume; None when Cinder says that there is none."""
        call = self._get("volumes/" + _quoted(volume_id), "get volume", volume_id)
        try:
            return self._api.read(call, native.VolumeAnswer, deadline).volume
        except errors.NotFound:
            return None

    def named(self, name: str, deadline: float) -> tuple[native.Volume, ...]:
        """List the volumes of exactly this name; Cinder's filter ignores case."""
        call = self._get("volumes/detail", "find volumes", name, (("name", name),))
        found = self._api.items(call, PAGE, native.VolumesPage, deadline)
        return tuple(one for one in found if (one.name or "") == name)

    def volumes(self, deadline: float) -> tuple[native.Volume, ...]:
        """List all volumes of our project, each once."""
        call = self._get("volumes/detail", "list volumes")
        found = self._api.items(call, PAGE, native.VolumesPage, deadline)
        return tuple({one.id: one for one in found}.values())

    def messages(self, volume_id: str, deadline: float) -> tuple[native.Message, ...]:
        """List what Cinder told about a volume, the newest first; () where it can't."""
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

    def types(self, deadline: float) -> tuple[native.VolumeType, ...]:
        """List the volume types that we may use."""
        call = self._get("types", "list volume types")
        return self._api.items(call, PAGE, native.VolumeTypesPage, deadline)

    def default_type(self, deadline: float) -> native.VolumeType:
        """Give the type of volumes for which no type is asked for."""
        call = self._get("types/default", "get default volume type")
        return self._api.read(call, native.VolumeTypeAnswer, deadline).volume_type

    def zones(self, deadline: float) -> tuple[str, ...]:
        """List the zones that take volumes."""
        call = self._get("os-availability-zone", "list zones")
        found = self._api.read(call, native.Zones, deadline).items
        return tuple(sorted(zone.name for zone in found if zone.state.available))

    def quotas(self, deadline: float) -> native.QuotaAnswer:
        """Give our project's quotas, and how far they are used."""
        path = "os-quota-sets/" + _quoted(self._api.project_id())
        call = self._get(path, "get quotas", query=(("usage", "true"),))
        return self._api.read(call, native.QuotaAnswer, deadline)

    def can_extend_in_use(self) -> bool:
        """Say whether volumes grow while attached.

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
    """Say whether volumes of a type can be shared; None: we may not see it.

    Source: Cinder documentation, "Volume multi-attach": the extra spec multiattach.
    """
    if volume_type.extra_specs is None:
        return None
    return (volume_type.extra_specs.get("multiattach") or "").lower() == "<is> true"
