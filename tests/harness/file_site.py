"""A web site on loopback: files of a folder, and what they are asked for."""

import contextlib
import functools
import http.server
import pathlib
import threading
from collections.abc import Iterator


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing; the requests are kept."""

    def do_GET(self) -> None:  # noqa: N802 - the name that the base class calls
        """Keep the path, and answer with the file."""
        requests: list[str] = getattr(self.server, "requests")  # noqa: B009
        requests.append(self.path)
        super().do_GET()


class _Server(http.server.ThreadingHTTPServer):
    def __init__(self, folder: pathlib.Path) -> None:
        handler = functools.partial(_Handler, directory=str(folder))
        super().__init__(("127.0.0.1", 0), handler)
        self.requests: list[str] = []


class FileSite:
    """A site that serves. requests: paths that were asked for."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    @property
    def url(self) -> str:
        """The site, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[str]:
        """The paths that were asked for, in order."""
        return self._server.requests


@contextlib.contextmanager
def serving(folder: pathlib.Path) -> Iterator[FileSite]:
    """Serve the files of a folder as long as the block runs."""
    with _Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield FileSite(server)
        finally:
            server.shutdown()
            thread.join()
