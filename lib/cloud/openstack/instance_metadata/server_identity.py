"""Which server this is: sources in the configured order, then DMI for the id only."""

import pathlib
import threading
from collections.abc import Callable, Iterable, Sequence

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
        described = dmi.descriptions(self._sys)
        if server_id and _is_openstack(described):
            return InstanceMetadata(server_id, "", "", is_complete=False)
        shown = ", ".join(described) or "no vendor"
        why = f"not of a server of OpenStack ({shown})" if server_id else "no UUID"
        reasons.append(f"{self._sys / dmi.PATH}: {why}")
        raise UnknownIdentity("; ".join(reasons))


_PRODUCTS = ("openstack", "opentelekomcloud", "huaweicloud", "sap ccloud vm")
"""Begin what Nova, or a cloud that runs it, writes into the firmware of its servers.

Source: Nova virt/libvirt/driver.py (_get_guest_config_sysinfo), nova/version.py;
cloud-init DataSourceOpenStack.py (VALID_DMI_PRODUCT_NAMES, VALID_DMI_ASSET_TAGS).
"""


def _is_openstack(described: Iterable[str]) -> bool:
    """Report whether the firmware is that of a server of OpenStack.

    The UUID of any other machine is no ID of a server.
    """
    return any(text.lower().startswith(_PRODUCTS) for text in described)
