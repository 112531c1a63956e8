"""Paths of Unix sockets: whether a process may listen on one."""

import os
import pathlib
import socket

PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path."""
_CONNECT_S = 2.0


def is_served(path: pathlib.Path) -> bool:
    """Report whether a process accepts connections at a path.

    A process that is too busy to accept one serves it as well.
    """
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(str(path))
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def unusable(path: pathlib.Path) -> str:
    """Return what would be right for a path that cannot be listened on, else "".

    A socket that a killed process left behind can be replaced; one that is served
    cannot: its process would lose its callers, and delete the new socket at its end.
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
