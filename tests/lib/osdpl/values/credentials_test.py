"""Credentials: generated where missing, read where they exist, never shown."""

import json
from collections.abc import Mapping

import pytest

from lib.osdpl.values import (
    catalog,
    credentials,
    generating,
    graph,
    required_secrets,
    secret_shapes,
)
from lib.process import config

SERVICES = tuple(graph.RELEASES)
SHAPES = required_secrets.required(SERVICES)


def shape(name: str) -> secret_shapes.Shape:
    """Return a shape by the name of its Secret."""
    return next(shape for shape in SHAPES if shape.name == name)


def generated() -> dict[str, credentials.Stored]:
    """Return new Secrets of every shape."""
    return {
        write.name: credentials.Stored(write.data)
        for write in credentials.writes(SHAPES, {}, generating.Random())
    }


def user(username: str, password: str) -> bytes:
    """Return a user as the reference stores it."""
    return json.dumps({"username": username, "password": password}).encode()


def test_every_secret_of_the_reference_is_generated_once() -> None:
    """Secrets and keys as the reference names them (osdpl facts 3.8)."""
    service = {"database", "messaging", "notifications", "identity", "memcached"}
    expected = {
        "openstack-admin-users": {"database", "messaging", "identity"},
        "generated-galera-passwords": {
            "sst",
            "exporter",
            "audit",
            "backup",
            "openssl_kek",
        },
        "generated-rabbitmq-password": {"password"},
        "generated-identity-passwords": service,
        "generated-image-passwords": service,
        "generated-placement-passwords": service,
        "generated-networking-passwords": service
        | {"metadata_secret", "ipsec_secret_key"},
        "generated-compute-passwords": service,
        "generated-dashboard-passwords": service | {"secret_key"},
        "generated-nova-ssh-creds": {"public", "private"},
        "generated-osdpl-controller-secrets": {
            "rabbitmq_erlang_cookie",
            "glance_temp_url_key",
        },
    }
    stored = generated()

    for name, keys in expected.items():
        print(f"{name:40} {' '.join(sorted(keys))}")
        assert set(stored[name].data) == keys
    assert set(stored) == set(expected)
    assert credentials.writes(SHAPES, stored, generating.Random()) == ()


def test_passwords_are_strong_and_different() -> None:
    def passwords() -> set[str]:
        read = credentials.read(SHAPES, generated())
        return {read.database(service).password for service in catalog.USERS}

    first, second = passwords(), passwords()

    assert len(first | second) == 2 * len(catalog.USERS)
    assert all(len(password) == 32 for password in first)
    assert set("".join(first)) <= set(generating.ALPHABET)


def test_user_names() -> None:
    read = credentials.read(SHAPES, generated())

    assert read.admin("database").username == "root"
    assert read.admin("messaging").username == "rabbitmq"
    assert read.admin("identity").username.startswith("admin")
    assert len(read.admin("identity").username) == 16
    assert len(read.account("compute", "nova").username) == 32
    assert len(read.database("compute").username) == 16


def test_ssh_key_is_usable() -> None:
    from cryptography.hazmat.primitives import serialization

    data = generated()["generated-nova-ssh-creds"].data
    private = serialization.load_pem_private_key(data["private"], password=None)
    public = serialization.load_ssh_public_key(data["public"])

    assert data["private"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    pem = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert private.public_key().public_bytes(*pem) == public.public_bytes(*pem)


def test_secrets_of_the_reference_are_kept() -> None:
    """Only the accounts that the reference does not have are added."""
    identity = {
        "nova": {"username": "novaX", "password": "old"},
        "test": {"username": "testX", "password": "old"},
    }
    pair = {"user": {"username": "novaY", "password": "old"}}
    existing = {
        "database": json.dumps(pair).encode(),
        "messaging": json.dumps(pair).encode(),
        "notifications": json.dumps(pair).encode(),
        "identity": json.dumps(identity).encode(),
        "memcached": b"0123456789abcdef",
    }
    name = "generated-compute-passwords"

    added = credentials.complete(shape(name), existing, generating.Random())

    assert added is not None
    assert set(added) == {"identity"}
    completed = json.loads(added["identity"])
    assert {key: completed[key] for key in identity} == identity
    assert set(completed) == set(catalog.BY_NAME["compute"].accounts)


def test_active_secret_of_a_pair_is_read_and_completed() -> None:
    name = "openstack-admin-users"
    first = {
        "database": user("root", "one"),
        "messaging": user("rabbitmq", "one"),
        "identity": user("admin1", "one"),
    }
    second = {"database": user("root", "two"), "messaging": user("rabbitmq", "two")}
    stored = {
        name: credentials.Stored(first, 1),
        f"{name}-1": credentials.Stored(second, 2),
    }
    admin = (shape(name),)

    (write,) = credentials.writes(admin, stored, generating.Random())

    assert (write.name, write.is_new, set(write.data)) == (
        f"{name}-1",
        False,
        {"identity"},
    )
    stored[write.name] = credentials.Stored({**second, **write.data}, 2)
    assert credentials.read(admin, stored).admin("database").password == "two"
    stored[name] = credentials.Stored(first, 3)
    assert credentials.read(admin, stored).admin("database").password == "one"


MALFORMED: list[tuple[str, str, Mapping[str, bytes], str]] = [
    ("no JSON", "openstack-admin-users", {"database": b"s3cret"}, "username and"),
    ("no object", "openstack-admin-users", {"database": b'["s3cret"]'}, "username"),
    (
        "no password",
        "openstack-admin-users",
        {"database": b'{"username": "s3cret"}'},
        "password",
    ),
    (
        "no accounts",
        "generated-image-passwords",
        {"identity": b'{"glance": "s3cret"}'},
        "accounts",
    ),
    ("no text", "generated-rabbitmq-password", {"password": b"\xffs3cret"}, "UTF-8"),
    ("half a key", "generated-nova-ssh-creds", {"public": b"s3cret"}, "both keys"),
]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [row[1:] for row in MALFORMED],
    ids=[row[0] for row in MALFORMED],
)
def test_malformed_secrets_are_refused_and_not_shown(
    name: str, data: Mapping[str, bytes], expected: str
) -> None:
    stored = {name: credentials.Stored(data)}

    with pytest.raises(config.ConfigError) as caught:
        credentials.writes((shape(name),), stored, generating.Random())

    text = str(caught.value)
    assert name in text
    assert expected in text
    assert "s3cret" not in text


def test_missing_secrets_are_named() -> None:
    stored = generated()
    del stored["generated-rabbitmq-password"]
    stored["generated-osdpl-controller-secrets"] = credentials.Stored({})

    with pytest.raises(config.ConfigError) as caught:
        credentials.read(SHAPES, stored)

    text = str(caught.value)
    assert "Secret generated-rabbitmq-password" in text
    assert "key rabbitmq_erlang_cookie" in text


def test_nothing_is_printed() -> None:
    stored = generated()
    read = credentials.read(SHAPES, stored)
    password = read.admin("database").password

    shown = repr((read, read.admin("database"), stored))
    shown += repr(credentials.writes(SHAPES, {}, generating.Placeholders()))
    assert password not in shown
    assert "placeholder" not in shown


def test_only_secrets_of_the_services() -> None:
    names = {
        shape.name for shape in required_secrets.required(("database", "identity"))
    }

    assert "generated-identity-passwords" in names
    assert "generated-compute-passwords" not in names
    assert "generated-nova-ssh-creds" not in names
