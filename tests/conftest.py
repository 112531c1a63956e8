"""How every test process runs."""

import gc
import os
import threading
from collections.abc import Iterator

import pytest

# Tests create many objects and few cycles: with Python's own threshold of 700, up to a
# sixth of their time goes into the search for garbage.
gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep modules and tests out of the search for garbage."""
    gc.collect()
    gc.freeze()


EXPLAINED_S = 299
"""Of one test: pytest writes the stacks of all threads a second later, which looks like
a failure (faulthandler_timeout in .pytest.ini)."""
_terminal = 2


def pytest_configure() -> None:
    """Keep the terminal: the output of tests is captured later."""
    global _terminal  # noqa: PLW0603 -- pytest's own way to keep state in a conftest
    _terminal = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Explain the stacks of a test that takes minutes."""
    text = (
        f"\n{item.nodeid}: not finished after {EXPLAINED_S} s. This is no failure: the"
        " test goes on. The stacks that follow show what it waits for.\n"
    )
    timer = threading.Timer(EXPLAINED_S, os.write, (_terminal, text.encode()))
    timer.daemon = True
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
