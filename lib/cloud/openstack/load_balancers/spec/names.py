"""Names, descriptions and tags of the reference, and our own ownership tag.

Rules: every text is cut to 255 bytes. The ownership tag names the owner: cluster ID and
Service UID. It is set beside the reference's tags and has another prefix, because
the reference counts those.

Source: kubernetes/cloud-provider-openstack pkg/openstack/loadbalancer.go,
loadbalancer_sg.go.
"""

import dataclasses
import re
from collections.abc import Iterable

from lib.cloud.load_balancers import Ref

MAX_BYTES = 255
SERVICE_PREFIX = "kube_service_"
OWNERSHIP_TAG_PREFIX = "mooring:"
USER_PREFIX = "mooring-user:"
MADE = "mooring-made"
"""Tag of created load balancers; adopted ones have the ownership tag only."""
TAG_IN_DESCRIPTION = re.compile(r" \((mooring:[^)]*)\)$")
"""Ownership tag at the end of a description."""
FLOATING_IP_PREFIX = "Floating IP for Kubernetes external service "


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """Names by which the objects of one Service are found.

    all_: the names that its load balancer may have.
    """

    all_: tuple[str, str, str]
    security_group: str
    ownership_tag: str
    user: str


def of(ref: Ref) -> Names:
    """Return the names and tags of a Service's objects."""
    own = load_balancer(ref)
    all_ = (own, legacy(ref), _with_tail(own, f"_{ref.uid[:8]}"))
    return Names(all_, security_group(ref), ownership_tag(ref), user(ref))


def cut(text: str) -> str:
    """Cut to 255 bytes of UTF-8, never inside a letter."""
    return text.encode()[:MAX_BYTES].decode(errors="ignore")


def load_balancer(ref: Ref) -> str:
    """Return the name that the reference uses, too; it is not unique."""
    return cut(f"{SERVICE_PREFIX}{ref.cluster.name}_{ref.namespace}_{ref.name}")


def distinct(ref: Ref) -> str:
    """Return the name to use when another owner's load balancer has the usual one."""
    return _with_tail(load_balancer(ref), f"_{ref.uid[:8]}")


def legacy(ref: Ref) -> str:
    """Return the name that the reference's oldest releases used.

    Source: k8s.io/cloud-provider, DefaultLoadBalancerName.
    """
    return ("a" + ref.uid.replace("-", ""))[:32]


def child(kind: str, index: int, owner: str) -> str:
    """Return the name of a listener, pool or monitor of a Service's port.

    index: of the port in the Service. owner: the load balancer's name.
    """
    return cut(f"{kind}_{index}_{owner}")


def serial_member(node: str, address: str, port: int) -> str:
    """Return the name of a member that the reference makes alone, not in a batch."""
    return cut(f"member_{node}_{address}_{port}")


def description(ref: Ref) -> str:
    """Describe a load balancer."""
    return cut(f"Kubernetes external service {ref.key} from cluster {ref.cluster.name}")


def with_ownership_tag(text: str, ref: Ref) -> str:
    """Append the ownership tag to a description, for objects created without tags.

    Texts of the reference stay as they are in front of it.
    """
    return _with_tail(text, f" ({ownership_tag(ref)})")


def _with_tail(text: str, tail: str) -> str:
    room = MAX_BYTES - len(tail.encode())
    return text.encode()[:room].decode(errors="ignore") + tail


def floating_ip(ref: Ref) -> str:
    """Describe a floating IP, as the reference does."""
    return cut(f"{floating_ip_of_any_cluster(ref)}{ref.cluster.name}")


def floating_ip_of_any_cluster(ref: Ref) -> str:
    """Return the beginning of that description, which lacks only the cluster's name."""
    return f"{FLOATING_IP_PREFIX}{ref.key} from cluster "


def security_group(ref: Ref) -> str:
    """Return the security group's name; unique, as it holds the Service's UID."""
    return cut(f"lb-sg-{ref.uid}-{ref.namespace}-{ref.name}")


def security_group_description(ref: Ref) -> str:
    """Describe the security group."""
    return cut(
        f"Security Group for {ref.key} Service LoadBalancer"
        f" in cluster {ref.cluster.name}"
    )


def ownership_tag(ref: Ref) -> str:
    """Return the tag that names the owner of an object."""
    return f"{OWNERSHIP_TAG_PREFIX}{ref.cluster.id}:{ref.uid}"


def user(ref: Ref) -> str:
    """Return the tag of a load balancer on which the Service only has listeners.

    The reference's own tag for that is its name, which clusters share.
    """
    return f"{USER_PREFIX}{ref.cluster.id}:{ref.uid}"


def is_former(tag: str, ref: Ref) -> bool:
    """Report whether a tag is the Service's own under another cluster ID.

    Service UIDs are unique in the world, so the cluster's ID was changed.
    """
    if not tag.startswith((OWNERSHIP_TAG_PREFIX, USER_PREFIX)) or not ref.uid:
        return False
    return tag.endswith(f":{ref.uid}") and tag not in (ownership_tag(ref), user(ref))


def renewed(tags: Iterable[str], own: Iterable[str]) -> list[str]:
    """Return tags with our own added, and without those of a former cluster ID."""
    added = tuple(own)
    uids = {
        tag.rpartition(":")[2] for tag in added if tag.startswith(OWNERSHIP_TAG_PREFIX)
    }
    old = tuple(f":{uid}" for uid in uids if uid)
    kept = [
        tag
        for tag in tags
        if tag and not (tag.startswith(OWNERSHIP_TAG_PREFIX) and tag.endswith(old))
    ]
    return list(dict.fromkeys((*kept, *added)))


def without_ownership_tag(text: str) -> str:
    """Return a description without the ownership tag at its end."""
    return TAG_IN_DESCRIPTION.sub("", text)


def uid_of(tags: Iterable[str], cluster_id: str) -> str:
    """Find the Service UID in the ownership tag of this cluster; empty without one."""
    return next(iter(_uids(OWNERSHIP_TAG_PREFIX, tags, cluster_id)), "")


def users(tags: Iterable[str], cluster_id: str) -> tuple[str, ...]:
    """Find the UIDs of Services of this cluster that have listeners there."""
    return _uids(USER_PREFIX, tags, cluster_id)


def _uids(kind: str, tags: Iterable[str], cluster_id: str) -> tuple[str, ...]:
    prefix = f"{kind}{cluster_id}:"
    return tuple(t.removeprefix(prefix) for t in tags if t.startswith(prefix))
