"""The route tables of one OpenStack project: the entry of this package."""

import contextlib
import dataclasses
import datetime
import math
import threading
import urllib.parse
from collections.abc import Collection, Iterator, Mapping

from lib.cloud import errors
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.http import answers, client
from lib.cloud.openstack.routes import actions, desire, native, refusals
from lib.cloud.openstack.routes import plan as plans
from lib.cloud.openstack.routes.native import Port, Router, Table
from lib.cloud.routes import (
    AddressPair,
    Depth,
    NotOwned,
    Observation,
    Observed,
    Owned,
    Plan,
    Record,
    Route,
    Target,
)
from lib.cloud.steps import Asked, Gate, GateState, Step, StepResult

NO_ROUTER = "address-pairs"
"""The table where no router is managed: it holds address pairs alone."""
TIMEOUT_S = 60.0
"""For all reads of one observation."""
WRITE_TIMEOUT_S = 60.0
LEARNED_S = 0.5
"""When to plan again after a refusal that the next plan takes into account."""
PAGE = 5000
FILTERED = 100
"""IDs that fit in one URL of 8 KiB."""
_PORT_FIELDS = (
    "id",
    "device_id",
    "network_id",
    "mac_address",
    "fixed_ips",
    "allowed_address_pairs",
    "port_security_enabled",
    "revision_number",
)


@dataclasses.dataclass(slots=True)
class _Known:
    """What the last whole observation has read. revisions: of routers, by id."""

    ports: dict[str, Port] = dataclasses.field(default_factory=dict)
    revisions: dict[str, int | None] = dataclasses.field(default_factory=dict)
    is_whole: bool = False


