"""The metadata service of one instance, on loopback."""

import contextlib
import http.client
import http.server
import json
import threading
from collections.abc import Iterator

from lib.lab.run import ports

PATH = "/openstack/latest/meta_data.json"
"""Source: OpenStack Nova, "Metadata service"."""


def document(instance_id: str, zone: str) -> bytes:
    """Return meta_data.json; Nova names no disks in it for volumes without a tag."""
    content = {"uuid": instance_id, "availability_zone": zone, "devices": []}
    return json.dumps(content).encode()


@contextlib.contextmanager
def served(
    instance_id: str, zone: str, address: str = ports.LOOPBACK, port: int = 0
) -> Iterator[str]:
    """Serve for as long as the block lasts; return the service's URL.

    port: 0 for a free one.
    """
    body = document(instance_id, zone)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - called by http.server
            is_known = self.path == PATH
            answer = body if is_known else b""
            code = http.client.OK if is_known else http.client.NOT_FOUND
            self.send_response(code)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with http.server.ThreadingHTTPServer((address, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="metadata")
        thread.start()
        try:
            yield f"http://{address}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
