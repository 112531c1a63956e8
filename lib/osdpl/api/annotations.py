"""Annotations of an OpenStackDeployment: orders of its administrator. Pure."""

from collections.abc import Collection, Iterator

from lib.osdpl.api.model import Document
from lib.process import config

ADOPT = "mooring.io/adopt"
"""Releases of another owner that are adopted: names, separated by commas."""
FORCE = "mooring.io/force"
"""Actions that are done in spite of a rule, separated by commas."""
FORCE_CHANGE, FORCE_DELETION = "change", "deletion"
FORCES = (FORCE_CHANGE, FORCE_DELETION)
"""What can be forced: a change during an upgrade, a deletion before all is applied."""
PAUSED = "mooring.io/paused"
""""true" stops all writes."""
PURGE = "mooring.io/purge"
"""Services that are deleted with their PersistentVolumeClaims and Secrets."""


def names(document: Document, annotation: str) -> frozenset[str]:
    """Return the names that an annotation lists."""
    text = str((document["metadata"].get("annotations") or {}).get(annotation) or "")
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def is_paused(document: Document) -> bool:
    """Report whether nothing may be written."""
    annotations = document["metadata"].get("annotations") or {}
    return bool(annotations.get(PAUSED) == "true")


def problems(
    document: Document, releases: Collection[str], services: Collection[str]
) -> Iterator[str]:
    """Yield a text per name that an annotation lists and that does not exist."""
    for annotation, known in (
        (ADOPT, releases),
        (FORCE, FORCES),
        (PURGE, services),
    ):
        for name in sorted(names(document, annotation) - set(known)):
            right = ", ".join(sorted(known))
            rejected = config.rejected(name, f"one of {right}")
            yield f"annotation {annotation}: {rejected}"
    annotations = document["metadata"].get("annotations") or {}
    paused = annotations.get(PAUSED)
    if paused not in (None, "true", "false"):
        yield f"annotation {PAUSED}: {config.rejected(paused, 'true or false')}"
