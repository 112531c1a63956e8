"""Kopf against an API server on loopback: events arrive, and only GET is sent."""

import contextlib
import http.server
import json
import pathlib
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import yaml

from lib.kube import kube_config, resources
from lib.operator_edge import doorbell

GROUP = "lcm.mirantis.com"
PLURAL = "openstackdeployments"


def document(name: str, version: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "openstack",
        "uid": name,
        "resourceVersion": version,
    }
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "OpenStackDeployment",
        "metadata": metadata,
        "spec": {"size": "tiny"},
    }


DISCOVERY: dict[str, Any] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {
        "resources": [
            {
                "name": "namespaces",
                "singularName": "namespace",
                "kind": "Namespace",
                "namespaced": False,
                "verbs": ["get", "list", "watch"],
            }
        ]
    },
    "/apis": {
        "groups": [
            {
                "name": GROUP,
                "versions": [{"groupVersion": f"{GROUP}/v1", "version": "v1alpha1"}],
                "preferredVersion": {"version": "v1alpha1"},
            }
        ]
    },
    f"/apis/{GROUP}/v1alpha1": {
        "resources": [
            {
                "name": PLURAL,
                "singularName": "openstackdeployment",
                "kind": "OpenStackDeployment",
                "namespaced": True,
                "verbs": ["get", "list", "watch", "patch"],
            }
        ]
    },
}
WATCHED = (
    {"type": "ADDED", "object": document("second", "11")},
    {"type": "MODIFIED", "object": document("first", "12")},
    {"type": "DELETED", "object": document("second", "13")},
)


@contextlib.contextmanager
def api_server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve discovery, one list and one watch; yield address and requests so far."""
    asked: list[tuple[str, str]] = []
    closing = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def any(self) -> None:
            asked.append((self.command, self.path))
            parts = urllib.parse.urlsplit(self.path)
            if "watch=true" in parts.query:
                self._watch()
            elif parts.path == f"/apis/{GROUP}/v1alpha1/{PLURAL}":
                items = [document("first", "10")]
                self._send(200, {"metadata": {"resourceVersion": "10"}, "items": items})
            elif parts.path in DISCOVERY:
                self._send(200, DISCOVERY[parts.path])
            else:
                self._send(404, {"kind": "Status", "code": 404})

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = any  # noqa: N815 - library

        def _send(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _watch(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            for event in WATCHED:
                self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
                time.sleep(0.3)  # Kopf gathers what comes at one moment
            closing.wait(30)

        def log_message(self, format: str, *arguments: object) -> None:
            del format, arguments

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(folder: pathlib.Path, url: str) -> pathlib.Path:
    path = folder / "kubeconfig"
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_events_arrive_and_nothing_is_written(tmp_path: pathlib.Path) -> None:
    observed: list[tuple[str, str, bool]] = []
    done = threading.Event()

    def on_event(document: doorbell.Document, is_deleted: bool) -> None:
        metadata = document["metadata"]
        observed.append((metadata["name"], metadata["resourceVersion"], is_deleted))
        if is_deleted:
            done.set()

    with api_server() as (url, asked):
        path = str(kubeconfig(tmp_path, url))
        bell = doorbell.Doorbell(
            resources.OPENSTACK_DEPLOYMENTS,
            lambda: kube_config.load(path, env={}),
            on_event,
        )
        stop = threading.Event()
        thread = threading.Thread(target=bell.run, args=(stop,), daemon=True)
        thread.start()
        assert done.wait(30), (observed, asked)
        stop.set()
        thread.join(20)
        assert not thread.is_alive()
    assert observed[0] == ("first", "10", False)
    assert ("first", "12", False) in observed
    assert observed[-1] == ("second", "13", True)
    assert {method for method, _ in asked} == {"GET"}
    lists = [
        p for _, p in asked if p.split("?")[0].endswith(PLURAL) and "watch" not in p
    ]
    assert len(lists) == 1
    watches = [path for _, path in asked if "watch=true" in path]
    assert len(watches) == 1
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(watches[0]).query)
    assert query["timeoutSeconds"][0].isdecimal()


def test_credentials_are_passed_on(tmp_path: pathlib.Path) -> None:
    observed = kube_config.load(str(kubeconfig(tmp_path, "http://127.0.0.1:1")), env={})
    info = doorbell.connection(observed)
    assert (info.server, info.scheme, info.token) == (
        "http://127.0.0.1:1",
        "Bearer",
        "t0ken",
    )
    assert info.expiration is not None
