"""The admission webhook: answers the API server, and keeps its own certificate.

Rules: the holder of the Lease creates and renews the certificate in a Secret, and
publishes its authorities in the ValidatingWebhookConfiguration; each replica serves
what the Secret holds. No request waits for anything but one read of the API server.
"""

import base64
import datetime
import ssl
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
import prometheus_client

from lib.helm import releases
from lib.kube import client, errors, objects, resources, store
from lib.operator_edge.objects import Objects
from lib.osdpl.reconcile import bundles, caches
from lib.osdpl.webhook import admission, webhook_certificate
from lib.osdpl.webhook.webhook_certificate import Held
from lib.process import certificates, decoding, exchange, logs, tls

PATH = "/validate"
"""Source: the reference's ValidatingWebhookConfiguration."""
CONFIGURATION = "osdpl-controller"
"""Name of the ValidatingWebhookConfiguration; the chart's."""
SERVICE = "osdpl-controller-webhook"
SECRET = SERVICE  # the name of the Secret
BODY_BYTES_MAX = 4 * 1024 * 1024
"""An object twice, of 1.5 MiB at most each. Source: etcd, --max-request-bytes."""
LIMITS = exchange.Limits(connections_max=16, body_bytes_max=BODY_BYTES_MAX)
TIMEOUT_S = 3.0
"""For one request to the API server while it waits for an answer."""
WRITE_S = 10.0
CHECK_S = 600.0
"""The age of the certificate is judged this often."""
RETRY_S, FAILED_S = 5.0, 30.0
STOP_S = 1.0
JSON_TYPE = "application/json"


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    ca_bundle: str = ""


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class Configuration(msgspec.Struct, frozen=True):
    """A ValidatingWebhookConfiguration, as far as the certificate goes."""

    metadata: objects.ObjectMeta
    webhooks: tuple[_Webhook, ...] = ()

    def published(self) -> tuple[bytes, ...]:
        """Return the authorities of each of its webhooks, PEM."""
        bundles_ = (webhook.client_config.ca_bundle for webhook in self.webhooks)
        return tuple(base64.b64decode(text) for text in bundles_)


def names(namespace: str) -> tuple[str, ...]:
    """Return the names under which the webhook is served, the API server's first.

    Source: Kubernetes, apiserver webhook client: it expects SERVICE.NAMESPACE.svc.
    """
    service = f"{SERVICE}.{namespace}.svc"
    return (service, f"{service}.cluster.local", "localhost", "127.0.0.1")


