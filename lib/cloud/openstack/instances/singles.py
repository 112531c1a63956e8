"""Servers read one by one, several at a time: for when lists cost more."""

import urllib.parse
from collections.abc import Collection, Mapping

from lib.cloud import errors
from lib.cloud.model import Absent, Observation, Seen, Unknown
from lib.cloud.openstack import native
from lib.cloud.openstack.http import client
from lib.cloud.support import parallel

CROWD = 1000
"""Up to this one a list is one page."""
FEW_PER_PAGE = 2
TIMES = 5
"""A project with this many times the servers of our Nodes is mostly of others."""


def are_better(needed: int, listed: int) -> bool:
    """Report whether reading servers one by one costs the cloud less than a list.

    needed: how many servers are to be read. listed: how many the project has.
    """
    return listed > CROWD and listed > TIMES * needed


def is_list_cheaper(needed: int, listed: int | None) -> bool:
    """Report whether a list of servers takes fewer calls than one call per server.

    listed: how many servers the project has; None when no list has counted them, so
    that its pages are not known. Up to FEW_PER_PAGE servers for each page of the list
    are read one by one all the same: a page is a large answer.
    """
    if listed is None:
        return False
    pages = max(1, -(-listed // CROWD))
    return needed > FEW_PER_PAGE * pages


def servers(
    api: client.Client, ids: Collection[str], deadline: float
) -> Mapping[str, Observation[native.Server]]:
    """Read each of these servers directly; one entry each, by id.

    Absent only when Nova itself reports it; a failed read is Unknown, and leaves the
    others alone. Never raises.
    """
    observations = parallel.each(lambda id_: _server(api, id_, deadline), ids, "single")
    return dict(zip(ids, observations, strict=True))


def _server(
    api: client.Client, server_id: str, deadline: float
) -> Observation[native.Server]:
    path = "servers/" + urllib.parse.quote(server_id, safe="")
    call = client.Get(client.Service.COMPUTE, path, "get server", resource=server_id)
    try:
        return Seen(api.read(call, native.ServerAnswer, deadline).server)
    except errors.NotFound:
        return Absent(by_id=True)
    except errors.CloudError as error:
        return Unknown(error)
