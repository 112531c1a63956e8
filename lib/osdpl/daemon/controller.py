"""osdpl-controller from its options to its end: the parts of its daemon.

Rules: helm runs end before the loops, and never outlive the process: when the Lease is
lost or the process is killed, the kernel kills them.
"""

import dataclasses
import platform
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import prometheus_client

from lib.daemon import access, common_flags, daemon, server_certificate, starting
from lib.helm import cache, child, command, sources
from lib.kube import client, election, events, guarded, kube_config, resources
from lib.operator_edge import doorbell, objects
from lib.osdpl.api import settings
from lib.osdpl.daemon import settings_files
from lib.osdpl.daemon.options import Options
from lib.osdpl.reconcile import (
    act,
    bundles,
    caches,
    checks,
    flow,
    metrics,
    observe,
    work,
)
from lib.osdpl.values import generating
from lib.osdpl.webhook import webhook
from lib.process import command_line, exchange, probes, shutdown, start
from lib.process import metrics as process_metrics
from lib.process.clock import utc_now
from lib.reconcile import jobs, queue, runner
from lib.reconcile import metrics as reconcile_metrics

BACKOFF = queue.Backoff(base_s=0.5, max_s=60.0)
STALL_S = 120.0
"""The loop must turn within it."""
GATHER_S = 0.2
"""Events that come within it are served by one reconciliation."""
SYNC_S = 10.0
"""Before the first reconciliation the caches get so long to be filled."""
CONNECTIONS = 16
GRACE = daemon.Grace(loops_s=5.0, lease_s=3.0, drain_s=child.GRACE_S + 5.0)
"""Helm runs are asked to end, and killed after child.GRACE_S."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """Name and version of the component."""

    name: str
    version: str


def run(program: Program, options: Options, env: Mapping[str, str]) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: the configuration cannot be used; nothing was started.
    """
    build = process_metrics.Build(program.name, program.version)
    values, lease = options.values, options.lease
    settings = start.StartSettings(
        values[command_line.VERBOSITY],
        values[common_flags.LOGGING_FORMAT],
        values,
        f"{options.namespace}/{lease}" if lease else "",
        options.identity,
    )
    registry = starting.begin(build, settings)
    reach = starting.Reach(options.kubeconfig, pool_size=CONNECTIONS)
    api = starting.connect(build, reach, env, registry)
    stop = threading.Event()
    with shutdown.on_signal(stop):
        return Controller(api, options, env, registry, stop).run()


