"""The reads of this package: whole lists, searches of a few VMs, and names."""

from collections.abc import Collection

from lib.cloud.zvirt import api_paths, client, searching
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances.translate import Place, PlaceNames

VMS = "vms"
CLUSTERS = "clusters"
IDS = 100
NAMES = 50
"""VMs of one search, at most."""
FOLLOW = ("nics", "reported_devices")
"""What addresses are read from."""


def pages(number: int) -> int:
    """Return the requests of a list of some VMs: a full page is followed by one."""
    return number // client.PAGE + 1


def searches(ids: Collection[str], names: Collection[str]) -> tuple[str, ...]:
    """Return the searches for VMs by ID and by name."""
    by_id = searching.either([f"id={id_}" for id_ in sorted(ids)], IDS)
    quoted = [f"name={api_paths.quoted(name)}" for name in sorted(names)]
    return (*by_id, *searching.either(quoted, NAMES))


def names(access: client.EngineClient) -> PlaceNames:
    """Return the names of clusters, their data centers, and templates.

    Raises:
        CloudError: they are not known.
    """
    clusters = access.list_all(CLUSTERS, follow=("data_center",))
    templates = access.list_all("templates")
    return PlaceNames(
        {item.id: _place(item) for item in clusters},
        {item.id: str(item.entity.name or "") for item in templates},
    )


def _place(item: Item) -> Place:
    center = item.entity.data_center
    name = str(item.entity.name or "")
    if center is None:
        return Place(name, "", "")
    return Place(name, str(center.id or ""), str(center.name or ""))
