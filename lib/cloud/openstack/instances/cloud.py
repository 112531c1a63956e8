"""The instances of one OpenStack project."""

import math
import time
from collections.abc import Callable, Collection, Mapping

import structlog

from lib.cloud import errors, protocol, provider_id
from lib.cloud.model import (
    Absent,
    Instance,
    InstanceRef,
    NotManaged,
    Observation,
    Seen,
    Unknown,
)
from lib.cloud.openstack import native
from lib.cloud.openstack.config.settings import Config
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.instances import lists, singles, translate
from lib.cloud.openstack.instances.addresses import Wiring
from lib.cloud.support import absence_scope, calls, circuits, instance_index
from lib.process import shared_read

READ_TIMEOUT_S = 120.0
"""Of one whole list with all its pages."""
RECOUNT_S = 3600.0
"""A project's number of servers is counted again after it."""
WITNESSES = 3
"""How many servers are read directly before an empty list is trusted."""


def open_client(
    config: Config,
    on_call: calls.CallObserver = calls.ignore,
    user_agent: tuple[str, ...] = (),
    on_circuit: circuits.CircuitObserver = circuits.ignore,
) -> client.Client:
    """Return a client of the cloud of cloud.conf. Its first call authenticates.

    on_call: receives every call, for metrics. user_agent: put in front of our own.
    on_circuit: called when the circuit breaker of a service opens and closes.

    Raises:
        ConfigError: a certificate file can't be read.
    """
    credentials = config.credentials
    opened = session.open_session(
        credentials, config.metadata.request_timeout_s, user_agent
    )
    where = client.Where(credentials.region, credentials.endpoint_type)
    return client.Client(opened, where, on_call, on_circuit=on_circuit)


def guard_of(
    api: client.Client, config: Config, memory: absence_scope.HomeMemory | None = None
) -> absence_scope.Guard:
    """Return what all protocols of one cloud share about where absence counts.

    memory: of the cloud that this one replaces.
    """
    return absence_scope.Guard(api.project_id, config.credentials.region, memory)


def of_client(
    api: client.Client, config: Config, guard: absence_scope.Guard
) -> protocol.Cloud:
    """Return the cloud with its instances, and nothing else.

    `with_load_balancers` and `with_volumes` add theirs: a program contains what it
    uses.
    """
    instances = OpenStackInstances(api, config, guard=guard)
    return protocol.Cloud(
        provider_id.OPENSTACK, instances, check_reload=guard.check_reload
    )


