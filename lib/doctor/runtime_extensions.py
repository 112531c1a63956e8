"""What may keep Cluster API from working beside the provider: reads and results.

An ExtensionConfig of which no endpoint answers fails each call: no MachineDeployment of
the cluster changes its template any more. A finalizer whose controller does not run any
more keeps an object for ever.

Source: kubernetes-sigs/cluster-api internal/runtime/client, core/reconcilers.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lib.kube import called_services, client, listing, objects, resources

_SERVICE_LABEL = "kubernetes.io/service-name"


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True):
    conditions: _Conditions = _Conditions()


class _Slice(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    endpoints: tuple[_Endpoint, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RuntimeExtension:
    """An ExtensionConfig that names a Service. service: namespace/name."""

    name: str
    service: str
    has_endpoints: bool


@dataclasses.dataclass(frozen=True, slots=True)
class HeldObject:
    """An object with finalizers of others. subject: its kind, namespace and name."""

    subject: str
    finalizers: tuple[str, ...]


def read(api: client.Api, timeout_s: float) -> tuple[RuntimeExtension, ...]:
    """Return the extensions of Cluster API, with one call for each Service.

    Raises:
        KubeError: they cannot be read.
    """
    return tuple(
        RuntimeExtension(
            caller.metadata.name,
            f"{service.namespace}/{service.name}",
            _has_endpoints(api, service, timeout_s),
        )
        for _, caller in called_services.callers(
            api, called_services.EXTENSIONS, timeout_s
        )
        for service in caller.services
    )


def held(
    api: client.Api, finalizers: Mapping[resources.Resource, str], timeout_s: float
) -> tuple[HeldObject, ...]:
    """Return objects with other finalizers. finalizers: ours, by kind.

    Raises:
        KubeError: they cannot be listed.
    """
    return tuple(
        HeldObject(f"{kind.kind} {row.metadata.namespace}/{row.metadata.name}", others)
        for kind, own in finalizers.items()
        for row in listing.read_served(api, kind, objects.Bare, timeout_s=timeout_s)
        if (others := tuple(f for f in row.metadata.finalizers if f != own))
    )


def _has_endpoints(
    api: client.Api, service: called_services.ServiceReference, timeout_s: float
) -> bool:
    selector = {"labelSelector": f"{_SERVICE_LABEL}={service.name}"}
    listed = listing.read(
        api,
        resources.ENDPOINT_SLICES,
        _Slice,
        timeout_s=timeout_s,
        namespace=service.namespace,
        selectors=selector,
    )
    return any(
        endpoint.conditions.ready is not False
        for row in listed.items
        for endpoint in row.endpoints or ()
    )


# ---------------------------------------------------------------- results: pure


def without_endpoints(
    extensions: Sequence[RuntimeExtension],
) -> Iterator[tuple[str, str]]:
    """Yield a sentence and a remedy for each extension that cannot answer."""
    for row in extensions:
        if not row.has_endpoints:
            yield (
                f"ExtensionConfig {row.name}: Service {row.service} has no ready"
                " endpoint: rollouts of MachineDeployments fail",
                f"start its program, or delete the ExtensionConfig {row.name}",
            )


def foreign(rows: Sequence[HeldObject]) -> Iterator[tuple[str, str]]:
    """Yield a sentence and a remedy for each object with finalizers of others."""
    for row in rows:
        names = ", ".join(row.finalizers)
        yield (
            f"{row.subject}: finalizers of other controllers: {names}",
            "remove a finalizer whose controller does not run any more: it keeps the"
            " object from being deleted",
        )
