"""The server's side of TLS: certificates from files that may change, or our own."""

import os
import pathlib
import ssl
import threading

from lib.process import certificates, config, files, logs
from lib.process.tls_policy import TlsPolicy

DEFAULT = TlsPolicy()


class Clients:
    """Whose signature on a client's certificate counts: a PEM file, read again when it
    changes.

    A file that can't be used leaves the former in place. A client that brings a
    certificate signed by others is refused in the handshake; one without is not.

    Raises:
        ConfigError: the file can't be used at the start.
    """

    def __init__(self, authorities: str | os.PathLike[str]) -> None:
        self._path = pathlib.Path(authorities)
        self._watch = files.FileWatch([self._path])
        self._log = logs.get(__name__)
        try:
            self._pem = self._read()
        except (OSError, ValueError) as error:
            problem = _invalid_authorities(str(authorities), error)
            raise config.ConfigError([problem]) from error

    def renewed(self) -> bool:
        """Report whether there are others now than when this was last asked."""
        if not self._watch.changed():
            return False
        try:
            self._pem = self._read()
        except (OSError, ValueError) as error:
            self._log.error(
                "client authorities not reloaded, keeping the previous ones",
                error=str(error),
            )
            return False
        self._log.info("client authorities reloaded")
        return True

    def ask(self, context: ssl.SSLContext) -> None:
        """Configure a context to request client certificates."""
        context.load_verify_locations(cadata=self._pem)
        context.verify_mode = ssl.CERT_OPTIONAL

    def _read(self) -> str:
        pem = self._path.read_text()
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem)
        return pem


def _invalid_authorities(path: str, error: OSError | ValueError) -> config.FieldProblem:
    flag = "--client-ca-file"
    expected = f"a file of PEM certificates ({error})"
    return config.unusable_file(flag, path) or config.FieldProblem(flag, path, expected)


def _invalid_pair(
    paths: tuple[pathlib.Path, pathlib.Path], error: OSError
) -> list[config.FieldProblem]:
    """Return the files that cannot be read, or else that they are no pair."""
    flags = ("--tls-cert-file", "--tls-private-key-file")
    unusable = [
        config.unusable_file(flag, str(path))
        for flag, path in zip(flags, paths, strict=True)
    ]
    expected = f"a PEM certificate of the key in {flags[1]} ({error.strerror or error})"
    problems = [problem for problem in unusable if problem is not None]
    return problems or [config.FieldProblem(flags[0], str(paths[0]), expected)]


def _new_context(policy: TlsPolicy, clients: Clients | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    policy.apply(context)
    context.set_alpn_protocols(["http/1.1"])
    if clients is not None:
        clients.ask(context)
    return context


class InMemory:
    """A certificate that never touches a disk."""

    def __init__(
        self,
        pair: certificates.CertificatePair,
        clients: Clients | None = None,
        policy: TlsPolicy = DEFAULT,
    ) -> None:
        self._pair = pair
        self._policy = policy
        self._clients = clients
        self._lock = threading.Lock()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """See `Certificate.context`."""
        with self._lock:
            if self._clients is not None and self._clients.renewed():
                self._context = self._load()
            return self._context

    def _load(self) -> ssl.SSLContext:
        context = _new_context(self._policy, self._clients)
        # The standard library reads key pairs from files only; this one has no disk.
        descriptor = os.memfd_create("serving-certificate", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._pair.key + self._pair.certificate)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return context


class FromFiles:
    """A key pair in PEM files, read again when they change.

    A pair that can't be used, such as one half replaced, leaves the former in place.

    Raises:
        ConfigError: the files can't be used at the start.
    """

    def __init__(
        self,
        certificate: str | os.PathLike[str],
        key: str | os.PathLike[str],
        clients: Clients | None = None,
        policy: TlsPolicy = DEFAULT,
    ) -> None:
        self._paths = (pathlib.Path(certificate), pathlib.Path(key))
        self._policy = policy
        self._clients = clients
        self._lock = threading.Lock()
        self._watch = files.FileWatch(self._paths)
        self._log = logs.get(__name__)
        try:
            self._context = self._load()
        except OSError as error:
            raise config.ConfigError(_invalid_pair(self._paths, error)) from error

    def context(self) -> ssl.SSLContext:
        """See `Certificate.context`."""
        with self._lock:
            is_asked_anew = self._clients is not None and self._clients.renewed()
            if self._watch.changed() or is_asked_anew:
                try:
                    self._context = self._load()
                except OSError as error:  # ssl.SSLError is one
                    self._log.error(
                        "serving certificate not reloaded, keeping the previous one",
                        error=str(error),
                    )
                else:
                    self._log.info("serving certificate reloaded")
            return self._context

    def _load(self) -> ssl.SSLContext:
        context = _new_context(self._policy, self._clients)
        certificate, key = self._paths
        # An empty passphrase: without one OpenSSL would ask the terminal for it.
        context.load_cert_chain(certificate, key, password=b"")
        return context
