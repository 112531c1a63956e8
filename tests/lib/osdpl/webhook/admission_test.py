"""Which requests are judged by which rules, and what is answered."""

import json
from typing import Any

import prometheus_client
import pytest

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.operator_edge import objects
from lib.osdpl.reconcile import caches
from lib.osdpl.webhook import admission, webhook
from lib.osdpl.webhook.admission import Facts, Operation
from lib.process import exchange

SPEC: dict[str, Any] = {
    "openstack_version": "epoxy",
    "preset": "core",
    "size": "tiny",
    "public_domain_name": "x",
    "features": {
        "neutron": {"tunnel_interface": "x"},
        "nova": {"live_migration_interface": "x"},
    },
}
INVALID = {**SPEC, "nodes": {"rack": {}}}
UNREADABLE = {**SPEC, "size": "huge"}
NEWER = {**SPEC, "openstack_version": "flamingo"}
RUNNING = {"status": {"osdpl": {"state": "APPLYING", "openstack_version": "epoxy"}}}
APPLIED = {"status": {"osdpl": {"state": "APPLIED", "openstack_version": "epoxy"}}}


def thing(spec: object, **more: Any) -> dict[str, Any]:
    metadata = {"name": "cloud", "namespace": "openstack", **more.pop("metadata", {})}
    kind = resources.OPENSTACK_DEPLOYMENTS
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**head, "metadata": metadata, "spec": spec, **more}


def rotated(number: int) -> dict[str, Any]:
    return thing(SPEC, status={"credentials": {"admin": {"rotation_id": number}}})


def review(operation: str, sub: str = "", **more: Any) -> bytes:
    request = {"uid": "u", "operation": operation, "name": "cloud", **more}
    request = {"namespace": "openstack", "subResource": sub, **request}
    head = {"apiVersion": admission.API_VERSION, "kind": admission.KIND}
    return json.dumps({**head, "request": request}).encode()


SOON = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
ROWS = {
    "create": ("CREATE", "", thing(SPEC), None, Facts(), []),
    "create, rule": ("CREATE", "", thing(INVALID), None, Facts(), ["spec.nodes"]),
    "create, schema": ("CREATE", "", thing(UNREADABLE), None, Facts(), ["spec.size"]),
    "create, a second one": (
        *("CREATE", "", thing(SPEC), None),
        Facts(others=("openstack/a",)),
        ["metadata.name"],
    ),
    "create, no spec": ("CREATE", "", thing(None), None, Facts(), ["spec"]),
    "update, same invalid spec": (
        *("UPDATE", "", thing(INVALID), thing(INVALID), Facts()),
        [],
    ),
    "update, while it is deleted": (
        *("UPDATE", "", thing(INVALID, metadata=SOON), thing(SPEC), Facts()),
        [],
    ),
    "update to invalid": (
        *("UPDATE", "", thing(INVALID), thing(SPEC), Facts()),
        ["spec.nodes"],
    ),
    "update of an unreadable one": (
        *("UPDATE", "", thing(SPEC), thing(UNREADABLE), Facts()),
        [],
    ),
    "upgrade": ("UPDATE", "", thing(NEWER), thing(SPEC), Facts(APPLIED), []),
    "upgrade too early": (
        *("UPDATE", "", thing(NEWER), thing(SPEC), Facts(RUNNING)),
        ["spec.openstack_version"],
    ),
    "upgrade with another change": (
        *("UPDATE", "", thing({**NEWER, "region_name": "B"}), thing(SPEC)),
        Facts(APPLIED),
        ["spec.region_name"],
    ),
    "delete": ("DELETE", "", None, thing(SPEC), Facts(APPLIED), []),
    "delete, invalid spec": ("DELETE", "", None, thing(INVALID), Facts(APPLIED), []),
    "delete, never applied": ("DELETE", "", None, thing(SPEC), Facts(), []),
    "delete too early": (
        *("DELETE", "", None, thing(SPEC), Facts(RUNNING)),
        ["metadata.deletionTimestamp"],
    ),
    "status": ("UPDATE", "status", rotated(2), rotated(1), Facts(APPLIED), []),
    "status of an invalid spec": (
        *("UPDATE", "status", thing(INVALID), thing(INVALID), Facts(APPLIED)),
        [],
    ),
    "status, two more": (
        *("UPDATE", "status", rotated(3), rotated(1), Facts(APPLIED)),
        ["status.credentials.admin.rotation_id"],
    ),
    "scale": ("UPDATE", "scale", thing(INVALID), thing(SPEC), Facts(), []),
    "connect": ("CONNECT", "", thing(INVALID), None, Facts(), []),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_request_is_judged(name: str) -> None:
    operation, sub, new, old, facts, fields = ROWS[name]
    body = review(operation, sub, object=new, oldObject=old)
    asked = admission.parse(body)
    observed = admission.judge(asked, facts)
    print(f"{name:30} {asked.kind:7} {[str(item)[:90] for item in observed]}")
    shown = [item.field for item in observed]
    assert shown == fields
    answer = json.loads(admission.answer("u", observed))["response"]
    assert (answer["uid"], answer["allowed"]) == ("u", not fields)
    if fields:
        assert answer["status"]["code"] == 400
        assert fields[0] in answer["status"]["message"]


def test_each_operation_has_a_row() -> None:
    kinds = {
        admission.parse(review(operation, sub)).kind
        for operation, sub, *_ in ROWS.values()
    }
    assert kinds == set(Operation)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",'
        b' "request": {"uid": 7}}',
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",'
        b' "request": {"uid": "u"}}',
        b'{"apiVersion": "v1", "kind": "Pod", "request": {"uid": "u"}}',
    ],
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"AdmissionReview"):
        admission.parse(body)
    endpoint, _, _ = served()
    reply = endpoint.review(exchange.Request("POST", webhook.PATH, {}, {}, body=body))
    assert reply.status == 400


