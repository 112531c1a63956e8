"""Runs of helm and reads of charts: jobs that a reconciliation starts.

Rules: what a run achieved is read from the release Secret by a later reconciliation;
kept here is only what can be thrown away: digests, and when to try again.
"""

import dataclasses
import datetime
import json
import threading
from collections.abc import Callable, Mapping

import prometheus_client

from lib.helm import cache, command, outcome
from lib.helm import errors as helm_errors
from lib.helm import model as helm
from lib.kube import client, errors
from lib.osdpl.api import hashing
from lib.osdpl.reconcile import images, metrics, preparing, states, upgrade
from lib.osdpl.reconcile.actions import ReadChart, Uninstall, Upgrade
from lib.osdpl.reconcile.caches import Caches
from lib.osdpl.reconcile.snapshot import Attempt, ChartKey, Work, chart_key
from lib.process import redaction
from lib.reconcile import jobs

TIMEOUT_S = 10.0
"""For one request to the API server."""
MARGIN_S = 60.0
"""A run may take so much longer than the hooks of its chart."""
FIRST_S, LONGEST_S, FINAL_S = 5.0, 300.0, 300.0
"""Before the second attempt; before any; after an error that a retry cannot repair."""

DELETE = "delete"
"""What a job is about that deletes a release; see states.py, about."""


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """namespace: of the releases. timeout_s: of each operation within a helm run."""

    namespace: str
    timeout_s: Callable[[], float]


