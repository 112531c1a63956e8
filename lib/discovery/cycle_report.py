"""What the flow reports as it goes, and what is shown of it; metrics in a daemon."""

from typing import Protocol

from lib.discovery.model import DiscoveryStep

Pairs = frozenset[tuple[str, str]]
"""Name and message of conditions, or ID and name of disks."""


class CycleReport(Protocol):
    """Takes how the steps of cycles end. Safe for many threads."""

    def read(self, step: DiscoveryStep, is_read: bool) -> None:
        """Note whether the cloud could be read for a step."""
        ...

    def succeeded(self, step: DiscoveryStep) -> None:
        """Note that a step is done."""
        ...

    def failed(self, step: DiscoveryStep, *, is_refused: bool) -> None:
        """Note that what a step found could not be published.

        is_refused: by the API server; else by our own judgement.
        """
        ...


class Display(Protocol):
    """Shows the conditions that are not met, and the orphaned disks."""

    def shown(self, step: DiscoveryStep) -> Pairs:
        """Return what is shown for a step now."""
        ...

    def show(self, step: DiscoveryStep, pairs: Pairs) -> None:
        """Show exactly these for a step."""
        ...
