"""A simulated engine behind HTTPS, in the test's process, with its real clock."""

import contextlib
import pathlib
from collections.abc import Iterator

from lib.lab.zvirt import control, server, service


class Served:
    """One engine. folder: of its state. url: of its API."""

    def __init__(
        self,
        folder: pathlib.Path,
        of: service.Service,
        certificates: server.Authority,
    ) -> None:
        self.folder, self.service = folder, of
        self._certificates = certificates
        self._stack = contextlib.ExitStack()
        self._port = 0
        self.start()
        self.host = f"https://127.0.0.1:{self._port}"
        self.url = f"{self.host}/ovirt-engine/api"
        self.password = server.password(folder)
        self.ca_file = str(folder / server.CA)

    def start(self) -> None:
        """Listen, after a stop on the same port."""
        opened = server.serving(self.service, self._certificates, self._port)
        self._port = self._stack.enter_context(opened)

    def stop(self) -> None:
        """Refuse connections, and forget all tokens, as an engine that ends."""
        self._stack.close()
        self.service.sso.lose_tokens()

    def ask(self, **request: object) -> object:
        """Send a request to the control socket."""
        return control.ask(self.folder / server.CONTROL, **request)


@contextlib.contextmanager
def serving(folder: pathlib.Path, *lines: str) -> Iterator[Served]:
    """Serve the engine of a folder. lines: rules of `settings.py`."""
    opened, certificates = server.open_service(folder)
    opened.engine.settings.replace(lines)
    engine = Served(folder, opened, certificates)
    try:
        with control.listening(folder / server.CONTROL, opened):
            yield engine
    finally:
        engine.stop()
    opened.engine.records.close()
