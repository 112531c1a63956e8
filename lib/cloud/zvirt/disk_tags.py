"""The tag of a cluster on a disk: a line of its description. Pure.

Disks have neither labels nor metadata. The rest of a description is the user's.
"""

import re

_KEY = "mooring.io/cluster"
_TAG = re.compile(rf"^{re.escape(_KEY)}=(\S+)$", re.MULTILINE)


def tag(cluster_id: str) -> str:
    """Return the line of a disk of a cluster."""
    return f"{_KEY}={cluster_id}"


def clusters_of(description: str | None) -> tuple[str, ...]:
    """Return the clusters that a description names, sorted: usually one, or none."""
    return tuple(sorted(set(_TAG.findall(description or ""))))


def cluster_of(description: str | None) -> str:
    """Return the cluster that a description names; empty: none, or several."""
    clusters = clusters_of(description)
    return clusters[0] if len(clusters) == 1 else ""


def with_tag(description: str | None, cluster_id: str) -> str:
    """Return a description with the line of a cluster; the rest stays."""
    return "\n".join(filter(None, (description, tag(cluster_id))))
