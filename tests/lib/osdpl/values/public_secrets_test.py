"""Public defaults in rendered Secrets are found, whatever form they have."""

import base64
from typing import Any

import pytest

from lib.osdpl.values import public_secrets


def secret(name: str, **data: str) -> dict[str, Any]:
    """Return a Secret."""
    encoded = {
        key: base64.b64encode(text.encode()).decode() for key, text in data.items()
    }
    return {"kind": "Secret", "metadata": {"name": name}, "data": encoded}


DEFAULTS = [
    secret("admin", OS_USERNAME="admin", OS_PASSWORD="password"),
    secret("db", DB_CONNECTION="mysql+pymysql://root:password@mariadb:3306/"),
    secret(
        "etc", conf="[neutron]\nmetadata_proxy_shared_secret = public\ndebug = false\n"
    ),
    secret(
        "horizon", settings="SECRET_KEY='9aee62c0-5253'\ncan_set_password: False,\n"
    ),
    secret("bus", erlang_cookie="openstack-cookie"),
]

PUBLIC = [
    ("same place", secret("admin", OS_PASSWORD="password")),
    ("another place", secret("other", TOKEN="openstack-cookie")),
    ("URL", secret("db", DB_CONNECTION="mysql://x:password@mariadb/x")),
    ("file", secret("etc", conf="shared_secret=public\n")),
    ("code", secret("horizon", settings="SECRET_KEY='9aee62c0-5253'\n")),
    (
        "stringData",
        {
            "kind": "Secret",
            "metadata": {"name": "x"},
            "stringData": {"PASSWORD": "password"},
        },
    ),
]


@pytest.mark.parametrize(
    "manifest", [row[1] for row in PUBLIC], ids=[row[0] for row in PUBLIC]
)
def test_public_default_is_found(manifest: dict[str, Any]) -> None:
    (finding,) = public_secrets.find([manifest], DEFAULTS)

    assert finding.object == f"Secret/{manifest['metadata']['name']}"


GOOD = [
    ("own password", secret("admin", OS_USERNAME="admin", OS_PASSWORD="kJ2x")),
    ("own URL", secret("db", DB_CONNECTION="mysql://root:kJ2x@mariadb/")),
    ("no secret", secret("etc", conf="debug = false\n")),
    ("flag", secret("horizon", settings="can_set_password: False,\n")),
    ("empty", {"kind": "Secret", "metadata": {"name": "x"}}),
    ("ConfigMap", {"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}),
]


@pytest.mark.parametrize(
    "manifest", [row[1] for row in GOOD], ids=[row[0] for row in GOOD]
)
def test_own_secrets_are_no_finding(manifest: dict[str, Any]) -> None:
    assert public_secrets.find([manifest], DEFAULTS) == ()


def test_secrets_of_default_values() -> None:
    values = {
        "endpoints": {"identity": {"auth": {"admin": {"password": "password"}}}},
        "secrets": {"oslo_db": {"password": "name-of-a-secret"}},
        "conf": {"keystone": {"token": None, "cookie": "openstack-cookie"}},
        "labels": {"api": {"node_selector_key": "openstack-control-plane"}},
        "manifests": {"secret": True},
    }
    public = public_secrets.of_values(values)
    assert public == {"password", "openstack-cookie"}
    (finding,) = public_secrets.find_texts([secret("a", PASSWORD="password")], public)
    assert finding.object == "Secret/a"
