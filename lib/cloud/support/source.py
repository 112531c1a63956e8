"""A cloud that is opened from files, and again whenever they have changed."""

import dataclasses
import pathlib
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from lib.cloud import protocol
from lib.cloud.support import calls, circuits
from lib.process import files

C = TypeVar("C")


class Observers(Protocol):
    """Observer of cloud calls; lib/daemon/counting.py shows them as metrics."""

    def observe(self, operation: str, outcome: str, seconds: float) -> None:
        """Count one call; see `calls.CallObserver`."""
        ...

    def circuit(self, service: str, is_open: bool) -> None:
        """Show whether a service is not called; see `circuits.CircuitObserver`."""
        ...


class Unobserved:
    """Observers that count nothing, for programs without metrics."""

    observe = staticmethod(calls.ignore)
    circuit = staticmethod(circuits.ignore)


@dataclasses.dataclass(frozen=True, slots=True)
class Opened:
    """A cloud, and whether its files have changed since this was last asked.

    changed: must notice every change after the files were read. warnings: about
    their contents.
    """

    cloud: protocol.Cloud
    changed: Callable[[], bool]
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ReadConfig(Generic[C]):
    """A configuration. files: all that counted for it, missing ones too."""

    config: C
    files: frozenset[pathlib.Path]
    warnings: tuple[str, ...] = ()


class CloudSource(Generic[C]):
    """Opens the cloud that some files describe, as often as they change."""

    def __init__(
        self,
        paths: Collection[str],
        read: Callable[[], ReadConfig[C]],
        connect: Callable[[C, Observers], protocol.Cloud],
    ) -> None:
        """paths: the files that are known before any is read. read: reads them again.

        connect: opens the cloud; asks nothing of it yet.
        """
        self._paths = frozenset(pathlib.Path(path) for path in paths)
        self._read = read
        self._connect = connect

    def open(self, observers: Observers) -> Opened:
        """Open the cloud that the files describe now; nothing is asked of it yet.

        Files are watched before they are read, so that no change is missed.

        Raises whatever `read` and `connect` raise.
        """
        watched = self._paths
        while True:
            watch = files.FileWatch(sorted(watched))
            opened = self._read()
            if opened.files <= watched:
                cloud = self._connect(opened.config, observers)
                return Opened(cloud, watch.changed, opened.warnings)
            watched |= opened.files
