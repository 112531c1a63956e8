"""Ends the lab of a test slot that no process uses any more, however its user ended.

Two of these watch over each slot, and each starts the other again when that was
killed. Rules: everything is decided while the slot's lock is held. A user that ended
without giving the lab back leaves its lease: then the lab ends immediately; otherwise a
minute after the last use of any slot, since the next test process may need it. A user
whose Pants has gone is killed. What belongs to a slot
is known by a variable in its environment, by pid files, and by descent from those.

Standard library only: a copy of this file runs beside the lab with plain Python, since
the folder that a test runs from is removed with the test. Linux only, as the lab is.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

MARK = "MOORING_TEST_SLOT"
"""Variable in the environment of every process of a slot: the slot's folder."""
LOCK = "lock"
USED = "used"
"""Its time is that of the last use; it exists while there is something to end."""
LEASE = "lease.json"
"""Exists while a process uses the slot: its pid, and that of Pants above it."""
LAB = "lab"
RUNS = "runs"
ROLES = ("0", "1")
LINGER_S = 60.0
TICK_S = 1.0

_KILL_S = 20.0
_MNT_DETACH = 2
"""Source: umount(2)."""

Stat = tuple[int, int, float, str]
"""Of a process: parent, session, start in ticks since boot, state."""


def stat(pid: int) -> Stat | None:
    """Return the facts of the kernel about a process; None when there is none.

    Source: proc_pid_stat(5).
    """
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), int(fields[3]), float(fields[19]), fields[0]


def is_alive(pid: int, started: float) -> bool:
    """Report whether this very process still runs; a zombie does not."""
    known = stat(pid)
    return known is not None and known[2] == started and known[3] not in "ZX"


def hold(file: pathlib.Path) -> int | None:
    """Lock a file; None when another process has."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _processes() -> dict[int, Stat]:
    """Return every process but zombies."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    known = {pid: stat(pid) for pid in pids}
    return {
        pid: facts for pid, facts in known.items() if facts and facts[3] not in "ZX"
    }


def _own_line() -> set[int]:
    """Return this process and all above it."""
    line, pid = {0, 1}, os.getpid()
    while pid not in line:
        line.add(pid)
        known = stat(pid)
        pid = known[0] if known else 1
    return line


def _marked(folder: pathlib.Path, pid: int) -> bool:
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={folder}".encode() in environment.split(b"\0")


def _recorded(folder: pathlib.Path) -> dict[int, float]:
    """Return pid and start of every program that has a pid file below a folder."""
    recorded: dict[int, float] = {}
    for place in (folder / LAB, folder / RUNS):
        # Unlike rglob it passes over folders that go away meanwhile.
        for parent, _, names in os.walk(place):
            if os.path.basename(parent) != "run":
                continue
            for file in [pathlib.Path(parent, name) for name in names]:
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    mark = json.loads(file.read_text())
                    recorded[int(mark["pid"])] = float(mark["started"])
    return recorded


def belonging(folder: pathlib.Path) -> set[int]:
    """Return the processes that belong to a slot; not this one, nor those above it."""
    known, recorded, never = _processes(), _recorded(folder), _own_line()
    belonging_ = {
        pid
        for pid, facts in known.items()
        if pid not in never and (recorded.get(pid) == facts[2] or _marked(folder, pid))
    }
    while True:
        more = {
            pid
            for pid, (parent, session, _, _) in known.items()
            if parent in belonging_ or session in belonging_
        }
        if more - never <= belonging_:
            return belonging_
        belonging_ |= more - never


