"""kill -9 of Pants, of a test process and of a keeper leaves nothing behind.

Each row is a real process tree: a program called pants, a test process that holds a
slot, the two keepers, and what a test starts: a server with a pid file, one without,
one that has no environment, one in a session of its own, and a mount.
"""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from lib.lab import errors, places
from lib.lab.run import ports
from lib.lab.slots import keeper, slots

LINGER_S, TICK_S = 1.0, 0.1
GONE_S = 60.0
"""Half of what is promised; a row takes two seconds on an idle machine."""
AT_ONCE = 3
CHANCE = random.SystemRandom()
PANTS = 'exec 3<&0\n"$@" <&3 &\nwait\n'
USER = """
import os, pathlib, subprocess, sys, time
from lib.lab.run import processes, progress
from lib.lab.slots import leases, slots

slots.PORT_BASE = int(sys.argv[1])
slots.of_this_machine = lambda: 2
linger_s, tick_s = float(sys.argv[2]), float(sys.argv[3])
LISTEN = (
    "import socket, sys, time; s = socket.socket();"
    " s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
    " s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); time.sleep(600)"
)

def server(program):
    return [sys.executable, "-c", LISTEN, str(lease.where.port(program))]

with leases.held(progress.Silent(), linger_s, tick_s) as lease:
    print("held", flush=True)
    processes.start(lease.where, "cloud-1", server("cloud-1"))
    # Known by its environment until it has a pid file, and by that afterwards.
    wait = 'while [ ! -s "$0" ]; do sleep 0.05; done; exec env -i "$@"'
    mark = str(lease.where.run / "cloud-2.pid")
    bare = ["sh", "-c", wait, mark, *server("cloud-2")]
    processes.start(lease.where, "cloud-2", bare)
    subprocess.Popen(server("cloud-3"))
    subprocess.Popen(server("cloud-4"), start_new_session=True)
    mounted = lease.where.state / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", mounted], capture_output=True)
    for program in ("cloud-1", "cloud-2", "cloud-3", "cloud-4"):
        while not (lease.where.state / "stop").exists():
            import socket
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", lease.where.port(program))) == 0:
                    break
            time.sleep(0.02)
    print("runs", flush=True)
    sys.stdin.readline()
print("done", flush=True)
"""


