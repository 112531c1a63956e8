"""Reads what the firmware of a machine reports: its UUID, and what it is."""

import contextlib
import pathlib
import re
from collections.abc import Mapping

PATH = "class/dmi/id/product_uuid"
"""Below /sys. Source: Linux Documentation/ABI/testing/sysfs-firmware-dmi-tables."""
DESCRIPTIONS = ("sys_vendor", "product_name", "chassis_asset_tag")
"""Beside PATH: vendor and product in words, and what an owner may write."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NIL = "00000000-0000-0000-0000-000000000000"


def product_uuid(sys: pathlib.Path) -> str:
    """Return the UUID in lower case, empty for none. sys: the root of /sys.

    Source: SMBIOS 3.7, 7.2.1; all zeros or all ones mean "not set".
    """
    try:
        text = (sys / PATH).read_text().strip().lower()
    except OSError:
        return ""
    is_set = text not in (_NIL, _NIL.replace("0", "f"))
    return text if _UUID.fullmatch(text) and is_set else ""


def descriptions(sys: pathlib.Path) -> Mapping[str, str]:
    """Return how vendor and product are described, by DESCRIPTIONS; no empty texts."""
    folder = (sys / PATH).parent
    texts = {}
    for name in DESCRIPTIONS:
        with contextlib.suppress(OSError):
            texts[name] = (folder / name).read_text(errors="replace").strip()
    return {name: text for name, text in texts.items() if text}
