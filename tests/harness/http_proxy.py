"""A forward proxy for HTTP, the variables of a chart that lead to it, and a resolver.

With `resolved_to_loopback` each name and each address leads to loopback, so that a test
can use the addresses of a cloud; who connects to the proxy, and who to the server
itself, is seen by what arrives at the proxy.
"""

import contextlib
import http.client
import http.server
import pathlib
import select
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from lib.lab.charts import charts

API_SERVER = "192.0.2.10"
"""Of the child's cluster; its address in the pod."""
HOSTS = {
    "cloud.example": True,
    "192.0.2.20": True,
    "[2001:db8::20]": True,
    API_SERVER: False,
    "127.0.0.1": False,
    "localhost": False,
    "[::1]": False,
    "169.254.169.254": False,
    "keystone.openstack.svc": False,
    "keystone.openstack.svc.cluster.local": False,
    "10.111.3.4": False,
    "10.222.0.1": False,
}
"""Whether the proxy is used for it, with the values of the snapshots."""


class ForwardProxy:
    """Answers absolute requests and CONNECT. requests: method and host of each."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.refuses = False
        handler = type("Bound", (_Handler,), {"proxy": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Accept nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    proxy: ForwardProxy

    def _forward(self) -> None:
        split = urllib.parse.urlsplit(self.path)
        self.proxy.requests.append((self.command, split.netloc.rpartition(":")[0]))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        far = http.client.HTTPConnection(split.netloc, timeout=10)
        path = urllib.parse.urlunsplit(("", "", split.path, split.query, ""))
        far.request(self.command, path, body, dict(self.headers.items()))
        answer = far.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        far.close()

    do_GET = _forward  # noqa: N815  (the standard library names them)
    do_POST = _forward  # noqa: N815  (the same)

    def do_CONNECT(self) -> None:  # noqa: N802  (the same)
        host, _, port = self.path.rpartition(":")
        self.proxy.requests.append((self.command, host))
        if self.proxy.refuses:
            self.send_error(403)
            return
        with socket.create_connection((host.strip("[]"), int(port)), 10) as far:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            _carry(self.connection, far)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def _carry(near: socket.socket, far: socket.socket) -> None:
    """Pass bytes on in both directions until one side closes or is silent."""
    with contextlib.suppress(OSError):
        while ready := select.select((near, far), (), (), 30)[0]:
            for side in ready:
                data = side.recv(1 << 16)
                if not data:
                    return
                (far if side is near else near).sendall(data)


@contextlib.contextmanager
def running() -> Iterator[ForwardProxy]:
    """Yield a proxy, and close it."""
    proxy = ForwardProxy()
    try:
        yield proxy
    finally:
        proxy.close()


@contextlib.contextmanager
def used(
    patch: pytest.MonkeyPatch, snapshot: charts.Snapshot, container: str
) -> Iterator[ForwardProxy]:
    """Yield a proxy; this process has the variables of a container that lead to it."""
    with running() as proxy:
        set_variables(patch, variables(snapshot, container, proxy.url))
        resolved_to_loopback(patch)
        yield proxy


def variables(snapshot: charts.Snapshot, container: str, proxy: str) -> dict[str, str]:
    """Return what a container of a snapshot gets, with the URL of a proxy in it.

    References are replaced as the kubelet does, with API_SERVER.
    """
    containers = [
        item
        for spec in snapshot.workloads(pathlib.Path()).values()
        for item in spec["template"]["spec"]["containers"]
        if item["name"] == container
    ]
    (env,) = (item["env"] for item in containers)
    rendered = {
        item["name"]: item["value"]
        for item in env
        if item["name"].lower().endswith("_proxy")
    }
    return {
        name: (
            value.replace("$(KUBERNETES_SERVICE_HOST)", API_SERVER)
            if name.lower() == "no_proxy"
            else proxy
        )
        for name, value in rendered.items()
    }


def set_variables(patch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    """Set these variables of a proxy in the environment, and unset the others."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        for either in (name, name.lower()):
            patch.delenv(either, raising=False)
    for name, value in values.items():
        patch.setenv(name, value)


def resolved_to_loopback(patch: pytest.MonkeyPatch) -> None:
    """Resolve every host to 127.0.0.1, for connections of this process."""
    original = socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        del host
        named.pop("family", None)
        port, *rest = arguments
        return original("127.0.0.1", port, socket.AF_INET, *rest[1:], **named)

    patch.setattr(socket, "getaddrinfo", resolve)
