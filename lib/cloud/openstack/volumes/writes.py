"""The writes of this room: one call each, tried once; none waits for its end."""

import urllib.parse
from collections.abc import Mapping, Sequence

from lib.cloud.openstack.http import client
from lib.cloud.openstack.http.client import Refusal, Service, Write
from lib.cloud.openstack.http.endpoints import Version
from lib.cloud.openstack.volumes import native, parameters, refusals, translate
from lib.cloud.volumes import VolumeSpec

_DESCRIPTION = "Created by OpenStack Cinder CSI driver"
"""Source: kubernetes/cloud-provider-openstack pkg/csi/cinder/openstack."""
_MOVE = "on-demand"
"""A change of type may move the volume to another back end.

Source: Cinder API v3, "Retype a volume": migration_policy."""


class Writes:
    """Changes volumes. newest: asks for at most this microversion, None: for ours."""

    def __init__(self, api: client.Client, newest: Version | None) -> None:
        self._api = api
        self._newest = newest

    def create(self, spec: VolumeSpec, deadline: float) -> native.Volume:
        """Begin to make a volume."""
        body = _creation(spec)
        call = Write(
            Service.VOLUME,
            "POST",
            "volumes",
            "create volume",
            body,
            spec.name,
            refusals.CREATE,
            self._newest,
        )
        return self._api.write_and_read(call, native.VolumeAnswer, deadline).volume

    def delete(self, volume_id: str, deadline: float) -> None:
        """Begin to delete a volume."""
        path = "volumes/" + _quoted(volume_id)
        self._send("DELETE", path, "delete volume", volume_id, deadline)

    def resize(self, volume_id: str, size_bytes: int, deadline: float) -> None:
        """Begin to grow a volume."""
        action = {"os-extend": {"new_size": size_bytes // translate.GIB}}
        self._act(volume_id, "extend volume", action, refusals.RESIZE, deadline)

    def retype(self, volume_id: str, type_name: str, deadline: float) -> None:
        """Begin to change a volume's type."""
        action = {"os-retype": {"new_type": type_name, "migration_policy": _MOVE}}
        self._act(volume_id, "retype volume", action, refusals.RETYPE, deadline)

    def roll_detaching(self, volume_id: str, deadline: float) -> None:
        """Return a volume whose detach failed to the status in-use."""
        action: dict[str, object] = {"os-roll_detaching": {}}
        self._act(volume_id, "roll detaching back", action, (), deadline)

    def release(self, attachment_id: str, volume_id: str, deadline: float) -> None:
        """Delete an attachment that Nova has no use for; Cinder refuses any other."""
        path = "attachments/" + _quoted(attachment_id)
        self._send("DELETE", path, "delete attachment", volume_id, deadline)

    def attach(self, volume_id: str, server_id: str, deadline: float) -> None:
        """Begin to attach a volume."""
        call = Write(
            Service.COMPUTE,
            "POST",
            f"servers/{_quoted(server_id)}/os-volume_attachments",
            "attach volume",
            {"volumeAttachment": {"volumeId": volume_id}},
            volume_id,
            refusals.attach(volume_id, server_id),
        )
        self._api.write(call, deadline)

    def detach(self, volume_id: str, server_id: str, deadline: float) -> None:
        """Begin to detach a volume."""
        attachments = f"servers/{_quoted(server_id)}/os-volume_attachments"
        call = Write(
            Service.COMPUTE,
            "DELETE",
            f"{attachments}/{_quoted(volume_id)}",
            "detach volume",
            resource=volume_id,
            refusals=refusals.detach(volume_id, server_id),
        )
        self._api.write(call, deadline)

    def _act(
        self,
        volume_id: str,
        operation: str,
        action: Mapping[str, object],
        table: Sequence[Refusal],
        deadline: float,
    ) -> None:
        path = f"volumes/{_quoted(volume_id)}/action"
        call = Write(
            Service.VOLUME,
            "POST",
            path,
            operation,
            action,
            volume_id,
            table,
            self._newest,
        )
        self._api.write(call, deadline)

    def _send(
        self,
        method: client.Method,
        path: str,
        operation: str,
        resource: str,
        deadline: float,
    ) -> None:
        call = Write(
            Service.VOLUME,
            method,
            path,
            operation,
            resource=resource,
            newest=self._newest,
        )
        self._api.write(call, deadline)


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _creation(spec: VolumeSpec) -> dict[str, object]:
    """Source: Cinder API v3, "Create a volume"."""
    optional = {
        "volume_type": spec.type,
        "availability_zone": parameters.placement(spec).zone,
        "source_volid": spec.source,
    }
    volume: dict[str, object] = {
        "name": spec.name,
        "size": spec.size_bytes // translate.GIB,
        "description": _DESCRIPTION,
        "metadata": dict(spec.metadata),
    }
    body: dict[str, object] = {
        "volume": volume | {key: value for key, value in optional.items() if value}
    }
    hints = {"same_host": spec.near, "different_host": spec.apart}
    if any(hints.values()):
        body["OS-SCH-HNT:scheduler_hints"] = {
            key: list(ids) for key, ids in hints.items() if ids
        }
    return body
