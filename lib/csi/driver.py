"""The controller plugin: from its command line to its exit."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping

import prometheus_client

from lib.cloud.volumes import Feature, Placing
from lib.csi import (
    claims,
    clouds,
    controller,
    driver_nodes,
    identity_rpcs,
    identity_service,
    messages,
    options,
    server,
    services,
)
from lib.daemon import (
    common_flags,
    counting,
    daemon,
    reopening,
    starting,
)
from lib.daemon import metrics as daemon_metrics
from lib.kube import client
from lib.process import (
    arenas,
    command_line,
    config,
    exchange,
    flags,
    logs,
    shutdown,
    start,
)
from lib.process import metrics as process_metrics
from lib.reconcile import metrics as reconcile_metrics
from lib.volumes import flow

_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""Set in every pod. Source: Kubernetes, "Accessing the Kubernetes API from a Pod"."""
GRACE_S = 5.0
"""Seconds for running calls to end once the process must exit."""

Open = Callable[[counting.CloudMetrics], reopening.Opened]
Openers = Mapping[str, Open]
"""Opens each cloud, by its name; called again when its files have changed."""


@dataclasses.dataclass(frozen=True, slots=True)
class DriverProgram:
    """Description of the plugin.

    provider: the cloud's name, for metrics. driver: the name in CSIDriver and
    StorageClasses. features: of the provider. zone_key: the topology segment; empty:
    volumes are accessible from everywhere. cluster: ID in the ownership metadata of
    volumes, where no flag sets it. reference: its metrics are exported, too. nodes:
    those on which the driver runs, read where there is an API server; None: not needed.
    """

    name: str
    version: str
    provider: str
    driver: str
    features: frozenset[Feature]
    openers: Openers
    zone_key: str = ""
    cluster: str = ""
    reference: counting.Reference | None = None
    nodes: driver_nodes.DriverNodes | None = None


def run(
    program: DriverProgram,
    values: flags.Values,
    driver_options: options.DriverOptions,
    env: Mapping[str, str],
) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: the configuration can't be used; nothing was started.
    """
    arenas.limit()
    build = process_metrics.Build(program.name, program.version)
    written = values[common_flags.LOGGING_FORMAT]
    settings = start.StartSettings(values[command_line.VERBOSITY], written, values)
    registry = starting.begin(build, settings)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        return Plugin(program, driver_options, registry, stop).run(env)


@dataclasses.dataclass(frozen=True, slots=True)
class PluginTimes:
    """grace_s: for calls under way at the end. started: see `flow.VolumesFlow`."""

    grace_s: float = GRACE_S
    started: float | None = None


class Plugin:
    """The running plugin."""

    def __init__(
        self,
        program: DriverProgram,
        driver_options: options.DriverOptions,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
        times: PluginTimes | None = None,
    ) -> None:
        self._times = times or PluginTimes()
        self._program = program
        self._build = process_metrics.Build(program.name, program.version)
        self._options = driver_options
        self._registry = registry
        self._daemon = daemon.Daemon(registry, stop, daemon.Grace(loops_s=1.0))
        self._parts: list[daemon.DaemonPart] = []

    def run(self, env: Mapping[str, str]) -> int:
        """Serve until stopped."""
        description = identity_service.DriverDescription(
            self._program.driver,
            self._program.version,
            self._options.has_controller,
            self._has_zones,
            self._program.features,
        )
        offered = [identity_rpcs.rpcs(identity_service.IdentityService(description))]
        if self._options.has_controller:
            offered.append(services.controller(self._controller(env)))
        counted = server.RpcMetrics(self._program.driver, self._registry)
        rpcs = server.RpcServer(self._options.endpoint, tuple(offered), counted)
        if self._options.http is not None:
            routes = exchange.HttpRoutes(self._daemon.handlers(), exchange.everybody)
            self._daemon.serve_http(self._options.http, routes)
        self._daemon.serve(_Rpcs(rpcs, self._options.endpoint, self._times.grace_s))
        return self._daemon.run(self._parts)

    @property
    def _has_zones(self) -> bool:
        return self._options.has_zones and bool(self._program.zone_key)

    def _controller(self, env: Mapping[str, str]) -> controller.Controller:
        calls = counting.CloudMetrics(
            self._program.provider, self._registry, self._program.reference
        )
        reconciled = reconcile_metrics.ReconcileMetrics(self._registry)
        writes = daemon_metrics.WriteMetrics(self._registry)
        flows: dict[str, flow.VolumesFlow] = {}
        for name, opener in self._program.openers.items():
            cloud = reopening.Reopening(functools.partial(opener, calls))
            watching = daemon.Background(f"watch files of cloud {name!r}", cloud.run)
            self._parts.append(watching)
            volumes = cloud.part(lambda now: now.volumes)
            if volumes is None:
                raise TypeError(f"cloud {name!r} has no volumes")
            flows[name] = flow.VolumesFlow(
                volumes, started=self._times.started, metrics=reconciled
            )
            flows[name].limit_writes(self._options.max_writes)
            if isinstance(volumes(), Placing):
                prefix = f"{name}/" if name else ""
                for what, attaches in (("volumes", False), ("attachments", True)):
                    standing = functools.partial(
                        flows[name].standing, attaches=attaches
                    )
                    writes.watch(f"{prefix}{what}", standing)
            cloud.after(flows[name].follow)
        api = self._cluster_api(env)
        if api is not None and self._program.nodes is not None:
            self._program.nodes.use(api)
        topology = messages.Topology(self._program.zone_key, self._has_zones)
        settings = controller.ControllerSettings(
            self._program.cluster or self._options.cluster,
            topology,
            self._annotations(api),
            self._program.features,
        )
        return controller.Controller(clouds.Clouds(flows), settings)

    def _cluster_api(self, env: Mapping[str, str]) -> client.Api | None:
        """Return the API server of the cluster; None if there is none, or no access.

        Raises:
            ConfigError: claims are to be read from it, and it cannot be used.
        """
        reach = starting.Reach(self._options.kubeconfig, self._options.master)
        has_one = reach.kubeconfig or reach.master or env.get(_IN_CLUSTER)
        if not has_one and not self._options.reads_claims:
            return None
        try:
            return starting.connect(self._build, reach, env, self._registry)
        except config.ConfigError as error:
            if self._options.reads_claims:
                raise
            logs.get(__name__).warning("no access to the cluster", err=str(error))
            return None

    def _annotations(self, api: client.Api | None) -> controller.Annotations:
        if api is None or not self._options.reads_claims:
            return controller.no_annotations
        return claims.Claims(api).annotations


@dataclasses.dataclass(frozen=True, slots=True)
class _Rpcs:
    """The server of RPCs, as a server of the daemon."""

    rpcs: server.RpcServer
    endpoint: str
    grace_s: float

    def start(self) -> None:
        self.rpcs.start()
        logs.get(__name__).info("serving", endpoint=self.endpoint)

    def stop(self) -> None:
        self.rpcs.stop(self.grace_s)
