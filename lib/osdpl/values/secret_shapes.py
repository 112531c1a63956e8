"""Secrets with credentials: their names and fields, as the reference writes them.

Every key holds text; objects are JSON. A Secret of the reference is read as it is and
fields are generated only where they are missing.
"""

import dataclasses
from collections.abc import Collection

ADMIN = "openstack-admin-users"
GALERA = "generated-galera-passwords"
GUEST = "generated-rabbitmq-password"
OWN = "generated-osdpl-controller-secrets"
"""Secrets that the reference does not have: kept apart so that it can be rolled back
to (it refuses unknown keys)."""

PAIR_SUFFIX = "-1"
"""Suffix of the second Secret of a pair; the active one has the higher priority."""
PRIORITY_ANNOTATION = "openstack.lcm.mirantis.com/secret_priority"

USERS = {
    "identity": "keystone",
    "image": "glance",
    "placement": "placement",
    "networking": "neutron",
    "compute": "nova",
    "dashboard": "horizon",
}
"""Prefix of the user names by service; only these services have such a Secret."""

ACCOUNTS = {
    "identity": ("keystone", "osctl", "test"),
    "image": ("glance", "test"),
    "placement": ("placement", "test"),
    "networking": ("neutron", "nova", "placement", "designate", "ironic", "test"),
    "compute": (
        "nova",
        "service",
        "neutron",
        "ironic",
        "placement",
        "cinder",
        "test",
    ),
    "dashboard": ("horizon", "test"),
}
"""Accounts of the Identity service by service."""


@dataclasses.dataclass(frozen=True, slots=True)
class Password:
    """Random password."""

    length: int = 32


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """User name and password; the name is fixed or has a random suffix."""

    prefix: str
    length: int = 16
    is_fixed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Accounts:
    """Accounts by key."""

    accounts: tuple[tuple[str, Account], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class KeyPart:
    """Public or private part of an SSH key; both parts are generated together."""

    is_private: bool


Format = Password | Account | Accounts | KeyPart


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Secret with credentials; has_pair: a second one may hold the active ones."""

    name: str
    fields: tuple[tuple[str, Format], ...]
    has_pair: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the Secrets that are read."""
        return (self.name, self.name + PAIR_SUFFIX) if self.has_pair else (self.name,)


def service_secret(service: str) -> str:
    """Return the name of the Secret with the passwords of a service."""
    return f"generated-{service}-passwords"


def ssh_secret(user: str) -> str:
    """Return the name of the Secret with the SSH key of a program."""
    return f"generated-{user}-ssh-creds"


def of_service(service: str) -> tuple[str, ...]:
    """Return the names of the Secrets that only one service uses."""
    name = service_secret(service)
    names = (name, name + PAIR_SUFFIX) if service in USERS else ()
    own = {"database": GALERA, "messaging": GUEST, "compute": ssh_secret("nova")}
    return (*names, own[service]) if service in own else names


def users_of(name: str) -> tuple[str, ...]:
    """Return the services whose installed releases have the passwords of a Secret.

    That of `OWN` may be generated later: the reference does not have it.
    """
    if name == ADMIN:
        return ("database", "messaging", "identity")
    services = (*USERS, "database", "messaging")
    return tuple(service for service in services if name in of_service(service))


def required(services: Collection[str]) -> tuple[Shape, ...]:
    """Return the Secrets that the releases of these services need."""
    shapes = [_admin(), _galera(), _guest(), _own()]
    shapes += [_service(service) for service in USERS if service in services]
    if "compute" in services:
        fields = (("public", KeyPart(False)), ("private", KeyPart(True)))
        shapes.append(Shape(name=ssh_secret("nova"), fields=fields))
    return tuple(shapes)


def _admin() -> Shape:
    fields = (
        ("database", Account("root", is_fixed=True)),
        ("messaging", Account("rabbitmq", is_fixed=True)),
        ("identity", Account("admin")),
    )
    return Shape(name=ADMIN, fields=fields, has_pair=True)


def _galera() -> Shape:
    fields = (
        ("sst", Account("sst", 3)),
        ("exporter", Account("exporter", 8)),
        ("audit", Account("audit", 8)),
        ("backup", Account("backup", 8)),
        ("openssl_kek", Password(64)),
    )
    return Shape(name=GALERA, fields=fields)


def _guest() -> Shape:
    return Shape(name=GUEST, fields=(("password", Password()),))


def _own() -> Shape:
    fields = (
        ("rabbitmq_erlang_cookie", Password()),
        ("glance_temp_url_key", Password()),
    )
    return Shape(name=OWN, fields=fields)


def _service(service: str) -> Shape:
    user = Account(USERS[service])
    accounts = tuple((name, Account(name, 32)) for name in ACCOUNTS[service])
    fields: list[tuple[str, Format]] = [
        ("database", Accounts((("user", user),))),
        ("messaging", Accounts((("user", user),))),
        ("notifications", Accounts((("user", user),))),
        ("identity", Accounts(accounts)),
        ("memcached", Password(16)),
    ]
    if service == "dashboard":
        fields.append(("secret_key", Password()))
    if service == "networking":
        fields += [("metadata_secret", Password()), ("ipsec_secret_key", Password(16))]
    return Shape(name=service_secret(service), fields=tuple(fields), has_pair=True)
