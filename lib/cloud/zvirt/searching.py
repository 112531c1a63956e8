"""Searches for some objects: as few requests as their length allows."""

from collections.abc import Iterator, Sequence

from lib.cloud.zvirt import client
from lib.cloud.zvirt.documents import Item

SEARCH_MAX = 4500
"""Characters of one search: with its escapes the URL stays below 8 KiB."""


def either(terms: Sequence[str], most: int) -> Iterator[str]:
    """Yield searches for what fulfils any of some terms. most: terms of one search."""
    some: list[str] = []
    for term in terms:
        is_long = len(" or ".join((*some, term))) > SEARCH_MAX
        if some and (len(some) == most or is_long):
            yield " or ".join(some)
            some = []
        some.append(term)
    if some:
        yield " or ".join(some)


def find(
    access: client.EngineClient,
    path: str,
    search: str,
    follow: Sequence[str] = (),
    not_before: float | None = None,
    timeout_s: float = client.TIMEOUT_S,
) -> tuple[Item, ...]:
    """Return what a search finds; more than a page of them are read by pages.

    Raises:
        CloudError: they are not known.
    """
    query = {"max": str(client.PAGE), "search": search}
    if follow:
        query["follow"] = ",".join(follow)
    items = access.list(path, query, not_before=not_before, timeout_s=timeout_s)
    if len(items) < client.PAGE:
        return items
    return access.list_all(
        path, search, follow, not_before=not_before, timeout_s=timeout_s
    )
