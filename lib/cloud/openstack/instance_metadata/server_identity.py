"""Which server this is: sources in the configured order, then DMI for the id only."""

import pathlib
import threading
from collections.abc import Callable, Mapping, Sequence

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
        shown = ", ".join(described.values()) or "no vendor"
        why = f"not of a server of OpenStack ({shown})" if server_id else "no UUID"
        reasons.append(f"{self._sys / dmi.PATH}: {why}")
        raise UnknownIdentity("; ".join(reasons))


_PRODUCT = "openstack"
"""Begins what Nova, or a distribution of it, writes as vendor and product.

Source: Nova virt/libvirt/driver.py (_get_guest_config_sysinfo), nova/version.py.
"""
_ASSET_TAGS = frozenset(
    {
        "huaweicloud",
        "openstack compute",
        "openstack nova",
        "opentelekomcloud",
        "samsung cloud platform",
        "sap ccloud vm",
    }
)
"""Clouds that run Nova. Owners of machines write asset tags, hence no beginnings.

Source: cloud-init DataSourceOpenStack.py (VALID_DMI_ASSET_TAGS).
"""


def _is_openstack(described: Mapping[str, str]) -> bool:
    """Report whether the firmware is that of a server of OpenStack.

    The UUID of any other machine is no ID of a server.
    """
    lower = {name: text.lower() for name, text in described.items()}
    names = (lower.get("sys_vendor", ""), lower.get("product_name", ""))
    return (
        any(name.startswith(_PRODUCT) for name in names)
        or lower.get("chassis_asset_tag") in _ASSET_TAGS
    )
