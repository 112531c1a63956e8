"""What roles grant, as one row for each object and verb."""

from collections.abc import Iterable, Mapping
from typing import Any

Right = tuple[str, str, str, str]
"""Group, resource (with its subresource), verb, and name; no name: of any object."""


def rights(roles: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Return the rights of Roles and ClusterRoles; URLs are not included."""
    return {
        (group, resource, verb, name)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("",))
    }
