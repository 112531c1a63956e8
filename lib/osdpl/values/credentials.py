"""Credentials of a cloud: what is missing is generated, what exists is read."""

import dataclasses
import json
from collections.abc import Collection, Mapping
from typing import Any

from lib.osdpl.values import generating, secret_shapes
from lib.osdpl.values.secret_shapes import (
    Account,
    Accounts,
    Format,
    KeyPart,
    Password,
    Shape,
)
from lib.process import config


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """Secret as read: decoded data, and the priority of its annotation.

    is_referable: a spec may refer to it; see lib/osdpl/api/references.py.
    """

    data: Mapping[str, bytes] = dataclasses.field(repr=False)
    priority: int = 0
    is_referable: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Write:
    """Secret to create, or keys to add to an existing one."""

    name: str
    is_new: bool
    data: Mapping[str, bytes] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class User:
    """User name and password."""

    username: str
    password: str

    def values(self) -> dict[str, str]:
        """Return the user as charts read it."""
        return {"username": self.username, "password": self.password}


class Credentials:
    """Credentials by Secret and key; they are never printed."""

    def __init__(self, content: Mapping[str, Mapping[str, Any]]) -> None:
        self._content = content

    def __repr__(self) -> str:
        return "Credentials()"

    def text(self, secret: str, key: str) -> str:
        """Return a password or a key."""
        return str(self._content[secret][key])

    def user(self, secret: str, key: str, account: str | None = None) -> User:
        """Return a user name with its password."""
        node = self._content[secret][key]
        if account is not None:
            node = node[account]
        return User(node["username"], node["password"])

    def admin(self, key: str) -> User:
        """Return the administrator of the database, the bus or the Identity service."""
        return self.user(secret_shapes.ADMIN, key)

    def database(self, service: str) -> User:
        """Return the database user of a service."""
        return self.user(secret_shapes.service_secret(service), "database", "user")

    def messaging(self, service: str) -> User:
        """Return the messaging user of a service."""
        return self.user(secret_shapes.service_secret(service), "messaging", "user")

    def account(self, service: str, account: str) -> User:
        """Return an account of the Identity service."""
        return self.user(secret_shapes.service_secret(service), "identity", account)


def complete(
    shape: Shape,
    existing: Mapping[str, bytes] | None,
    generator: generating.Generator,
) -> dict[str, bytes] | None:
    """Return the keys to write so that a Secret is complete; None: it is.

    existing: data of the Secret, None when it does not exist. Values that exist are
    never replaced; of an object with missing accounts the others are kept.

    Raises:
        ConfigError: an existing value is malformed.
    """
    have = _decode(shape, existing or {})
    missing: dict[str, Any] = {}
    for key, format in shape.fields:
        if isinstance(format, KeyPart):
            continue
        value = _completed(f"{shape.name}.{key}", format, have.get(key), generator)
        if value != have.get(key):
            missing[key] = value
    missing |= _missing_key(shape, have, generator)
    if not missing:
        return None
    return {key: _encode(value) for key, value in missing.items()}


def writes(
    shapes: Collection[Shape],
    stored: Mapping[str, Stored],
    generator: generating.Generator,
) -> tuple[Write, ...]:
    """Return the Secrets to create or complete; of a pair, only the active one.

    Raises:
        ConfigError: existing values are malformed.
    """
    needed = []
    problems: list[config.FieldProblem | str] = []
    for shape in shapes:
        name = active(shape, stored)
        secret = stored.get(name)
        try:
            data = complete(shape, secret.data if secret else None, generator)
        except config.ConfigError as error:
            problems += error.problems
            continue
        if data is not None:
            needed.append(Write(name, secret is None, data))
    if problems:
        raise config.ConfigError(problems)
    return tuple(needed)


def active(shape: Shape, stored: Mapping[str, Stored]) -> str:
    """Return the name of the Secret in use: that with the highest priority."""
    present = [name for name in shape.names if name in stored]
    return max(present, key=lambda name: stored[name].priority, default=shape.name)


