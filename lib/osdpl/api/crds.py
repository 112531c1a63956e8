"""CustomResourceDefinitions of the operator.

The files under charts/osdpl-controller/crds are written from these; a test compares
them. The API server keeps unknown fields of an OpenStackDeployment: it would drop them
for clients without strict validation. Webhook and controller refuse them by name.
"""

from typing import Any

from lib.osdpl.api import model, schema
from lib.osdpl.api.schema_types import (
    ANY,
    ANY_OBJECT,
    BOOLEAN,
    INTEGER,
    STRING,
    Schema,
    closed,
    enum,
    fields,
    list_of,
    map_of,
    nullable,
    preserving,
)

_INT64: Schema = {"type": "integer", "format": "int64"}
_TIME: Schema = {"type": "string", "format": "date-time"}
LABELS = {"app.kubernetes.io/managed-by": "osdpl-controller"}
"""Label of the CRDs that this operator owns: other products have HelmBundle, too."""
STATES = ("APPLYING", "APPLIED", "DELETING", "WAITING", "FAILED", "REFUSED")
"""States of OpenStackDeploymentStatus; REFUSED is an addition to the reference."""


UPGRADE = ("from", "to", "service", "progress", "waiting_for")
"""Fields of an upgrade that has not ended; an addition to the reference."""


def openstack_deployment() -> model.Tree:
    """Return the CRD of OpenStackDeployment."""
    properties = {"spec": preserving(schema.spec()), "status": _deployment_status()}
    columns = (
        ("OpenStack", "string", ".spec.openstack_version"),
        ("Deployed", "boolean", ".status.deployed"),
        ("Age", "date", ".metadata.creationTimestamp"),
        ("Draft", "boolean", ".spec.draft"),
    )
    return _crd("OpenStackDeployment", "osdpl", properties, columns, has_status=True)


def openstack_deployment_status() -> model.Tree:
    """Return the CRD of OpenStackDeploymentStatus; its status is no subresource."""
    columns = (
        ("OpenStack Version", "string", ".status.osdpl.openstack_version"),
        ("Controller Version", "string", ".status.osdpl.controller_version"),
        ("State", "string", ".status.osdpl.state"),
        ("LCM Progress", "string", ".status.osdpl.lcm_progress"),
        ("Health", "string", ".status.osdpl.health"),
        ("MOSK Release", "string", ".status.osdpl.release"),
    )
    properties = {"spec": ANY_OBJECT, "status": _lcm_status()}
    kind = "OpenStackDeploymentStatus"
    return _crd(kind, "osdplst", properties, columns, has_status=False)


