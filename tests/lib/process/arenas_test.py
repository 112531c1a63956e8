"""The limit is set in the C library."""

import ctypes

import pytest

from lib.process import arenas


def test_it_can_be_said_where_the_c_library_is_glibc() -> None:
    """The number is glibc's own: it accepts it."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        pytest.skip("the C library is not glibc")
    assert library.mallopt(arenas.ARENA_MAX, 2) == 1
    arenas.limit()
