"""The HTTPS server of probes and metrics.

Rules: the accept loop never waits for a client: the TLS handshake is done in the
connection's own thread, with a time-out. Plain HTTP is served only where a component's
reference does so, and only what needs no authentication.
"""

import contextlib
import ipaddress
import socket
import socketserver
import ssl
import threading
from typing import Protocol, cast

from lib.process import config, exchange

_BACKLOG = 128
_POLL_S = 0.1


class Certificate(Protocol):
    """Source of a server's certificate; `tls.py` has those that there are.

    Declared here, so that a program which serves plain HTTP needs no cryptography.
    """

    def context(self) -> ssl.SSLContext:
        """Return the context for one new connection; cheap, called for each."""
        ...


def listen(address: str, port: int) -> socket.socket | None:
    """Open the listening socket; None for port 0, which means "serve nothing".

    Raises:
        ConfigError: there is no such address here, or the port is taken.
    """
    if port == 0:
        return None
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server(
            (address, port),
            family=family,
            backlog=_BACKLOG,
            dualstack_ipv6=family is socket.AF_INET6 and address == "::",
        )
    except (OSError, OverflowError) as error:
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        expected = f"an address of this host with a free port ({_cause(error)})"
        problem = config.FieldProblem("serving address", where, expected)
        raise config.ConfigError([problem]) from error


def _cause(error: OSError | OverflowError) -> str:
    """Return the system's reason; `socket.create_server` appends the address to it."""
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error)).partition(" (while ")[0].lower()


def check_address(address: str, port: int) -> None:
    """Check that a server can listen on an address.

    Raises:
        ConfigError: as `listen` does.
    """
    listener = listen(address, port)
    if listener is not None:
        listener.close()


def is_loopback(address: str) -> bool:
    """Report whether only this host, or pod, reaches an IP address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class _Connection:
    """One client; `sock` is the one to cut when it must go."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.is_busy = False

    def set_busy(self, busy: bool) -> None:
        self.is_busy = busy

    def cut(self) -> None:
        with contextlib.suppress(OSError):
            # SSLSocket's own shutdown would take the encryption off first.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class _Connections:
    """Those open now, oldest first, never more than allowed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._open: list[_Connection] = []

    def admit(self, sock: socket.socket) -> _Connection | None:
        """Take a new one in; None when all others are being answered right now."""
        connection = _Connection(sock)
        with self._lock:
            if len(self._open) >= self._most:
                silent = next((c for c in self._open if not c.is_busy), None)
                if silent is None:
                    return None
                self._open.remove(silent)
                silent.cut()
            self._open.append(connection)
        return connection

    def leave(self, connection: _Connection) -> None:
        with self._lock:
            if connection in self._open:
                self._open.remove(connection)
            # Under the lock: a descriptor closed here must not be cut any more.
            connection.sock.close()

    def encrypt(
        self, connection: _Connection, context: ssl.SSLContext
    ) -> ssl.SSLSocket:
        """Put TLS around a connection, without shaking hands yet.

        Under the lock: wrapping empties the plain socket, and one that is cut just
        then would stay open, unseen.
        """
        with self._lock:
            connection.sock = wrapped = context.wrap_socket(
                connection.sock, server_side=True, do_handshake_on_connect=False
            )
        return wrapped

    def cut_all(self) -> None:
        with self._lock:
            for connection in self._open:
                connection.cut()


class _Acceptor(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The standard library's accept loop, one thread per connection."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        listener: socket.socket,
        certificate: Certificate | None,
        routes: exchange.HttpRoutes,
        limits: exchange.Limits,
    ) -> None:
        # TCPServer's own __init__ would make a second socket.
        socketserver.BaseServer.__init__(
            self, listener.getsockname(), socketserver.BaseRequestHandler
        )
        listener.setblocking(False)
        self.socket = listener
        self.connections = _Connections(limits.connections_max)
        self._certificate = certificate
        self._routes = routes
        self._limits = limits

    def process_request(
        self,
        request: socket.socket | tuple[bytes, socket.socket],
        client_address: object,
    ) -> None:
        connection = self.connections.admit(cast(socket.socket, request))
        if connection is None:
            self.close_request(request)
            return
        threading.Thread(
            target=self._converse, args=(connection,), name="https", daemon=True
        ).start()

    def _converse(self, connection: _Connection) -> None:
        """Shake hands, then answer until either side has had enough."""
        try:
            with contextlib.suppress(OSError):  # the client's fault, or its absence
                exchange.Exchange(
                    self._encrypted(connection),
                    self._routes,
                    self._limits,
                    connection.set_busy,
                ).handle()
                connection.cut()
        finally:
            self.connections.leave(connection)

    def _encrypted(self, connection: _Connection) -> socket.socket:
        if self._certificate is None:
            return connection.sock
        context = self._certificate.context()
        sock = self.connections.encrypt(connection, context)
        sock.settimeout(self._limits.handshake_s)
        sock.do_handshake()
        return sock


class HttpServer:
    """Serves from `start` to `stop`, in threads of its own."""

    def __init__(
        self,
        listener: socket.socket,
        certificate: Certificate | None,
        routes: exchange.HttpRoutes,
        limits: exchange.Limits | None = None,
    ) -> None:
        """certificate: None for plain HTTP."""
        self._acceptor = _Acceptor(
            listener, certificate, routes, limits or exchange.Limits()
        )
        self._thread = threading.Thread(
            target=self._acceptor.serve_forever,
            args=(_POLL_S,),
            name="accept",
            daemon=True,
        )

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more, and end the connections there are; once only."""
        self._acceptor.shutdown()
        self._thread.join()
        self._acceptor.server_close()
        self._acceptor.connections.cut_all()
