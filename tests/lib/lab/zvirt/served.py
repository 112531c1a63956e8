"""A simulated engine behind HTTPS, in the test's process, with its real clock."""

import contextlib
import pathlib
from collections.abc import Iterator

from lib.lab.zvirt import control, server, service


class Served:
    """One engine. folder: of its state. url: of its API."""

    def __init__(self, folder: pathlib.Path, port: int, of: service.Service) -> None:
        self.folder, self.service = folder, of
        self.host = f"https://127.0.0.1:{port}"
        self.url = f"{self.host}/ovirt-engine/api"
        self.password = server.password(folder)
        self.ca_file = str(folder / server.CA)

    def ask(self, **request: object) -> object:
        """Send a request to the control socket."""
        return control.ask(self.folder / server.CONTROL, **request)


@contextlib.contextmanager
def serving(folder: pathlib.Path, *lines: str) -> Iterator[Served]:
    """Serve the engine of a folder. lines: rules of `settings.py`."""
    opened, certificates = server.open_service(folder)
    opened.engine.settings.replace(lines)
    with (
        server.serving(opened, certificates) as port,
        control.listening(folder / server.CONTROL, opened),
    ):
        yield Served(folder, port, opened)
    opened.engine.records.close()
