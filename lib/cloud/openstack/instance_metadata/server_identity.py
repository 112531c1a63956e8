"""Which server this is: sources in the configured order, then DMI for the id only."""

import pathlib
import threading
from collections.abc import Callable, Sequence

from lib.cloud.openstack.instance_metadata import document
from lib.cloud.openstack.instance_metadata.document import InstanceMetadata
from lib.kernel import dmi

Source = Callable[[], bytes | None]
"""Returns meta_data.json, None when the source is absent; raises ValueError."""


class UnknownIdentity(Exception):
    """No source names the server. The message has each source's reason."""


class ServerIdentity:
    """The server. The first document is kept; nothing else is. Safe for threads."""

    def __init__(
        self, sources: Sequence[tuple[str, Source]], sys: pathlib.Path
    ) -> None:
        """sources: name and reader, in order. sys: the root of /sys."""
        self._sources = tuple(sources)
        self._sys = sys
        self._lock = threading.Lock()
        self._known: InstanceMetadata | None = None

    def read(self) -> InstanceMetadata:
        """Return the server; from DMI with an id only.

        Raises:
            Unknown: no source has it. It is never guessed.
        """
        with self._lock:
            if self._known is not None:
                return self._known
            identity = self._search()
            if identity.is_complete:
                self._known = identity
            return identity

    def _search(self) -> InstanceMetadata:
        reasons = []
        for name, source in self._sources:
            try:
                body = source()
                if body is not None:
                    return document.parse(body)
                reasons.append(f"{name}: not found")
            except ValueError as error:
                reasons.append(f"{name}: {error}")
        server_id = dmi.product_uuid(self._sys)
        if server_id:
            return InstanceMetadata(server_id, "", "", is_complete=False)
        reasons.append(f"{self._sys / dmi.PATH}: no UUID")
        raise UnknownIdentity("; ".join(reasons))
