"""The tag of a cluster on a disk: a line of its description. Pure.

Disks have neither labels nor metadata. The rest of a description is the user's.
"""

import re

_KEY = "mooring.io/cluster"
_TAG = re.compile(rf"^{re.escape(_KEY)}=(\S+)$", re.MULTILINE)


def tag(cluster_id: str) -> str:
    """Return the line of a disk of a cluster."""
    return f"{_KEY}={cluster_id}"


def cluster_of(description: str | None) -> str:
    """Return the cluster that a description names; empty: none, or several."""
    clusters = set(_TAG.findall(description or ""))
    return str(clusters.pop()) if len(clusters) == 1 else ""
