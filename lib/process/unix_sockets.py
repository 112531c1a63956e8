"""Paths of Unix sockets: whether a process may listen on one."""

import os
import pathlib
import socket

PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path."""
_ANSWER_S = 2.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""Source: RFC 9113, 3.4: the client's preface, with an empty SETTINGS frame."""


def is_served(path: pathlib.Path) -> bool:
    """Report whether a gRPC server answers at a socket.

    A process that the kernel cannot end keeps a socket that accepts connections and
    never answers.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(str(path))
            probe.sendall(_HELLO)
            return bool(probe.recv(1))
        except OSError:
            return False


def unusable(path: pathlib.Path) -> str:
    """Return what would be right for a path that cannot be listened on, else "".

    The socket of a killed process can be replaced; one at which a server answers
    cannot: that server would lose its callers, and delete the new socket when it exits.
    """
    if not path.is_absolute():
        return "an absolute path"
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        return f"a path of at most {PATH_BYTES_MAX} bytes"
    if not path.parent.is_dir():
        return "a path in an existing folder"
    if path.exists() and not path.is_socket():
        return "the path of a socket, or a free one"
    if is_served(path):
        return "a socket that no running process serves"
    return ""
