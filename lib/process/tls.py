"""The server's side of TLS: certificates from files that may change, or our own."""

import os
import pathlib
import ssl
import threading
from typing import Protocol

from lib.process import certificates, config, files, logs


class Certificate(Protocol):
    """Where a server gets its certificate from."""

    def context(self) -> ssl.SSLContext:
        """Give the context for one new connection; cheap, called for each."""
        ...


def _new_context(minimum: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.set_alpn_protocols(["http/1.1"])
    return context


class InMemory:
    """A certificate that never touches a disk."""

    def __init__(
        self,
        pair: certificates.Pair,
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ) -> None:
        self._context = _new_context(minimum)
        # The standard library reads key pairs from files only; this one has no disk.
        descriptor = os.memfd_create("serving-certificate", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair.key + pair.certificate)
            file.flush()
            self._context.load_cert_chain(f"/proc/self/fd/{descriptor}")

    def context(self) -> ssl.SSLContext:
        """See `Certificate.context`."""
        return self._context


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
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ) -> None:
        self._paths = (pathlib.Path(certificate), pathlib.Path(key))
        self._minimum = minimum
        self._lock = threading.Lock()
        self._watch = files.FileWatch(self._paths)
        self._log = logs.get(__name__)
        try:
            self._context = self._load()
        except OSError as error:
            expected = f"a PEM certificate and its key ({error.strerror or error})"
            problem = config.Problem("serving certificate", str(certificate), expected)
            raise config.ConfigError([problem]) from error

    def context(self) -> ssl.SSLContext:
        """See `Certificate.context`."""
        with self._lock:
            if self._watch.changed():
                try:
                    self._context = self._load()
                except OSError as error:  # ssl.SSLError is one
                    self._log.error("new certificate not usable", error=str(error))
                else:
                    self._log.info("certificate read again")
            return self._context

    def _load(self) -> ssl.SSLContext:
        context = _new_context(self._minimum)
        certificate, key = self._paths
        # An empty passphrase: without one OpenSSL would ask the terminal for it.
        context.load_cert_chain(certificate, key, password=b"")
        return context
