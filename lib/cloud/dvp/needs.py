"""Rights that the components need: in the parent, and those of dvp-ccm in its cluster.

docs/dvp.md lists those in the parent.
"""

import dataclasses
import pathlib
from collections.abc import Mapping

from lib.cloud.dvp import kinds
from lib.kube import resources
from lib.kube.resources import Resource

MANAGER = "dvp-ccm"
_FOLLOW = ("list", "watch")
_READ = ("get", "list", "watch")
_DELETE_MANY = "deletecollection"
_ALL = (*_READ, "create", "patch", "delete")


@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    """Verbs of one kind. is_optional: only where the parent serves the kind."""

    resource: Resource
    verbs: tuple[str, ...]
    is_optional: bool = False


COMPONENTS: Mapping[str, tuple[Need, ...]] = {
    MANAGER: (
        Need(kinds.VIRTUAL_MACHINES.resource, (*_READ, "patch")),
        Need(resources.SERVICES, _ALL),
        Need(kinds.HEALTHCHECKED_SERVICES.resource, _ALL, is_optional=True),
    ),
    "csi-controller": (
        Need(kinds.VIRTUAL_MACHINES.resource, ("list", "watch")),
        Need(kinds.VIRTUAL_DISKS.resource, _ALL),
        Need(kinds.DISK_ATTACHMENTS.resource, _ALL),
    ),
    "capdvp": (
        Need(kinds.VIRTUAL_MACHINES.resource, _ALL),
        Need(kinds.VIRTUAL_DISKS.resource, (*_ALL, _DELETE_MANY)),
        Need(resources.SECRETS, _ALL),
        Need(
            kinds.DISK_ATTACHMENTS.resource, ("list", "watch", "delete", _DELETE_MANY)
        ),
        Need(kinds.VIRTUAL_IMAGES.resource, _FOLLOW),
        Need(kinds.DISK_SNAPSHOTS.resource, _FOLLOW),
        Need(kinds.MACHINE_CLASSES.resource, _FOLLOW),
        Need(kinds.CLUSTER_IMAGES.resource, _FOLLOW),
        Need(resources.STORAGE_CLASSES, _FOLLOW),
    ),
    "cloud-data-discoverer": (
        Need(kinds.VIRTUAL_DISKS.resource, ("list",)),
        Need(resources.STORAGE_CLASSES, ("get", "list")),
    ),
}
"""By component. Kinds without a namespace need a ClusterRole."""


def manifest() -> str:
    """Return the manifest of the rights of dvp-ccm in its own cluster."""
    folder = pathlib.Path(__file__).parent / "manifests"
    return (folder / f"{MANAGER}.yaml").read_text()