class Worker:
    """Starts jobs and remembers how they ended. Safe to use from several threads.

    api: for the writes that belong to a run. secrets: texts that must not be shown.
    """

    def __init__(  # noqa: PLR0913 # the parts of a run
        self,
        pool: jobs.Jobs,
        helm_program: command.Helm,
        charts: cache.Charts,
        api: client.Api,
        caches: Caches,
        settings: Settings,
        *,
        secrets: Callable[[], frozenset[str]],
        registry: prometheus_client.CollectorRegistry,
        now: Callable[[], datetime.datetime],
    ) -> None:
        self._pool = pool
        self._helm = helm_program
        self._charts = charts
        self._preparation = preparing.Preparation(api, caches, helm_program)
        self._settings = settings
        self._secrets = secrets
        self._now = now
        self._lock = threading.Lock()
        self._attempts: dict[str, Attempt] = {}
        self._digests: dict[ChartKey, str] = {}
        self._deleting: set[str] = set()
        self._reading: set[str] = set()
        self._unfinished: dict[str, str] = {}
        self._runs = metrics.HelmRuns(registry)

    def observed(self) -> Work:
        """Return what is under way, and what is remembered."""
        running, free = self._pool.running(), self._pool.free()
        with self._lock:
            attempts, digests = dict(self._attempts), dict(self._digests)
            deleting = running & self._deleting
            reading = running & self._reading
            unfinished = dict(self._unfinished)
        limit_s = self._settings.timeout_s() + MARGIN_S
        return Work(
            running, free, attempts, digests, deleting, unfinished, limit_s, reading
        )

    def cancel(self, release: str) -> None:
        """Ask the job of a release to end early."""
        self._pool.cancel(release)

    def read_chart(self, action: ReadChart) -> None:
        """Start to read a chart."""
        url, name, version = chart_key(action.chart)
        about = f"chart {url} {name} {version}"

        def job(cancel: threading.Event) -> None:
            del cancel
            chart = self._charts.get(url, helm.Pin(name, version))
            with self._lock:
                self._digests[url, name, version] = chart.digest

        self.read(action.release, about, job)

    def read(self, release: str, about: str, job: jobs.Job) -> None:
        """Start a job that changes nothing; a deletion does not wait for it."""
        self._start(release, about, job, is_reading=True)

    def upgrade(self, action: Upgrade) -> None:
        """Start to install or upgrade a release."""
        release = action.release
        timeout_s = self._settings.timeout_s()

        def job(cancel: threading.Event) -> None:
            pin = helm.Pin(release.chart.name, release.chart.version, action.digest)
            chart = self._charts.get(release.chart.repository.url, pin)
            run = helm.Upgrade(
                release=release.name,
                namespace=self._settings.namespace,
                chart=chart.path,
                values=images.relocated(
                    release.values, chart.path.read_bytes(), release.images_base
                ),
                labels={
                    states.HASH_LABEL: action.hash,
                    states.OWNER_LABEL: action.owner,
                    states.DIGEST_LABEL: hashing.label(action.digest),
                    upgrade.VERSION_LABEL: release.openstack_version,
                },
                timeout_s=timeout_s,
                limit_s=timeout_s + MARGIN_S,
                secrets=self._secrets() | secrets_in(release.values),
            )
            hooks = self._preparation.prepare(action, run, cancel)
            if hooks is None:
                return
            # Hooks run one after the other, each for up to the time-out.
            limit_s = timeout_s * max(1, hooks) + MARGIN_S
            run = dataclasses.replace(run, limit_s=limit_s)
            with self._lock:
                self._unfinished[release.name] = action.hash
            with self._runs.measured("upgrade", release.name):
                self._helm.upgrade(run, cancel)
            with self._lock:
                del self._unfinished[release.name]

        about = states.about_hash(action.hash, action.missing)
        self._start(release.name, about, job)

    def uninstall(self, action: Uninstall) -> None:
        """Start to delete a release."""
        timeout_s = self._settings.timeout_s()
        run = helm.Uninstall(
            release=action.release,
            namespace=self._settings.namespace,
            timeout_s=timeout_s,
            limit_s=timeout_s + MARGIN_S,
            hooks=action.hooks,
        )

        def job(cancel: threading.Event) -> None:
            with self._runs.measured("uninstall", action.release):
                self._helm.uninstall(run, cancel)

        self._start(action.release, DELETE, job)

    def _start(
        self, name: str, about: str, job: jobs.Job, is_reading: bool = False
    ) -> None:
        with self._lock:
            for names, is_one in (
                (self._deleting, about == DELETE),
                (self._reading, is_reading),
            ):
                names.discard(name)
                names.update((name,) if is_one else ())

        def run(cancel: threading.Event) -> None:
            try:
                job(cancel)
            except helm_errors.Canceled:
                return
            except helm_errors.HelmError as error:
                self._failed(name, about, str(error), error.is_final)
            except errors.KubeError as error:
                self._failed(name, about, str(error), is_final=False)
            except Exception as error:  # the pool logs it; a retry waits nevertheless
                self._failed(name, about, type(error).__name__, is_final=False)
                raise
            else:
                with self._lock:
                    self._attempts[name] = Attempt(about, self._now())

        self._pool.start(name, run)

    def _failed(self, name: str, about: str, message: str, is_final: bool) -> None:
        with self._lock:
            before = self._attempts.get(name)
            is_again = before is not None and before.about == about
            count = before.count + 1 if is_again and before is not None else 1
            wait_s = min(FIRST_S * 2.0 ** (count - 1), LONGEST_S)
            now = self._now()
            retry_at = now + datetime.timedelta(seconds=FINAL_S if is_final else wait_s)
            self._attempts[name] = Attempt(
                about, now, message, is_final, count, retry_at
            )


def secrets_in(values: object, is_secret: bool = False) -> frozenset[str]:
    """Return the values whose names match those of secrets."""
    if isinstance(values, Mapping):
        return frozenset().union(
            *(
                secrets_in(value, is_secret or redaction.is_secret(str(name)))
                for name, value in values.items()
            )
        )
    return outcome.texts_in(values) if is_secret else frozenset()


def texts_of(value: bytes) -> frozenset[str]:
    """Return the secret texts of one key of a Secret: of JSON the leaves."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return frozenset()
    if not text.startswith(("{", "[")):
        return frozenset((text,))
    try:
        tree: object = json.loads(text)
    except ValueError:
        return frozenset((text,))
    return _leaves(tree)


def _leaves(tree: object) -> frozenset[str]:
    """Return the texts of a document; user names may be shown."""
    if isinstance(tree, dict):
        below = [value for name, value in tree.items() if name != "username"]
        return frozenset().union(*map(_leaves, below))
    return outcome.texts_in(tree)
