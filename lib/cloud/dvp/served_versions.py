"""Requests for kinds of which the platform serves several versions.

VirtualMachineClass is v1alpha3; platforms before it serve v1alpha2, which newer ones
call deprecated. Nothing that is read differs. Source: deckhouse/virtualization
crds/virtualmachineclasses.yaml.
"""

import contextlib
from collections.abc import Iterator, Mapping

from lib.cloud.dvp import kinds
from lib.kube import client, errors

_CLASSES = kinds.MACHINE_CLASSES.resource
_VERSIONS = (_CLASSES.path(), kinds.OLD_MACHINE_CLASSES.path())


class ServedVersions(client.Api):
    """Sends a request in the version that the API server serves. Safe for threads.

    It begins with the newest. Where the answer is that there is no such kind, it goes
    on with the other one, so that an update of the platform needs no restart.
    """

    def __init__(self, api: client.Api) -> None:
        self._api = api
        self._place = 0

    def request(  # noqa: PLR0913 # see Api.request
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = client.JSON,
        timeout_s: float,
    ) -> bytes:
        """See `Api.request`."""

        def send(place: int) -> bytes:
            return self._api.request(
                method,
                _path(path, place),
                query=query,
                body=body,
                content_type=content_type,
                timeout_s=timeout_s,
            )

        place = self._place
        try:
            return send(place)
        except errors.NotFound as missing:
            if missing.about or not path.startswith(_VERSIONS[0]):
                raise
        self._place = 1 - place
        return send(1 - place)

    @contextlib.contextmanager
    def stream(
        self,
        path: str,
        query: Mapping[str, str],
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> Iterator[client.WatchLines]:
        """See `Api.stream`; after a refusal the next list finds the version."""
        with self._api.stream(
            _path(path, self._place),
            query,
            connect_timeout_s=connect_timeout_s,
            read_timeout_s=read_timeout_s,
        ) as lines:
            yield lines


def _path(path: str, place: int) -> str:
    newest = _VERSIONS[0]
    if not path.startswith(newest):
        return path
    return _VERSIONS[place] + path.removeprefix(newest)
