"""The ownership tag of a machine: two lines of the description of its VM or disk. Pure.

The rest of a description is the user's. A VM gets them with its creation, so that one
whose response was lost is found again.
"""

import re

from lib.cloud.zvirt import disk_tags

_KEY = "mooring.io/machine"
_OWNER = re.compile(rf"^{re.escape(_KEY)}=(\S+)$", re.MULTILINE)
_ANY = re.compile(r"^mooring\.io/[a-z]+=", re.MULTILINE)


def tag(cluster_id: str, uid: str) -> str:
    """Return the lines. uid: of the machine object."""
    return f"{disk_tags.tag(cluster_id)}\n{_KEY}={uid}"


def added(description: str | None, cluster_id: str, uid: str) -> str:
    """Return a description with the tag, after the text that it has."""
    return "\n".join(filter(None, ((description or "").strip(), tag(cluster_id, uid))))


def uid_of(description: str | None, cluster_id: str) -> str:
    """Return the machine that a description of this cluster names; empty: none."""
    owners = set(_OWNER.findall(description or ""))
    is_here = disk_tags.cluster_of(description) == cluster_id
    return str(owners.pop()) if is_here and len(owners) == 1 else ""


def is_free(description: str | None) -> bool:
    """Report whether a description names no owner at all, of this project's kinds."""
    return _ANY.search(description or "") is None


def search(cluster_id: str) -> str:
    """Return the search for VMs with the tag of a cluster."""
    return f'description="*{disk_tags.tag(cluster_id)}*"'
