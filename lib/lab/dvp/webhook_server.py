"""Serves the webhooks of a parent: reviews of writes, by the rules of `rules.py`."""

import contextlib
import http.server
import json
import pathlib
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence

import msgspec

from lib.kube import client
from lib.kube import errors as kube_errors
from lib.kube.resources import Resource
from lib.lab.dvp import admission, rules
from lib.lab.dvp.kinds import Item, Json, World

_TIMEOUT_S = 5.0
_KINDS = {kind.plural: kind for kind in rules.JUDGED}


class Others:
    """Implements `admission.Lookup` by stores; an absence is read again past them."""

    def __init__(self, api: client.Api, world: World) -> None:
        self._api, self._world = api, world

    def get(self, kind: Resource, namespace: str, name: str) -> Item | None:
        """See `admission.Lookup`."""
        stored = self._world.get(kind, namespace, name)
        if stored is not None:
            return stored
        space = namespace if kind.namespaced else None
        with contextlib.suppress(kube_errors.NotFound):
            body = self._api.read(kind, name, space, timeout_s=_TIMEOUT_S)
            return msgspec.json.decode(body, type=Item)
        return None

    def within(self, kind: Resource, namespace: str) -> Sequence[Item]:
        """See `admission.Lookup`."""
        if not namespace:
            return tuple(self._world.of(kind).values())
        return self._world.within(kind, namespace)


def reviewed(plural: str, body: bytes, others: admission.Lookup) -> Json:
    """Return the answer to an AdmissionReview (admission.k8s.io/v1)."""
    request = json.loads(body)["request"]
    new = request["object"]
    review = admission.Review(_KINDS[plural], new, request.get("oldObject"), others)
    text = admission.refusal(rules.RULES, review)
    answer: Json = {"uid": request["uid"], "allowed": not text}
    if text:
        answer["status"] = {"code": 403, "message": text}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": answer,
    }


@contextlib.contextmanager
def serving(
    port: int, certificate: pathlib.Path, others: Callable[[], admission.Lookup]
) -> Iterator[None]:
    """Serve on a port of the loopback. certificate: .crt, with the key beside it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 # the name that http.server calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = reviewed(self.path.split("?")[0].strip("/"), body, others())
            text = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: each write of the parent would be a line."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
