"""The Nodes on which endpoints of a Service are ready, by its EndpointSlices.

Only watched for a cloud that does not find out itself which Nodes serve a Service.
"""

import threading
from collections.abc import Callable, Mapping

import msgspec

from lib.kube import objects

SERVICE_LABEL = "kubernetes.io/service-name"
"""Source: Kubernetes discovery/v1, LabelServiceName."""
SELECTOR = f"{SERVICE_LABEL},!service.kubernetes.io/headless"
"""Headless Services have no load balancer.

Source: Kubernetes core/v1, IsHeadlessService."""


class EndpointConditions(msgspec.Struct, frozen=True):
    """Conditions of one endpoint; ready None: unknown, which counts as ready.

    Source: Kubernetes discovery/v1 EndpointConditions.
    """

    ready: bool | None = None


class SliceEndpoint(msgspec.Struct, frozen=True, rename="camel"):
    """One endpoint. node_name: None where its Pod runs on no Node."""

    node_name: str | None = None
    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(msgspec.Struct, frozen=True):
    """Some endpoints of one Service."""

    metadata: objects.ObjectMeta
    endpoints: tuple[SliceEndpoint, ...] | None = None


def ready_nodes(endpoint_slice: EndpointSlice) -> frozenset[str]:
    """Return the names of the Nodes on which a slice has a ready endpoint.

    An endpoint that is being terminated is not ready, as for the health check node port
    of kube-proxy.
    """
    return frozenset(
        endpoint.node_name
        for endpoint in endpoint_slice.endpoints or ()
        if endpoint.node_name and endpoint.conditions.ready is not False
    )


class ServingNodes:
    """Follows the EndpointSlices. Thread-safe.

    changed: called with the key of a Service whose Nodes are others than before.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._slices: dict[str, dict[str, frozenset[str]]] = {}

    def follow(
        self, key: str, old: EndpointSlice | None, new: EndpointSlice | None
    ) -> None:
        """Take in one change of one slice; for `lib.kube.store.Store.subscribe`."""
        services = {_service(each) for each in (old, new) if each is not None}
        for service in services:
            nodes = frozenset[str]()
            if new is not None and _service(new) == service:
                nodes = ready_nodes(new)
            if self._put(service, key, nodes):
                self._changed(service)

    def _put(self, service: str, key: str, nodes: frozenset[str]) -> bool:
        """Note the Nodes of one slice; report whether those of the Service changed."""
        with self._lock:
            slices = self._slices.setdefault(service, {})
            before = _union(slices)
            if nodes:
                slices[key] = nodes
            else:
                slices.pop(key, None)
            after = _union(slices)
            if not slices:
                del self._slices[service]
            return before != after

    def of(self, service: str) -> frozenset[str]:
        """Return the names of the Nodes that serve a Service, by its key."""
        with self._lock:
            return _union(self._slices.get(service, {}))


def _union(slices: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*slices.values())


def _service(endpoint_slice: EndpointSlice) -> str:
    """Return the key of the Service of a slice."""
    about = endpoint_slice.metadata
    return f"{about.namespace}/{about.labels.get(SERVICE_LABEL, '')}"
