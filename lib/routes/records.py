"""The ConfigMaps of records: read, and each written upon the version that was read."""

import dataclasses

import msgspec

from lib.cloud import route_records
from lib.kube import client, errors, objects, resources
from lib.process import decoding
from lib.routes.model import Stored, StoredPart

TIMEOUT_S = 10.0


def read(api: client.Api) -> Stored:
    """Read the ConfigMap, and its other parts where a record is split.

    Raises:
        KubeError: it could not be read; absence is no error.
    """
    first = _read(api, 0)
    if not route_records.has_parts(first.data):
        return Stored((first,))
    others = (_read(api, part) for part in range(1, route_records.PARTS))
    return Stored((first, *others))


def _read(api: client.Api, part: int) -> StoredPart:
    name, namespace = route_records.name(part), route_records.NAMESPACE
    try:
        body = api.read(resources.CONFIG_MAPS, name, namespace, timeout_s=TIMEOUT_S)
    except errors.NotFound:
        return StoredPart()
    return _stored(body)


class Records:
    """The ConfigMaps as this process knows them. For one thread at a time."""

    def __init__(self, reading: client.Api, writing: client.Api) -> None:
        self._reading = reading
        self._writing = writing
        self._known: Stored | None = None
        self._may_split = True

    def read(self, *, is_fresh: bool) -> Stored:
        """Return the ConfigMaps; is_fresh: as they are now.

        Raises:
            KubeError: one could not be read.
        """
        if is_fresh or self._known is None:
            stored = read(self._reading)
            self._known = dataclasses.replace(stored, may_split=self._may_split)
        return self._known

    def write(
        self, stored: Stored, part: int, changes: tuple[tuple[str, str | None], ...]
    ) -> Stored:
        """Change some keys of a part as it was read; None removes one.

        Return the ConfigMaps as they are now.

        Raises:
            Conflict: others have changed it. KubeError: it was not written, or that is
            unknown.
        """
        self._known = None
        if any(route_records.is_split_key(key) and text for key, text in changes):
            self._require_parts()
        try:
            answer = self._write(stored.part(part), part, dict(changes))
        except (errors.NotFound, errors.AlreadyExists) as error:
            raise errors.Conflict(
                "the ConfigMap was created or deleted by others",
                operation="write record",
                status=409,
                reason="Conflict",
            ) from error
        self._known = stored.replaced(part, answer)
        return self._known

    def _require_parts(self) -> None:
        """Check that the other parts can be read, before a record is split.

        Raises:
            Conflict: not with the Role of the chart: it is decided again without them.
        """
        try:
            _read(self._reading, 1)
        except errors.Forbidden as error:
            self._may_split = False
            raise errors.Conflict(
                f"the record stays in one ConfigMap: {error.message}",
                operation="write record",
                status=409,
                reason="Conflict",
            ) from error

    def _write(
        self, stored: StoredPart, part: int, changes: dict[str, str | None]
    ) -> StoredPart:
        namespace, name = route_records.NAMESPACE, route_records.name(part)
        if not stored.version:
            data = {key: text for key, text in changes.items() if text is not None}
            document = {"apiVersion": "v1", "kind": "ConfigMap"}
            meta = {"name": name, "namespace": namespace}
            body = msgspec.json.encode({**document, "metadata": meta, "data": data})
            answer = self._writing.create(
                resources.CONFIG_MAPS, body, namespace, timeout_s=TIMEOUT_S
            )
            return _stored(answer)
        version = {"resourceVersion": stored.version}
        answer = self._writing.patch(
            resources.CONFIG_MAPS,
            name,
            msgspec.json.encode({"metadata": version, "data": changes}),
            namespace,
            timeout_s=TIMEOUT_S,
        )
        return _stored(answer)


def _stored(body: bytes) -> StoredPart:
    config_map = decoding.decode(body, objects.ConfigMap)
    return StoredPart(config_map.metadata.resource_version, config_map.data or {})
