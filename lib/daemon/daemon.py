"""One life of a daemon: its probes, servers, loops and Lease, and its exit code.

Order: servers first, then what watches, then the Lease, then what acts. At the end what
runs outside the loops is drained, then the loops end, only then the Lease is released,
and the servers are the last. What a daemon does is a list of parts; nothing here knows
what they are.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import prometheus_client

from lib.daemon import leadership
from lib.kube import election
from lib.process import (
    exchange,
    logs,
    probes,
    serving,
    shutdown,
    slis,
    standard_endpoints,
)
from lib.reconcile import loops

OVERDUE_S = 20.0
"""How long a process may run after the end of its Lease before liveness fails.

Source: k8s.io/cloud-provider app.Run, NewLeaderHealthzAdaptor."""


Drain = Callable[[float], tuple[str, ...]]
"""Ends work outside the loops, such as child processes.

Called with the seconds it may take; returns the names of what has not ended."""


class DaemonPart(Protocol):
    """Something that a daemon does."""

    def watch(self, loop: loops.Loops) -> None:
        """Begin to follow what concerns it; also before the Lease is ours."""
        ...

    def start(self, loop: loops.Loops) -> None:
        """Begin to act."""
        ...


class DaemonServer(Protocol):
    """Something that answers clients while the daemon runs."""

    def start(self) -> None:
        """Begin to answer."""
        ...

    def stop(self) -> None:
        """End; returns when no client is answered any more, or soon after."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Background:
    """A part that is one loop, with or without the Lease."""

    name: str
    run: loops.Loop

    def watch(self, loop: loops.Loops) -> None:
        """Start the loop."""
        loop.start(self.name, self.run)

    def start(self, loop: loops.Loops) -> None:
        """Start nothing more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Acting:
    """A part that is one loop, which runs only with the Lease."""

    name: str
    run: loops.Loop

    def watch(self, loop: loops.Loops) -> None:
        """Start nothing yet."""

    def start(self, loop: loops.Loops) -> None:
        """Start the loop."""
        loop.start(self.name, self.run)


@dataclasses.dataclass(frozen=True, slots=True)
class Grace:
    """Seconds for the loops at the end, for the Lease, and first for each drain."""

    loops_s: float
    lease_s: float = 0.0
    drain_s: float = 0.0


class Daemon:
    """One life of the process. Made first; its parts use its registry and probes."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
        grace: Grace,
    ) -> None:
        """stop: ends the daemon; it is also set when a loop has failed."""
        self.registry = registry
        self.probes = probes.Probes((health := slis.Slis()).observe)
        self._health = health.registry
        self._stop = stop
        self._grace = grace
        self._servers: list[DaemonServer] = []
        self._drains: list[Drain] = []
        self._leadership = leadership.Leadership(None, stop)
        self._log = logs.get(__name__)

    def handlers(self) -> Mapping[str, exchange.Handler]:
        """Return the handlers of the paths that every daemon serves."""
        return standard_endpoints.standard(self.probes, self.registry, self._health)

    def serve(self, server: DaemonServer) -> None:
        """Answer clients by a server as long as the daemon runs."""
        self._servers.append(server)

    def serve_http(
        self,
        address: tuple[str, int],
        routes: exchange.HttpRoutes,
        certificate: Callable[[], serving.Certificate] | None = None,
        limits: exchange.Limits | None = None,
    ) -> None:
        """Serve HTTPS with a certificate, else plain HTTP; on port 0 nothing.

        Raises:
            ConfigError: there is no such address here, or the port is taken.
        """
        listener = serving.listen(*address)
        if listener is None:
            return
        with contextlib.ExitStack() as failed:
            failed.enter_context(listener)
            shown = None if certificate is None else certificate()
            failed.pop_all()
        self.serve(serving.HttpServer(listener, shown, routes, limits))

    def drain(self, drain: Drain) -> None:
        """Call `drain` at the end, before the loops end.

        The Lease is not released while something that was drained still runs: it may
        write without a permit, and the next holder must not begin before it expires.
        """
        self._drains.append(drain)

    def elect(self, lease: election.Election) -> None:
        """Act only while the Lease is held."""
        self._leadership = leadership.Leadership(lease, self._stop)
        self.probes.add_live("leaderElection", lambda: _overdue(lease))

    def run(
        self, parts: Sequence[DaemonPart], on_leading: Callable[[], None] | None = None
    ) -> int:
        """Serve, watch, wait for the Lease, act; until `stop` is set.

        on_leading: called before the parts begin to act. Returns the exit code.
        """
        group = loops.Loops(self._stop)

        def begin() -> None:
            if on_leading is not None:
                on_leading()
            for part in parts:
                part.start(group)

        for server in self._servers:
            server.start()
        for part in parts:
            part.watch(group)
        self._leadership.begin(begin)
        self._stop.wait()
        self._end(group)
        failed = group.failed.is_set() or self._leadership.has_failed
        return shutdown.Exit.FAILURE if failed else shutdown.Exit.OK

    def _end(self, group: loops.Loops) -> None:
        """End drains, then loops, and only then release the Lease."""
        running = [name for end in self._drains for name in end(self._grace.drain_s)]
        loops_left = group.join(self._grace.loops_s)
        loops_left += self._leadership.end(self._grace.lease_s, may_release=not running)
        if left := (*running, *loops_left):
            self._log.warning(
                "threads still running after the shutdown deadline", threads=left
            )
        for server in reversed(self._servers):
            server.stop()


def _overdue(lease: election.Election) -> str | None:
    overdue_s = lease.overdue_s()
    if overdue_s <= OVERDUE_S:
        return None
    return f"the Lease was over {overdue_s:.0f} s ago, and this process still runs"