class Controller:
    """One life of the process."""

    def __init__(
        self,
        api: client.Api,
        options: Options,
        env: Mapping[str, str],
        registry: prometheus_client.CollectorRegistry,
        stop: threading.Event,
    ) -> None:
        self._api = api
        self._options = options
        self._env = env
        self._registry = registry
        self._daemon = daemon.Daemon(registry, stop, GRACE)
        self._queue = queue.Queue(BACKOFF)
        self._deployments = objects.Objects()
        self._caches = caches.open_caches(api, options.namespace)
        self._settings = settings_files.IniFolder(options.settings)
        self._jobs = jobs.Jobs(options.slots, lambda name: self._ring())
        registry.register(
            metrics.Releases(self._caches.revisions, self._jobs, options.slots, utc_now)
        )
        self._election = self._new_election()
        self._writing = writing = guarded.Guarded(
            api, self._election.acting if self._election else guarded.always
        )
        self._recorder = events.Recorder(
            writing, component=bundles.MANAGER, host=platform.node()
        )
        self._runner = self._new_runner(writing)

    def run(self) -> int:
        """Serve, watch, wait for the Lease, and act until stopped."""
        self._serve()
        self._caches.subscribe(self._ring)
        if self._election is not None:
            self._daemon.elect(self._election)
        self._daemon.drain(self._jobs.stop)
        return self._daemon.run(
            [
                *(daemon.Background(name, loop) for name, loop in self._caches.runs()),
                daemon.Background("events", self._recorder.run),
                daemon.Background("kopf", self._doorbell().run),
                daemon.Background("settings", self._watch_settings),
                daemon.Acting("reconcile", self._act),
                *self._webhook(),
            ]
        )

    def _webhook(self) -> Sequence[daemon.DaemonPart]:
        """Serve the webhook; return the loops that keep its certificate."""
        if not self._options.webhook_port:
            return ()
        served = webhook.Served(self._registry)
        keeper = webhook.Keeper(self._writing, self._caches, utc_now)
        keeper.follow(served)
        endpoint = webhook.Endpoint(
            self._api, self._deployments, self._caches, self._registry
        )
        self._daemon.serve_http(
            (self._options.address, self._options.webhook_port),
            endpoint.routes(),
            lambda: served,
            webhook.LIMITS,
        )
        return (
            daemon.Background("watch webhooks", keeper.configurations.run),
            daemon.Acting("webhook certificate", keeper.run),
        )

    def _ring(self) -> None:
        """Have every object reconciled: all of them depend on each other's age."""
        for key in self._deployments.by_age():
            self._queue.add(key, flow.TOPIC, GATHER_S)

    def _watch_settings(self, stop: threading.Event) -> None:
        self._settings.watch(self._ring, stop)

    def _helm_timeout_s(self) -> float:
        """Return the time-out of the settings, else that of the flag."""
        osdpl_settings = settings.read(
            {**self._settings.files(), **self._caches.ini_files()}
        )
        return osdpl_settings.helm_timeout_s or self._options.helm_timeout_s

    def _on_event(self, document: Mapping[str, Any], is_deleted: bool) -> None:
        if is_deleted:
            self._deployments.remove(document)
        else:
            self._deployments.put(document)
        self._ring()

    def _doorbell(self) -> doorbell.Doorbell:
        kubeconfig = self._options.kubeconfig or None
        return doorbell.Doorbell(
            resources.OPENSTACK_DEPLOYMENTS,
            lambda: kube_config.load(kubeconfig, env=self._env),
            self._on_event,
        )

    def _new_runner(self, writing: client.Api) -> runner.Runner[Any, Any]:
        options = self._options
        helm = command.Command(
            options.helm,
            options.chart_cache / "helm",
            options.kubeconfig or self._env.get("KUBECONFIG") or None,
            self._env,
        )
        checks_ = checks.Checks(writing, helm, self._caches)
        worker = work.Worker(
            self._jobs,
            helm,
            cache.Charts(
                options.chart_cache / "charts",
                sources.opener(options.chart_policy, options.chart_access),
            ),
            writing,
            self._caches,
            work.Settings(options.namespace, self._helm_timeout_s),
            secrets=lambda: observe.secrets_of(self._caches),
            registry=self._registry,
            now=utc_now,
        )
        observer = observe.Observer(
            self._deployments,
            self._caches,
            checks_,
            worker,
            options.source,
            files=self._settings.files,
        )
        actor = act.Actor(
            writing,
            self._deployments,
            observer,
            worker,
            self._recorder,
            self._caches.stored,
            generating.Random(),
        )
        heartbeat = probes.Heartbeat()
        self._daemon.probes.add_live("osdpl", heartbeat.within(STALL_S))
        return runner.Runner(
            flow.OpenStackFlow(observer, actor, checks_),
            self._queue,
            reconcile_metrics.ReconcileMetrics(self._registry),
            runner.RunnerSettings(workers=1),
            runner.Clocks(beat=heartbeat.beat),
        )

    def _act(self, stop: threading.Event) -> None:
        """Reconcile once the caches are filled, or it is known that they are not."""
        for _, kept in self._caches.all():
            if not stop.is_set():
                kept.synced.wait(SYNC_S)
        self._runner.run(stop)

    def _new_election(self) -> election.Election | None:
        if self._options.lease is None:
            return None
        return election.Election(
            self._api,
            namespace=self._options.namespace,
            name=self._options.lease,
            identity=self._options.identity,
        )

    def _serve(self) -> None:
        self._daemon.probes.add_ready("caches", self._is_filled)
        judge = access.Access(
            self._api, access.AccessSettings(resource=self._options.guarded_by)
        )
        self._daemon.serve_http(
            (self._options.address, self._options.port),
            exchange.HttpRoutes(self._daemon.handlers(), judge.authorize),
            lambda: server_certificate.choose(self._options.tls_files),
        )

    def _is_filled(self) -> str | None:
        missing = [
            resource.plural
            for resource, kept in self._caches.all()
            if not kept.synced.is_set()
        ]
        return f"not listed yet: {', '.join(missing)}" if missing else None
