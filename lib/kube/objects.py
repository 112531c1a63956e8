"""The parts of Kubernetes objects that every flow shares, decoded by msgspec."""

import datetime
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from lib.process import decoding


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    """An object's metadata, without managedFields.

    Times are timezone-aware UTC. namespace is empty for cluster-scoped kinds.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: datetime.datetime | None = None
    creation_timestamp: datetime.datetime | None = None

    @property
    def key(self) -> str:
        """ "namespace/name", or "name" without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class HasMetadata(Protocol):
    """Any object that was decoded with its metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        ...


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata of a page; continue_ is empty on the last one."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


T = TypeVar("T")


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list."""

    metadata: ListMeta
    items: tuple[T, ...] = ()


class Bare(msgspec.Struct, frozen=True):
    """An object of which only the metadata matters."""

    metadata: ObjectMeta


class ConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    data: Mapping[str, str] | None = None


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """Details of a Status.

    name, kind: of the object that it is about; kind is the plural.
    """

    retry_after_seconds: int = 0
    name: str = ""
    kind: str = ""


class Status(msgspec.Struct, frozen=True):
    """Status of the API server, the body of its error responses."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


def malformed(body: msgspec.Raw, error: msgspec.DecodeError) -> str:
    """Describe why an object is malformed, without a value of it."""
    try:
        name = decoding.decode(body, Bare).metadata.key
    except msgspec.DecodeError:
        name = "an object without metadata"
    return f"{name}: malformed: {error}"


def decode_list(body: bytes, of: type[T]) -> ListPage[T]:
    """Decode a page of objects.

    Raises:
        msgspec.ValidationError: it isn't a list of those.
    """
    # msgspec resolves the parameter at run time, which the type checker cannot follow.
    page: ListPage[T] = decoding.decode(body, ListPage[of])  # type: ignore[valid-type]
    return page
