"""Secrets that the services need, derived from their records."""

from collections.abc import Collection

from lib.osdpl.values import catalog, credentials, generating
from lib.osdpl.values.secret_shapes import (
    ADMIN,
    OWN,
    PAIR_SUFFIX,
    Account,
    Accounts,
    Format,
    Password,
    Shape,
    service_secret,
)
from lib.osdpl.values.service import Service


def of_service(service: str) -> tuple[str, ...]:
    """Return the names of the Secrets that only one service uses."""
    record = catalog.BY_NAME.get(service)
    if record is None:
        return ()
    name = service_secret(service)
    names = (name, name + PAIR_SUFFIX) if record.user else ()
    return (*names, *(shape.name for shape in record.secrets))


def users_of(name: str) -> tuple[str, ...]:
    """Return the services whose installed releases have the passwords of a Secret.

    That of `OWN` may be generated later: the reference does not have it.
    """
    if name == ADMIN:
        return tuple(service.name for service in catalog.SERVICES if service.admin)
    return tuple(
        service.name for service in catalog.SERVICES if name in of_service(service.name)
    )


def required(services: Collection[str]) -> tuple[Shape, ...]:
    """Return the Secrets that the releases of these services need.

    Those of the database and the bus are needed by all: each has accounts there.
    """
    records = catalog.SERVICES
    own = tuple(field for record in records for field in record.own_passwords)
    shapes = [_admin()]
    shapes += [
        shape for record in records if not record.user for shape in record.secrets
    ]
    shapes.append(Shape(name=OWN, fields=own))
    users = [record for record in records if record.user and record.name in services]
    shapes += [_service(record) for record in users]
    shapes += [shape for record in users for shape in record.secrets]
    return tuple(shapes)


def placeholders(services: Collection[str]) -> credentials.Credentials:
    """Return placeholders derived from the names of Secrets and keys."""
    generator = generating.Placeholders()
    shapes = required(services)
    stored = {
        shape.name: credentials.Stored(
            credentials.complete(shape, None, generator) or {}
        )
        for shape in shapes
    }
    return credentials.read(shapes, stored)


def _admin() -> Shape:
    fields = tuple(
        (service.name, service.admin) for service in catalog.SERVICES if service.admin
    )
    return Shape(name=ADMIN, fields=fields, has_pair=True)


def _service(service: Service) -> Shape:
    user = Account(service.user)
    accounts = tuple((name, Account(name, 32)) for name in service.accounts)
    fields: tuple[tuple[str, Format], ...] = (
        ("database", Accounts((("user", user),))),
        ("messaging", Accounts((("user", user),))),
        ("notifications", Accounts((("user", user),))),
        ("identity", Accounts(accounts)),
        ("memcached", Password(16)),
        *service.passwords,
    )
    return Shape(name=service_secret(service.name), fields=fields, has_pair=True)
