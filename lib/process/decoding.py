"""Decodes JSON into types, from any thread.

At the first use of a Struct msgspec 0.22 builds what it has to know of its fields, and
until then other threads see it unfinished, and crash with a segmentation fault. So
all that the programs decode is decoded here, where one type is built at a time.
"""

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_building = threading.Lock()
"""Guards what msgspec keeps in the types themselves, which is one for the process."""


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type, finished."""
    with _building:
        return msgspec.json.Decoder(kind)


def decode(body: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """Decode a document.

    Raises:
        msgspec.DecodeError: it is no JSON, or not of that type.
    """
    return decoder(kind).decode(body)
