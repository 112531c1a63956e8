"""Decoding in many threads in parallel."""

import os
import subprocess
import sys

import msgspec
import pytest

from lib.process import decoding

CROWD = """
import concurrent.futures, sys, threading
import msgspec
from lib.process import decoding

def make():
    class Leaf(msgspec.Struct, frozen=True):
        name: str = ""
        port: int = 0

    class Branch(msgspec.Struct, frozen=True):
        id: str
        leaves: tuple[Leaf, ...] = ()

    class Tree(msgspec.Struct, frozen=True):
        id: str
        branches: tuple[Branch, ...] = ()

    return Tree

def decode(kind):
    gate.wait()
    return decoding.decode(BODY, kind).branches[0].leaves[0].port

BODY = b'{"id": "a", "branches": [{"id": "b", "leaves": [{"name": "c", "port": 7}]}]}'
gate = threading.Barrier(16)
sys.setswitchinterval(1e-6)
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for _ in range(60):
        assert set(pool.map(decode, [make()] * 16)) == {7}
"""


class Thing(msgspec.Struct, frozen=True):
    """Something to decode."""

    name: str


def test_many_threads_may_use_a_type_for_the_first_time() -> None:
    """In a separate process: without the lock it ends in a segmentation fault."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CROWD],
        env=env,
        check=False,
        capture_output=True,
        timeout=900,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_does_not_fit_is_refused() -> None:
    """With the error of the library, which callers know."""
    assert decoding.decode(b'{"name": "a"}', Thing) == Thing("a")
    with pytest.raises(msgspec.DecodeError):
        decoding.decode(b'{"name": 1}', Thing)
