"""A socket of QEMU: its monitor (QMP), or a serial port of its guest."""

import json
import pathlib
import socket
from typing import Any

from lib.lab import errors

TIMEOUT_S = 300.0


class QemuSocket:
    """JSON documents, one per line."""

    def __init__(self, path: pathlib.Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rb")

    def send(self, document: object) -> None:
        """Send a document."""
        self._socket.sendall(json.dumps(document).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """Wait for the next document.

        Raises:
            LabError: the other side has ended. TimeoutError: it is silent.
        """
        line = self._file.readline()
        if not line:
            raise errors.LabError("the virtual machine has ended")
        return dict(json.loads(line))

    def begin(self) -> None:
        """Read QMP's greeting and leave its negotiation.

        Raises:
            LabError: QEMU refuses.
        """
        self.receive()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> object:
        """Carry out a command of QMP.

        Raises:
            LabError: QEMU refuses it.
        """
        self.send({"execute": command, "arguments": arguments})
        while True:
            answer = self.receive()
            if "error" in answer:
                raise errors.LabError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def close(self) -> None:
        """Close the socket."""
        self._file.close()
        self._socket.close()
