"""An infrastructure provider of Cluster API, from its command line to its end.

Order: probes and metrics first, then the watches, then the Lease, then the flows; what
is cached while waiting for the Lease makes the successor quick.
"""

import dataclasses
import platform
import threading
import urllib.parse
from collections.abc import Callable, Mapping

import prometheus_client

from lib.capi import controllers
from lib.capi.options import ProviderOptions
from lib.capi.provider_parts import ProviderKinds, ProviderParts, WatchedKinds
from lib.cloud.machines import ReadBootstrap
from lib.daemon import (
    access,
    common_flags,
    counting,
    daemon,
    metrics,
    read_only,
    reopening,
    server_certificate,
    starting,
)
from lib.kube import client, election, events, guarded
from lib.machines import bootstrap
from lib.machines.kinds import ControlPlaneEndpoint
from lib.process import command_line, exchange, logs, shutdown, start
from lib.process import metrics as process_metrics
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import runner

GRACE = daemon.Grace(loops_s=7.0, lease_s=3.0)
"""How long loops may take to stop after the signal; then the release of the Lease."""
HTTPS_PORT = 443


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderProgram:
    """The program of a provider.

    provider: name of the cloud, for metrics. cluster_id: part of every ownership tag.
    connect: opens the cloud; again when its files have changed.
    """

    name: str
    version: str
    provider: str
    cluster_id: str
    kinds: ProviderKinds
    connect: Callable[[counting.CloudMetrics, ReadBootstrap], reopening.Opened]


def run(
    program: ProviderProgram, options: ProviderOptions, env: Mapping[str, str]
) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: the configuration cannot be used; nothing was started.
    """
    build = process_metrics.Build(program.name, program.version)
    settings = start.StartSettings(
        options.values[command_line.VERBOSITY],
        options.values[common_flags.LOGGING_FORMAT],
        options.values,
        "/".join(options.lease or ()),
        options.identity,
    )
    registry = starting.begin(build, settings)
    reach = starting.Reach(options.kubeconfig)
    api = starting.connect(build, reach, env, registry)
    calls = counting.CloudMetrics(program.provider, registry)
    reader = bootstrap.Reader(api)
    cloud = reopening.Reopening(lambda: program.connect(calls, reader))
    stop = threading.Event()
    with shutdown.on_signal(stop):
        provider = ProviderDaemon(program, options, registry, stop)
        return provider.run(cloud, api, endpoint_of(api.host), calls.worked)


def endpoint_of(url: str) -> ControlPlaneEndpoint:
    """Return host and port of the URL of an API server."""
    parts = urllib.parse.urlsplit(url)
    return ControlPlaneEndpoint(parts.hostname or "", parts.port or HTTPS_PORT)


class ProviderDaemon:
    """The process, from its options to its exit code."""

    def __init__(
        self,
        program: ProviderProgram,
        options: ProviderOptions,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
    ) -> None:
        self._program = program
        self._options = options
        self._registry = registry
        self._daemon = daemon.Daemon(registry, stop, GRACE)
        self._leading = threading.Event()
        self._leader: metrics.LeaderMetrics | None = None
        self._log = logs.get(__name__)

    def run(
        self,
        cloud: reopening.Reopening,
        api: client.Api,
        endpoint: ControlPlaneEndpoint,
        worked: threading.Event,
    ) -> int:
        """Serve, watch, wait for the Lease and act, until the signal to stop.

        endpoint: of the API server, for clusters without one. worked: set once the
        cloud has answered.
        """
        self._serve(api)
        lease = self._election(api)
        shared = self._parts(cloud, api, lease)
        settings = runner.RunnerSettings(
            self._options.workers,
            controllers.BATCH_MAX,
            controllers.BATCH_S,
            self._options.dry_run,
        )
        clusters = controllers.ClusterControllers(
            shared, settings, endpoint, self._options.zones
        )
        machines = controllers.MachineControllers(
            shared, settings, self._options.sync_s
        )
        cloud.after(clusters.look_again)
        cloud.after(machines.look_again)
        self._daemon.probes.add_ready("watches", shared.stores.missing)
        kept = shared.stores.machines.machines

        def cloud_check() -> str | None:
            """Without machines, or the Lease, the cloud is not called."""
            if self._leading.is_set() and kept.items() and not worked.is_set():
                return "no call to the cloud has succeeded yet"
            return None

        self._daemon.probes.add_ready("cloud", cloud_check)
        running: tuple[daemon.DaemonPart, ...] = (
            clusters,
            machines,
            controllers.TemplateControllers(shared, settings),
            shared.stores,
            daemon.Background("watch cloud files", cloud.run),
            daemon.Background("events", shared.recorder.run),
        )
        return self._daemon.run(running, self._lead)

    def _parts(
        self,
        cloud: reopening.Reopening,
        api: client.Api,
        lease: election.Election | None,
    ) -> ProviderParts:
        """Return what the controllers share.

        Raises:
            TypeError: the cloud has no machines.
        """
        permit = self._permit(lease)
        writing = guarded.Guarded(api, permit)
        machines = cloud.part(lambda now: now.machines)
        if machines is None:
            raise TypeError(f"the cloud {self._program.provider} has no machines")
        options, program = self._options, self._program
        return ProviderParts(
            reading=api,
            writing=writing,
            kinds=program.kinds,
            stores=WatchedKinds(api, program.kinds, options.namespace),
            settings=options.settings(program.cluster_id),
            machines=machines,
            places=cloud.part(lambda now: now.machine_clusters),
            changes=cloud.part(lambda now: now.machine_changes),
            recorder=events.Recorder(
                writing,
                component=program.name,
                host=platform.node(),
                emitted=metrics.EventMetrics(self._registry).emitted,
            ),
            registry=self._registry,
            metrics=reconcile_metrics.ReconcileMetrics(self._registry),
            probes=self._daemon.probes,
            permit=permit,
            unsettled_s=lambda settle_s: lease.unsettled_s(settle_s) if lease else 0.0,
        )

    def _permit(self, lease: election.Election | None) -> guarded.Permit:
        if self._options.dry_run:
            return read_only.refuse
        return guarded.always if lease is None else lease.acting

    def _election(self, api: client.Api) -> election.Election | None:
        if self._options.lease is None:
            return None
        namespace, name = self._options.lease
        self._leader = metrics.LeaderMetrics(name, self._registry)
        lease = election.Election(
            api,
            namespace=namespace,
            name=name,
            identity=self._options.identity,
            on_slow_path=self._leader.slow_path,
        )
        self._daemon.elect(lease)
        return lease

    def _lead(self) -> None:
        """Record that the controllers act from now on."""
        self._leading.set()
        if self._options.dry_run:
            self._log.info("dry run: nothing is written, no lease is taken")
        elif self._leader is not None:
            self._leader.leading()

    def _serve(self, api: client.Api) -> None:
        options, handlers = self._options, self._daemon.handlers()
        if options.probes is not None:
            probes = {path: handlers[path] for path in exchange.PROBE_PATHS}
            routes = exchange.HttpRoutes(probes, exchange.everybody)
            self._daemon.serve_http(options.probes, routes)
        if options.metrics is None:
            return
        if not options.is_secure:
            routes = exchange.HttpRoutes(handlers, exchange.everybody)
            self._daemon.serve_http(options.metrics, routes)
            return
        judge = access.Access(api, access.AccessSettings())
        self._daemon.serve_http(
            options.metrics,
            exchange.HttpRoutes(handlers, judge.authorize),
            lambda: server_certificate.choose(options.certificate),
        )
