"""Lists of all objects of a kind, read page by page."""

import dataclasses
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from lib.kube import client, errors, objects
from lib.kube.resources import Resource
from lib.process import decoding

PAGE = 500
"""Objects on a page. Source: client-go tools/pager, defaultPageSize."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """All objects. version: the resourceVersion of the list."""

    items: tuple[T, ...]
    version: str


def read(  # noqa: PLR0913 # keyword only, with sound defaults
    api: client.Api,
    resource: Resource,
    of: type[T],
    *,
    timeout_s: float,
    namespace: str | None = None,
    selectors: Mapping[str, str] | None = None,
    page_size: int = PAGE,
) -> Listed[T]:
    """List all objects. timeout_s: for each page. selectors: label and field selector.

    Raises:
        KubeError: they could not be listed, or an object is malformed; it is named.
    """
    operation = f"list {resource.plural}"

    def pages(limit: int) -> Listed[T]:
        query = {**(selectors or {}), **({"limit": str(limit)} if limit else {})}
        items: list[T] = []
        while True:
            body = api.list_page(resource, namespace, query=query, timeout_s=timeout_s)
            try:
                page = objects.decode_list(body, of)
            except msgspec.DecodeError as error:
                text = _malformed(body, of) or str(error)
                raise errors.KubeError(text, operation=operation) from error
            items.extend(page.items)
            if not page.metadata.continue_:
                return Listed(tuple(items), page.metadata.resource_version)
            query["continue"] = page.metadata.continue_

    try:
        return pages(page_size)
    except errors.Gone:
        # The token outlived the server's memory: all on one page then.
        return pages(0)


def read_served(
    api: client.Api, resource: Resource, of: type[T], *, timeout_s: float
) -> tuple[T, ...]:
    """List all objects of a kind that the API server may not serve: then there is none.

    Raises:
        KubeError: as `read`.
    """
    try:
        return read(api, resource, of, timeout_s=timeout_s).items
    except errors.NotFound:
        return ()


def _malformed(body: bytes, of: type[T]) -> str:
    """Describe the first malformed object of a list; empty: the list itself is."""
    try:
        rows = objects.decode_list(body, msgspec.Raw).items
    except msgspec.DecodeError:
        return ""
    for row in rows:
        try:
            decoding.decode(row, of)
        except msgspec.DecodeError as error:
            return objects.malformed(row, error)
    return ""
