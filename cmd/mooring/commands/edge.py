"""Errors, Ctrl-C and progress of all commands."""

import contextlib
import errno
import pathlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

import click
import rich.console

from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.run import progress
from mooring.commands import program

INTERRUPTED = 130


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Turn an error into a sentence with exit code 1, Ctrl-C into exit code 130.

    Only the first Ctrl-C or SIGTERM has an effect: a second one would interrupt the
    cleanup of the first.
    """
    # Imported here, so that `--help` does not wait for the Kubernetes client.
    from lib.kube import errors as kube_errors
    from lib.process import config

    old = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        signal.signal(number, _first)
    try:
        yield
    except KeyboardInterrupt:
        # Signals stay ignored, so that the exit code is INTERRUPTED.
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except (errors.LabError, kube_errors.KubeError, config.ConfigError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        if error.errno not in _OF_MACHINE:
            raise
        file = error.filename2 or error.filename  # the target of a copy
        place = f"{file}: " if file else ""
        raise click.ClickException(f"{place}{error.strerror}") from error
    for number, handler in old.items():
        signal.signal(number, handler)


_OF_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""Errors whose text is enough: full disk, quota, read-only, permission."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _first(number: int, frame: FrameType | None) -> None:
    del number, frame
    for ignored in _SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def display(log: pathlib.Path | None = None) -> Iterator[progress.Progress]:
    """Show progress on standard error: bars on a terminal, lines elsewhere.

    log: file that also gets all of it, output of builds included; its path is shown
    under a step that fails.
    """
    console = rich.console.Console(stderr=True)
    if not console.is_terminal:
        yield _logged(progress.Lines(sys.stderr, log=log), log)
        return
    with progress.Bars(console, log) as bars:
        yield _logged(bars, log)


def _logged(shown: progress.Progress, log: pathlib.Path | None) -> progress.Progress:
    return shown if log is None else progress.Logged(shown, log)


def where() -> places.Places:
    """Return the places of the user's lab."""
    try:
        return places.default()
    except ValueError as error:
        raise click.ClickException(
            "MOORING_LAB_PORT_BASE must be a number, such as 20000"
        ) from error


def checkout() -> pathlib.Path | None:
    """Return the checkout we are in, or None."""
    return pexes.checkout_above(pathlib.Path.cwd())


def spoken() -> str:
    """Return what a user types to run this tool here."""
    return program.name() if checkout() is None else "./pants run cmd/mooring --"