def test_a_long_message_is_cut() -> None:
    many: dict[str, Any] = {f"rack-{number}": {} for number in range(1000)}
    observed = admission.judge(
        admission.parse(review("CREATE", object=thing({**SPEC, "nodes": many}))),
        Facts(),
    )
    answer = json.loads(admission.answer("u", observed))
    assert len(observed) == 1000
    assert len(answer["response"]["status"]["message"]) == admission.MESSAGE_MAX + 3


def served() -> tuple[webhook.Endpoint, fake_api.FakeApi, objects.Objects]:
    """Return an endpoint with filled caches, its API server and what Kopf delivered."""
    api = fake_api.FakeApi()
    kept = caches.open_caches(api, "openstack")
    kept.statuses.relist()
    kept.secrets.relist()
    known = objects.Objects()
    registry = prometheus_client.CollectorRegistry()
    return webhook.Endpoint(api, known, kept, registry), api, known


def ask(endpoint: webhook.Endpoint, body: bytes) -> bool:
    reply = endpoint.review(exchange.Request("POST", webhook.PATH, {}, {}, body=body))
    assert reply.status == 200
    return bool(json.loads(reply.body)["response"]["allowed"])


def test_an_older_one_that_kopf_still_knows_is_read_again() -> None:
    """An event of a deletion may have been missed: it must not forbid a creation."""
    endpoint, api, known = served()
    older = thing(SPEC, metadata={"name": "older", "uid": "1"})
    creation = review("CREATE", object=thing(SPEC))
    known.put(older)
    assert ask(endpoint, creation)
    api.create(
        resources.OPENSTACK_DEPLOYMENTS,
        json.dumps(older).encode(),
        "openstack",
        timeout_s=5,
    )
    assert not ask(endpoint, creation)


def test_before_the_caches_are_filled_the_policy_decides() -> None:
    api = fake_api.FakeApi()
    kept = caches.open_caches(api, "openstack")
    registry = prometheus_client.CollectorRegistry()
    endpoint = webhook.Endpoint(api, objects.Objects(), kept, registry)
    body = review("CREATE", object=thing(SPEC))
    reply = endpoint.review(exchange.Request("POST", webhook.PATH, {}, {}, body=body))
    assert reply.status == 503
