"""Loops begin one by one and end together."""

import threading

from lib.reconcile import loops


def waits(stop: threading.Event) -> None:
    stop.wait()


def test_all_end_when_told_and_none_has_failed() -> None:
    stop = threading.Event()
    group = loops.Loops(stop)
    for name in ("a", "b"):
        group.start(name, waits)
    stop.set()
    assert group.join(10) == ()
    assert not group.failed.is_set()


def test_a_loop_that_ends_by_itself_ends_the_others() -> None:
    stop = threading.Event()
    group = loops.Loops(stop)
    group.start("waits", waits)
    group.start("ends", lambda stop: None)
    assert group.join(10) == ()
    assert stop.is_set()
    assert group.failed.is_set()


def test_a_loop_that_breaks_ends_the_others() -> None:
    def breaks(stop: threading.Event) -> None:
        raise RuntimeError(str(stop))

    stop = threading.Event()
    group = loops.Loops(stop)
    group.start("waits", waits)
    group.start("breaks", breaks)
    assert group.join(10) == ()
    assert group.failed.is_set()


def test_a_loop_that_does_not_end_is_named() -> None:
    stop, never = threading.Event(), threading.Event()
    group = loops.Loops(stop)
    group.start("stubborn", lambda stop: waits(never))
    stop.set()
    assert group.join(0.05) == ("stubborn",)
    never.set()
    assert group.join(10) == ()


def test_a_loop_may_begin_while_the_others_end() -> None:
    """As when a process is stopped just when it becomes the leader."""
    stop = threading.Event()
    group = loops.Loops(stop)

    def begin() -> None:
        for number in range(300):
            group.start(str(number), waits)
        stop.set()

    starter = threading.Thread(target=begin)
    starter.start()
    while starter.is_alive():
        group.join(0.0)
    starter.join()
    assert group.join(10) == ()