def read(shapes: Collection[Shape], stored: Mapping[str, Stored]) -> Credentials:
    """Return the credentials of complete Secrets, of pairs the active ones.

    Raises:
        ConfigError: Secrets or keys are missing, or values are malformed.
    """
    content: dict[str, Mapping[str, Any]] = {}
    problems: list[config.FieldProblem | str] = []
    for shape in shapes:
        name = active(shape, stored)
        if name not in stored:
            problems.append(
                config.FieldProblem(f"Secret {name}", None, "an existing Secret")
            )
            continue
        try:
            content[shape.name] = _decode(shape, stored[name].data, name)
            _require_keys(shape, content[shape.name], name)
        except config.ConfigError as error:
            problems += error.problems
    if problems:
        raise config.ConfigError(problems)
    return Credentials(content)


def _completed(
    name: str,
    format: Password | Account | Accounts,
    value: Any,
    generator: generating.Generator,
) -> Any:
    """Return a value of a format; only what is missing is generated."""
    if isinstance(format, Accounts):
        have = value or {}
        return have | {
            key: _new_account(f"{name}.{key}", account, generator)
            for key, account in format.accounts
            if key not in have
        }
    if value:
        return value
    if isinstance(format, Account):
        return _new_account(name, format, generator)
    return generator.password(name, format.length)


def _new_account(
    name: str, account: Account, generator: generating.Generator
) -> dict[str, str]:
    user = account.prefix
    if not account.is_fixed:
        user = generator.user(name, account.prefix, account.length)
    return {"username": user, "password": generator.password(f"{name}.password", 32)}


def _missing_key(
    shape: Shape, have: Mapping[str, Any], generator: generating.Generator
) -> dict[str, str]:
    """Return both parts of a new SSH key, unless the Secret has them.

    Raises:
        ConfigError: only one part exists; it is not replaced.
    """
    parts = {
        format.is_private: key
        for key, format in shape.fields
        if isinstance(format, KeyPart)
    }
    present = [key for key in parts.values() if have.get(key)]
    if len(present) == len(parts):
        return {}
    if present:
        expected = f"both keys, {' and '.join(parts.values())}, or neither"
        problem = config.FieldProblem(f"Secret {shape.name}", present[0], expected)
        raise config.ConfigError([problem])
    public, private = generator.ssh_key(shape.name)
    return {parts[False]: public, parts[True]: private}


def _require_keys(shape: Shape, content: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError if keys or accounts are missing."""
    problems = []
    for key, format in shape.fields:
        value = content.get(key)
        if not value:
            problems.append(_problem(name, key, None, "a value"))
        elif isinstance(format, Accounts):
            missing = [
                account for account, _ in format.accounts if account not in value
            ]
            problems += [
                _problem(name, f"{key}.{account}", None, "an account")
                for account in missing
            ]
    config.require(problems)


def _decode(
    shape: Shape, data: Mapping[str, bytes], name: str | None = None
) -> dict[str, Any]:
    """Return the decoded values of the fields of a Secret.

    Raises:
        ConfigError: values are malformed; the message does not show them.
    """
    decoded: dict[str, Any] = {}
    problems = []
    for key, format in shape.fields:
        if not data.get(key):
            continue
        try:
            decoded[key] = _decode_value(format, data[key])
        except ValueError as error:
            problems.append(_problem(name or shape.name, key, "malformed", str(error)))
    config.require(problems)
    return decoded


def _decode_value(format: Format, raw: bytes) -> Any:
    """Return a decoded value; raise ValueError with what is expected."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Its own message shows bytes of the value.
        raise ValueError("UTF-8 text") from None
    if not isinstance(format, Account | Accounts):
        return text
    expected = "a JSON object with username and password"
    if isinstance(format, Accounts):
        expected = "a JSON object of accounts, each with username and password"
    try:
        value = json.loads(text)
    except ValueError:
        raise ValueError(expected) from None
    if not isinstance(value, dict):
        raise ValueError(expected)
    users = value.values() if isinstance(format, Accounts) else (value,)
    if not all(_is_user(user) for user in users):
        raise ValueError(expected)
    return value


def _is_user(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    texts = (value.get("username"), value.get("password"))
    return all(isinstance(text, str) and text for text in texts)


def _encode(value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def _problem(
    secret: str, key: str, value: str | None, expected: str
) -> config.FieldProblem:
    shown = "" if value is None else f" ({value})"
    return config.FieldProblem(f"Secret {secret}, key {key}{shown}", None, expected)
