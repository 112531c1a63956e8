"""A real validating webhook that denies writes of one kind in one namespace."""

import base64
import contextlib
import datetime
import json
import socket
from collections.abc import Iterator

from lib.kube import client, resources
from lib.kube.resources import Resource
from lib.lab.kube import kube_objects
from lib.process import certificates, exchange, serving, tls

MESSAGE = "the lab denies it"
HOST = "127.0.0.1"


@contextlib.contextmanager
def denying(
    api: client.Api,
    namespace: str,
    resource: Resource,
    subresource: str = "",
    *,
    is_down: bool = False,
) -> Iterator[str]:
    """Have the API server ask a webhook that denies updates, while the block lasts.

    is_down: nothing answers there. Yields the name of the webhook.
    """
    now = datetime.datetime.now(datetime.UTC)
    pair = certificates.self_signed([HOST], now)
    listener = socket.create_server((HOST, 0))
    routes = exchange.HttpRoutes({}, exchange.everybody, posts={"/deny": _deny})
    server = serving.HttpServer(listener, tls.InMemory(pair), routes)
    port = listener.getsockname()[1]
    name = f"{namespace}.lab.example.org"
    kind = f"{resource.plural}/{subresource}".rstrip("/")
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": ["*"],
        "resources": [kind],
        "operations": ["UPDATE"],
    }
    hook = {
        "name": name,
        "clientConfig": {
            "url": f"https://{HOST}:{port}/deny",
            "caBundle": base64.b64encode(pair.certificate).decode(),
        },
        "rules": [rule],
        "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": namespace}
        },
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }
    objects = kube_objects.Objects(api, "")
    server.start()
    if is_down:
        server.stop()
    try:
        objects.make(resources.VALIDATING_WEBHOOKS, name, webhooks=[hook])
        yield name
    finally:
        objects.delete(resources.VALIDATING_WEBHOOKS, name)
        if not is_down:
            server.stop()


def _deny(request: exchange.Request) -> exchange.Reply:
    uid = json.loads(request.body)["request"]["uid"]
    answer = {"uid": uid, "allowed": False, "status": {"message": MESSAGE}}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": answer,
    }
    return exchange.Reply(json.dumps(review).encode(), content_type="application/json")
