"""Meadow as a process: instances over HTTP, and a client of it. Run as a program."""

import http.client
import http.server
import json
import sys
import threading
from collections.abc import Mapping
from typing import Any

from lib.lab import errors
from lib.lab.grounds import servers

TIMEOUT_S = 10.0
_CODES = {"GET": 200, "POST": 201, "DELETE": 200}


class Pasture:
    """What the program holds: servers by ID."""

    def __init__(self) -> None:
        self._servers: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()
        self._made = 0

    def answer(self, method: str, path: str, body: Mapping[str, str]) -> object:
        """Carry one request out."""
        with self._lock:
            server_id = path.removeprefix("/").partition("/")[2]
            if method == "DELETE":
                self._servers.pop(server_id, None)
            elif method == "POST" and not server_id:
                self._made += 1
                address = f"10.9.0.{self._made}"
                server = {**body, "id": f"sheep-{self._made}", "address": address}
                self._servers[server["id"]] = server
                return server
            elif method == "POST":
                self._servers[server_id].update(body)
            return list(self._servers.values())


def serve(port: int) -> None:
    """Answer on a port of the loopback address until the process ends."""
    pasture = Pasture()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length) or b"{}")
            text = json.dumps(pasture.answer(self.command, self.path, body)).encode()
            self.send_response(_CODES[self.command])
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 # names of the library

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


class Herd:
    """The servers of a pasture, for its user: implements `servers.Cloud`."""

    def __init__(self, port: int) -> None:
        self._port = port

    def ask(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Send one request; return the decoded answer.

        Raises:
            LabError: there is no answer.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._port, TIMEOUT_S)
        try:
            connection.request(method, path, json.dumps(body or {}))
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise errors.LabError(f"meadow does not answer: {error}") from error
        finally:
            connection.close()

    def items(self) -> tuple[servers.Server, ...]:
        """See `servers.Cloud.items`."""
        return tuple(_server(server) for server in self.ask("GET", "/servers"))

    def boot(self, name: str, kind: servers.Kind) -> servers.Server:
        """See `servers.Cloud.boot`; a server is running at once."""
        del kind
        server = {"name": name, "status": servers.ACTIVE}
        return _server(self.ask("POST", "/servers", server))

    def stop(self, server_id: str) -> None:
        """See `servers.Cloud.stop`."""
        self.ask("POST", f"/servers/{server_id}", {"status": servers.SHUTOFF})

    def start(self, server_id: str) -> None:
        """See `servers.Cloud.start`."""
        self.ask("POST", f"/servers/{server_id}", {"status": servers.ACTIVE})

    def delete(self, server_id: str) -> None:
        """See `servers.Cloud.delete`."""
        self.ask("DELETE", f"/servers/{server_id}")

    def add_floating_ip(self, server_id: str) -> str:
        """See `servers.Cloud.add_floating_ip`."""
        raise errors.LabError(f"{server_id}: meadow has no floating IPs")

    def remove_floating_ips(self, server_id: str) -> None:
        """See `servers.Cloud.remove_floating_ips`."""


def _server(fields: Mapping[str, str]) -> servers.Server:
    return servers.Server(
        id=fields["id"],
        name=fields["name"],
        status=fields["status"],
        addresses=(fields["address"],),
    )


if __name__ == "__main__":
    serve(int(sys.argv[1]))
