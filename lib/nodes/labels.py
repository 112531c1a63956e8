"""Labels that a Node gets from its instance, in both generations of keys."""

import re
from collections.abc import Mapping

from lib.cloud.model import Instance

Labels = tuple[tuple[str, str], ...]

INSTANCE_TYPE = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
"""Old key first: the reference's source of truth when it reconciles them."""

_RESERVED = re.compile(r"(^|\.)(kubernetes|k8s)\.io/")
"""Source: k8s.io/cloud-provider controllers/node (node_controller.go)."""


def for_instance(instance: Instance, present: Mapping[str, str]) -> Labels:
    """Return the labels to set when a Node is initialised; the values overwrite.

    Further labels of the cloud are only added, and never in Kubernetes' own domains.
    """
    values = (
        (INSTANCE_TYPE, instance.instance_type or ""),
        (ZONE, instance.zone),
        (REGION, instance.region),
    )
    own = tuple((key, value) for keys, value in values if value for key in keys)
    further = tuple(
        (key, value)
        for key, value in instance.labels
        if key not in present and not _RESERVED.search(key)
    )
    return own + further


def to_reconcile(present: Mapping[str, str]) -> Labels:
    """Return the new keys that differ from the old keys; none without old keys."""
    return tuple(
        (new, present[old])
        for old, new in (INSTANCE_TYPE, ZONE, REGION)
        if old in present and present.get(new) != present[old]
    )
