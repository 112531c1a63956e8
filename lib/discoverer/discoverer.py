"""cloud-data-discoverer: serves, and runs the cycles of discovery."""

import dataclasses
import html
import threading
from collections.abc import Callable, Mapping

import prometheus_client

from lib.cloud import catalog, protocol
from lib.cloud.model import Seen, Unknown
from lib.cloud.support import source
from lib.daemon import (
    access,
    common_flags,
    counting,
    daemon,
    reopening,
    server_certificate,
    starting,
)
from lib.discoverer import metrics
from lib.discoverer.options import DiscovererOptions
from lib.discovery import act, flow, observe
from lib.kube import client
from lib.process import (
    exchange,
    kinds,
    logs,
    probes,
    shutdown,
    start,
)
from lib.process import metrics as process_metrics
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import periodic, queue, runner

BACKOFF = queue.Backoff(base_s=3.0, max_s=300.0, jitter=0.3)
"""Backoff of a failed step; the next cycle begins at its time."""
STALL_S = 300.0
"""Longest duration of a cycle, after which the process is not alive."""
REFUSED_S = 360.0
"""How long the API server may refuse a step before /healthz fails.

Source: the duration of the reference's 15 attempts."""
CONNECTIONS = 4
"""Maximum number of connections to the API server."""
GRACE = daemon.Grace(loops_s=10.0)
"""Time for running steps after the stop. Source: the reference's own."""


@dataclasses.dataclass(frozen=True, slots=True)
class DiscovererProgram:
    """Description of the discoverer.

    connect: opens the cloud without a request. reference: its metrics are exported,
    too.
    """

    name: str
    version: str
    provider: str
    connect: Callable[[counting.CloudMetrics], source.Opened]
    reference: counting.Reference | None = None


