"""Jobs: slots, names, cancellation, an error."""

import threading

from lib.reconcile import jobs


def test_slots_names_and_ends() -> None:
    ended: list[str] = []
    last = threading.Event()

    def on_end(name: str) -> None:
        ended.append(name)
        if len(ended) == 2:
            last.set()

    pool = jobs.Jobs(2, on_end)
    go = threading.Event()

    def wait(cancel: threading.Event) -> None:
        del cancel
        go.wait(10)

    assert pool.start("a", wait)
    assert not pool.start("a", wait), "one job per name"
    assert pool.start("b", wait)
    assert not pool.start("c", wait), "no slot is free"
    assert (pool.free(), pool.running()) == (0, frozenset(("a", "b")))
    go.set()
    assert last.wait(10)
    assert sorted(ended) == ["a", "b"]
    assert (pool.free(), pool.running()) == (2, frozenset())


def test_a_stop_cancels_and_waits() -> None:
    pool = jobs.Jobs(1, lambda name: None)
    begun = threading.Event()

    def until_canceled(cancel: threading.Event) -> None:
        begun.set()
        cancel.wait(10)

    pool.start("a", until_canceled)
    assert begun.wait(10)
    assert pool.stop(10) == ()
    assert not pool.start("b", until_canceled), "nothing is started after a stop"


def test_an_error_frees_the_slot() -> None:
    ended = threading.Event()
    pool = jobs.Jobs(1, lambda name: ended.set())

    def fail(cancel: threading.Event) -> None:
        del cancel
        raise RuntimeError("a bug")

    pool.start("a", fail)
    assert ended.wait(10)
    assert pool.free() == 1


def test_one_job_is_canceled_and_the_others_go_on() -> None:
    ended: list[str] = []
    first = threading.Event()

    def on_end(name: str) -> None:
        ended.append(name)
        first.set()

    pool = jobs.Jobs(2, on_end)
    for name in ("a", "b"):
        pool.start(name, lambda cancel: None if cancel.wait(30) else None)
    pool.cancel("absent")
    pool.cancel("a")
    assert first.wait(10)
    assert ended == ["a"]
    assert pool.running() == frozenset(("b",))
    assert pool.stop(10) == ()
