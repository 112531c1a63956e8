"""Keeps glibc from giving each thread a heap of its own.

A process with many threads, each of which reads a large answer now and then, else holds
on to the memory of all of them: measured with 5,000 volumes, 117 MB and growing after
thirty lists, 94 MB and flat with two arenas.
"""

import contextlib
import ctypes

ARENA_MAX = -8
"""MARENA_MAX. Source: glibc, malloc.h; mallopt(3)."""


def limit(most: int = 2) -> None:
    """Limit the number of malloc arenas; call it before threads begin.

    Does nothing where the C library is another one.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(ARENA_MAX, most)
