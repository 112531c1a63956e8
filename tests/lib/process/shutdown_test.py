"""Signals: the first asks, the second does not ask."""

import os
import signal
import threading
from collections.abc import Callable

import pytest

from lib.process import shutdown

Eventually = Callable[[Callable[[], bool]], None]


@pytest.mark.parametrize("number", shutdown.SIGNALS)
def test_the_first_signal_sets_the_event(number: int) -> None:
    stop = threading.Event()
    with shutdown.on_signal(stop):
        os.kill(os.getpid(), number)
        assert stop.wait(5)


def test_the_second_signal_ends_at_once_with_code_1(eventually: Eventually) -> None:
    codes: list[int] = []
    stop = threading.Event()
    with shutdown.on_signal(stop, codes.append, echo_s=0):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
        assert codes == []
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: codes == [1])


def test_an_echo_of_the_first_signal_says_nothing_new() -> None:
    codes: list[int] = []
    stop = threading.Event()
    with shutdown.on_signal(stop, codes.append, echo_s=60):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(5)
        os.kill(os.getpid(), signal.SIGTERM)
    assert codes == []


def test_a_stop_for_another_reason_is_no_first_signal(eventually: Eventually) -> None:
    codes: list[int] = []
    stop = threading.Event()
    stop.set()
    with shutdown.on_signal(stop, codes.append, echo_s=0):
        os.kill(os.getpid(), signal.SIGTERM)
        stop.clear()
        os.kill(os.getpid(), signal.SIGTERM)
        eventually(lambda: codes == [1])


def test_the_former_handlers_come_back() -> None:
    before = [signal.getsignal(number) for number in shutdown.SIGNALS]
    with shutdown.on_signal(threading.Event()):
        assert signal.getsignal(signal.SIGTERM) not in before
    assert [signal.getsignal(number) for number in shutdown.SIGNALS] == before


def test_end_now_does_not_wait_for_threads() -> None:
    """The child has a worker that never ends, and ends with its code all the same."""
    child = os.fork()
    if child == 0:
        threading.Thread(target=threading.Event().wait).start()
        shutdown.end_now(shutdown.Exit.USAGE)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
