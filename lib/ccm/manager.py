"""A cloud controller manager from its command line to its end.

Order: HTTPS first, then the watch, then the Lease, then the controllers; what is cached
while waiting for the Lease makes the successor quick.
"""

import dataclasses
import platform
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import prometheus_client

from lib.ccm import (
    configz,
    dry,
    flag_table,
    metrics,
    node_controllers,
    options,
    parts,
    service_controllers,
)
from lib.cloud import protocol
from lib.daemon import (
    access,
    common_flags,
    counting,
    leadership,
    reopening,
    server_certificate,
    starting,
)
from lib.kube import client, election, events, guarded, resources, store
from lib.kube import nodes as kube_nodes
from lib.nodes import model
from lib.process import (
    command_line,
    endpoints,
    exchange,
    flags,
    logs,
    probes,
    serving,
    shutdown,
    slis,
)
from lib.process import metrics as process_metrics
from lib.reconcile import loops
from lib.reconcile import metrics as reconcile_metrics

LAST_S = 7.0
LAST_LEASE_S = 3.0
"""How long all that acts may take to end, once told; and then the release."""
OVERDUE_S = 20.0
"""How long past the end of its Lease a process may still run before it is dead.

Source: k8s.io/cloud-provider app.Run, NewLeaderHealthzAdaptor."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """Which manager this is.

    provider: the cloud's name, for metrics. connect: opens the cloud; called again when
    its files have changed. reference: whose metrics are shown besides ours.
    """

    name: str
    version: str
    provider: str
    connect: Callable[[counting.CloudMetrics], reopening.Opened]
    reference: counting.Reference | None = None


def run(
    program: Program,
    values: flags.Values,
    wanted: options.Options,
    env: Mapping[str, str],
) -> int:
    """Run until told to stop; give the exit code.

    Raises:
        ConfigError: the configuration can't be used; nothing was started.
    """
    written = values[common_flags.LOGGING_FORMAT]
    starting.configure_logs(program.name, values[command_line.VERBOSITY], written)
    flags.warn(values, logs.get(__name__))
    build = process_metrics.Build(program.name, program.version)
    registry = process_metrics.new_registry(build)
    calls = counting.CloudMetrics(program.provider, registry, program.reference)
    cloud = reopening.Reopening(lambda: program.connect(calls))
    reach = starting.Reach(wanted.kubeconfig, wanted.master)
    api = starting.connect(build, reach, env, registry)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        manager = Manager(program, values, wanted, registry, stop)
        manager.ready_with(calls.worked)
        return manager.run(cloud, api, env)


class Manager:
    """One life of the process, from its options to its exit code."""

    def __init__(
        self,
        program: Program,
        values: flags.Values,
        wanted: options.Options,
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
    ) -> None:
        self._program = program
        self._values = values
        self._wanted = wanted
        self._registry = registry
        self._stop = stop
        self._slis = slis.Slis()
        self._probes = probes.Probes(self._slis.observe)
        self._leader = metrics.LeaderMetrics(wanted.lease_name, registry)
        self._running = metrics.ControllerMetrics(registry)
        self._loops = loops.Loops(stop)
        self._leading = threading.Event()
        self._log = logs.get(__name__)

    def ready_with(self, worked: threading.Event) -> None:
        """Be ready, once leading, only after the cloud has answered."""

        def check() -> str | None:
            if self._leading.is_set() and not worked.is_set():
                return "no call to the cloud has succeeded yet"
            return None

        self._probes.add_ready("cloud", check)

    def run(
        self, cloud: reopening.Reopening, api: client.Api, env: Mapping[str, str]
    ) -> int:
        """Serve, watch, wait for the Lease, act; until told to stop."""
        server = self._server(api)
        lease = self._election(api)
        if server is not None:
            server.start()
        recorders: dict[str, events.Recorder] = {}
        shared = self._parts(api, lease, recorders)
        controllers = tuple(self._controllers(cloud.cloud(), shared, env))
        for one in controllers:
            one.watch(self._loops)
            cloud.after(one.look_again)
        if controllers:
            self._watch_nodes(shared.nodes)
        self._loops.start("watch cloud files", cloud.run)
        for component, recorder in recorders.items():
            self._loops.start(f"events of {component}", recorder.run)
        leading = leadership.Leadership(lease, self._wanted.lease_name, self._stop)
        leading.begin(lambda: self._start(controllers))
        self._stop.wait()
        self._end(leading)
        if server is not None:
            server.stop()
        failed = self._loops.failed.is_set() or leading.has_failed
        return shutdown.Exit.FAILURE if failed else shutdown.Exit.OK

    def _end(self, leading: leadership.Leadership) -> None:
        """Let what is under way end, and only then give the Lease away."""
        left = self._loops.join(LAST_S)
        left += leading.end(LAST_LEASE_S)
        if left:
            self._log.warning("loops were left behind", loops=left)

    def _parts(
        self,
        api: client.Api,
        lease: election.Election | None,
        recorders: dict[str, events.Recorder],
    ) -> parts.Parts:
        """Give what all controllers share; their recorders are put into `recorders`."""
        permit = self._permit(lease)
        writing = guarded.Guarded(api, permit)
        emitted = metrics.EventMetrics(self._registry).emitted
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
            metrics=reconcile_metrics.Metrics(self._registry),
            probes=self._probes,
            permit=permit,
            create_in_s=lambda: lease.create_in_s() if lease is not None else 0.0,
            reference=self._program.reference,
        )

    def _permit(self, lease: election.Election | None) -> guarded.Permit:
        if self._wanted.dry_run:
            return dry.refuse
        return parts.always if lease is None else lease.acting

    def _watch_nodes(self, nodes: store.Store[kube_nodes.Node]) -> None:
        synced = nodes.synced
        self._probes.add_ready(
            "nodes", lambda: None if synced.is_set() else "the Nodes are not listed yet"
        )
        self._loops.start("watch nodes", nodes.run)

    def _server(self, api: client.Api) -> serving.Server | None:
        values = self._values
        listener = serving.listen(
            values[common_flags.BIND_ADDRESS], values[flag_table.SECURE_PORT]
        )
        if listener is None:
            return None
        certificate = server_certificate.choose(
            (values[common_flags.TLS_CERT], values[common_flags.TLS_KEY]),
            values[flag_table.CLIENT_CA],
        )
        judge = access.Access(
            api,
            access.Settings(
                values[flag_table.AUTHENTICATION_TTL],
                values[flag_table.AUTHORIZED_TTL],
                values[flag_table.UNAUTHORIZED_TTL],
            ),
        )
        handlers = {
            **endpoints.standard(self._probes, self._registry, self._slis.registry),
            configz.PATH: configz.handler(values),
        }
        open_paths = exchange.OpenPaths.parse(values[flag_table.ALWAYS_ALLOW])
        routes = exchange.Routes(handlers, judge.authorize, open_paths)
        return serving.Server(listener, certificate, routes)

    def _election(self, api: client.Api) -> election.Election | None:
        wanted = self._wanted
        if not wanted.leader_elect:
            return None
        lease = election.Election(
            api,
            namespace=wanted.lease_namespace,
            name=wanted.lease_name,
            identity=f"{platform.node()}_{uuid.uuid4()}",
            lease_s=wanted.lease_s,
            renew_s=wanted.renew_s,
            retry_s=wanted.retry_s,
            on_slow_path=self._leader.slow_path,
        )
        self._probes.add_live("leaderElection", lambda: _overdue(lease))
        return lease

    def _controllers(
        self, cloud: protocol.Cloud, shared: parts.Parts, env: Mapping[str, str]
    ) -> Iterator[parts.Controllers]:
        """Make those that are wanted, and that the cloud is fit for."""
        settings = model.Settings(
            initialises=options.NODE in self._wanted.controllers,
            watches_lifecycle=options.LIFECYCLE in self._wanted.controllers,
            deletes=not env.get("SKIP_NODE_DELETION"),
            limit=self._wanted.delete_limit,
        )
        has_nodes = settings.initialises or settings.watches_lifecycle
        if cloud.instances is not None and has_nodes:
            yield node_controllers.NodeControllers(
                cloud.instances, shared, self._wanted, settings
            )
        if options.SERVICE not in self._wanted.controllers:
            return
        if cloud.load_balancers is None:
            self._log.info("load balancers are off in the cloud's configuration")
            return
        yield service_controllers.ServiceControllers(
            cloud.load_balancers,
            shared,
            self._wanted,
            f"cloud-provider-{self._program.provider}",
        )

    def _start(self, controllers: Sequence[parts.Controllers]) -> None:
        """Have all controllers act."""
        self._leading.set()
        if self._wanted.dry_run:
            self._log.info("dry run: nothing is written, no lease is taken")
        else:
            self._leader.leading()
            self._log.info("leading", lease=self._wanted.lease_name)
        for one in controllers:
            one.start(self._loops)
            for name in one.names:
                self._running.started(flag_table.CONTROLLERS[name])


def _overdue(lease: election.Election) -> str | None:
    overdue_s = lease.overdue_s()
    if overdue_s <= OVERDUE_S:
        return None
    return f"the Lease was over {overdue_s:.0f} s ago, and this process still runs"