@dataclasses.dataclass
class Row:
    """One process tree. number, slot: of the slot that it takes, and its folder."""

    home: pathlib.Path
    port_base: int
    pants: subprocess.Popen[str]
    number: str = "0"

    @property
    def slot(self) -> pathlib.Path:
        return self.home / "state" / "mooring" / "tests" / self.number

    def until(self, line: str) -> None:
        """Read the test process's output until it has printed a line."""
        assert self.pants.stdout is not None
        while (text := self.pants.stdout.readline()) != f"{line}\n":
            assert text, "the test process has ended"

    def close(self) -> None:
        """End the program called pants and its test process."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pants.pid, signal.SIGKILL)
        self.pants.wait()
        for stream in (self.pants.stdin, self.pants.stdout):
            if stream is not None:
                stream.close()

    def user(self) -> int:
        lease = json.loads((self.slot / keeper.LEASE).read_text())
        return int(lease["pid"])

    def keepers(self) -> dict[str, int]:
        """Return the pids of the keepers that run, by role."""
        script = str(self.slot / "keeper.py")
        pids = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if script in words and process.status() != psutil.STATUS_ZOMBIE:
                    pids[words[words.index(script) + 2]] = process.pid
        return pids

    def both(self) -> dict[str, int]:
        """Return the pids of the two keepers, once both run."""
        end = time.monotonic() + GONE_S
        while len(pids := self.keepers()) < len(keeper.ROLES):
            assert time.monotonic() < end, f"only these keepers run: {pids}"
            time.sleep(0.02)
        return pids

    def held_locks(self, pattern: str) -> list[str]:
        """Return the names of the lock files that a process has locked."""
        held = []
        for file in self.slot.glob(pattern):
            lock = keeper.hold(file)
            if lock is None:
                held.append(file.name)
            else:
                os.close(lock)
        return held

    def leftovers(self) -> list[str]:
        """Return what is left of processes, ports, mounts and locks."""
        base = self.port_base + slots.SLOT_PORTS * int(self.number)
        where = places.Places(self.home, self.home, base)
        left = [f"process {pid}" for pid in keeper.belonging(self.slot)]
        left += [f"keeper {role}" for role in self.keepers()]
        left += [
            f"port of {name}"
            for name, port in where.ports().items()
            if not ports.free(port)
        ]
        left += [f"mount {point}" for point in keeper.mounts(self.slot)]
        left += [f"lock {name}" for name in self.held_locks("*lock")]
        names = (keeper.LAB, keeper.RUNS, keeper.LEASE, keeper.USED)
        left += [f"file {name}" for name in names if (self.slot / name).exists()]
        return left


def start(home: pathlib.Path, port_base: int) -> Row:
    home.mkdir(exist_ok=True)
    (home / "pants").write_text(PANTS)
    (home / "user.py").write_text(USER)
    words = [str(home / "user.py"), str(port_base), str(LINGER_S), str(TICK_S)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    env |= {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    pants = subprocess.Popen(
        ["sh", str(home / "pants"), sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    )
    return Row(home, port_base, pants)


def kill(pid: int) -> None:
    """Kill a process, which must be there: a row that kills nothing proves nothing."""
    os.kill(pid, signal.SIGKILL)


def end_well(row: Row) -> None:
    assert row.pants.stdin is not None
    row.pants.stdin.close()
    row.until("done")


def pants_while_running(row: Row) -> None:
    row.until("runs")
    row.pants.kill()


def pytest_while_running(row: Row) -> None:
    row.until("runs")
    kill(row.user())


def pytest_as_it_takes_the_slot(row: Row) -> None:
    row.until("held")
    kill(row.user())


def random_moment(row: Row) -> None:
    """Wait until a moment between the first line of the slot and the last server."""
    while not (row.slot / keeper.LEASE).exists():
        time.sleep(0.01)
    time.sleep(CHANCE.uniform(0, 0.3))


def pytest_at_a_random_moment(row: Row) -> None:
    random_moment(row)
    kill(row.user())


def pants_at_a_random_moment(row: Row) -> None:
    random_moment(row)
    row.pants.kill()


def a_keeper_at_a_random_moment(row: Row) -> None:
    """The other one starts it again, and ends the lab when its user is killed."""
    random_moment(row)
    while not (running := row.keepers()):
        time.sleep(0.01)
    kill(CHANCE.choice([*running.values()]))
    row.until("runs")
    kill(row.user())


def keeper_in_use(role: str) -> Callable[[Row], None]:
    def act(row: Row) -> None:
        row.until("runs")
        kill(row.both()[role])
        kill(row.user())

    return act


def keeper_in_use_then_the_end(row: Row) -> None:
    row.until("runs")
    kill(row.both()["0"])
    end_well(row)


def keeper_when_nobody_uses_the_lab(row: Row) -> None:
    row.until("runs")
    pids = row.both()
    end_well(row)
    kill(pids["1"])


def keepers_in_turn_while_they_end_the_lab(row: Row) -> None:
    row.until("runs")
    kill(row.user())
    for role in (*keeper.ROLES, *keeper.ROLES, *keeper.ROLES):
        until = time.monotonic() + 10  # one at a time: the other one starts it again
        while len(row.keepers()) < 2 and row.leftovers() and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(CHANCE.uniform(0, 0.3))
        if role in (running := row.keepers()):
            with contextlib.suppress(ProcessLookupError):
                kill(running[role])


def both_keepers_in_use(row: Row) -> None:
    """The user starts them again when it gives the slot back."""
    row.until("runs")
    for pid in row.both().values():
        kill(pid)
    # The kernel forgets the arguments of a killed process before it releases its lock.
    while (left := row.keepers()) or row.held_locks("keeper-*.lock"):
        for pid in left.values():  # the second one may have started it again
            with contextlib.suppress(ProcessLookupError):
                kill(pid)
        time.sleep(0.02)
    end_well(row)


def pants_and_a_keeper(row: Row) -> None:
    row.until("runs")
    kill(row.both()["0"])
    row.pants.kill()


def nobody(row: Row) -> None:
    row.until("runs")
    end_well(row)


ROWS: dict[str, Callable[[Row], None]] = {
    "nobody": nobody,
    "Pants, while tests run": pants_while_running,
    "Pants, at a random moment": pants_at_a_random_moment,
    "Pants and a keeper": pants_and_a_keeper,
    "pytest, while tests run": pytest_while_running,
    "pytest, as it takes the slot": pytest_as_it_takes_the_slot,
    "pytest, at a random moment (1)": pytest_at_a_random_moment,
    "pytest, at a random moment (2)": pytest_at_a_random_moment,
    "pytest and keeper 0": keeper_in_use("0"),
    "pytest and keeper 1": keeper_in_use("1"),
    "a keeper, at a random moment": a_keeper_at_a_random_moment,
    "keeper 0, then a good end": keeper_in_use_then_the_end,
    "keeper 1 of an unused lab": keeper_when_nobody_uses_the_lab,
    "keepers while they end a lab": keepers_in_turn_while_they_end_the_lab,
    "both keepers, then a good end": both_keepers_in_use,
}


def free_block(number: int) -> int:
    """Return the first port of a block that nobody uses, far from the slots' own."""
    base = 12000 + 400 * number
    while not all(ports.free(port) for port in range(base, base + 20)):
        base += 20
    return base


