"""The ownership tag of a machine: a line of the description of its VM or disk. Pure.

The rest of a description is the user's. A VM gets it with its creation, so that one
whose response was lost is found again. A boot disk is no volume: it lacks their tag.
"""

import re

_KEY = "mooring.io/machine"
_OWNER = re.compile(rf"^{re.escape(_KEY)}=(\S+)/(\S+)$", re.MULTILINE)
_ANY = re.compile(r"^mooring\.io/[a-z]+=", re.MULTILINE)


def tag(cluster_id: str, uid: str) -> str:
    """Return the line. uid: of the machine object."""
    return f"{_KEY}={cluster_id}/{uid}"


def added(description: str | None, cluster_id: str, uid: str) -> str:
    """Return a description with the tag, after the text that it has."""
    return "\n".join(filter(None, ((description or "").strip(), tag(cluster_id, uid))))


def uid_of(description: str | None, cluster_id: str) -> str:
    """Return the machine of this cluster that a description names; empty: none."""
    owners = set(_OWNER.findall(description or ""))
    cluster, uid = owners.pop() if len(owners) == 1 else ("", "")
    return str(uid) if cluster == cluster_id else ""


def is_free(description: str | None) -> bool:
    """Report whether a description names no owner at all, of this project's kinds."""
    return _ANY.search(description or "") is None


def search(cluster_id: str) -> str:
    """Return the search for VMs and disks with the tag of a cluster."""
    return f'description="*{tag(cluster_id, "")}*"'