def end(folder: pathlib.Path) -> tuple[int, ...]:
    """Kill everything that belongs to a slot; unmount and remove its data.

    The caller holds the slot's lock. Its data is made again from a snapshot, so that
    no process needs to end well. Returns the processes that could not be ended.
    """
    until = time.monotonic() + _KILL_S
    while (left := belonging(folder)) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    _unmount(folder)
    _restore_node(folder)
    for name in (LAB, RUNS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (LEASE, USED):
        (folder / name).unlink(missing_ok=True)
    return tuple(sorted(left))


def mounts(folder: pathlib.Path) -> tuple[str, ...]:
    """Return the mount points below a folder, the innermost first."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split(" ")[4].replace("\\040", " ") for line in lines]
    inside = [
        point for point in points if pathlib.PurePath(point).is_relative_to(folder)
    ]
    return tuple(sorted(inside, reverse=True))


def _unmount(folder: pathlib.Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    # Twice: one that is mounted over another shows that one only when it is gone.
    for _ in range(2):
        for point in mounts(folder):
            libc.umount2(os.fsencode(point), _MNT_DETACH)


def _restore_node(folder: pathlib.Path) -> None:
    """Put back what the kubelets of a slot changed on the machine."""
    for pattern in ("*/node/before.json", "*/*/node/before.json"):
        for file in folder.glob(pattern):
            with contextlib.suppress(OSError, ValueError, KeyError, AttributeError):
                put_back(file)


def put_back(saved: pathlib.Path) -> None:
    """Undo what a node changed on the machine; fine when there is nothing to undo.

    saved: what `node_host.prepare` wrote down, in the node's folder.
    """
    if not saved.exists():
        return
    before = json.loads(saved.read_text())
    for name in before.get("cgroups", ()):
        _remove_cgroup(pathlib.Path(name))
    for link in (before.get("bridge", ""), *before.get("links", ())):
        with contextlib.suppress(OSError):
            command = ["ip", "link", "delete", link]
            subprocess.run(command, capture_output=True, check=False)
    for name, value in before["settings"].items():
        (pathlib.Path("/proc/sys") / name).write_text(value)
    for name in before["absent"]:
        _remove_folder(pathlib.Path(name), saved.parent)
    saved.unlink()


def _remove_cgroup(top: pathlib.Path) -> None:
    # Only folders can be removed in a cgroup; those with processes stay, and say so.
    if top.is_dir():
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                pathlib.Path(folder).rmdir()


def _remove_folder(folder: pathlib.Path, own: pathlib.Path) -> None:
    """Remove what the kubelet left in a folder that it made; then that, if empty."""
    # Somebody else may have begun to use it.
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            link = entry.is_symlink() and entry.readlink().is_relative_to(own)
            if link or entry.name == "kubelet.sock":
                entry.unlink()
        folder.rmdir()


def start(
    folder: pathlib.Path,
    python: str,
    role: str,
    linger_s: float = LINGER_S,
    tick_s: float = TICK_S,
) -> None:
    """Start one of the two keepers of a slot, unless it runs.

    It runs from `keeper.py` in the slot's folder. linger_s: how long an unused lab
    stays up. tick_s: between two checks.
    """
    lock = hold(folder / f"keeper-{role}.lock")
    if lock is None:
        return
    os.close(lock)
    options = (role, str(linger_s), str(tick_s))
    with (folder / "keeper.log").open("ab") as log:
        subprocess.Popen(
            [python, "-I", "-S", str(folder / "keeper.py"), str(folder), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )


def _end_abandoned(folder: pathlib.Path) -> None:
    """Kill a user whose Pants has ended: its results are not read."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        lease = json.loads((folder / LEASE).read_text())
        above = lease["above"]
        if above is None or is_alive(above["pid"], above["started"]):
            return
        if is_alive(lease["pid"], lease["started"]):
            _say(f"Pants ({above['pid']}) has ended: end its test process too")
            os.kill(lease["pid"], signal.SIGKILL)


def _uses_another(folder: pathlib.Path) -> bool:
    """Report whether a process uses another slot, by the leases; no lock is taken."""
    for file in folder.parent.glob(f"*/{LEASE}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            lease = json.loads(file.read_text())
            if file.parent != folder and is_alive(lease["pid"], lease["started"]):
                return True
    return False


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def _last_use(folder: pathlib.Path) -> int | None:
    try:
        return (folder / USED).stat().st_mtime_ns
    except FileNotFoundError:
        return None


class Keeper:
    """One keeper of a slot."""

    def __init__(self, folder: pathlib.Path, linger_s: float) -> None:
        self._folder = folder
        self._linger_s = linger_s
        self._use: int | None = None
        self._since = time.monotonic()

    def look(self) -> bool:
        """Do what is to be done now; False when there is nothing to watch any more.

        The slot's lock is held when it returns False.
        """
        lock = hold(self._folder / LOCK)
        if lock is None:
            self._use = None
            _end_abandoned(self._folder)
            return True
        use = _last_use(self._folder)
        if use is not None and (reason := self._reason(use)):
            _say(f"end the lab: {reason}")
            if left := end(self._folder):
                _say(f"processes {left} do not end")
            use = None
        if use is not None:
            os.close(lock)
        return use is not None

    def _reason(self, use: int) -> str:
        """Return why the lab has to end now; empty when it may stay."""
        if (self._folder / LEASE).exists():
            return "its last user ended without giving it back"
        if use != self._use or _uses_another(self._folder):
            self._use, self._since = use, time.monotonic()
        idle = time.monotonic() - self._since
        return f"unused for {idle:.0f} s" if idle >= self._linger_s else ""


def main(folder: pathlib.Path, role: str, linger_s: float, tick_s: float) -> None:
    """Watch over a slot until its lab has ended."""
    mine = hold(folder / f"keeper-{role}.lock")
    if mine is None:
        return
    keeper = Keeper(folder, linger_s)
    while True:
        # First: who ends a lab may be killed while it does, and the other one goes on.
        # Not where nothing is left: they would start each other for ever.
        for other in ROLES:
            if other != role and _last_use(folder) is not None:
                start(folder, sys.executable, other, linger_s, tick_s)
        if not keeper.look():
            break
        time.sleep(tick_s)
    # The slot's lock is held until this process has ended: the next user, who gets it
    # then, finds no keeper and starts its own.
    os.close(mine)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
