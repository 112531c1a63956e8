"""One report a minute of a failure that repeats."""

from lib.process import repeats


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_failure_is_reported_once_a_minute_with_a_count() -> None:
    clock = Clock()
    failures = repeats.Repeats(clock=clock)
    reports = []
    for _ in range(121):
        if (count := failures.count("refused")) is not None:
            reports.append((clock.now - 1000.0, count))
        clock.now += 1
    assert reports == [(0.0, 1), (60.0, 60), (120.0, 60)]


def test_another_failure_is_reported_immediately() -> None:
    failures = repeats.Repeats(clock=Clock())
    assert failures.count("refused") == 1
    assert failures.count("refused") is None
    assert failures.count("no answer in time") == 1


def test_a_failure_that_comes_back_later_is_new() -> None:
    clock = Clock()
    failures = repeats.Repeats(clock=clock)
    failures.count("refused")
    failures.count("refused")
    clock.now += 120
    assert failures.count("refused") == 1
