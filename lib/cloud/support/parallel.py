"""Several calls of one read at the same time, never more than a few."""

import concurrent.futures
from collections.abc import Callable, Collection
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

AT_ONCE = 16
"""Calls at one time, of one read: enough to be quick, few enough to be polite."""


def each(call: Callable[[T], S], items: Collection[T], name: str) -> list[S]:
    """Return the result of a call for each item, in the items' order.

    name: of the threads. One item takes no thread. Raises what a call raises.
    """
    if len(items) <= 1:
        return [call(item) for item in items]
    most = min(AT_ONCE, len(items))
    with concurrent.futures.ThreadPoolExecutor(most, name) as pool:
        return list(pool.map(call, items))
