"""A long step says how far it is, and all together how long the rest will take."""

import io
import pathlib

import pytest
import rich.console

from lib.lab import errors
from lib.lab.run import progress


def test_a_log_has_a_line_twice_a_minute_not_one_per_package() -> None:
    out, now = io.StringIO(), [0.0]
    shown = progress.Lines(out, every_s=30, clock=lambda: now[0])

    with shown.step("Build etcd") as step:
        for package in range(1, 101):
            now[0] += 1
            step.advance(package, 100)

    assert out.getvalue().splitlines() == [
        "    0.0s  Build etcd ...",
        "   30.0s  Build etcd: 30 of 100",
        "   60.0s  Build etcd: 60 of 100",
        "   90.0s  Build etcd: 90 of 100",
        "  100.0s  Build etcd: done in 100.0s",
    ]


def test_a_step_that_fails_says_so() -> None:
    out = io.StringIO()
    shown = progress.Lines(out, clock=lambda: 0.0)

    with pytest.raises(ValueError, match="no"), shown.step("Build etcd"):
        raise ValueError("no")

    assert "Build etcd: failed in 0.0s" in out.getvalue()


LOG = pathlib.Path("/state/log/lab.log")
OWN = pathlib.Path("/state/log/etcd.log")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.LabError("etcd ended", OWN), OWN),
        (errors.LabError("no compiler"), LOG),
        (OSError("no space left on device"), LOG),
    ],
)
def test_the_log_is_shown_under_a_failed_step(
    error: Exception, expected: pathlib.Path
) -> None:
    """That of the program which failed, else that of the whole start."""
    out = io.StringIO()
    shown = progress.Lines(out, clock=lambda: 0.0, log=LOG)
    with pytest.raises(type(error)), shown.step("Start etcd"):
        raise error
    assert out.getvalue().splitlines()[1:] == [
        "    0.0s  Start etcd: failed in 0.0s",
        f"    0.0s      log: {expected}",
    ]
    console = rich.console.Console(file=io.StringIO(), width=60, force_terminal=True)
    with (
        pytest.raises(type(error)),
        progress.Bars(console, LOG) as bars,
        bars.step("Start etcd"),
    ):
        raise error
    printed = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert f"Start etcd failed; log: {expected}" in printed


def test_an_interrupted_step_has_no_log() -> None:
    out = io.StringIO()
    shown = progress.Lines(out, clock=lambda: 0.0, log=LOG)
    with pytest.raises(KeyboardInterrupt), shown.step("Start etcd"):
        raise KeyboardInterrupt
    assert "log:" not in out.getvalue()


def test_all_steps_together_are_shown_at_each_end_and_twice_a_minute() -> None:
    """Without a terminal, and although they are reported several times a second."""
    out, now = io.StringIO(), [0.0]
    shown = progress.Lines(out, every_s=30, clock=lambda: now[0])
    for tick in range(451):
        now[0] = tick / 5
        done = 4 if now[0] < 65 else 5
        shown.overall(done, 9, 100 - now[0])
    shown.overall(9, 9, 0)
    assert out.getvalue().splitlines() == [
        "    0.0s  4 of 9 steps, about 2 min left",
        "   30.0s  4 of 9 steps, about 70 s left",
        "   60.0s  4 of 9 steps, about 40 s left",
        "   65.0s  5 of 9 steps, about 35 s left",
        "   90.0s  9 of 9 steps",
    ]


def test_without_an_estimate_no_line_is_repeated() -> None:
    out, now = io.StringIO(), [0.0]
    shown = progress.Lines(out, every_s=30, clock=lambda: now[0])
    for tick in range(600):
        now[0] = tick / 5
        shown.overall(4, 12, None)
    shown.overall(4, 12, 1400)
    lines = out.getvalue().splitlines()
    assert lines == [
        "    0.0s  4 of 12 steps",
        "  119.8s  4 of 12 steps, about 23 min left",
    ]


@pytest.mark.parametrize(
    ("remaining_s", "text"),
    [
        (None, "4 of 9 steps"),
        (40.2, "4 of 9 steps, about 40 s left"),
        (0.0, "4 of 9 steps, about 1 s left"),
        (600.0, "4 of 9 steps, about 10 min left"),
    ],
)
def test_bars_have_one_for_all_steps(remaining_s: float | None, text: str) -> None:
    assert progress.far(4, 9, remaining_s) == text
    console = rich.console.Console(file=io.StringIO(), width=99, force_terminal=True)
    with progress.Bars(console) as bars:
        bars.overall(3, 9, 60)
        bars.overall(4, 9, remaining_s)
    printed = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    for shown in ("All steps", "4/9", text.partition(", ")[2]):
        assert shown in printed


def test_all_that_steps_report_is_in_the_file(tmp_path: pathlib.Path) -> None:
    """Also the output of a build, of which a terminal shows the last line only."""
    out, file = io.StringIO(), tmp_path / "log" / "lab.log"
    shown = progress.Logged(progress.Lines(out), file)

    def build() -> None:
        with shown.step("Build etcd") as step:
            for line in ("compile a", "compile b"):
                step.note(line)
            step.advance(1, 2)
            raise errors.LabError("no compiler")

    with pytest.raises(errors.LabError):
        build()
    lines = [line.partition(" ")[2] for line in file.read_text().splitlines()]
    assert lines == [
        "Build etcd ...",
        "Build etcd: compile a",
        "Build etcd: compile b",
        "Build etcd: failed: LabError: no compiler",
    ]
    assert "Build etcd: failed" in out.getvalue()


def test_a_file_that_cannot_be_written_fails_no_step(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    shown = progress.Logged(progress.Silent(), tmp_path / "file" / "lab.log")
    with shown.step("Build etcd") as step:
        step.note("compile a")
