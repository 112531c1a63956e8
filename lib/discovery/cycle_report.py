"""Reports of the flow, and samples of its metrics, which a daemon implements."""

from typing import Protocol

from lib.discovery.model import DiscoveryStep
from lib.discovery.provider import Signal

Pairs = frozenset[tuple[str, str]]
"""Name and message of conditions, or ID and name of disks."""


class CycleReport(Protocol):
    """Receives the results of the steps. Safe for many threads."""

    def read(self, step: DiscoveryStep, is_read: bool) -> None:
        """Note whether the cloud could be read for a step."""
        ...

    def succeeded(self, step: DiscoveryStep) -> None:
        """Note that a step is done."""
        ...

    def failed(self, step: DiscoveryStep, *, is_refused: bool) -> None:
        """Note that the result of a step could not be published.

        is_refused: by the API server; else by our own validation.
        """
        ...

    def signal(self, signal: Signal, is_on: bool) -> None:
        """Note a state of the cluster."""
        ...


class Display(Protocol):
    """Samples of the unmet conditions, and of the orphaned disks."""

    def shown(self, step: DiscoveryStep) -> Pairs:
        """Return the present samples of a step."""
        ...

    def show(self, step: DiscoveryStep, pairs: Pairs) -> None:
        """Replace the samples of a step by exactly these."""
        ...
