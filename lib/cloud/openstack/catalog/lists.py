"""The lists that discovery reads, each whole and in the cloud's own order."""

import json
import urllib.parse

from lib.cloud import errors
from lib.cloud.openstack import native as shared
from lib.cloud.openstack.catalog import native
from lib.cloud.openstack.http import client

PAGE = 1000
"""Source: default upper limits of Nova ([api] max_limit), Glance (api_limit_max) and
Cinder (osapi_max_limit); a service with a lower one gives shorter pages."""
CLUSTER_KEY = "cinder.csi.openstack.org/cluster"
"""Source: kubernetes/cloud-provider-openstack pkg/csi/cinder: metadata of volumes."""

_NAMES = (("fields", "id"), ("fields", "name"))

COMPUTE = client.Service.COMPUTE
NETWORK = client.Service.NETWORK
IMAGE = client.Service.IMAGE
VOLUME = client.Service.VOLUME


def flavors(api: client.Client, deadline: float) -> tuple[native.Flavor, ...]:
    """List the flavors that the project may use."""
    call = client.Get(COMPUTE, "flavors/detail", "list flavors")
    return api.items(call, PAGE, native.FlavorsPage, deadline)


def zones(api: client.Client, deadline: float) -> tuple[str, ...]:
    """List the availability zones that take servers now."""
    call = client.Get(COMPUTE, "os-availability-zone", "list zones")
    zones = api.read(call, shared.Zones, deadline).items
    return tuple(zone.name for zone in zones if zone.state.available)


def server_groups(
    api: client.Client, deadline: float
) -> tuple[native.ServerGroup, ...]:
    """List the project's server groups.

    Source: Nova API, "List Server Groups": limit and offset, no markers; the empty page
    is the only sign of the end, for a service may give fewer than asked for.
    """
    groups: list[native.ServerGroup] = []
    while True:
        query = (("limit", str(PAGE)), ("offset", str(len(groups))))
        call = client.Get(COMPUTE, "os-server-groups", "list server groups", query)
        page = api.read(call, native.ServerGroups, deadline).items
        if not page:
            return tuple(groups)
        groups.extend(page)


def networks(api: client.Client, deadline: float) -> tuple[native.Named, ...]:
    """List all networks that the project sees."""
    call = client.Get(NETWORK, "networks", "list networks", _NAMES)
    return api.items(call, PAGE, native.NetworksPage, deadline)


def security_groups(api: client.Client, deadline: float) -> tuple[native.Named, ...]:
    """List all security groups that the project sees; none where there are none.

    Source: a Neutron without the security-group extension answers 404 itself.
    """
    call = client.Get(NETWORK, "security-groups", "list security groups", _NAMES)
    try:
        return api.items(call, PAGE, native.SecurityGroupsPage, deadline)
    except errors.NotFound:
        return ()


def images(api: client.Client, deadline: float) -> tuple[native.Image, ...]:
    """List all images that the project sees, the newest first."""
    call = client.Get(IMAGE, "images", "list images")
    return api.items(call, PAGE, native.ImagesPage, deadline)


def volume_types(api: client.Client, deadline: float) -> tuple[native.VolumeType, ...]:
    """List the volume types that the project may use."""
    call = client.Get(VOLUME, "types", "list volume types")
    return api.items(call, PAGE, native.VolumeTypesPage, deadline)


def has_volume_type(api: client.Client, type_id: str, deadline: float) -> bool:
    """Report whether a volume type of this ID exists for the project.

    Raises:
        CloudError: every answer but the type itself and "not found".
    """
    path = "types/" + urllib.parse.quote(type_id, safe="")
    call = client.Get(VOLUME, path, "get volume type", resource=type_id)
    try:
        api.read(call, native.VolumeTypeAnswer, deadline)
    except errors.NotFound:
        return False
    return True


def default_volume_type(api: client.Client, deadline: float) -> str:
    """Return the id of the default volume type; empty if there is none, or a secret."""
    call = client.Get(VOLUME, "types/default", "get default volume type")
    try:
        return api.read(call, native.VolumeTypeAnswer, deadline).volume_type.id
    except (errors.NotFound, errors.Forbidden):
        return ""


def volumes(
    api: client.Client, cluster_id: str, deadline: float
) -> tuple[native.Volume, ...]:
    """List the volumes with the cluster's ownership metadata.

    Filtered again here: a Cinder that ignores this filter lists all volumes of the
    project, also those of other clusters.
    """
    query = (("metadata", json.dumps({CLUSTER_KEY: cluster_id})),)
    call = client.Get(VOLUME, "volumes/detail", "list volumes", query)
    volumes = api.items(call, PAGE, native.VolumesPage, deadline)
    return tuple(v for v in volumes if v.metadata.get(CLUSTER_KEY) == cluster_id)
