"""One display of what goes on: what, how far, how long."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Protocol, TextIO

import rich.console
import rich.progress


class Step(Protocol):
    """One thing being done."""

    def note(self, text: str) -> None:
        """Say what part of it is under way now."""
        ...

    def advance(self, done: int, total: int) -> None:
        """Say how far it has come."""
        ...


class Progress(Protocol):
    """Where steps are shown. Safe to use from several threads at once."""

    def step(self, what: str) -> contextlib.AbstractContextManager[Step]:
        """Show `what` until the block ends, then its time and whether it failed."""
        ...


class _Quiet:
    def note(self, text: str) -> None:
        del text

    def advance(self, done: int, total: int) -> None:
        del done, total


class Silent:
    """Shows nothing."""

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[Step]:
        """See `Progress.step`."""
        del what
        yield _Quiet()


class Lines:
    """Writes a line when a step begins and one when it ends; for logs and tests."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def _say(self, text: str) -> None:
        with self._lock:
            at = time.monotonic() - self._began
            print(f"{at:7.1f}s  {text}", file=self._out, flush=True)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[Step]:
        """See `Progress.step`."""
        self._say(f"{what} ...")
        began = time.monotonic()
        word = "failed"
        try:
            yield _Quiet()
            word = "done"
        finally:
            self._say(f"{what}: {word} in {time.monotonic() - began:.1f}s")


class _Bar:
    def __init__(
        self, bars: rich.progress.Progress, task: rich.progress.TaskID, what: str
    ) -> None:
        self._bars = bars
        self._task = task
        self._what = what

    def note(self, text: str) -> None:
        self._bars.update(self._task, description=f"{self._what}: {text}")

    def advance(self, done: int, total: int) -> None:
        self._bars.update(self._task, completed=done, total=total)


class Bars:
    """Live bars on a terminal; use as a context manager."""

    def __init__(self, console: rich.console.Console) -> None:
        self._bars = rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(bar_width=20),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> "Bars":
        self._bars.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bars.stop()

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[Step]:
        """See `Progress.step`."""
        task = self._bars.add_task(what, total=None)
        mark = "[red]failed[/red]"
        try:
            yield _Bar(self._bars, task, what)
            mark = "[green]done[/green]"
        finally:
            self._bars.update(task, description=f"{what} {mark}", total=1, completed=1)
            self._bars.stop_task(task)
