"""openstack-ccm with the Services of a cluster, and a project behind an entrance."""

import contextlib
import dataclasses
import pathlib
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lib.kube import client
from lib.lab import places
from lib.lab.daemons import ccm
from lib.lab.kube import cluster, control_plane
from lib.lab.openstack import accounts, cloud, layout, tenant
from lib.lab.run import processes, waiting
from tests.harness.openstack import balancer_watch, balancers, front
from tests.harness.services import services

_ALONE = "--controllers=service-lb-controller"
"""Nodes are then left as they are: they need no servers."""
_PORTS_APART = 20
_POLL = re.compile(r"^GET +octavia \S+/loadbalancers(/\* |\S* \S+fields=provisioning)")
_OF_ALL = "fields=provisioning_status"
TIMEOUT_S = 30.0
"""Of one call of the cloud: a busy lab takes long for twenty ports."""
PATIENCE_S = {"POST": 20.0, "PUT": 3.0, "DELETE": 6.0}
"""A lab on a busy machine takes minutes for what Octavia does in seconds. Polls that
come so long after the last write are counted apart."""
WRITES = frozenset({"POST", "PUT", "DELETE"})
POLLS_EACH = 4.0
"""Of one change of a load balancer, at most, from its write to ACTIVE; on average, and
without those for which only a slow machine is the reason."""


