"""Objects by which an API server, or Cluster API, calls a Service.

Source: Kubernetes admissionregistration/v1; kubernetes-sigs/cluster-api
runtime.cluster.x-k8s.io ExtensionConfig: both name the Service in clientConfig.
"""

from collections.abc import Iterator, Sequence

import msgspec

from lib.kube import client, listing, objects
from lib.kube.resources import Resource

EXTENSIONS = tuple(
    Resource(
        "runtime.cluster.x-k8s.io",
        version,
        "extensionconfigs",
        "ExtensionConfig",
        False,
    )
    for version in ("v1beta2", "v1alpha1")
)
"""Versions of ExtensionConfig, the newest first."""
WEBHOOKS = tuple(
    Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)


class ServiceReference(msgspec.Struct, frozen=True):
    """The Service that is called."""

    namespace: str = ""
    name: str = ""


class _ClientConfig(msgspec.Struct, frozen=True):
    service: ServiceReference | None = None


class _Called(msgspec.Struct, frozen=True, rename="camel"):
    client_config: _ClientConfig = _ClientConfig()


class ServiceCaller(msgspec.Struct, frozen=True):
    """An ExtensionConfig, which has a spec, or a webhook configuration."""

    metadata: objects.ObjectMeta
    spec: _Called = _Called()
    webhooks: tuple[_Called, ...] = ()

    @property
    def services(self) -> Iterator[ServiceReference]:
        """The Services that are called; none is for a URL."""
        for called in (self.spec, *self.webhooks):
            if called.client_config.service is not None:
                yield called.client_config.service


def callers(
    api: client.Api, kinds: Sequence[Resource], timeout_s: float
) -> Iterator[tuple[Resource, ServiceCaller]]:
    """Yield the objects of some kinds; of two versions the first that is served.

    Raises:
        KubeError: a list cannot be read.
    """
    names: set[tuple[str, str]] = set()
    for kind in kinds:
        for caller in listing.read_served(
            api, kind, ServiceCaller, timeout_s=timeout_s
        ):
            key = (kind.plural, caller.metadata.name)
            if key not in names:
                names.add(key)
                yield kind, caller
