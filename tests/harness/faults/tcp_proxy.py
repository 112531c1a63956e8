"""A TCP proxy in front of a server, such as the API server.

TLS passes through it: it sees bytes, not requests.
"""

import contextlib
import math
import select
import socket
import threading
import time
from collections.abc import Iterator

_CHECK_S = 0.2


class TcpProxy:
    """Passes bytes on from its creation to `close`; it can drop and fall silent.

    cuts: connections that were closed because they were idle.
    """

    def __init__(self, target: int, idle_s: float = math.inf) -> None:
        """target: port on loopback. idle_s: a connection is closed when no byte passed
        it for so long, in seconds, as `timeout client` of HAProxy does."""
        self.cuts = 0
        self._target = target
        self._idle_s = idle_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._dead: set[socket.socket] = set()
        self._is_shut = False
        self._is_silent = False
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        port: int = self._listener.getsockname()[1]
        return port

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_silent:
                    self._open.append(near)
                    continue
                far = None if self._is_shut else self._reach()
                if far is None:
                    near.close()
                    continue
                with self._lock:
                    self._open += [near, far]
                threading.Thread(
                    target=self._carry, args=(near, far), daemon=True
                ).start()

    def _reach(self) -> socket.socket | None:
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", self._target))
        return None

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            last = time.monotonic()
            while True:
                for connection in select.select([near, far], [], [], _CHECK_S)[0]:
                    if connection in self._dead:
                        return  # both stay open, and nobody serves them any more
                    data = connection.recv(65536)
                    if not data:
                        raise OSError
                    (far if connection is near else near).sendall(data)
                    last = time.monotonic()
                if time.monotonic() - last > self._idle_s:
                    with self._lock:
                        self.cuts += 1
                    break
        near.close()
        far.close()

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        """Cut all connections, and refuse new ones while the block runs."""
        self._is_shut = True
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._open.clear()
        yield
        self._is_shut = False

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """Keep all connections and forward nothing; those of now never again."""
        self._is_silent = True
        with self._lock:
            self._dead |= set(self._open)
        yield
        self._is_silent = False

    def close(self) -> None:
        """Cut all connections, and listen no more."""
        with self.shut():
            self._listener.close()
