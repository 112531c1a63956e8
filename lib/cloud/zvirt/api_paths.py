"""Paths, searches and operations of the API in text. Pure."""

import urllib.parse

from lib.cloud import errors
from lib.cloud.zvirt.documents import Item

_ORDERS = {"disks": "id"}
"""Fields that differ between all objects of a collection; the usual one is name."""


def path_of_url(path: str) -> str:
    """Return a path as it stands in a URL.

    Raises:
        InvalidRequest: a part is empty or changes the path: an ID from outside is none.
    """
    parts = path.split("/")
    if path and any(part in ("", ".", "..") for part in parts):
        raise errors.InvalidRequest(
            "invalid ID", operation=operation("read", path), was_rejected=True
        )
    return "/".join(urllib.parse.quote(part, safe="") for part in parts)


def operation(verb: str, path: str) -> str:
    """Return what errors and metrics call an operation: verb and collection."""
    parts = path.split("/")
    names = [part for part in parts[::2] if part.isalpha() and part != verb]
    return " ".join([verb, *names[-1:]])


def last(path: str) -> str:
    """Return the last part of a path, the ID of an object."""
    return path.rpartition("/")[2]


def quoted(value: str) -> str:
    """Return a value for a search. Results must be compared again.

    The language has no escapes, ' and ; are rejected, and * is a wildcard: characters
    that cannot be asked for become wildcards.
    """
    return '"' + "".join("*" if char in "\"';" else char for char in value) + '"'


def is_named(item: Item, name: str) -> bool:
    """Report whether an object of a search has exactly this name."""
    entity = item.entity
    return name in (getattr(entity, "name", None), getattr(entity, "alias", None))


def page(path: str, search: str, number: int) -> str:
    """Return the search for a page of a collection, in an order without equals."""
    order = _ORDERS.get(path, "name")
    return f"{search} sortby {order} asc page {number}".strip()