def run(
    program: DiscovererProgram, options: DiscovererOptions, env: Mapping[str, str]
) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: the configuration can't be used; nothing was started.
    """
    build = process_metrics.Build(program.name, program.version)
    written = options.values[common_flags.LOGGING_FORMAT]
    settings = start.StartSettings(options.verbosity, written, options.values)
    registry = starting.begin(build, settings)
    calls = counting.CloudMetrics(program.provider, registry, program.reference)
    cloud = reopening.Reopening(lambda: program.connect(calls))
    reach = starting.Reach(options.kubeconfig, pool_size=CONNECTIONS)
    api = starting.connect(build, reach, env, registry)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        in_use = _in_use(program.provider, cloud)
        discoverer = Discoverer(in_use, api, options, registry, stop)
        discoverer.follow(cloud)
        discoverer.ready_with(calls.worked)
        return discoverer.run()


class _CurrentCatalog:
    """Catalog of the cloud that is in use when a read begins."""

    def __init__(self, current: Callable[[], catalog.Catalog]) -> None:
        self._current = current

    @property
    def parts(self) -> frozenset[catalog.CatalogPart]:
        """The parts that the cloud has."""
        return self._current().parts

    def read(self, request: catalog.CatalogRequest) -> catalog.CatalogReading:
        """Read these parts; see `catalog.Catalog`."""
        return self._current().read(request)

    def has_storage_type(self, type_id: str) -> Seen[bool] | Unknown:
        """Report whether a storage type exists."""
        return self._current().has_storage_type(type_id)


def _in_use(name: str, cloud: reopening.Reopening) -> protocol.Cloud:
    """Return a cloud whose catalog is that of the configuration in use."""
    current = cloud.part(lambda opened: opened.catalog)
    has_catalog = None if current is None else _CurrentCatalog(current)
    return protocol.Cloud(name, catalog=has_catalog)


class Discoverer:
    """The running discoverer."""

    def __init__(
        self,
        cloud: protocol.Cloud,
        api: client.Api,
        options: DiscovererOptions,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
    ) -> None:
        if cloud.catalog is None:
            raise TypeError(f"the cloud {cloud.name} has no catalog")
        self._api = api
        self._options = options
        self._daemon = daemon.Daemon(registry, stop, GRACE)
        self._log = logs.get(__name__)
        settings = dataclasses.replace(options.settings, parts=cloud.catalog.parts)
        self._steps = settings.steps
        self._refused_s = REFUSED_S
        self._metrics = metrics.DiscoveryMetrics(
            registry, settings.steps, signals=settings.provider.signals(registry)
        )
        self._passes = reconcile_metrics.ReconcileMetrics(registry)
        self._queue = queue.Queue(BACKOFF)
        observer = observe.CatalogObserver(
            cloud.catalog, api, settings, self._metrics.shown
        )
        actor = act.DiscoveryActor(api, self._metrics, settings.provider)
        heartbeat = probes.Heartbeat()
        self._runner = runner.Runner(
            flow.DiscoveryFlow(observer, actor, settings, self._metrics),
            self._queue,
            self._passes,
            # All steps that are due are read together, and carried out in their order.
            runner.RunnerSettings(workers=1, batch_max=len(settings.steps)),
            runner.Clocks(beat=heartbeat.beat),
        )
        self._loops: list[daemon.Background] = []
        self._daemon.probes.add_live("discovery", heartbeat.within(STALL_S))

    def ready_with(self, worked: threading.Event) -> None:
        """Be ready only after the cloud has answered once."""
        self._daemon.probes.add_ready(
            "cloud",
            lambda: None if worked.is_set() else "no call to the cloud has succeeded",
        )

    def follow(self, cloud: reopening.Reopening) -> None:
        """Open the cloud again when its files change, and begin a cycle then."""
        cloud.after(self._begin)
        self._loops.append(daemon.Background("watch cloud files", cloud.run))

    def unwell_after(self, refused_s: float) -> None:
        """Set after how many seconds of refusals by the API server /healthz fails."""
        self._refused_s = refused_s

    def run(self) -> int:
        """Serve, and run cycles, until `stop` is set."""
        self._serve()
        if not self._options.settings.cluster_id:
            self._log.warning("CLUSTER_UUID: not set: orphaned disks are not detected")
        cycle = periodic.Periodic(
            "cycle", self._options.period_s, self._begin, self._passes, sliding=False
        )
        return self._daemon.run(
            [
                daemon.Acting("discovery", self._runner.run),
                daemon.Acting("cycle", cycle.run),
                *self._loops,
            ]
        )

    def _begin(self) -> None:
        """Make every step due, in order."""
        for step in self._steps:
            self._queue.add(step.value, flow.CYCLE)

    def _serve(self) -> None:
        plain, secure = self._options.plain, self._options.secure
        handlers = self._handlers()
        judge = access.Access(
            self._api, access.AccessSettings(resource=self._options.guarded_by)
        )
        self._daemon.serve_http(
            (plain.address, plain.port),
            exchange.HttpRoutes(handlers, exchange.everybody),
        )
        self._daemon.serve_http(
            (secure.address, secure.port),
            exchange.HttpRoutes(handlers, judge.authorize),
            lambda: server_certificate.choose(self._options.tls_files),
        )

    def _handlers(self) -> Mapping[str, exchange.Handler]:
        page = _page(self._options.period_s)
        return {
            **self._daemon.handlers(),
            "/healthz": self._health,
            "/": lambda request: exchange.Reply(page, content_type=_HTML),
        }

    def _health(self, request: exchange.Request) -> exchange.Reply:
        """Answer like the reference, but recover when the step succeeds again."""
        is_alive = self._daemon.probes.live(request.query, "healthz").is_well
        is_taken = self._metrics.refused_for_s() < self._refused_s
        if is_alive and is_taken:
            return exchange.Reply(b"ok")
        return exchange.Reply(b"false", 503)


_HTML = "text/html; charset=utf-8"


def _page(period_s: float) -> bytes:
    every = html.escape(kinds.show_duration(period_s))
    return (
        "<!DOCTYPE html><title>cloud-data-discoverer</title>"
        f"<h1>cloud-data-discoverer</h1><p>Discovers every {every}.</p>"
        '<p><a href="/metrics">Metrics</a></p>\n'
    ).encode()
