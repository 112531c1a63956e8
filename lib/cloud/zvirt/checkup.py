"""What an engine reports of itself: its user, version, identity, and permits.

Implements `lib.cloud.checkup.Checkup`. One call each; nothing is tried twice, since a
wrong password that is repeated locks the account.
"""

import datetime
import email.utils
from collections.abc import Callable, Collection

from ovirtsdk4 import types

from lib.cloud import checkup, errors
from lib.cloud.model import InstanceRef
from lib.cloud.zvirt import client, component_rights, config, engine_product, http
from lib.cloud.zvirt.documents import Item
from lib.cloud.zvirt.instances import node_vms
from lib.process import clock

_GIB = 1024**3
_PERMISSIONS = "users/{}/permissions"
_COLLECTIONS = ("templates", "vnicprofiles", "storagedomains", "clusters")
"""Collections of which objects of a cluster contain names or IDs."""
REMEDIES = checkup.Remedies(
    credentials=(
        "write user and password of the engine, the user with its profile; an account"
        " that several failures have locked is unlocked after a time, or by an"
        " administrator"
    ),
    unreachable=(
        "see that the URL of the engine is right and can be reached from here: name,"
        " port, proxy, certificate"
    ),
    project="",
    endpoint="see that the URL is that of an oVirt engine with API 4.4 or newer",
    internal="",
    region="",
    no_region="",
    mixed="",
)
"""What an operator does about faults."""


class EngineCheckup:
    """Asks one engine."""

    region = ""

    def __init__(
        self,
        settings: config.EngineConfig,
        timeout_s: float,
        exchange: http.HttpExchange | None = None,
        now: Callable[[], datetime.datetime] = clock.utc_now,
    ) -> None:
        """timeout_s: of every single call. exchange: None: over the network."""
        self._settings = settings
        self._timeout_s = timeout_s
        self._exchange = exchange or http.connect(settings)
        self._engine = client.EngineClient(
            lambda: settings, self._exchange, user_agent="mooring-doctor"
        )
        self._now = now

    @property
    def warnings(self) -> tuple[str, ...]:
        """See the protocol: how the engine's certificate is verified."""
        if self._settings.insecure:
            return ("certificates of the engine are not verified",)
        if not self._settings.ca:
            return ()
        left = config.ca_expiry(self._settings.ca) - self._now()
        if left < datetime.timedelta(days=30):
            return (f"the authority of the engine expires in {left.days} days",)
        return ()

    def time(self) -> datetime.datetime | None:
        """See the protocol: the Date of a response without authentication."""
        response = self._exchange(
            "GET", self._settings.url, {"Accept": "*/*"}, None, self._timeout_s
        )
        try:
            return email.utils.parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return None

    def login(self) -> checkup.Login:
        """See the protocol. project: the ID of the engine."""
        root = self._engine.root(self._timeout_s)
        product = engine_product.of_root(root, self._settings)
        user = root.authenticated_user
        name = getattr(user, "user_name", None) or getattr(user, "name", None)
        return checkup.Login(str(name or self._settings.username), product.id)

    def services(self) -> tuple[checkup.ServiceEndpoint, ...]:
        """See the protocol: the engine itself, with its version."""
        url = self._settings.url
        try:
            root = self._engine.root(self._timeout_s)
            product = engine_product.of_root(root, self._settings)
        except errors.Unauthenticated:
            raise
        except errors.CloudError as error:
            return (checkup.ServiceEndpoint("engine", True, url=url, error=error),)
        row = checkup.ServiceEndpoint("engine", True, url=url, version=product.version)
        return (row,)

    def quotas(self) -> checkup.Quotas:
        """See the protocol: the space of each storage domain for data."""
        try:
            items = self._engine.list("storagedomains", timeout_s=self._timeout_s)
        except errors.CloudError as error:
            return {"storage domains": error}
        domains = [item.entity for item in items if _is_for_data(item)]
        return {
            "storage domains": tuple(
                checkup.Quota(
                    f"GiB of {domain.name}",
                    domain.used // _GIB,
                    (domain.used + domain.available) // _GIB,
                )
                for domain in domains
            )
        }

    def balancing(self) -> checkup.Balancing | None:
        """See the protocol.

        Raises:
            Unsupported: always.
        """
        raise errors.Unsupported(
            "an engine has no load balancers", operation="read load balancers"
        )

    def rights(self) -> tuple[checkup.ComponentRights, ...]:
        """See the protocol: permits of the user's own roles.

        Raises:
            CloudError: they are not known: they may not be read, or are of groups.
        """
        operation = "read permissions"
        root = self._engine.root(self._timeout_s)
        user = root.authenticated_user
        if user is None or user.id is None:
            text = "the engine does not name the user"
            raise errors.Unsupported(text, operation=operation)
        permissions = self._engine.list(
            _PERMISSIONS.format(user.id),
            {"follow": "role.permits"},
            timeout_s=self._timeout_s,
        )
        held = {
            permit.name
            for permission in permissions
            for permit in getattr(permission.entity.role, "permits", None) or ()
        }
        if not held:
            text = "the user has no roles of its own; those of its groups are not read"
            raise errors.Unsupported(text, operation=operation)
        return tuple(
            checkup.ComponentRights(
                component,
                component == component_rights.MANAGER,
                len(permits),
                tuple(permit for permit in permits if permit not in held),
            )
            for component, permits in component_rights.COMPONENTS.items()
        )

    def offered(self) -> checkup.Offered:
        """See the protocol: names by collection, one list each."""
        return {path: self._names(path) for path in _COLLECTIONS}

    def _names(self, path: str) -> tuple[str, ...] | errors.CloudError:
        try:
            items = self._engine.list(path, timeout_s=self._timeout_s)
        except errors.CloudError as error:
            return error
        return tuple(sorted({str(item.entity.name) for item in items}))

    def routing(self) -> checkup.Routing | None:
        """See the protocol: there are no routes."""
        return None

    def instance_problems(
        self, refs: Collection[InstanceRef]
    ) -> tuple[checkup.InstanceProblem, ...]:
        """See the protocol `InstanceCheckup`: names of VMs, and their guest agents."""
        return node_vms.problems(self._engine, refs, self._timeout_s)


def _is_for_data(item: Item) -> bool:
    """Report whether an item is a storage domain for data that shows its space."""
    domain = item.entity
    is_known = domain.used is not None and domain.available is not None
    return domain.type == types.StorageDomainType.DATA and is_known
