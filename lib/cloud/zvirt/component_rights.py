"""What components need: permits in the engine, and the rights of zvirt-ccm.

docs/zvirt.md lists the permits.
"""

import pathlib
from collections.abc import Mapping

MANAGER = "zvirt-ccm"
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    MANAGER: ("login",),
    "csi-controller": (
        "login",
        "create_disk",
        "attach_disk",
        "edit_disk_properties",
        "delete_disk",
        "configure_vm_storage",
    ),
    "capz-controller-manager": (
        "login",
        "create_vm",
        "edit_vm_properties",
        "delete_vm",
        "vm_basic_operations",
        "configure_vm_network",
    ),
    "cloud-data-discoverer": ("login",),
}
"""Permits by component. Source: ovirt-engine-api-model, Permit; ActionGroup."""


def manifest() -> str:
    """Return the manifest of the rights of zvirt-ccm in its own cluster."""
    folder = pathlib.Path(__file__).parent / "manifests"
    return (folder / f"{MANAGER}.yaml").read_text()
