"""What pod routes cost: the flow, the fake Neutron at 100 ms a call, in one process.

Counts are asserted; seconds are those of the fake clock, one call after the other. The
memory is that of the process, the fakes included.
"""

import dataclasses
import pathlib
import time
from collections import Counter
from collections.abc import Callable

from tests.harness.routing import memory

MOST_MB = 150


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table. bound: calls, at most; ports are counted apart."""

    what: str
    bound: int
    ports: int
    reference: str


IDLE = Row("an idle check for drift, 100 Nodes", 1, 0, "2")
NEW = Row("100 new Nodes", 4, 100, "300")
RESTART = Row("a restart with 100 Nodes", 3, 0, "2 per check")
FIRST = Row("1,000 Nodes of two families", 12, 1000, "3000")
ROWS = (NEW, IDLE, RESTART, FIRST)


class Bench:
    """Counts calls row by row."""

    def __init__(self) -> None:
        self.shown: dict[Row, tuple[Counter[str], float, float]] = {}

    def count(self, row: Row, ground: memory.Ground, do: Callable[[], object]) -> None:
        """Do something and count the calls that it makes."""
        before, began = len(ground.cloud.calls), time.process_time()
        ground.cloud.latency_s = 0.1
        do()
        ground.cloud.latency_s = 0.0
        calls = ground.cloud.calls[before:]
        kinds = Counter(f"{c.method} {c.parts[0]}" for c in calls)
        took = time.process_time() - began
        self.shown[row] = (kinds, len(calls) * 0.1, took)

    def show(self) -> None:
        """Print the table, and fail for a row that is missing or exceeded."""
        for row in ROWS:
            kinds, seconds, processor_s = self.shown[row]
            ports = kinds["PUT ports"]
            calls = kinds.total() - ports
            print(
                f"{row.what:38} {calls:3} calls of {row.bound:3} (reference"
                f" {row.reference:>11}), {ports:4} ports, {seconds:6.1f} s of calls,"
                f" {processor_s:5.2f} s of processor  {dict(kinds)}"
            )
        for row in ROWS:
            kinds, _, _ = self.shown[row]
            ports = kinds.pop("PUT ports", 0)
            assert (kinds.total() <= row.bound, ports) == (True, row.ports), row


def add(ground: memory.Ground, first: int, last: int) -> None:
    for n in range(first, last):
        high, low = divmod(n, 256)
        cidrs = f"10.{100 + high}.{low}.0/24", f"fd00:100:{n:x}::/64"
        ground.node(f"node-{n:04}", *cidrs)


def test_calls_and_memory() -> None:
    """Prints calls, seconds and memory."""
    bench = Bench()
    ground = memory.Ground()
    process = memory.Process(ground)
    process.settle()
    add(ground, 0, 1)
    process.settle()
    add(ground, 1, 101)
    bench.count(NEW, ground, process.settle)
    assert len(ground.routes()) == 202
    process.drift()
    bench.count(IDLE, ground, process.drift)
    again = memory.Process(ground)
    bench.count(RESTART, ground, again.settle)
    thousand = memory.Ground()
    add(thousand, 0, 1000)
    first = memory.Process(thousand)
    bench.count(FIRST, thousand, first.settle)
    assert len(thousand.routes()) == 2000
    bench.show()
    peak_mb = peak_bytes() / 1e6
    print(f"resident memory at its peak: {peak_mb:.0f} MB of {MOST_MB}")
    assert peak_mb <= MOST_MB


def peak_bytes() -> int:
    """Return the peak of resident memory; ru_maxrss includes the time before exec."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
