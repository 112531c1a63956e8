"""The catalog of one OpenStack project."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar, cast

from lib.cloud import catalog, errors, protocol, provider_id
from lib.cloud.catalog import CatalogPart
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.catalog import lists, native, translate
from lib.cloud.openstack.config.settings import Credentials
from lib.cloud.openstack.http import client, session
from lib.cloud.support import calls, catalog_parts, circuits, parallel

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

CALL_TIMEOUT_S = 30.0
"""Of one HTTP call."""
READ_TIMEOUT_S = 60.0
"""Of all the lists together."""


# No slots: Python 3.11 then could not make it as _List[...](...).
@dataclasses.dataclass(frozen=True, eq=False)
class _List(Generic[T_co]):
    """One list of one service."""

    service: client.Service
    read: Callable[[client.Client, float], T_co]


_FLAVORS = _List(lists.COMPUTE, lists.flavors)
_ZONES = _List(lists.COMPUTE, lists.zones)
_SERVER_GROUPS = _List(lists.COMPUTE, lists.server_groups)
_NETWORKS = _List(lists.NETWORK, lists.networks)
_SECURITY_GROUPS = _List(lists.NETWORK, lists.security_groups)
_IMAGES = _List(lists.IMAGE, lists.images)
_VOLUME_TYPES = _List(lists.VOLUME, lists.volume_types)
_DEFAULT_TYPE = _List(lists.VOLUME, lists.default_volume_type)

_OF_DOCUMENT: tuple[_List[object], ...] = (
    _FLAVORS,
    _SERVER_GROUPS,
    _NETWORKS,
    _SECURITY_GROUPS,
    _IMAGES,
    _VOLUME_TYPES,
    _DEFAULT_TYPE,
)


def connect(
    credentials: Credentials,
    on_call: calls.CallObserver,
    user_agent: tuple[str, ...] = (),
    on_circuit: circuits.CircuitObserver = circuits.ignore,
) -> protocol.Cloud:
    """Return the cloud of these credentials; authenticates with its first call.

    The token is kept for as long as it lives, so that a cycle takes one at most.

    Raises:
        ConfigError: a certificate file can't be read.
    """
    opened = session.open_session(credentials, CALL_TIMEOUT_S, user_agent)
    where = client.Where(credentials.region, credentials.endpoint_type)
    api = client.Client(opened, where, on_call, on_circuit=on_circuit)
    return protocol.Cloud(name=provider_id.OPENSTACK, catalog=OpenStackCatalog(api))


class OpenStackCatalog:
    """Implements `lib.cloud.catalog.Catalog`.

    The services are read side by side, the lists of one service one after the other:
    a service that is silent costs the others nothing but the wait.
    """

    def __init__(self, api: client.Client) -> None:
        self._api = api

    @property
    def parts(self) -> frozenset[CatalogPart]:
        """See the protocol."""
        return frozenset(CatalogPart)

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """See the protocol; OpenStack reports no conditions."""
        document = catalog_parts.caught(
            lambda: translate.installer_document(request.installer_document)
        )
        volumes = _List(
            lists.VOLUME,
            lambda api, deadline: lists.volumes(api, request.cluster_id, deadline),
        )
        needed = _wanted(request.parts, document)
        if CatalogPart.VOLUMES in request.parts:
            needed = (*needed, volumes)
        shelf = self._fetch(needed)

        def part(kind: CatalogPart, make: Callable[[], T]) -> Seen[T] | Unknown | None:
            return catalog_parts.caught(make) if kind in request.parts else None

        return catalog.CatalogReading(
            conditions=part(CatalogPart.CONDITIONS, tuple),
            instance_types=part(
                CatalogPart.INSTANCE_TYPES,
                lambda: translate.instance_types(_some(shelf.get(_FLAVORS), "flavors")),
            ),
            document=part(CatalogPart.DOCUMENT, lambda: _document(shelf, document)),
            volumes=part(
                CatalogPart.VOLUMES, lambda: translate.volumes(shelf.get(volumes))
            ),
            storage_types=part(
                CatalogPart.STORAGE_TYPES,
                lambda: translate.storage_types(_volume_types(shelf)),
            ),
        )

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """See the protocol."""
        deadline = self._api.now() + CALL_TIMEOUT_S
        return catalog_parts.caught(
            lambda: lists.has_volume_type(self._api, type_id, deadline)
        )

    def _fetch(self, needed: Collection[_List[object]]) -> "_Shelf":
        deadline = self._api.now() + READ_TIMEOUT_S
        by_service: dict[client.Service, list[_List[object]]] = {}
        for listed in needed:
            by_service.setdefault(listed.service, []).append(listed)

        def fetch(
            some: Sequence[_List[object]],
        ) -> dict[_List[object], Seen[object] | Unknown]:
            return {
                listed: catalog_parts.caught(
                    functools.partial(listed.read, self._api, deadline)
                )
                for listed in some
            }

        fetched = parallel.each(fetch, by_service.values(), "catalog")
        return _Shelf(
            {listed: read for part in fetched for listed, read in part.items()}
        )


class _Shelf:
    """Responses by the list that they are of."""

    def __init__(self, kept: Mapping[_List[object], Seen[object] | Unknown]) -> None:
        self._kept = kept

    def get(self, listed: _List[T]) -> T:
        """Return a list.

        Raises:
            CloudError: what it failed with.
        """
        observation = self._kept[listed]
        if isinstance(observation, Unknown):
            raise observation.error
        return cast(T, observation.value)


def _wanted(
    parts: frozenset[CatalogPart], document: Seen[translate.Given] | Unknown
) -> tuple[_List[object], ...]:
    """Return the lists that these parts are made of, each once."""
    needed: dict[_List[object], None] = {}
    if CatalogPart.INSTANCE_TYPES in parts:
        needed[_FLAVORS] = None
    if CatalogPart.STORAGE_TYPES in parts:
        needed[_VOLUME_TYPES] = None
    if CatalogPart.DOCUMENT in parts and isinstance(document, Seen):
        needed |= dict.fromkeys(_OF_DOCUMENT)
        if not document.value.zones:
            needed[_ZONES] = None
    return tuple(needed)


def _document(
    shelf: _Shelf, document: Seen[translate.Given] | Unknown
) -> catalog.Document:
    if isinstance(document, Unknown):
        raise document.error
    lists = translate.Lists(
        flavors=_some(shelf.get(_FLAVORS), "flavors"),
        zones=document.value.zones or _some(shelf.get(_ZONES), "available zones"),
        server_groups=shelf.get(_SERVER_GROUPS),
        networks=shelf.get(_NETWORKS),
        security_groups=shelf.get(_SECURITY_GROUPS),
        images=_some(shelf.get(_IMAGES), "images"),
        volume_types=_volume_types(shelf),
        default_type=shelf.get(_DEFAULT_TYPE),
    )
    return translate.document(lists, document.value)


def _volume_types(shelf: _Shelf) -> tuple[native.VolumeType, ...]:
    return _some(shelf.get(_VOLUME_TYPES), "volume types")


def _some(items: tuple[T, ...], what: str) -> tuple[T, ...]:
    """Take an empty list for a wrong answer: no cluster lives in such a cloud.

    Raises:
        Unavailable: it is empty.
    """
    if not items:
        message = "the cloud answers with an empty list"
        raise errors.Unavailable(message, operation=f"list {what}")
    return items