class NeutronRoutes:
    """Implements `lib.cloud.routes.Routes`.

    router_id: empty: address pairs alone are managed.
    """

    def __init__(self, api: client.Client, router_id: str) -> None:
        self._api = api
        self._router_id = router_id
        self._refusals = refusals.Refusals(api.now)
        self._lock = threading.Lock()
        self._known = _Known()
        self._subnets: dict[str, str] = {}

    @property
    def table(self) -> str:
        """See the protocol."""
        return self._router_id or NO_ROUTER

    @property
    def has_routes(self) -> bool:
        """See the protocol."""
        return bool(self._router_id)

    @property
    def reasons(self) -> tuple[desire.NeutronReason, ...]:
        """See the protocol."""
        return tuple(desire.NeutronReason)

    # ------------------------------------------------------------ observe

    def observe(
        self, tables: Collection[str], depth: Depth
    ) -> Mapping[str, Observation]:
        """See the protocol.

        At CHANGED the ports are read again only when a router's revision shows that
        its interfaces may have changed, and without a router always.
        """
        deadline = self._api.now() + TIMEOUT_S
        routers: dict[str, Router | None | errors.CloudError] = {}
        for table in tables:
            routers[table] = self._router(table, deadline)
        try:
            self._read_ports(routers, depth, deadline)
            return {
                table: self._seen(table, router) for table, router in routers.items()
            }
        except errors.CloudError as error:
            return {table: Unknown(error) for table in tables}

    def _router(self, table: str, deadline: float) -> Router | None | errors.CloudError:
        """Read a router; None: absent, or the table without a router."""
        if table == NO_ROUTER:
            return None
        try:
            router = self._read_router(table, deadline)
            return None if router is None else self._checked(router)
        except errors.CloudError as error:
            return error

    def _read_router(self, router_id: str, deadline: float) -> Router | None:
        path = f"routers/{urllib.parse.quote(router_id, safe='')}"
        call = client.Get(actions.NETWORK, path, "get router", resource=router_id)
        try:
            return self._api.read(call, native.RouterAnswer, deadline).router
        except errors.NotFound:
            return None

    def _checked(self, router: Router) -> Router:
        """Return a router that may be managed.

        Raises:
            Unsupported: Neutron has no extra routes. Forbidden: another project's.
        """
        if router.routes is None:
            text = "Neutron lacks the extension extraroute"
            raise errors.Unsupported(text, operation="get router", resource=router.id)
        project_id = self._api.project_id()
        if router.project_id and project_id and router.project_id != project_id:
            text = f"it belongs to project {router.project_id}: must be of {project_id}"
            raise errors.Forbidden(text, operation="get router", resource=router.id)
        return router

    def _read_ports(
        self,
        routers: Mapping[str, Router | None | errors.CloudError],
        depth: Depth,
        deadline: float,
    ) -> None:
        revisions = {
            table: router.revision_number
            for table, router in routers.items()
            if isinstance(router, Router)
        }
        if all(isinstance(router, errors.CloudError) for router in routers.values()):
            return  # nothing can be planned
        with self._lock:
            known = self._known
            is_known = known.is_whole and revisions.items() <= known.revisions.items()
        if depth is Depth.CHANGED and is_known and NO_ROUTER not in routers:
            return
        ports = {port.id: port for port in self._list_ports(deadline)}
        self._read_subnets(revisions.keys(), ports.values(), deadline)
        with self._lock:
            self._known = _Known(ports, revisions, is_whole=True)

    def _list_ports(self, deadline: float) -> tuple[Port, ...]:
        fields = tuple(("fields", field) for field in _PORT_FIELDS)
        query = (*fields, *self._api.project_filter())
        call = client.Get(actions.NETWORK, "ports", "list ports", query)
        return self._api.items(call, PAGE, native.PortsPage, deadline)

    def _read_subnets(
        self, router_ids: Collection[str], ports: Collection[Port], deadline: float
    ) -> None:
        """Read the CIDRs that are not known yet; they never change."""
        needed = {
            fixed.subnet_id
            for port in ports
            if port.device_id in router_ids
            for fixed in port.fixed_ips
        }
        ids = sorted(needed - self._subnets.keys())
        for at in range(0, len(ids), FILTERED):
            query = tuple(("id", id_) for id_ in ids[at : at + FILTERED])
            call = client.Get(actions.NETWORK, "subnets", "list subnets", query)
            subnet_page = self._api.items(call, PAGE, native.SubnetsPage, deadline)
            self._subnets |= {subnet.id: subnet.cidr for subnet in subnet_page}

    def _seen(
        self, table: str, router: Router | None | errors.CloudError
    ) -> Observation:
        if isinstance(router, errors.CloudError):
            return Unknown(router)
        with self._lock:
            ports = tuple(self._known.ports.values())
        own = {
            fixed.subnet_id
            for port in ports
            if port.device_id == table
            for fixed in port.fixed_ips
        }
        subnets = {id_: self._subnets[id_] for id_ in own & self._subnets.keys()}
        limits = self._refusals.limits(table)
        exists = router is not None or table == NO_ROUTER
        return Seen(Observed(exists, Table(table, router, ports, subnets, limits)))

    # ------------------------------------------------------------ plan, apply

    def plan(self, target: Target, observed: Observed, now: datetime.datetime) -> Plan:
        """See the protocol."""
        return plans.plan(target, observed, now)

    def apply(self, step: Step, within_s: float = math.inf) -> StepResult:
        """See the protocol. Busy with a time for what the next plan will avoid."""
        action = actions.of(step)
        began = self._api.now()
        request = actions.write(action)
        try:
            deadline = began + WRITE_TIMEOUT_S
            body = self._api.write(request, deadline, began + within_s)
        except errors.CloudError as error:
            self._forget()
            if self._refusals.learn(action, error):
                raise errors.Busy(
                    error.message,
                    operation=request.operation,
                    resource=request.resource,
                    retry_after_s=LEARNED_S,
                ) from error
            raise
        self._note(action, body)
        return StepResult()

    def _forget(self) -> None:
        """Have everything read again, since the last answer is not known."""
        with self._lock:
            self._known.is_whole = False

    def _note(self, action: actions.Action, body: bytes) -> None:
        """Keep a port as it is after a write, so that it need not be read again."""
        if not isinstance(action, actions.WritePairs):
            return
        with contextlib.suppress(errors.CloudError):
            answer = answers.decode(body, native.PortAnswer, "", action.port_id)
            with self._lock:
                self._known.ports[answer.port.id] = answer.port
            return
        self._forget()

    def gates(self, asked: Collection[Asked]) -> Mapping[str, Gate | Unknown]:
        """See the protocol: Neutron has carried a write out when it answers."""
        return {each.id: Gate(GateState.OPEN) for each in asked}

    # ------------------------------------------------------------ owned

    def owned(self, records: Collection[Record]) -> Iterator[Owned | NotOwned]:
        """See the protocol."""
        tables = {record.table: record for record in records}
        recorded = {e for record in records for e in record.owned}
        for id_, observation in self.observe(tables, Depth.FULL).items():
            if isinstance(observation, Unknown):
                raise observation.error
            table = native.of(observation.value)
            yield from _owned_of(table, tables[id_])
            for route in table.routes:
                if route not in recorded:
                    yield NotOwned(id_, route)

    def release(self, owned: Collection[Owned]) -> tuple[Step, ...]:
        """See the protocol."""
        routes: dict[str, list[Route]] = {}
        pairs: dict[str, list[AddressPair]] = {}
        natives = {entry.id: entry.native for entry in owned}
        for resource in owned:
            entry = resource.recorded.entry
            if isinstance(entry, Route):
                routes.setdefault(resource.id, []).append(entry)
            else:
                pairs.setdefault(resource.id, []).append(entry)
        steps = [
            step
            for id_, some in routes.items()
            if isinstance(table := natives[id_], Table)
            for step in plans.removal(table, tuple(sorted(some)))
        ]
        for id_, gone in pairs.items():
            if isinstance(port := natives[id_], Port):
                steps.append(plans.pair_step(port, (), gone))
        return tuple(steps)


def _owned_of(table: Table, record: Record) -> Iterator[Owned]:
    """Return the recorded entries that exist in one table and its ports."""
    routes = frozenset(table.routes)
    pairs = {p: port for port in table.ports for p in native.pairs(port)}
    for recorded in record.entries:
        entry = recorded.entry
        if isinstance(entry, Route) and entry in routes:
            yield Owned("route", table.id, recorded, table)
        elif isinstance(entry, AddressPair) and entry in pairs:
            yield Owned("address pair", entry.port_id, recorded, pairs[entry])