def helm_bundle() -> model.Tree:
    """Return the CRD of HelmBundle."""
    columns = (
        ("Releases", "string", ".spec.releases[*].name"),
        ("Ready", "string", ".status.releaseStatuses.*.ready"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    properties = {"spec": _bundle_spec(), "status": _bundle_status()}
    return _crd("HelmBundle", "", properties, columns, has_status=True)


def documents() -> dict[str, model.Tree]:
    """Return the CRDs by the name of their file."""
    crds = (openstack_deployment(), openstack_deployment_status(), helm_bundle())
    return {f"{crd['spec']['names']['plural']}.yaml": crd for crd in crds}


def _crd(
    kind: str,
    short: str,
    properties: dict[str, Schema],
    columns: tuple[tuple[str, str, str], ...],
    *,
    has_status: bool,
) -> model.Tree:
    # The reference's plural of OpenStackDeploymentStatus is its singular.
    plural = kind.lower() if kind.endswith("Status") else f"{kind.lower()}s"
    names: dict[str, Any] = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
    }
    if short:
        names["shortNames"] = [short]
    if kind == "OpenStackDeployment":
        names["categories"] = ["all"]
    top = {"apiVersion": STRING, "kind": STRING, "metadata": {"type": "object"}}
    version: dict[str, Any] = {
        "name": model.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": closed({**top, **properties}, ("spec",))},
        "additionalPrinterColumns": [
            {"name": name, "type": kind_of, "jsonPath": path}
            for name, kind_of, path in columns
        ],
    }
    if not has_status:
        del version["schema"]["openAPIV3Schema"]["required"]
    if has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{model.GROUP}", "labels": dict(LABELS)},
        "spec": {
            "group": model.GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def _conditions() -> Schema:
    condition = closed(
        {
            **fields(STRING, "type", "reason", "message"),
            "status": enum("True", "False", "Unknown"),
            "lastTransitionTime": _TIME,
            "observedGeneration": _INT64,
        },
        required=("type", "status"),
    )
    keys = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    return {**list_of(condition), **keys}


def _health(*statuses: str) -> Schema:
    """Return the schema of the health by application and component."""
    component = closed({"status": enum(*statuses), "generation": _INT64})
    return map_of(map_of(nullable(component)))


def _deployment_status() -> Schema:
    """Return the status of both generations of the reference, and conditions."""
    rotation = closed({"rotation_id": INTEGER})
    watched_hash = closed({"hash": STRING})
    by_name = map_of(watched_hash)
    watched = {
        "configmaps": by_name,
        "value_from": closed({"secret": by_name}),
        "ceph": closed({"secret": watched_hash}),
        "neutron": closed({"bgpvpn_neighbor_secret": watched_hash}),
        "tf": closed({"secret": watched_hash}),
        "osdplsecret": watched_hash,
    }
    return closed(
        {
            "conditions": _conditions(),
            "observedGeneration": _INT64,
            "children": nullable(map_of(ANY)),
            "deployed": nullable(BOOLEAN),
            "health": nullable(_health("Ready", "Progressing", "Unhealthy", "Unknown")),
            "version": STRING,
            "fingerprint": STRING,
            "handle": closed({"lastStatus": STRING}),
            "credentials": closed({"admin": rotation, "service": rotation}),
            "certificates": closed({"octavia": closed({"amphora": rotation})}),
            "watched": closed(watched),
        }
    )


def _lcm_status() -> Schema:
    shared = {
        "state": enum(*STATES),
        **fields(
            STRING,
            "openstack_version",
            "controller_version",
            "controller_host",
            "fingerprint",
            "release",
            "timestamp",
            "cause",
            "changes",
        ),
    }
    task = closed(fields(STRING, "description", "start_time"))
    groups = map_of(closed({"timestamp": ANY}))
    return closed(
        {
            "osdpl": closed(
                {
                    **shared,
                    **fields(STRING, "health", "lcm_progress"),
                    "fields": map_of(STRING),
                    "upgrade": closed(fields(STRING, *UPGRADE)),
                }
            ),
            "services": map_of(nullable(closed({**shared, "tasks": list_of(task)}))),
            "health": _health("Ready", "Progressing", "Unhealthy", "Unknown"),
            "credentials": closed({"rotation": groups}),
            "handle": closed({"lastStatus": STRING}),
        }
    )


def _bundle_spec() -> Schema:
    repository = fields(STRING, "name", "url", "certFile", "authSecret")
    release = {
        **fields(
            STRING,
            "name",
            "namespace",
            "chart",
            "version",
            "digest",
            "chartURL",
            "hash",
        ),
        "labels": map_of(STRING),
        "values": ANY_OBJECT,
        "helmV3": BOOLEAN,
        "requires": list_of(STRING),
    }
    return closed(
        {
            "repositories": list_of(closed(repository, ("name", "url"))),
            "releases": list_of(closed(release, ("name", "chart"))),
            "release": STRING,
        }
    )


def _bundle_status() -> Schema:
    release = {
        **fields(
            STRING,
            "namespace",
            "chart",
            "version",
            "digest",
            "hash",
            "status",
            "notes",
            "message",
            "state",
            "waitingFor",
            "workloads",
        ),
        **fields(INTEGER, "revision", "attempt"),
        **fields(BOOLEAN, "success", "ready"),
        "finishedAt": STRING,
    }
    return closed(
        {
            "observedGeneration": _INT64,
            "release": STRING,
            "releaseStatuses": map_of(closed(release)),
        }
    )
