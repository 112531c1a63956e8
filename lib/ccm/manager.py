"""A cloud controller manager from its command line to its end.

Order: HTTPS first, then the watch, then the Lease, then the controllers; what is cached
while waiting for the Lease makes the successor quick.
"""

import dataclasses
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import prometheus_client

from lib.ccm import (
    configz,
    flag_table,
    metrics,
    node_controllers,
    options,
    parts,
    route_controllers,
    service_controllers,
)
from lib.daemon import (
    access,
    common_flags,
    counting,
    daemon,
    read_only,
    reopening,
    server_certificate,
    starting,
)
from lib.daemon import metrics as daemon_metrics
from lib.kube import client, election, events, guarded, resources, store
from lib.kube import nodes as kube_nodes
from lib.nodes import model
from lib.process import (
    command_line,
    exchange,
    flags,
    logs,
    shutdown,
    start,
    tls_policy,
)
from lib.process import metrics as process_metrics
from lib.reconcile import metrics as reconcile_metrics

GRACE = daemon.Grace(loops_s=7.0, lease_s=3.0)
"""How long loops may take to stop after the signal; then the release of the Lease."""


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerProgram:
    """The program of a manager.

    provider: name of the cloud, for metrics. connect: opens the cloud; again when
    its files have changed. reference: names of its metrics, shown besides ours.
    disables_load_balancers: "namespace/name" of a ConfigMap that disables them as long
    as it exists; empty if there is none.
    """

    name: str
    version: str
    provider: str
    connect: Callable[[counting.CloudMetrics], reopening.Opened]
    reference: counting.Reference | None = None
    disables_load_balancers: str = ""