def play(name: str, home: pathlib.Path, port_base: int) -> tuple[str, float, list[str]]:
    row = start(home, port_base)
    try:
        ROWS[name](row)
        began = time.monotonic()
        while (left := row.leftovers()) and time.monotonic() - began < GONE_S:
            time.sleep(0.1)
        return name, time.monotonic() - began, left
    finally:
        row.close()


def test_whoever_is_killed_nothing_is_left(tmp_path: pathlib.Path) -> None:
    """No process, port, mount, lock or file; a table of who was killed and when."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        played = [
            pool.submit(play, name, tmp_path / str(number), free_block(number))
            for number, name in enumerate(ROWS)
        ]
        rows = [future.result() for future in played]
    for name, seconds, left in rows:
        print(f"{name:32} {seconds:5.1f} s  {', '.join(left) or 'nothing left'}")
    assert {name: left for name, _, left in rows if left} == {}


@pytest.fixture()
def running(tmp_path: pathlib.Path) -> Iterator[Row]:
    row = start(tmp_path / "home", free_block(20))
    yield row
    row.close()
    keeper.end(row.slot)


def test_what_was_given_back_serves_the_next_process(running: Row) -> None:
    """A second process takes the slot while the programs of the first still run."""
    running.until("runs")
    mark = running.slot / "lab" / "run" / "cloud-1.pid"
    server = json.loads(mark.read_text())["pid"]
    end_well(running)

    assert psutil.pid_exists(server)
    slot = slots.attempt(running.slot.parent, 0)
    assert slot is not None
    time.sleep(2 * LINGER_S)
    assert psutil.pid_exists(server), "a keeper ended a lab in use"
    slot.release()


def test_an_unused_lab_stays_while_another_slot_is_used(running: Row) -> None:
    """It serves the next process of the same test run, and ends with the last lab."""
    running.until("held")
    second = start(running.home, running.port_base)
    second.number = "1"
    try:
        running.until("runs")
        second.until("runs")
        servers = keeper.belonging(running.slot)
        end_well(running)
        time.sleep(3 * LINGER_S)
        assert keeper.belonging(running.slot) == servers
        end_well(second)
        began = time.monotonic()
        rows = (running, second)
        while (
            any(row.leftovers() for row in rows) and time.monotonic() - began < GONE_S
        ):
            time.sleep(0.1)
        assert [row.leftovers() for row in rows] == [[], []]
    finally:
        second.close()
        keeper.end(second.slot)


def test_two_checkouts_test_at_once(running: Row, tmp_path: pathlib.Path) -> None:
    """Processes of one user take slots of their own; each ends without the other."""
    running.until("held")
    second = start(running.home, running.port_base)
    second.number = "1"
    try:
        running.until("runs")
        second.until("runs")
        assert running.leftovers() != []
        first, other = running.user(), second.user()
        assert len({first, other}) == 2
        servers = keeper.belonging(running.slot)
        kill(other)
        began = time.monotonic()
        while second.leftovers() and time.monotonic() - began < GONE_S:
            time.sleep(0.1)
        assert second.leftovers() == []
        assert keeper.belonging(running.slot) == servers
        assert psutil.pid_exists(first)
    finally:
        second.close()
        keeper.end(second.slot)


def test_a_full_disk_is_told_in_one_sentence(tmp_path: pathlib.Path) -> None:
    """Nothing is started on it."""
    full = tmp_path / "full"
    full.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "none", str(full)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    try:
        (full / "ballast").touch()
        with pytest.raises(errors.LabError, match=r"cannot use the test slot .*space"):
            slots.attempt(full / "tests", 0)
    finally:
        subprocess.run(["umount", str(full)], check=True)
