"""Asks a lab's own API server as its administrator, with nothing but the library.

Not by lib.kube: readiness is asked for before there is anything else to ask, and an
API server that does not answer yet is an answer here, not an error.
"""

import http.client
import json
import ssl
from collections.abc import Mapping

from lib.lab import places
from lib.lab.kube import kube_files
from lib.lab.run import ports

_TIMEOUT_S = 5.0


def ask(
    where: places.Places, method: str, path: str, body: bytes = b""
) -> tuple[int, bytes]:
    """Return status code and body of the answer; (0, b"") when there is none."""
    folder = kube_files.certificates(where)
    try:
        trust = ssl.create_default_context(cafile=folder / "ca.crt")
        trust.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    except OSError:
        return 0, b""
    connection = http.client.HTTPSConnection(
        ports.LOOPBACK, where.port("apiserver"), timeout=_TIMEOUT_S, context=trust
    )
    return _exchange(connection, method, path, body)


def answers(where: places.Places, path: str) -> bool:
    """Report whether the API server answers 200 at `path`."""
    return ask(where, "GET", path)[0] == http.client.OK


def serves(port: int, path: str) -> bool:
    """Report whether another program of the lab answers 200 by plain HTTP."""
    connection = http.client.HTTPConnection(ports.LOOPBACK, port, timeout=_TIMEOUT_S)
    return _exchange(connection, "GET", path, b"")[0] == http.client.OK


def post(port: int, path: str, body: Mapping[str, object]) -> bytes | None:
    """Return what a program of the lab answers by plain HTTP; None unless it is 200."""
    connection = http.client.HTTPConnection(ports.LOOPBACK, port, timeout=_TIMEOUT_S)
    text = json.dumps(body).encode()
    status, answer = _exchange(connection, "POST", path, text)
    return answer if status == http.client.OK else None


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes
) -> tuple[int, bytes]:
    try:
        headers = {"Content-Type": "application/json"} if body else {}
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