def run(
    program: ManagerProgram,
    values: flags.Values,
    manager_options: options.ManagerOptions,
    env: Mapping[str, str],
) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: the configuration can't be used; nothing was started.
    """
    build = process_metrics.Build(program.name, program.version)
    settings = start.StartSettings(
        values[command_line.VERBOSITY],
        values[common_flags.LOGGING_FORMAT],
        values,
        (
            f"{manager_options.lease_namespace}/{manager_options.lease_name}"
            if manager_options.leader_elect
            else ""
        ),
        manager_options.identity,
    )
    registry = starting.begin(build, settings)
    calls = counting.CloudMetrics(program.provider, registry, program.reference)
    cloud = reopening.Reopening(lambda: program.connect(calls))
    reach = starting.Reach(manager_options.kubeconfig, manager_options.master)
    api = starting.connect(build, reach, env, registry)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        manager = Manager(program, values, manager_options, registry, stop)
        manager.ready_with(calls.worked)
        return manager.run(cloud, api, env)


class Manager:
    """The process, from its options to its exit code."""

    def __init__(
        self,
        program: ManagerProgram,
        values: flags.Values,
        manager_options: options.ManagerOptions,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
    ) -> None:
        self._program = program
        self._values = values
        self._options = manager_options
        self._registry = registry
        self._daemon = daemon.Daemon(registry, stop, GRACE)
        self._leader = daemon_metrics.LeaderMetrics(
            manager_options.lease_name, registry
        )
        self._running = metrics.ControllerMetrics(registry)
        self._leading = threading.Event()
        self._log = logs.get(__name__)

    def ready_with(self, worked: threading.Event) -> None:
        """Be ready, once leading, only after the cloud has answered."""

        def check() -> str | None:
            if self._leading.is_set() and not worked.is_set():
                return "no call to the cloud has succeeded yet"
            return None

        self._daemon.probes.add_ready("cloud", check)

    def run(
        self, cloud: reopening.Reopening, api: client.Api, env: Mapping[str, str]
    ) -> int:
        """Serve, watch, wait for the Lease and act, until the signal to stop."""
        self._serve(api)
        lease = self._election(api)
        recorders: dict[str, events.Recorder] = {}
        shared = self._parts(api, lease, recorders)
        controllers = tuple(self._controllers(cloud, shared, env))
        for controller in controllers:
            cloud.after(controller.look_again)
        running: list[daemon.DaemonPart] = [*controllers]
        if controllers:
            running.append(self._watching_nodes(shared.nodes))
        running.append(daemon.Background("watch cloud files", cloud.run))
        for component, recorder in recorders.items():
            running.append(daemon.Background(f"events of {component}", recorder.run))
        return self._daemon.run(running, lambda: self._lead(controllers))

    def _parts(
        self,
        api: client.Api,
        lease: election.Election | None,
        recorders: dict[str, events.Recorder],
    ) -> parts.Parts:
        """Return what all controllers share; their recorders go into `recorders`."""
        permit = self._permit(lease)
        writing = guarded.Guarded(api, permit)
        emitted = daemon_metrics.EventMetrics(self._registry).emitted
        host = platform.node()

        def recorder(component: str) -> events.Recorder:
            if component not in recorders:
                recorders[component] = events.Recorder(
                    writing, component=component, host=host, emitted=emitted
                )
            return recorders[component]

        return parts.Parts(
            reading=api,
            writing=writing,
            nodes=store.Store(api, resources.NODES, kube_nodes.Node),
            recorder=recorder,
            registry=self._registry,
            metrics=reconcile_metrics.ReconcileMetrics(self._registry),
            probes=self._daemon.probes,
            permit=permit,
            unsettled_s=lambda settle_s: lease.unsettled_s(settle_s) if lease else 0.0,
            show_work=lambda work: lease.show(work) if lease else None,
            reference=self._program.reference,
        )

    def _permit(self, lease: election.Election | None) -> guarded.Permit:
        if self._options.dry_run:
            return read_only.refuse
        return guarded.always if lease is None else lease.acting

    def _watching_nodes(self, nodes: store.Store[kube_nodes.Node]) -> daemon.DaemonPart:
        synced = nodes.synced
        self._daemon.probes.add_ready(
            "nodes", lambda: None if synced.is_set() else "the Nodes are not listed yet"
        )
        return daemon.Background("watch nodes", nodes.run)

    def _serve(self, api: client.Api) -> None:
        values = self._values
        files = values[common_flags.TLS_CERT], values[common_flags.TLS_KEY]
        authorities = values[flag_table.CLIENT_CA]
        policy = tls_policy.of(
            values[flag_table.TLS_MIN_VERSION], values[flag_table.TLS_CIPHER_SUITES]
        )
        judge = access.Access(
            api,
            access.AccessSettings(
                values[flag_table.AUTHENTICATION_TTL],
                values[flag_table.AUTHORIZED_TTL],
                values[flag_table.UNAUTHORIZED_TTL],
            ),
        )
        handlers = {**self._daemon.handlers(), configz.PATH: configz.handler(values)}
        open_paths = exchange.OpenPaths.parse(values[flag_table.ALWAYS_ALLOW])
        self._daemon.serve_http(
            (values[common_flags.BIND_ADDRESS], values[flag_table.SECURE_PORT]),
            exchange.HttpRoutes(handlers, judge.authorize, open_paths),
            lambda: server_certificate.choose(files, authorities, policy),
        )

    def _election(self, api: client.Api) -> election.Election | None:
        manager_options = self._options
        if not manager_options.leader_elect:
            return None
        lease = election.Election(
            api,
            namespace=manager_options.lease_namespace,
            name=manager_options.lease_name,
            identity=manager_options.identity,
            lease_s=manager_options.lease_s,
            renew_s=manager_options.renew_s,
            retry_s=manager_options.retry_s,
            on_slow_path=self._leader.slow_path,
        )
        self._daemon.elect(lease)
        return lease

    def _controllers(
        self, cloud: reopening.Reopening, shared: parts.Parts, env: Mapping[str, str]
    ) -> Iterator[parts.Controllers]:
        """Yield the enabled controllers that the cloud supports."""
        settings = model.NodeSettings(
            initialises=options.NODE in self._options.controllers,
            watches_lifecycle=options.LIFECYCLE in self._options.controllers,
            deletes=not env.get("SKIP_NODE_DELETION"),
            limit=self._options.delete_limit,
        )
        has_nodes = settings.initialises or settings.watches_lifecycle
        instances = cloud.part(lambda now: now.instances)
        if instances is not None and has_nodes:
            yield node_controllers.NodeControllers(
                instances,
                shared,
                self._options,
                settings,
                cloud.part(lambda now: now.instance_changes),
            )
        if options.SERVICE in self._options.controllers:
            yield from self._services(cloud, shared)
        if options.ROUTE in self._options.controllers and self._options.routes:
            yield from self._routes(cloud, shared)

    def _services(
        self, cloud: reopening.Reopening, shared: parts.Parts
    ) -> Iterator[parts.Controllers]:
        balancers = cloud.part(lambda now: now.load_balancers)
        if balancers is None:
            self._log.info("load balancers are off in the cloud's configuration")
            return
        yield service_controllers.ServiceControllers(
            balancers,
            shared,
            self._options,
            service_controllers.ServiceSettings(
                f"cloud-provider-{self._program.provider}",
                self._program.disables_load_balancers,
                cloud.part(lambda now: now.load_balancer_changes),
            ),
        )

    def _routes(
        self, cloud: reopening.Reopening, shared: parts.Parts
    ) -> Iterator[parts.Controllers]:
        tables = cloud.part(lambda now: now.routes)
        if tables is None:
            self._log.info("routes are off: the cloud's configuration has no router")
            return
        yield route_controllers.RouteControllers(tables, shared, self._options)

    def _lead(self, controllers: Sequence[parts.Controllers]) -> None:
        """Record that the controllers act from now on."""
        self._leading.set()
        if self._options.dry_run:
            self._log.info("dry run: nothing is written, no lease is taken")
        else:
            self._leader.leading()
        for controller in controllers:
            for name in controller.names:
                self._running.started(flag_table.CONTROLLERS[name])
