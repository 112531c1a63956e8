"""Writes of one kind of object of Cluster API: patches by one field manager."""

from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

import msgspec

from lib.kube import client, objects, resources, store
from lib.machines import status
from lib.process import decoding

WRITE_TIMEOUT_S = 10.0
T = TypeVar("T", bound=objects.HasMetadata)


class ObjectWriter(Generic[T]):
    """Patches objects, and notes each write in the watched store.

    field_manager: of all writes. decode_type: of the store's objects.
    """

    def __init__(
        self,
        api: client.Api,
        kept: store.Store[T],
        resource: resources.Resource,
        field_manager: str,
        decode_type: type[T],
    ) -> None:
        self._api = api
        self._kept = kept
        self._resource = resource
        self._field_manager = field_manager
        self._type = decode_type

    def merge(
        self,
        about: objects.ObjectMeta,
        body: Mapping[str, object],
        subresource: str | None = None,
    ) -> T:
        """Send a merge patch; return the object as it is now.

        Raises:
            KubeError: it was rejected, or the outcome is unknown.
        """
        return self._send(about, body, client.MERGE_PATCH, subresource)

    def apply_status(
        self,
        about: objects.ObjectMeta,
        document: Mapping[str, object],
        generation: int,
        removed: Collection[str] = (),
    ) -> T:
        """Apply all fields of the status that this program owns; return the object.

        generation: for which the conditions hold. removed: fields of others, which are
        removed first.

        Raises:
            KubeError: it was rejected, or the outcome is unknown.
        """
        if removed:
            gone: Mapping[str, object] = dict.fromkeys(removed)
            self.merge(
                about, {"metadata": {"uid": about.uid}, "status": gone}, "status"
            )
        body = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": {
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
            "status": status.with_generation(document, generation),
        }
        return self._send(about, body, client.APPLY_PATCH, "status")

    def _send(
        self,
        about: objects.ObjectMeta,
        body: Mapping[str, object],
        content_type: str,
        subresource: str | None,
    ) -> T:
        query = {"fieldManager": self._field_manager}
        if content_type == client.APPLY_PATCH:
            query["force"] = "true"
        answer = self._api.patch(
            self._resource,
            about.name,
            msgspec.json.encode(body),
            about.namespace,
            subresource=subresource,
            content_type=content_type,
            timeout_s=WRITE_TIMEOUT_S,
            query=query,
        )
        now = decoding.decode(answer, self._type)
        self._kept.note_write(now.metadata.key, now.metadata.resource_version)
        return now


def observed_generation(
    before: objects.ObjectMeta, latest: objects.ObjectMeta, spec_writes: int
) -> int:
    """Return the generation for which a reconciliation may report conditions.

    before: the object that was decided upon. latest: after our own writes, of which
    spec_writes changed the spec; a change by another client is not observed yet.
    """
    if latest.generation == before.generation + spec_writes:
        return latest.generation
    return before.generation


def with_finalizer(about: objects.ObjectMeta, finalizer: str) -> Mapping[str, object]:
    """Return the merge patch that adds a finalizer to this version of an object."""
    return _finalizers(about, [*about.finalizers, finalizer])


def without_finalizer(
    about: objects.ObjectMeta, finalizer: str
) -> Mapping[str, object]:
    """Return the merge patch that removes a finalizer of this version of an object."""
    return _finalizers(about, [name for name in about.finalizers if name != finalizer])


def _finalizers(about: objects.ObjectMeta, names: list[str]) -> Mapping[str, object]:
    return {
        "metadata": {
            "uid": about.uid,
            "resourceVersion": about.resource_version,
            "finalizers": names,
        }
    }
