"""Lists and single objects of services, declared as data: what a GET asks for."""

import dataclasses
import urllib.parse
from typing import Generic, TypeVar

from lib.cloud import errors
from lib.cloud.openstack import native
from lib.cloud.openstack.http import client

T = TypeVar("T")


def quoted(text: str) -> str:
    """Return an ID as a part of a path."""
    return urllib.parse.quote(text, safe="")


@dataclasses.dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list in pages.

    path: below the version; {} in it stands for the ID of the parent. operation: in
    errors and metrics. limit: items in a page. fields: of each item; empty: all.
    """

    service: client.Service
    path: str
    operation: str
    page: type[native.Page[T]]
    limit: int
    fields: tuple[str, ...] = ()

    def of_project(
        self, api: client.Client, deadline: float, filters: client.Query = ()
    ) -> tuple[T, ...]:
        """List items of our project, also where we may see those of others.

        Raises:
            CloudError: see `Client.items`.
        """
        return self.visible(api, deadline, (*filters, *api.project_filter()))

    def visible(
        self,
        api: client.Client,
        deadline: float,
        filters: client.Query = (),
        parent: str = "",
    ) -> tuple[T, ...]:
        """List all items that we may see. parent: ID of what they belong to.

        Raises:
            CloudError: see `Client.items`.
        """
        fields = tuple(("fields", field) for field in self.fields)
        path = self.path.format(quoted(parent))
        query = (*fields, *filters)
        call = client.Get(self.service, path, self.operation, query, parent)
        return api.items(call, self.limit, self.page, deadline)


@dataclasses.dataclass(frozen=True, slots=True)
class Single(Generic[T]):
    """One object. path: see `Listing`; {} stands for the object's ID."""

    service: client.Service
    path: str
    operation: str
    answer: type[T]

    def read(self, api: client.Client, id_: str, deadline: float) -> T:
        """Read the object.

        Raises:
            NotFound: it does not exist.
            CloudError: see `Client.read`.
        """
        path = self.path.format(quoted(id_))
        call = client.Get(self.service, path, self.operation, resource=id_)
        return api.read(call, self.answer, deadline)

    def find(self, api: client.Client, id_: str, deadline: float) -> T | None:
        """Read the object; None when it does not exist.

        Raises:
            CloudError: see `Client.read`.
        """
        try:
            return self.read(api, id_, deadline)
        except errors.NotFound:
            return None
