"""Environment variables in the spec of a container, as Kubernetes stores them."""

import msgspec


class KeyRef(msgspec.Struct, frozen=True):
    """A key of a Secret."""

    name: str = ""
    key: str = ""


class VariableSource(msgspec.Struct, frozen=True, rename="camel"):
    """Source of the value of a variable; only Secrets are read."""

    secret_key_ref: KeyRef | None = None


class ContainerVariable(msgspec.Struct, frozen=True, rename="camel"):
    """A variable of a container."""

    name: str = ""
    value: str = ""
    value_from: VariableSource | None = None
