"""A long step says how far it is and how long the rest will take."""

import io

import pytest

from lib.lab.run import progress


@pytest.mark.parametrize(
    ("done", "total", "took_s", "text"),
    [
        (0, 2300, 5, "0 of 2300"),
        (1, 2300, 0.1, "1 of 2300, about 4 min left"),
        (1150, 2300, 500, "1150 of 2300, about 8 min left"),
        (2000, 2300, 400, "2000 of 2300, about 60 s left"),
        (2300, 2300, 460, "2300 of 2300"),
    ],
)
def test_the_rest_is_estimated_from_what_is_done(
    done: int, total: int, took_s: float, text: str
) -> None:
    assert progress.left(done, total, took_s) == text


def test_a_log_has_a_line_twice_a_minute_not_one_per_package() -> None:
    out, now = io.StringIO(), [0.0]
    shown = progress.Lines(out, every_s=30, clock=lambda: now[0])

    with shown.step("Build etcd") as step:
        for package in range(1, 101):
            now[0] += 1
            step.advance(package, 100)

    assert out.getvalue().splitlines() == [
        "    0.0s  Build etcd ...",
        "   30.0s  Build etcd: 30 of 100, about 70 s left",
        "   60.0s  Build etcd: 60 of 100, about 40 s left",
        "   90.0s  Build etcd: 90 of 100, about 10 s left",
        "  100.0s  Build etcd: done in 100.0s",
    ]


def test_a_step_that_fails_says_so() -> None:
    out = io.StringIO()
    shown = progress.Lines(out, clock=lambda: 0.0)

    with pytest.raises(ValueError, match="no"), shown.step("Build etcd"):
        raise ValueError("no")

    assert "Build etcd: failed in 0.0s" in out.getvalue()
