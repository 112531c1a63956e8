"""One display of what goes on: what, how far, how long."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO

import rich.console
import rich.progress
import rich.text


class ProgressStep(Protocol):
    """One thing being done."""

    def note(self, text: str) -> None:
        """Report which part of it is in progress."""
        ...

    def advance(self, done: int, total: int) -> None:
        """Report how far it has come."""
        ...


class Progress(Protocol):
    """Where steps are shown. Safe to use from several threads."""

    def step(self, what: str) -> contextlib.AbstractContextManager[ProgressStep]:
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
    def step(self, what: str) -> Iterator[ProgressStep]:
        """See `Progress.step`."""
        del what
        yield _Quiet()


def left(done: int, total: int, took_s: float) -> str:
    """Return how far a step is and how long the rest takes at the same pace.

    took_s: from its beginning until now.
    """
    text = f"{done} of {total}"
    if not 0 < done < total:
        return text
    rest_s = took_s / done * (total - done)
    rest = f"{rest_s:.0f} s" if rest_s < 90 else f"{rest_s / 60:.0f} min"
    return f"{text}, about {rest} left"


class _Line:
    """Says now and then how far a step is; it need not know what is counted."""

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float], every_s: float
    ) -> None:
        self._say = say
        self._clock = clock
        self._every_s = every_s
        self._began = self._last = clock()

    def note(self, text: str) -> None:
        del text

    def advance(self, done: int, total: int) -> None:
        now = self._clock()
        if now - self._last >= self._every_s:
            self._last = now
            self._say(left(done, total, now - self._began))


class Lines:
    """Writes a line when a step begins and one when it ends; for logs and tests.

    every_s: a longer step says in between how far it is.
    """

    def __init__(
        self,
        out: TextIO,
        every_s: float = 30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._every_s = every_s
        self._clock = clock
        self._began = clock()

    def _say(self, text: str) -> None:
        with self._lock:
            at = self._clock() - self._began
            print(f"{at:7.1f}s  {text}", file=self._out, flush=True)

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[ProgressStep]:
        """See `Progress.step`."""
        self._say(f"{what} ...")
        began = self._clock()
        word = "failed"

        def say(text: str) -> None:
            self._say(f"{what}: {text}")

        try:
            yield _Line(say, self._clock, self._every_s)
            word = "done"
        finally:
            self._say(f"{what}: {word} in {self._clock() - began:.1f}s")


class _Remaining(rich.progress.ProgressColumn):
    """How long a step that counts takes from now on; empty for all others."""

    max_refresh = 1.0

    def render(self, task: rich.progress.Task) -> rich.text.Text:
        """Return the text of one step."""
        if task.finished or not task.total or task.elapsed is None:
            return rich.text.Text("")
        text = left(int(task.completed), int(task.total), task.elapsed)
        return rich.text.Text(text.partition(", ")[2])


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
            _Remaining(),
            console=console,
        )

    def __enter__(self) -> "Bars":
        self._bars.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bars.stop()

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[ProgressStep]:
        """See `Progress.step`."""
        task = self._bars.add_task(what, total=None)
        mark = "[red]failed[/red]"
        try:
            yield _Bar(self._bars, task, what)
            mark = "[green]done[/green]"
        finally:
            self._bars.update(task, description=f"{what} {mark}", total=1, completed=1)
            self._bars.stop_task(task)
