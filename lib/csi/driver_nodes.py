"""IDs of the instances of a cluster's Nodes, from the objects CSINode."""

import threading

import msgspec

from lib.cloud import errors as cloud_errors
from lib.kube import client, errors, listing, objects, resources
from lib.process import logs

TIMEOUT_S = 10.0


class _Driver(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")


class _Spec(msgspec.Struct, frozen=True):
    drivers: tuple[_Driver, ...] = ()


class _CsiNode(msgspec.Struct, frozen=True):
    metadata: objects.ObjectMeta
    spec: _Spec = _Spec()


class DriverNodes:
    """The Nodes on which a driver runs. Safe for many threads.

    Until `use` is called nothing is known of them: the controller plugin may run
    without an API server.
    """

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._api: client.Api | None = None
        self._lock = threading.Lock()
        self._is_reported = False

    def use(self, api: client.Api) -> None:
        """Read them from this API server."""
        self._api = api

    def ids(self) -> tuple[str, ...] | None:
        """Return the IDs of their instances, sorted; None: they may not be read.

        Raises:
            Unavailable: the API server does not answer.
        """
        if self._api is None:
            return None
        kind = resources.CSI_NODES
        try:
            nodes = listing.read(self._api, kind, _CsiNode, timeout_s=TIMEOUT_S).items
        except (errors.Forbidden, errors.Unauthorized, errors.NotFound) as error:
            self._report(error)
            return None
        except errors.KubeError as error:
            raise cloud_errors.Unavailable(
                f"read the Nodes of {self._driver}: {error}", operation="list csinodes"
            ) from error
        drivers = (driver for node in nodes for driver in node.spec.drivers)
        return tuple(sorted(d.node_id for d in drivers if d.name == self._driver))

    def _report(self, error: errors.KubeError) -> None:
        """Log once that the Nodes may not be read."""
        with self._lock:
            was_reported, self._is_reported = self._is_reported, True
        if not was_reported:
            logs.get(__name__).warning("cannot list csinodes", err=str(error))
