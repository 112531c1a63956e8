"""One display of what goes on: what, how far, how long."""

import contextlib
import datetime
import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TextIO

import rich.console
import rich.progress
import rich.text

from lib.lab import errors


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
        """Show `what` until the block ends, then its time and whether it failed.

        Under a step that failed, the path of a log is shown.
        """
        ...

    def overall(self, done: int, total: int, remaining_s: float | None) -> None:
        """Show how far all steps together are; may be called often.

        remaining_s: by the duration of an earlier run; None: not known.
        """
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

    def overall(self, done: int, total: int, remaining_s: float | None) -> None:
        """See `Progress.overall`."""
        del done, total, remaining_s


def rest(remaining_s: float) -> str:
    """Return a remaining time ("about 40 s left"); below a second it is "1 s"."""
    is_short = remaining_s < 90
    amount = (
        f"{max(remaining_s, 1):.0f} s" if is_short else f"{remaining_s / 60:.0f} min"
    )
    return f"about {amount} left"


def far(done: int, total: int, remaining_s: float | None) -> str:
    """Return how far all steps together are: "4 of 9 steps, about 40 s left"."""
    text = f"{done} of {total} steps"
    if remaining_s is None or done == total:
        return text
    return f"{text}, {rest(remaining_s)}"


def log_of(error: BaseException, usual: pathlib.Path | None) -> pathlib.Path | None:
    """Return the log that shows why a step failed; None when it was interrupted.

    usual: of all steps together, for an error without a log of its own.
    """
    if not isinstance(error, Exception):
        return None
    own = error.log if isinstance(error, errors.LabError) else None
    return own or usual


class _Line:
    """Says now and then how far a step is; it need not know what is counted."""

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float], every_s: float
    ) -> None:
        self._say = say
        self._clock = clock
        self._every_s = every_s
        self._last = clock()

    def note(self, text: str) -> None:
        del text

    def advance(self, done: int, total: int) -> None:
        now = self._clock()
        if now - self._last >= self._every_s:
            self._last = now
            self._say(f"{done} of {total}")


class Lines:
    """Writes a line when a step begins and one when it ends; for logs and tests.

    every_s: a longer step says in between how far it is, and so does the whole. log: of
    all steps, for those that fail.
    """

    def __init__(
        self,
        out: TextIO,
        every_s: float = 30,
        clock: Callable[[], float] = time.monotonic,
        log: pathlib.Path | None = None,
    ) -> None:
        self._out = out
        self._log = log
        self._far = (0, 0)
        self._shown_at = clock()
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

        log = None
        try:
            yield _Line(say, self._clock, self._every_s)
            word = "done"
        except BaseException as error:
            log = log_of(error, self._log)
            raise
        finally:
            self._say(f"{what}: {word} in {self._clock() - began:.1f}s")
            if log is not None:
                self._say(f"    log: {log}")

    def overall(self, done: int, total: int, remaining_s: float | None) -> None:
        """See `Progress.overall`: a line for each step done, and every `every_s`."""
        now = self._clock()
        is_new = (done, total) != self._far
        # Without an estimate a repeated line says nothing.
        is_due = remaining_s is not None and now - self._shown_at >= self._every_s
        if not (is_new or is_due):
            return
        self._far, self._shown_at = (done, total), now
        self._say(far(done, total, remaining_s))


class _Remaining(rich.progress.ProgressColumn):
    """How long all steps together still take; empty for one of them."""

    max_refresh = 1.0

    def render(self, task: rich.progress.Task) -> rich.text.Text:
        """Return the text of one row."""
        return rich.text.Text(task.fields.get("rest", ""))


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
    """Live bars on a terminal; use as a context manager. log: as for `Lines`."""

    def __init__(
        self, console: rich.console.Console, log: pathlib.Path | None = None
    ) -> None:
        self._log = log
        self._logs: dict[str, pathlib.Path] = {}
        self._all: rich.progress.TaskID | None = None
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
        for what, log in self._logs.items():
            text = f"{what} failed; log: {log}"
            self._bars.console.print(
                text, markup=False, highlight=False, soft_wrap=True
            )

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[ProgressStep]:
        """See `Progress.step`."""
        task = self._bars.add_task(what, total=None)
        mark = "[red]failed[/red]"
        try:
            yield _Bar(self._bars, task, what)
            mark = "[green]done[/green]"
        except BaseException as error:
            if log := log_of(error, self._log):
                self._logs[what] = log
            raise
        finally:
            self._bars.update(task, description=f"{what} {mark}", total=1, completed=1)
            self._bars.stop_task(task)

    def overall(self, done: int, total: int, remaining_s: float | None) -> None:
        """See `Progress.overall`: a bar of its own."""
        text = far(done, total, remaining_s).partition(", ")[2]
        if self._all is None:
            self._all = self._bars.add_task("[bold]All steps", total=total, rest=text)
        self._bars.update(self._all, completed=done, total=total, rest=text)


class Logged:
    """Shows steps elsewhere, and writes all that they report to a file.

    A file that cannot be written is ignored: what fails for that reason reports it.
    """

    def __init__(self, shown: Progress, file: pathlib.Path) -> None:
        self._shown = shown
        self._file = file
        self._lock = threading.Lock()

    def _write(self, text: str) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        with self._lock, contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as log:
                log.write(f"{now} {text}\n")

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[ProgressStep]:
        """See `Progress.step`."""
        self._write(f"{what} ...")
        end = "done"
        with self._shown.step(what) as step:
            try:
                yield _LoggedStep(step, lambda text: self._write(f"{what}: {text}"))
            except BaseException as error:
                end = f"failed: {type(error).__name__}: {error}"
                raise
            finally:
                self._write(f"{what}: {end}")

    def overall(self, done: int, total: int, remaining_s: float | None) -> None:
        """See `Progress.overall`."""
        self._shown.overall(done, total, remaining_s)


class _LoggedStep:
    def __init__(self, step: ProgressStep, write: Callable[[str], None]) -> None:
        self._step = step
        self._write = write

    def note(self, text: str) -> None:
        self._write(text)
        self._step.note(text)

    def advance(self, done: int, total: int) -> None:
        self._step.advance(done, total)
