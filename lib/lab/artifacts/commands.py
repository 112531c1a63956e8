"""Commands the lab runs to their end, and ends when it is ended itself."""

import collections
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from lib.lab import errors

_PATIENCE_S = 5.0
_KEPT_LINES = 12


def run(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    failure: str,
    env: Mapping[str, str],
    cwd: pathlib.Path | None = None,
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Run a command to its end; whatever ends this call ends it and its children.

    env: its whole environment. on_line: called with each line of its output, standard
    error included. failure: what to say when it fails ("cannot build etcd").

    Raises:
        LabError: it failed; carries the end of its output.
    """
    try:
        child = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            env=dict(env),
            # A group of its own: Ctrl-C reaches it, and its children, only through us.
            start_new_session=True,
        )
    except OSError as error:
        raise errors.LabError(f"{failure}: {error}") from error
    with child:
        last = _follow(child, on_line)
    if child.returncode != 0:
        raise errors.LabError(f"{failure}:\n" + "\n".join(last))


def _follow(
    child: subprocess.Popen[str], on_line: Callable[[str], None] | None
) -> Sequence[str]:
    """Read a command's output until it ends; return the last lines."""
    last: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
    try:
        for line in child.stdout or ():
            last.append(line.rstrip())
            if on_line is not None:
                on_line(last[-1])
        child.wait()
    except BaseException:
        _end_group(child)
        raise
    return tuple(last)


def _end_group(child: subprocess.Popen[str]) -> None:
    """Interrupt, so that the command removes its scratch files; then kill."""
    _signal_group(child, signal.SIGINT)
    try:
        child.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal_group(child, signal.SIGKILL)


def _signal_group(child: subprocess.Popen[str], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return