class Served:
    """The certificate of the Secret, as it is now. Safe to use from several threads.

    Implements lib/process/tls.py, Certificate.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._current: tls.InMemory | None = None
        self._log = logs.get(__name__)
        self._ends = prometheus_client.Gauge(
            "mooring_osdpl_webhook_certificate_end_timestamp_seconds",
            "When the certificate of the webhook ends, in seconds since the epoch.",
            registry=registry,
        )

    def context(self) -> ssl.SSLContext:
        """See `Certificate.context`; without a certificate the handshake fails."""
        if self._current is None:
            raise ssl.SSLError("no certificate yet")
        return self._current.context()

    def changed(
        self, key: str, old: releases.Secret | None, new: releases.Secret | None
    ) -> None:
        """Take the certificate of a Secret; the one before stays if it is unusable."""
        del key, old
        if new is None:
            return
        pair = Held.parse(new.data).serving
        try:
            current = tls.InMemory(pair)
            _, ends = certificates.life(pair.certificate)
        except (OSError, ValueError) as error:
            self._log.error("certificate of the webhook unusable", error=str(error))
            return
        self._current = current
        self._ends.set(ends.timestamp())


class Keeper:
    """Creates, renews and publishes the certificate; one loop, with the Lease."""

    def __init__(
        self,
        api: client.Api,
        kept: caches.Caches,
        now: Callable[[], datetime.datetime],
    ) -> None:
        """api: for writes, which the Lease permits."""
        self._api = api
        self._caches = kept
        self._now = now
        self._key = f"{kept.namespace}/{SECRET}"
        self._changed = threading.Event()
        self._log = logs.get(__name__)
        self.configurations = store.Store(
            api,
            resources.VALIDATING_WEBHOOKS,
            Configuration,
            field_selector=f"metadata.name={CONFIGURATION}",
        )

    def follow(self, served: Served) -> None:
        """Have the Secret served, and this loop woken by what concerns it."""

        def secret(
            key: str, old: releases.Secret | None, new: releases.Secret | None
        ) -> None:
            if key == self._key:
                served.changed(key, old, new)
                self._changed.set()

        def configuration(
            key: str, old: Configuration | None, new: Configuration | None
        ) -> None:
            del key, old, new
            self._changed.set()

        self._caches.secrets.subscribe(secret)
        self.configurations.subscribe(configuration)

    def run(self, stop: threading.Event) -> None:
        """Keep certificate and configuration as they have to be, until `stop`."""
        for synced in (self._caches.secrets.synced, self.configurations.synced):
            while not synced.wait(RETRY_S) and not stop.is_set():
                pass
        while not stop.is_set():
            self._changed.clear()
            try:
                pause_s = CHECK_S if self._turn() else RETRY_S
            except errors.Conflict:
                pause_s = RETRY_S  # the watch shows what another process has written
            except errors.KubeError as error:
                self._log.warning("webhook not configured", error=str(error))
                pause_s = FAILED_S
            self._wait(pause_s, stop)

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        end = time.monotonic() + seconds
        while not stop.is_set() and time.monotonic() < end:
            if self._changed.wait(STOP_S):
                return

    def _turn(self) -> bool:
        """Take the next step; the watch shows it, and wakes this loop again.

        Return False while the watch has not shown the one before.
        """
        if not self._is_current():
            return False
        secret = self._caches.secrets.get(self._key)
        configuration = self.configurations.get(CONFIGURATION)
        published = configuration.published() if configuration is not None else ()
        desired = webhook_certificate.step(
            None if secret is None else Held.parse(secret.data),
            published,
            names(self._caches.namespace),
            self._now(),
        )
        if desired.why:
            self._log.info("webhook certificate replaced", reason=desired.why)
            self._write(desired.held, secret)
        elif configuration is not None and set(published) != {desired.held.bundle}:
            self._publish(configuration, desired.held.bundle)
        return True

    def _is_current(self) -> bool:
        secrets, configurations = self._caches.secrets, self.configurations
        return secrets.is_current(self._key) and configurations.is_current(
            CONFIGURATION
        )

    def _write(self, held: Held, secret: releases.Secret | None) -> None:
        data = {
            name: base64.b64encode(pem).decode() for name, pem in held.data().items()
        }
        kind, namespace = resources.SECRETS, self._caches.namespace
        metadata: dict[str, object] = {
            "name": SECRET,
            "labels": {bundles.MANAGED_BY: bundles.MANAGER},
        }
        if secret is not None:
            metadata["uid"] = secret.metadata.uid
            metadata["resourceVersion"] = secret.metadata.resource_version
        body = msgspec.json.encode({"metadata": metadata, "data": data})
        if secret is None:
            answer = self._api.create(kind, body, namespace, timeout_s=WRITE_S)
        else:
            answer = self._api.patch(kind, SECRET, body, namespace, timeout_s=WRITE_S)
        self._caches.secrets.note_write(self._key, _version(answer))

    def _publish(self, configuration: Configuration, bundle: bytes) -> None:
        text = base64.b64encode(bundle).decode()
        webhooks = [
            {"name": webhook.name, "clientConfig": {"caBundle": text}}
            for webhook in configuration.webhooks
        ]
        answer = self._api.patch(
            resources.VALIDATING_WEBHOOKS,
            CONFIGURATION,
            msgspec.json.encode({"webhooks": webhooks}),
            content_type=client.STRATEGIC_PATCH,
            timeout_s=WRITE_S,
        )
        self.configurations.note_write(CONFIGURATION, _version(answer))
        self._log.info("webhook certificate published")


class Endpoint:
    """Answers AdmissionReviews."""

    def __init__(
        self,
        api: client.Api,
        deployments: Objects,
        kept: caches.Caches,
        registry: prometheus_client.CollectorRegistry,
    ) -> None:
        self._api = api
        self._deployments = deployments
        self._caches = kept
        self._log = logs.get(__name__)
        self._reviews = prometheus_client.Counter(
            "mooring_osdpl_admission_reviews",
            "Requests to the webhook, by operation and result.",
            ("operation", "result"),
            registry=registry,
        )

    def routes(self) -> exchange.HttpRoutes:
        """Return the routes; any client may use them."""
        return exchange.HttpRoutes({}, exchange.everybody, posts={PATH: self.review})

    def review(self, request: exchange.Request) -> exchange.Reply:
        """Answer one AdmissionReview."""
        try:
            asked = admission.parse(request.body)
        except ValueError as error:
            self._reviews.labels(admission.Operation.OTHER, "invalid").inc()
            return exchange.Reply(f"{error}\n".encode(), 400)
        caches_ = (self._caches.statuses, self._caches.secrets)
        if not all(kept.synced.is_set() for kept in caches_):
            return exchange.Reply(b"the caches are not filled yet\n", 503)
        problems = admission.judge(asked, self._facts(asked))
        self._reviews.labels(asked.kind, "denied" if problems else "allowed").inc()
        if problems:
            shown = [problem.field for problem in problems]
            self._log.info("request denied", key=asked.key, fields=shown)
        return exchange.Reply(
            admission.answer(asked.uid, problems), content_type=JSON_TYPE
        )

    def _facts(self, asked: admission.Request) -> admission.Facts:
        status = self._caches.statuses.get(asked.key)
        others: Sequence[str] = ()
        if asked.kind in (admission.Operation.CREATE, admission.Operation.UPDATE):
            others = [key for key in self._older(asked) if self._exists(key)]
        return admission.Facts(
            status.document() if status is not None else None,
            tuple(others),
            self._caches.revisions(),
        )

    def _older(self, asked: admission.Request) -> Sequence[str]:
        by_age = self._deployments.by_age()
        if asked.key in by_age:
            return by_age[: by_age.index(asked.key)]
        return by_age

    def _exists(self, key: str) -> bool:
        """Report whether an object that Kopf has delivered still exists.

        Kopf may miss a deletion; see lib/operator_edge/objects.py.
        """
        namespace, _, name = key.partition("/")
        kind = resources.OPENSTACK_DEPLOYMENTS
        try:
            self._api.read(kind, name, namespace, timeout_s=TIMEOUT_S)
        except errors.NotFound:
            return False
        except errors.KubeError:
            return True
        return True


def _version(answer: bytes) -> str:
    return decoding.decode(answer, objects.Bare).metadata.resource_version