def conf(
    entrance: front.Front,
    where: places.Places,
    account: accounts.Account,
    settings: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Return the text of a cloud.conf that leads through the entrance.

    settings: of [LoadBalancer]. timeout_s: of one call.

    Source: as `accounts.cloud_conf`, and [Metadata] request-timeout.
    """
    text = accounts.cloud_conf(where, account, entrance.url(layout.KEYSTONE, "/v3"))
    rows = [f"{key} = {value}" for key, value in (settings or {}).items()]
    whole = [text, "[LoadBalancer]"]
    timeout = ["[Metadata]", f"request-timeout = {timeout_s:g}s"]
    return "\n".join([*whole, *rows, *timeout, ""])


@dataclasses.dataclass(frozen=True)
class Replica:
    """One process. place: its own folders and port. words: its command line."""

    place: places.Places
    pex: pathlib.Path
    words: Sequence[str]

    def start(self) -> None:
        """Start it, and wait until it serves."""
        ccm.start(self.place, self.pex, self.words)

    def launch(self) -> None:
        """Start it unless it runs, and don't wait."""
        ccm.launch(self.place, self.pex, self.words)

    def kill(self) -> bool:
        """End it by SIGKILL; False when it does not run."""
        process = processes.find(self.place, ccm.NAME)
        if process is None:
            return False
        process.kill()
        process.wait(10)
        return True

    def stop(self) -> None:
        """End it by SIGTERM."""
        processes.stop(self.place, [ccm.NAME])


@dataclasses.dataclass(frozen=True)
class Room:
    """A project behind an entrance, a cluster, and who serves one from the other.

    services: in a namespace that has the project's name. nodes: addresses of ports in
    the project's network, by the names of the Nodes that may have them. kubeconfig: of
    openstack-ccm's own ServiceAccount.
    """

    where: places.Places
    pex: pathlib.Path
    kubeconfig: pathlib.Path
    account: accounts.Account
    mine: tenant.Tenant
    entrance: front.Front
    api: client.Api
    services: services.Services
    nodes: Mapping[str, str]
    replicas: dict[int, Replica] = dataclasses.field(default_factory=dict)

    def replica(
        self,
        number: int,
        flags: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Replica:
        """Return the replica of this number, 1 to 4, not started; an older one ends.

        settings: of [LoadBalancer]. timeout_s: of one call of the cloud.
        """
        if number in self.replicas:
            self.replicas[number].stop()
        state = self.where.state / f"{self.account.project}-{number}"
        base = self.where.port_base + _PORTS_APART * number
        place = places.Places(self.where.cache, state, base)
        state.mkdir(parents=True, exist_ok=True)
        file = state / "cloud.conf"
        text = conf(self.entrance, self.where, self.account, settings, timeout_s)
        file.write_text(text)
        words = ccm.arguments(place, self.kubeconfig, file, [_ALONE, *flags])
        replica = Replica(place, self.pex, words)
        self.replicas[number] = replica
        return replica

    def add_nodes(self, names: Iterable[str]) -> None:
        """Register Nodes that are not there yet."""
        node_names = services.node_labels(self.api)
        for name in names:
            if name not in node_names:
                services.make_node(self.api, name, [self.nodes[name]])

    def states(self) -> contextlib.AbstractContextManager[balancer_watch.States]:
        """Open the states of the load balancers for as long as the block lasts."""
        return balancer_watch.states(layout.of(self.where), self.mine.connection)

    def close(self) -> None:
        """End the replicas, and remove all Services, Nodes and load balancers."""
        for replica in self.replicas.values():
            replica.stop()
        self.services.abandon()
        services.delete_nodes(self.api, self.nodes)
        balancers.clear(self.mine.connection)


Open = Callable[[str, int], Room]
"""Opens a room, given the name of its project and how many Nodes there may be."""


@contextlib.contextmanager
def room(
    where: places.Places,
    pex: pathlib.Path,
    kubeconfig: pathlib.Path,
    account: accounts.Account,
    node_count: int,
) -> Iterator[Room]:
    """Open a room for as long as the block lasts.

    account: of a project that has a network and nothing else. node_count: of the Nodes
    that may be there; none is yet.

    Raises:
        LabError: the cloud does not answer.
    """
    names = [f"node-{number:02}" for number in range(1, node_count + 1)]
    api = cluster.connect(control_plane.admin_kubeconfig(where))
    with (
        contextlib.closing(cloud.connect(where, account)) as connection,
        front.of(where).opened() as entrance,
    ):
        with cloud.sentences():
            network = connection.network
            inside = network.find_network(tenant.NETWORK, ignore_missing=False)
        addresses = balancers.node_ports(connection, str(inside.id), node_count)
        new_room = Room(
            where,
            pex,
            kubeconfig,
            account,
            tenant.Tenant(connection),
            entrance,
            api,
            services.Services(api, account.project),
            {name: some[0] for name, some in zip(names, addresses, strict=True)},
        )
        try:
            yield new_room
        finally:
            new_room.close()


class Counted:
    """The calls that came through an entrance since a moment.

    Logging in and finding out versions is counted as well.
    """

    def __init__(self, entrance: front.Front) -> None:
        self._entrance = entrance
        self._from = len(entrance.calls)
        self.began = time.monotonic()

    def calls(self) -> list[front.Call]:
        """Return them."""
        return self._entrance.calls[self._from :]

    def writes(self) -> list[front.Call]:
        """Return those that change something; a login changes nothing."""
        return [
            call
            for call in self.calls()
            if call.method in WRITES and call.service != layout.KEYSTONE
        ]

    def polls(self) -> list[front.Call]:
        """Return those that ask whether Octavia is ready with something."""
        return [
            call for call in self.calls() if _POLL.search(f"{kind(call)} {call.path}")
        ]

    def late_polls(self, more_s: float = 0.0) -> int:
        """Count the polls for which only a slow machine is the reason.

        more_s: that Octavia is known to take for a change, beyond what is usual.
        """
        writes = [call for call in self.writes() if call.service == layout.OCTAVIA]
        late = 0
        for poll in self.polls():
            before = [call for call in writes if call.at < poll.at]
            if before:
                last = max(before, key=lambda call: call.at)
                late += poll.at - last.at > PATIENCE_S[last.method] + more_s
        return late

    def polls_each(self, changes: int) -> float:
        """Return the polls for each change of a load balancer, on average.

        changes: how often one turned ACTIVE in the meantime, as `balancer_watch` saw.
        """
        return (len(self.polls()) - self.late_polls()) / changes

    def by_kind(self) -> Mapping[str, int]:
        """Count them by method and path, ids left out."""
        return Counter(kind(call) for call in self.calls())

    def rest(self, quiet_s: float) -> None:
        """Wait until none has come for so long.

        Raises:
            LabError: they do not end.
        """

        def is_quiet() -> bool:
            last = max((call.at for call in self.calls()), default=self.began)
            return time.monotonic() - last >= quiet_s

        waiting.until(lambda: f"calls end: {self.calls()[-10:]}", is_quiet)


def kind(call: front.Call) -> str:
    """Return what a call is, without the ids in it: "GET lbaas/pools/*/members"."""
    path = call.path.partition("?")[0].strip("/")
    parts = ["*" if _is_id(part) else part for part in path.split("/")]
    return f"{call.method:6} {call.service} {'/'.join(parts)}"


def _is_id(part: str) -> bool:
    return len(part) > 30 and part.count("-") >= 4


def lags(
    turned: Iterable[tuple[str, float]], calls: Sequence[front.Call]
) -> list[float]:
    """Return how many seconds after it turned ACTIVE each load balancer was asked for.

    turned: as `balancer_watch.Watch` gives it. What asks for that one by its id, or for
    something under it, counts, and polls of all at once: one process asks for all that
    it waits for. As long as the answer to such a call is under way nobody can ask
    again: how slow a busy Octavia answers is not counted. One that nobody asks for any
    more is left out.
    """
    delays = []
    for id_, at in turned:
        asked = [call for call in calls if id_ in call.path or _OF_ALL in call.path]
        under_way = [call.ended for call in asked if call.at < at < call.ended]
        after = [call.at for call in asked if call.at >= at]
        if after:
            delays.append(max(0.0, min(after) - max([at, *under_way])))
    return delays


def promptness(lags: Sequence[float]) -> str:
    """Describe how soon load balancers were asked for once they were ACTIVE.

    For reading only: it depends on the machine. The bound is asserted on a clock of
    the test, in tests/lib/balancers/flow_test.py. lags: see `lags`.
    """
    rounded = [round(lag, 2) for lag in sorted(lags)]
    median, longest = statistics.median(lags), max(lags)
    figures = f"median {median:.1f} s, {longest:.1f} at most"
    return f"asked after ACTIVE: {figures}; {rounded}"
