"""Values of the service image: Glance on a file backend."""

from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.services import common

VOLUME_SIZE = "50Gi"


def glance(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart glance."""
    own = {
        "storage": "pvc",
        "volume": _volume(context),
        # The Job downloads an image from the Internet.
        "bootstrap": {"enabled": False},
        "manifests": {"job_bootstrap": False},
        "endpoints": _object_stores(context),
    }
    base = common.openstack(context, contract, "image")
    return common.join(base, own, common.program(context, "glance"))


def _volume(context: Context) -> model.Tree:
    claim: dict[str, Any] = {}
    for backend in context.get("features.glance.backends.file", {}).values():
        claim = backend["pvc"]
    replicas = context.get("services.image.glance.values.pod.replicas.api", 1)
    mode = "ReadWriteMany" if replicas > 1 else "ReadWriteOnce"
    return {
        "class_name": claim.get("storage_class_name") or context.storage_class,
        "size": claim.get("size", VOLUME_SIZE),
        "accessModes": [mode],
    }


def _object_stores(context: Context) -> model.Tree:
    """Return the accounts of object stores: unused, but public in the chart."""
    key = context.credentials.text(secret_shapes.OWN, "glance_temp_url_key")
    user = context.credentials.account("image", "glance")
    account = {**user.values(), "tmpurlkey": key}
    return {
        "object_store": {"auth": {"glance": {"tmpurlkey": key}}},
        "ceph_object_store": {"auth": {"glance": account}},
    }
