"""A Secret whose text must not be shown, and a reference to it."""

import base64
import json
from typing import Any

from lib.kube import resources
from lib.osdpl.api import references
from tests.lib.osdpl import ground
from tests.lib.osdpl.ground import Cluster

SECRET = "planted"
TEXT = "Pl4nted-VALUE-of-a-Secret"
REFERENCE = {"value_from": {"secret_key_ref": {"name": SECRET, "key": "key"}}}


def secret(cluster: Cluster, text: str = TEXT, is_labelled: bool = True) -> None:
    """Create the Secret, with the label of referable ones or without it."""
    labels = {"openstack.lcm.mirantis.com/osdpl_secret": "true"} if is_labelled else {}
    metadata = {"name": SECRET, "namespace": ground.NAMESPACE, "labels": labels}
    data = {"key": base64.b64encode(text.encode()).decode()}
    cluster.api.put(
        resources.SECRETS, {"metadata": metadata, "type": "Opaque", "data": data}
    )


def shown(cluster: Cluster) -> str:
    """Return everything that the operator has written, without Secrets."""
    kinds = (
        *(resources.OPENSTACK_DEPLOYMENTS, resources.OPENSTACK_DEPLOYMENT_STATUSES),
        *(resources.HELM_BUNDLES, resources.EVENTS),
    )
    return json.dumps([cluster.documents(kind) for kind in kinds])


def override(tree: Any, change: Any) -> Any:
    """Return a tree with the objects of another one; all else of it replaces."""
    if not isinstance(tree, dict) or not isinstance(change, dict):
        return change
    if references.is_reference(change):
        return change
    return {**tree, **{k: override(tree.get(k), v) for k, v in change.items()}}