class OpenStackInstances:
    """Implements `lib.cloud.protocol.Instances`.

    A pass costs one list of servers and one of ports, for any number of refs;
    in a project that is mostly of others, one call per ref instead (`singles`).
    Keeps only what may be thrown away: the names of flavors, which never change, and
    which servers, and how many, the last list showed.
    """

    def __init__(
        self,
        api: client.Client,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        guard: absence_scope.Guard | None = None,
    ) -> None:
        """clock: the one that `not_before` is of. guard: where absence counts."""
        self._api = api
        self._guard = guard or absence_scope.Guard(
            api.project_id, config.credentials.region
        )
        self._config = config
        self._log = structlog.stdlib.get_logger()
        self._flavors: dict[str, str] = {}
        self._odd_statuses: set[str] = set()
        self._wanted = 0
        self._listed = 0
        self._listed_at = -math.inf
        self._servers = shared_read.SharedRead(self._read_servers, clock)
        self._wirings = shared_read.SharedRead(self._read_wirings, clock)

    def observe(
        self, refs: Collection[InstanceRef], not_before: float
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        observations: dict[InstanceRef, Observation[Instance]] = {}
        for ref in refs:
            if not_managed := self._not_managed(ref):
                observations[ref] = not_managed
        managed = [ref for ref in refs if ref not in observations]
        if not managed:
            return observations
        singly = self._are_singles_better(managed)
        try:
            if singly:
                natives = self._at_home(self._singles(managed))
            else:
                servers = instance_index.InstanceIndex(
                    self._servers.get(not_before), "server"
                )
                natives = self._at_home({ref: servers.find(ref) for ref in managed})
        except errors.CloudError as error:
            return observations | dict.fromkeys(managed, Unknown(error))
        wirings: Mapping[str, Wiring] | None = None
        existing = [
            observation.value.id
            for observation in natives.values()
            if isinstance(observation, Seen)
        ]
        if existing:
            wirings = self._wirings_or_none(not_before, existing if singly else None)
        for ref, observation in natives.items():
            observations[ref] = self._translated(observation, wirings)
        return observations

    def look(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[Instance]]:
        """See the protocol."""
        not_managed = {ref: n for ref in refs if (n := self._not_managed(ref))}
        managed = [ref for ref in refs if ref not in not_managed]
        by_ref = {
            ref: provider_id.parse(ref.provider_id).id
            for ref in managed
            if ref.provider_id
        }
        read = self._looked_at(set(by_ref.values()))
        natives = self._at_home({ref: read[by_ref[ref]] for ref in by_ref})
        observations = {
            ref: self._bare(observation) for ref, observation in natives.items()
        }
        return {ref: _NAMELESS for ref in managed} | observations | not_managed

    def _looked_at(
        self, ids: Collection[str]
    ) -> Mapping[str, Observation[native.Server]]:
        """Read servers by whatever takes fewer calls, one by one or by a list."""
        is_recent = self._api.now() - self._listed_at <= RECOUNT_S
        listed = self._listed if is_recent else None
        if not singles.is_list_cheaper(len(ids), listed):
            return singles.servers(self._api, ids, self._deadline())
        try:
            servers = {s.id: s for s in self._servers.get(self._api.now())}
        except errors.CloudError as error:
            return dict.fromkeys(ids, Unknown(error))
        return {
            id_: Seen(servers[id_]) if id_ in servers else Absent(by_id=True)
            for id_ in ids
        }

    def _bare(self, observation: Observation[native.Server]) -> Observation[Instance]:
        return self._translated(observation, None)

    def confirm_absent(self, ref: InstanceRef) -> bool:
        """See the protocol; False for instances of another provider."""
        if self._not_managed(ref):
            return False
        deadline = self._deadline()
        if ref.provider_id:
            server_id = provider_id.parse(ref.provider_id).id
            is_there = lists.has_server(self._api, server_id, deadline)
        else:
            is_there = lists.has_server_named(self._api, ref.node_name, deadline)
        if not is_there:
            self._guard.check("confirm absence")
        return not is_there

    def _are_singles_better(self, refs: Collection[InstanceRef]) -> bool:
        """Decide by the most Nodes ever asked for, and by the last list's length.

        Names need the list anyway; and a list now and then says how long it is.
        """
        self._wanted = max(self._wanted, len(refs))
        if not all(ref.provider_id for ref in refs):
            return False
        if self._api.now() - self._listed_at > RECOUNT_S:
            return False
        return singles.are_better(self._wanted, self._listed)

    def _singles(
        self, refs: Collection[InstanceRef]
    ) -> Mapping[InstanceRef, Observation[native.Server]]:
        deadline = self._deadline()
        ids = {ref: provider_id.parse(ref.provider_id).id for ref in refs}
        observations = singles.servers(self._api, sorted(set(ids.values())), deadline)
        existing = [
            observation.value
            for observation in observations.values()
            if isinstance(observation, Seen)
        ]
        self._learn(existing, deadline)
        return {ref: observations[server_id] for ref, server_id in ids.items()}

    def _at_home(
        self, observations: Mapping[InstanceRef, Observation[native.Server]]
    ) -> Mapping[InstanceRef, Observation[native.Server]]:
        """Remember where ids are seen; make absent unknown anywhere else."""
        try:
            if any(
                isinstance(observations[ref], Seen)
                for ref in observations
                if ref.provider_id
            ):
                self._guard.observed()
            self._guard.check("list servers")
        except errors.CloudError as error:
            return {
                ref: Unknown(error) if isinstance(observation, Absent) else observation
                for ref, observation in observations.items()
            }
        return observations

    def _deadline(self) -> float:
        return self._api.now() + READ_TIMEOUT_S

    def _not_managed(self, ref: InstanceRef) -> NotManaged | None:
        region = self._config.credentials.region
        return provider_id.not_managed(ref, provider_id.OPENSTACK, region)

    def _translated(
        self,
        observation: Observation[native.Server],
        wirings: Mapping[str, Wiring] | None,
    ) -> Observation[Instance]:
        if not isinstance(observation, Seen):
            return observation
        server = observation.value
        wiring = None if wirings is None else wirings.get(server.id, Wiring())
        return Seen(translate.instance(server, self._flavors, wiring, self._config))

    def _wirings_or_none(
        self, not_before: float, server_ids: Collection[str] | None
    ) -> Mapping[str, Wiring] | None:
        """Read the wiring of these servers; None: by the shared list, of all."""
        try:
            if server_ids is not None:
                return lists.wirings_of(self._api, server_ids, self._deadline())
            return self._wirings.get(not_before)
        except errors.CloudError as error:
            # We chose to degrade: existence is known, only the addresses are not.
            self._log.warning("addresses can't be read", error=str(error))
            return None

    def _read_wirings(self) -> Mapping[str, Wiring]:
        return lists.wirings(self._api, self._deadline())

    def _read_servers(self) -> tuple[native.Server, ...]:
        deadline = self._deadline()
        servers = lists.servers(self._api, deadline)
        if not servers:
            self._doubt_emptiness(deadline)
        self._guard.memory.witnesses = tuple(server.id for server in servers)
        self._listed, self._listed_at = len(servers), self._api.now()
        self._learn(servers, deadline)
        return servers

    def _learn(self, servers: Collection[native.Server], deadline: float) -> None:
        """Cache the flavors of these servers, and log warnings about them."""
        self._learn_flavors(servers, deadline)
        for status in {server.status for server in servers} - translate.PHASES.keys():
            if status not in self._odd_statuses:
                self._odd_statuses.add(status)
                self._log.warning("unknown server status", status=status)

    def _doubt_emptiness(self, deadline: float) -> None:
        """Trust an empty list only if servers that it used to show are absent.

        Raises:
            CloudError: one still exists, or that is unknown.
        """
        for server_id in self._guard.memory.witnesses[:WITNESSES]:
            if lists.has_server(self._api, server_id, deadline):
                message = f"the list is empty, but server {server_id} is there"
                raise errors.Unavailable(message, operation="list servers")

    def _learn_flavors(
        self, servers: Collection[native.Server], deadline: float
    ) -> None:
        """List the flavors when one is needed and not known yet."""
        missing = any(
            translate.needs_flavors(server)
            and translate.instance_type(server.flavor, self._flavors) is None
            for server in servers
        )
        if not missing:
            return
        try:
            self._flavors = {**self._flavors, **lists.flavors(self._api, deadline)}
        except errors.CloudError as error:
            self._log.warning("flavors can't be read", error=str(error))


_NAMELESS: Unknown = Unknown(
    errors.Unsupported("it has no provider id yet", operation="get server")
)
