"""The ConfigMap of records: read, and written upon the version that was read."""

import msgspec

from lib.cloud import route_records
from lib.kube import client, errors, objects, resources
from lib.process import decoding
from lib.routes.model import Stored

TIMEOUT_S = 10.0


def read(api: client.Api) -> Stored:
    """Read the ConfigMap.

    Raises:
        KubeError: it could not be read; absence is no error.
    """
    try:
        body = api.read(
            resources.CONFIG_MAPS,
            route_records.NAME,
            route_records.NAMESPACE,
            timeout_s=TIMEOUT_S,
        )
    except errors.NotFound:
        return Stored()
    return _stored(body)


class Records:
    """The ConfigMap as this process knows it. For one thread at a time."""

    def __init__(self, reading: client.Api, writing: client.Api) -> None:
        self._reading = reading
        self._writing = writing
        self._known: Stored | None = None

    def read(self, *, is_fresh: bool) -> Stored:
        """Return the ConfigMap; is_fresh: as it is now.

        Raises:
            KubeError: it could not be read.
        """
        if is_fresh or self._known is None:
            self._known = read(self._reading)
        return self._known

    def write(
        self, stored: Stored, changes: tuple[tuple[str, str | None], ...]
    ) -> None:
        """Change some keys of the ConfigMap as it was read; None removes one.

        Raises:
            Conflict: others have changed it. KubeError: it was not written, or that is
            unknown.
        """
        self._known = None
        try:
            self._known = self._write(stored, dict(changes))
        except (errors.NotFound, errors.AlreadyExists) as error:
            raise errors.Conflict(
                "the ConfigMap was created or deleted by others",
                operation="write record",
                status=409,
                reason="Conflict",
            ) from error

    def _write(self, stored: Stored, changes: dict[str, str | None]) -> Stored:
        namespace, name = route_records.NAMESPACE, route_records.NAME
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


def _stored(body: bytes) -> Stored:
    config_map = decoding.decode(body, objects.ConfigMap)
    return Stored(config_map.metadata.resource_version, config_map.data or {})
