"""What must not be changed by accident is named: field, from, to, and what it does."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from lib.discovery.openstack import unsafe_changes

Configuration = Callable[[str], dict[str, Any]]

# Layout, field, from, to, the words before the effect. None: not set.
UNSAFE: list[tuple[str, str, object, object, str]] = [
    ("Standard", "layout", "Standard", "Simple", "layout: from 'Standard' to 'Simple'"),
    ("Simple", "provider.region", "a", "b", "provider.region: from 'a' to 'b'"),
    ("Simple", "provider.tenantID", "1", "2", "provider.tenantID: from '1' to '2'"),
    ("Simple", "provider.tenantID", "1", None, "provider.tenantID: from '1' to noth"),
    ("Simple", "provider.tenantName", "a", "b", "provider.tenantName: from 'a' to 'b'"),
    (
        "Standard",
        "standard.internalNetworkCIDR",
        "192.0.2.0/24",
        "192.0.2.0/25",
        "standard.internalNetworkCIDR: from '192.0.2.0/24' to '192.0.2.0/25'",
    ),
    (
        "StandardWithNoRouter",
        "standardWithNoRouter.internalNetworkCIDR",
        "192.0.2.0/24",
        "192.0.2.0/25",
        "standardWithNoRouter.internalNetworkCIDR: from '192.0.2.0/24'",
    ),
    (
        "Standard",
        "standard.externalNetworkName",
        "a",
        "b",
        "standard.externalNetworkName: from 'a' to 'b'",
    ),
    (
        "StandardWithNoRouter",
        "standardWithNoRouter.externalNetworkName",
        "a",
        "b",
        "standardWithNoRouter.externalNetworkName: from 'a' to 'b'",
    ),
    (
        "Simple",
        "simple.externalNetworkName",
        "a",
        "b",
        "simple.externalNetworkName: from 'a' to 'b'",
    ),
    (
        "SimpleWithInternalNetwork",
        "simpleWithInternalNetwork.externalNetworkName",
        "a",
        None,
        "simpleWithInternalNetwork.externalNetworkName: from 'a' to nothing",
    ),
    ("Simple", "zones", ["a", "b"], ["b"], "zones: from with 'a' to without it"),
    ("Simple", "zones", None, ["a"], "zones: from all zones to a"),
]
SAFE: list[tuple[str, str, object, object]] = [
    ("Simple", "zones", ["a"], ["b", "a"]),
    ("Simple", "zones", ["a"], None),
    ("Simple", "provider.password", "a", "b"),
    ("Simple", "provider.authURL", "https://a", "https://b"),
    ("Simple", "tags", {"a": "b"}, {}),
    ("Simple", "simple.podNetworkMode", "VXLAN", "DirectRouting"),
    ("Standard", "standard.internalNetworkSecurity", True, False),
    ("Standard", "masterNodeGroup.replicas", 1, 3),
]


def with_field(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    *parents, last = path.split(".")
    place = changed
    for name in parents:
        place = place[name]
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value
    return changed


@pytest.mark.parametrize(("layout", "path", "old", "new", "words"), UNSAFE)
def test_an_unsafe_change_is_named(  # one row
    configuration: Configuration,
    layout: str,
    path: str,
    old: object,
    new: object,
    words: str,
) -> None:
    """One change, one line, and what would happen at its end."""
    document = configuration(layout)
    before, after = with_field(document, path, old), with_field(document, path, new)
    (change,) = unsafe_changes.find(before, after)
    assert str(change).startswith(words)
    assert "would be" in change.effect
    assert unsafe_changes.find(before, before) == ()


@pytest.mark.parametrize(("layout", "path", "old", "new"), SAFE)
def test_a_safe_change_is_not(
    configuration: Configuration, layout: str, path: str, old: object, new: object
) -> None:
    """No false alarm, and no password in one."""
    document = configuration(layout)
    before, after = with_field(document, path, old), with_field(document, path, new)
    assert unsafe_changes.find(before, after) == ()


def test_going_to_another_layout_is_one_change(configuration: Configuration) -> None:
    """The settings that only one layout has are not told one by one."""
    observed = unsafe_changes.find(configuration("Standard"), configuration("Simple"))
    assert [change.field for change in observed] == ["layout"]
