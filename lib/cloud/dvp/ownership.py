"""Labels that show to which cluster an object of the parent belongs.

Several clusters may share one project of the parent.

Source: deckhouse modules/030-cloud-provider-dvp, images/dvp-common/api (labels).
"""

from collections.abc import Mapping

CLUSTER = "dvp.deckhouse.io/cluster-uuid"
HOSTNAME = "dvp.deckhouse.io/hostname"
"""Name of the Node of a VM."""
MANAGED_BY = "deckhouse.io/managed-by"
MANAGER = "deckhouse"
"""Value of MANAGED_BY."""
ATTACHED_VM = "virtualMachineName"
"""Host name of the VM of an attachment."""
OWNER_UID = "mooring.io/owner-uid"
"""UID of the object of the cluster for which an object of the parent exists, such as
that of a Service; ours, next to those of the reference."""


def is_owned(labels: Mapping[str, str], cluster_uuid: str) -> bool:
    """Report whether an object with these labels belongs to this cluster."""
    return bool(cluster_uuid) and labels.get(CLUSTER) == cluster_uuid


def selector(cluster_uuid: str) -> str:
    """Return the label selector of this cluster's objects."""
    return f"{CLUSTER}={cluster_uuid}"


def labels_of(cluster_uuid: str, owner_uid: str = "") -> dict[str, str]:
    """Return the labels of an object that this cluster creates.

    owner_uid: of the cluster's object for which it is; empty: of none.
    """
    labels = {MANAGED_BY: MANAGER, CLUSTER: cluster_uuid}
    return {**labels, OWNER_UID: owner_uid} if owner_uid else labels
