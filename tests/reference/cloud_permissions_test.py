"""cloud-permissions.md has a row for each call to OpenStack, and no other."""

import ast

import pytest

from tests.reference import cloud_calls, cloud_permissions, generate, sheets

RAW = {
    # The doctor: auth-url, endpoints, quotas; a token, and version documents.
    "lib/cloud/openstack/checkup.py": 6,
    # What the declarations are sent by; the token's project.
    "lib/cloud/openstack/http/client.py": 3,
    # Version documents.
    "lib/cloud/openstack/http/endpoints.py": 2,
}
"""Calls other than by declarations: rows of the section Keystone, and of quotas."""


def test_each_call_has_a_row() -> None:
    """Prints call, operation and state; a missing and a surplus row fail."""
    calls = {cloud_permissions.key(call) for call in cloud_calls.calls()}
    rows = cloud_permissions.PERMISSIONS.keys()
    for service, call, operation in sorted(calls | rows):
        state = "" if (service, call, operation) in rows else "MISSING"
        print(f"{service} {call} | {operation} {state}")
    print(f"{len(calls)} calls, {len(rows)} rows")
    assert calls == rows
    assert len(calls) >= 70


def test_nothing_else_is_sent() -> None:
    """No file has a way around the declarations that the table is compared with."""
    assert cloud_calls.raw() == RAW


def test_each_row_is_complete() -> None:
    """Role, purpose and components; a call without a rule requires no role."""
    users = cloud_permissions.components(cloud_calls.calls())
    for key, permission in cloud_permissions.PERMISSIONS.items():
        assert permission.role in cloud_permissions.ROLES, key
        assert permission.purpose.endswith("."), key
        assert permission.rules or permission.role == "any", key
        assert users[key], key


def test_writes_of_mooring_exist() -> None:
    """And what it does not delete by is not listed for it."""
    users = cloud_permissions.components(cloud_calls.calls())
    written = {
        operation
        for (_, call, operation), names in users.items()
        if cloud_permissions.TOOL in names and not call.startswith("GET")
    }
    assert written == cloud_permissions.OF_TOOL


def test_admin_is_explained() -> None:
    """A row that requires more than member states what happens without it."""
    rows = [
        permission
        for permission in cloud_permissions.PERMISSIONS.values()
        if permission.role in ("manager", "admin")
    ]
    assert rows
    assert all("Without it" in permission.purpose for permission in rows)


def test_a_new_call_is_noticed() -> None:
    path = "lib/cloud/openstack/catalog/lists.py"
    code = """
def _get(self, path, operation, resource=""):
    return client.Get(COMPUTE, path, operation, (), resource)
def hosts(self, host):
    return self._get(f"os-hypervisors/{quoted(host)}", "get hypervisor", host)
def limits(self):
    path = "limits"
    return self._get(path, operation="get limits")
"""
    calls = set(cloud_calls.declared(path, ast.parse(code)))
    place = "catalog/lists.py"
    assert calls == {
        cloud_calls.Call(
            "compute", "GET", "os-hypervisors/{}", "get hypervisor", place
        ),
        cloud_calls.Call("compute", "GET", "limits", "get limits", place),
    }
    keys = {cloud_permissions.key(call) for call in calls}
    assert keys.isdisjoint(cloud_permissions.PERMISSIONS)


def test_a_call_that_is_not_resolved_is_noticed() -> None:
    path = "lib/cloud/openstack/catalog/lists.py"
    tree = ast.parse("client.Get(COMPUTE, PATHS['x'], 'get hypervisor')")
    with pytest.raises(ValueError, match=r"PATHS\['x'\] is not resolved"):
        list(cloud_calls.declared(path, tree))


def test_the_page_has_a_row_for_each_call() -> None:
    """Prints the rows of each service."""
    page = (generate.FOLDER / "cloud-permissions.md").read_text()
    for service, title in cloud_permissions.TITLES.items():
        section = page.partition(f"<!-- table: {title} -->")[2].partition("<!-- end")[0]
        rows = [row for row in cloud_permissions.PERMISSIONS if row[0] == service]
        print(f"{title}: {len(rows)} rows")
        assert len(sheets.names(section)) == len(rows)
