"""Values of the service image: Glance on a file backend."""

from collections.abc import Iterator
from typing import Any

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Password
from lib.osdpl.values.service import Chart, Pool, Service
from lib.osdpl.values.services import common
from lib.process import config

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


def _problems(context: Context) -> Iterator[config.FieldProblem]:
    path = "features.glance.backends.file"
    stores = context.get(path) or {}
    if len(stores) > 1:
        names = ", ".join(sorted(stores))
        yield config.FieldProblem(f"spec.{path}", names, "one backend")


def _ceph(context: Context) -> Iterator[config.FieldProblem]:
    path = "features.glance.backends.rbd"
    backends = context.get(path)
    if backends:
        expected = "another backend: Ceph is not supported yet"
        yield config.FieldProblem(f"spec.{path}", ", ".join(backends), expected)


SERVICE = Service(
    name="image",
    charts=(
        Chart(
            name="glance",
            release="openstack-glance",
            values=glance,
            needs=("database", "memcached", "messaging", "identity"),
            replicas={"api": (1, 3, 3, 3)},
            settings={"glance_api_uwsgi.uwsgi.processes": (4, 2, 8, 8)},
            budgets={"api": (0, 2, 2, 2)},
            pool=Pool(sections=("database",)),
        ),
    ),
    user="glance",
    accounts=("glance", "test"),
    own_passwords=(("glance_temp_url_key", Password()),),
    endpoints={"image": ("glance", "api")},
    features=("glance",),
    unsupported=(
        "features.glance.signature.enabled",
        "features.glance.backends.cinder",
    ),
    problems=_problems,
    ceph=_ceph,
)
