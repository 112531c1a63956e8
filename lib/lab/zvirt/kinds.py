"""The types of the API that the engine serves: names, paths, links and actions. Pure.

Source: ovirt-engine-api-model, services and types; links of a VM by the engine.
"""

import dataclasses
from collections.abc import Mapping

from ovirtsdk4 import types

ROOT = "/ovirt-engine/api"
BLANK = "00000000-0000-0000-0000-000000000000"
"""ID of the Blank template and of the root tag."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """One type. tag, plural: of its XML. path: of its collection, within `parent`.

    links: collections of one object. actions: of one object.
    """

    name: str
    type: type
    plural: str
    path: str
    parent: str = ""
    links: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name of the type in messages, such as Vm."""
        return self.type.__name__


_VM_LINKS = (
    "applications",
    "hostdevices",
    "reporteddevices",
    "cdroms",
    "sessions",
    "snapshots",
    "nics",
    "watchdogs",
    "graphicsconsoles",
    "diskattachments",
    "permissions",
    "affinitylabels",
    "tags",
    "statistics",
    "numanodes",
)
_KINDS = (
    Kind(
        "vm",
        types.Vm,
        "vms",
        "vms",
        links=_VM_LINKS,
        actions=("start", "stop", "shutdown", "migrate"),
    ),
    Kind(
        "nic",
        types.Nic,
        "nics",
        "nics",
        "vm",
        ("reporteddevices", "statistics", "networkfilterparameters"),
    ),
    Kind(
        "disk_attachment",
        types.DiskAttachment,
        "disk_attachments",
        "diskattachments",
        "vm",
    ),
    Kind(
        "reported_device",
        types.ReportedDevice,
        "reported_devices",
        "reporteddevices",
        "vm",
    ),
    Kind("disk", types.Disk, "disks", "disks", links=("permissions", "statistics")),
    Kind(
        "storage_domain",
        types.StorageDomain,
        "storage_domains",
        "storagedomains",
        links=("disks", "permissions", "diskprofiles"),
    ),
    Kind(
        "template",
        types.Template,
        "templates",
        "templates",
        links=("diskattachments", "nics", "permissions", "tags", "cdroms"),
    ),
    Kind(
        "cluster",
        types.Cluster,
        "clusters",
        "clusters",
        links=("affinitygroups", "networks", "permissions", "cpuprofiles"),
    ),
    Kind(
        "data_center",
        types.DataCenter,
        "data_centers",
        "datacenters",
        links=("storagedomains", "clusters", "networks", "quotas", "permissions"),
    ),
    Kind("host", types.Host, "hosts", "hosts", links=("statistics", "permissions")),
    Kind(
        "network",
        types.Network,
        "networks",
        "networks",
        links=("vnicprofiles", "permissions"),
    ),
    Kind(
        "vnic_profile",
        types.VnicProfile,
        "vnic_profiles",
        "vnicprofiles",
        links=("permissions",),
    ),
    Kind("job", types.Job, "jobs", "jobs", links=("steps",)),
    Kind("event", types.Event, "events", "events"),
    Kind("tag", types.Tag, "tags", "tags"),
    Kind(
        "affinity_group",
        types.AffinityGroup,
        "affinity_groups",
        "affinitygroups",
        "cluster",
        links=("vms", "hosts"),
    ),
    Kind("user", types.User, "users", "users", links=("permissions", "roles", "tags")),
    Kind("role", types.Role, "roles", "roles", links=("permits",)),
    Kind("permission", types.Permission, "permissions", "permissions"),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}
BY_TYPE: Mapping[str, Kind] = {kind.type.__name__: kind for kind in _KINDS}

EMPTY_INNER: Mapping[str, str] = {
    "applications": "applications",
    "hostdevices": "host_devices",
    "cdroms": "cdroms",
    "sessions": "sessions",
    "snapshots": "snapshots",
    "watchdogs": "watchdogs",
    "graphicsconsoles": "graphics_consoles",
    "statistics": "statistics",
    "numanodes": "vm_numa_nodes",
    "networkfilterparameters": "network_filter_parameters",
    "quotas": "quotas",
    "steps": "steps",
    "permits": "permits",
}
"""Collections of objects that are empty: path to the tag of the document."""
EMPTY_TOP: Mapping[str, str] = {
    "affinitylabels": "affinity_labels",
    "bookmarks": "bookmarks",
    "cpuprofiles": "cpu_profiles",
    "diskprofiles": "disk_profiles",
    "domains": "domains",
    "groups": "groups",
    "icons": "icons",
    "instancetypes": "instance_types",
    "macpools": "mac_pools",
    "operatingsystems": "operating_systems",
    "schedulingpolicies": "scheduling_policies",
    "vmpools": "vm_pools",
}
"""The same at the root of the API; some of them are in objects, too."""
EMPTY: Mapping[str, str] = {**EMPTY_INNER, **EMPTY_TOP}


def path(kind: str, key: str, parent: str = "", parent_kind: str = "") -> str:
    """Return the path of an object. parent: ID of what it is in.

    parent_kind: where it is in another type than the usual one.
    """
    described = KINDS[kind]
    outer = parent_kind or described.parent
    if not outer:
        return f"{ROOT}/{described.path}/{key}"
    return f"{path(outer, parent)}/{described.path}/{key}"
