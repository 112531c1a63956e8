"""Secrets with credentials: their names and fields, as the reference writes them.

Every key holds text; objects are JSON. A Secret of the reference is read as it is and
fields are generated only where they are missing.
"""

import dataclasses

ADMIN = "openstack-admin-users"
GALERA = "generated-galera-passwords"
GUEST = "generated-rabbitmq-password"
OWN = "generated-osdpl-controller-secrets"
"""Secrets that the reference does not have: kept apart so that it can be rolled back
to (it refuses unknown keys)."""

PAIR_SUFFIX = "-1"
"""Suffix of the second Secret of a pair; the active one has the higher priority."""
PRIORITY_ANNOTATION = "openstack.lcm.mirantis.com/secret_priority"


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
