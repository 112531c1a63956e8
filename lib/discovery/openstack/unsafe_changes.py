"""Detects changes of a cluster configuration that destroy resources. Pure."""

from collections.abc import Iterator, Mapping

from lib.discovery.unsafe_change import UnsafeChange, at, shown

_RECREATED = "all resources would be recreated, without the data of the cluster"
_ELSEWHERE = "all resources would be created elsewhere; existing ones would be orphaned"
_SUBNET = "the subnet would be recreated, and each instance with a port in it, too"
_EXTERNAL = "ports, gateway and floating IPs of the external network would be recreated"
_ZONE = "the instances and volumes of the zone would be deleted"

_BLOCKS = ("standard", "standardWithNoRouter", "simple", "simpleWithInternalNetwork")
_RULES: Mapping[str, str] = {
    "layout": _RECREATED,
    "provider.region": _ELSEWHERE,
    "provider.tenantID": _ELSEWHERE,
    # The reference checks the ID only; another name is another project as well.
    "provider.tenantName": _ELSEWHERE,
    **{f"{block}.internalNetworkCIDR": _SUBNET for block in _BLOCKS[:2]},
    **{f"{block}.externalNetworkName": _EXTERNAL for block in _BLOCKS},
}
"""Effect of a change, by field.

Source: Deckhouse, cloud-provider-openstack, OpenStackClusterConfiguration, fields
labelled as unsafe to change.
"""

Document = Mapping[str, object]


def find(before: Document, after: Document) -> tuple[UnsafeChange, ...]:
    """Return the changes between two configurations that are unsafe.

    Both are OpenStackClusterConfiguration documents that hold to their schema. Settings
    of a layout that only one of them has are no change of their own.
    """
    return (*_fields(before, after), *_zones(before, after))


def _fields(before: Document, after: Document) -> Iterator[UnsafeChange]:
    for field, effect in _RULES.items():
        block = field.split(".")[0]
        if block in _BLOCKS and (block not in before or block not in after):
            continue
        old, new = at(before, field), at(after, field)
        if old != new:
            yield UnsafeChange(field, shown(old), shown(new), effect)


def _zones(before: Document, after: Document) -> Iterator[UnsafeChange]:
    old, new = before.get("zones"), after.get("zones")
    if not isinstance(new, list):
        return
    if not isinstance(old, list):
        kept = ", ".join(map(str, new))
        yield UnsafeChange("zones", "all zones", kept, _ZONE + "s removed")
        return
    for zone in old:
        if zone not in new:
            yield UnsafeChange("zones", f"with {zone!r}", "without it", _ZONE)
