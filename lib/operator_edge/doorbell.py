"""Events of one custom resource, delivered by Kopf.

Rules: only `on.event` and `on.login` are used: Kopf then writes no annotation, no
finalizer, no Event and no peering object. A handler passes the object on and returns.
"""

import asyncio
import dataclasses
import datetime
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import kopf

from lib.kube import kube_config
from lib.kube.resources import Resource
from lib.process.clock import utc_now

CREDENTIALS_S = 600.0
"""After so long the configuration is read again: a pod's token is replaced hourly."""
CONNECT_S = 10.0
REQUEST_S = 60.0
WATCH_S = 300
"""Source: as in lib/kube/store.py."""
RECONNECT_S = 1.0

Document = Mapping[str, Any]
OnEvent = Callable[[Document, bool], None]
"""Given the object and whether it was deleted; must return immediately."""


@dataclasses.dataclass(frozen=True, slots=True)
class Doorbell:
    """Watches a custom resource in all namespaces.

    configuration: read again for each login. on_event: called in Kopf's thread.
    """

    resource: Resource
    configuration: Callable[[], kube_config.Configuration]
    on_event: OnEvent

    def run(self, stop: threading.Event) -> None:
        """Deliver events until `stop` is set.

        Raises:
            Exception: whatever made Kopf give up; the process must be restarted.
        """
        logging.getLogger("kopf").setLevel(logging.ERROR)
        asyncio.run(
            kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                standalone=True,
                clusterwide=True,
                stop_flag=stop,
            )
        )

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        resource = self.resource

        @kopf.on.login(registry=registry)
        def login(**_: Any) -> kopf.ConnectionInfo:
            return connection(self.configuration())

        @kopf.on.event(
            resource.group, resource.version, resource.plural, registry=registry
        )
        async def event(type: str | None, body: kopf.Body, **_: Any) -> None:
            self.on_event(dict(body), type == "DELETED")

        return registry


def connection(configuration: kube_config.Configuration) -> kopf.ConnectionInfo:
    """Convert our configuration to Kopf's."""
    native = configuration.native
    scheme, _, token = (configuration.authorization or "").partition(" ")
    expiration = utc_now() + datetime.timedelta(seconds=CREDENTIALS_S)
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=native.ssl_ca_cert,
        insecure=not native.verify_ssl,
        certificate_path=native.cert_file,
        private_key_path=native.key_file,
        scheme=scheme or None,
        token=token or None,
        expiration=expiration,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.networking.connect_timeout = CONNECT_S
    settings.networking.request_timeout = REQUEST_S
    settings.watching.connect_timeout = CONNECT_S
    settings.watching.server_timeout = WATCH_S
    settings.watching.reconnect_backoff = RECONNECT_S
    return settings
