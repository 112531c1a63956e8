"""The use of a test slot by one process, and what outlives it.

A test process holds a slot from its first use to its end. What it kept running stays up
for the next process of that slot; `keeper.py` ends it a minute later, immediately if
the process was killed. Rules: a process that was killed, or that marked its lab as
damaged, leaves nothing to reuse.
"""

import contextlib
import dataclasses
import importlib.resources
import json
import os
import pathlib
import secrets
from collections.abc import Iterator, Mapping

from lib.lab import errors, places
from lib.lab.artifacts import pexes
from lib.lab.run import ports, progress
from lib.lab.slots import keeper, slots

_DAMAGED = "damaged"


@dataclasses.dataclass(frozen=True, slots=True)
class Lease:
    """A slot in use. where: places of its lab, which may be running already."""

    slot: slots.Slot
    where: places.Places

    def apart(self, name: str, offset: int) -> places.Places:
        """Return places for something that this process alone uses, new ones each time.

        name: its folder's name begins like it, and is short: the path of a socket has
        107 characters, of which a kubelet needs 36. offset: of its ports from those of
        the slot; less than slots.SLOT_PORTS.
        """
        folder = f"{name.removeprefix('test_')[:3]}-{secrets.token_hex(2)}"
        state = self.slot.folder / keeper.RUNS / folder
        return places.Places(self.where.cache, state, self.slot.port_base + offset)


def root(env: Mapping[str, str] | None = None) -> pathlib.Path:
    """Return the folder of all slots of this user."""
    return places.default(env).state.parent / "tests"


@contextlib.contextmanager
def held(
    shown: progress.Progress,
    linger_s: float = keeper.LINGER_S,
    tick_s: float = keeper.TICK_S,
    shares_lab: bool = False,
) -> Iterator[Lease]:
    """Hold a slot for as long as the block lasts; wait for one if need be.

    Processes that the block starts are known as the slot's by their environment.
    shares_lab: the block uses what an earlier process kept running; another block
    leaves such a slot to one that does, if it can.
    linger_s, tick_s: see `keeper.start`.

    Raises:
        LabError: other programs hold the ports, or there is no room.
    """
    with _slot(shown, shares_lab) as slot, _environment(
        {keeper.MARK: str(slot.folder)}
    ):
        lab = slot.folder / keeper.LAB
        if (slot.folder / keeper.LEASE).exists() or damage(lab):
            reset(slot.folder)
        _begin(slot.folder, linger_s, tick_s)
        yield Lease(slot, places.Places(places.default().cache, lab, slot.port_base))
        if damage(lab):
            reset(slot.folder)
        _watch(slot.folder, linger_s, tick_s)
        _give_back(slot.folder)


@contextlib.contextmanager
def _slot(shown: progress.Progress, shares_lab: bool) -> Iterator[slots.Slot]:
    limit = slots.of_this_machine()
    has_lab = [(root() / str(number) / keeper.LAB).exists() for number in range(limit)]
    preferred = sorted(range(limit), key=lambda number: has_lab[number] != shares_lab)
    with contextlib.ExitStack() as waiting:

        def waits() -> None:
            waiting.enter_context(shown.step(f"Wait for one of {limit} test slots"))

        slot = slots.take(root(), preferred, require_ports, waits)
    try:
        yield slot
    finally:
        slot.release()


def require_ports(slot: slots.Slot) -> None:
    """Check that no other process uses the ports of a slot without programs of ours.

    Raises:
        LabError: another process does.
    """
    if (slot.folder / keeper.USED).exists():
        return
    where = places.Places(slot.folder, slot.folder, slot.port_base)
    ports.require(where, [(name, name) for name in where.ports()])


def reset(folder: pathlib.Path) -> None:
    """End everything of a slot that this process holds, and remove its data.

    Raises:
        LabError: a process does not end.
    """
    if left := keeper.end(folder):
        raise errors.LabError(
            f"processes {', '.join(map(str, left))} of the test slot {folder} do not"
            " end when they are killed; end them, then repeat"
        )


def mark_damaged(where: places.Places, reason: str) -> None:
    """Record that this lab is unusable. reason: completes "the lab is damaged: "."""
    where.state.mkdir(parents=True, exist_ok=True)
    (where.state / _DAMAGED).write_text(reason)


def mark_repaired(where: places.Places) -> None:
    """Remove the record of `mark_damaged`: who damaged the lab has put it right."""
    (where.state / _DAMAGED).unlink(missing_ok=True)


def damage(state: pathlib.Path) -> str:
    """Return why a lab must not be used by another process; empty when it may."""
    try:
        return (state / _DAMAGED).read_text() or "for a reason that is not known"
    except FileNotFoundError:
        return ""


def in_use(env: Mapping[str, str] | None = None) -> tuple[int, ...]:
    """Return the slots that a process holds now."""
    held = []
    for folder in sorted(root(env).glob("[0-9]")):
        slot = slots.attempt(root(env), int(folder.name))
        if slot is None:
            held.append(int(folder.name))
        else:
            slot.release()
    return tuple(held)


def end_all(env: Mapping[str, str] | None = None) -> Mapping[int, str]:
    """End the labs of all slots that no process holds; return what was done to each."""
    done: dict[int, str] = {}
    folders = root(env).glob("[0-9]")
    for number in sorted(int(folder.name) for folder in folders):
        slot = slots.attempt(root(env), number)
        if slot is None:
            done[number] = "in use by a test process, not stopped"
            continue
        try:
            is_there = (slot.folder / keeper.USED).exists()
            reset(slot.folder)
            done[number] = "ended" if is_there else "nothing runs"
        finally:
            slot.release()
    return done


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin(folder: pathlib.Path, linger_s: float, tick_s: float) -> None:
    """Have both keepers run; then write down who uses the slot."""
    code = importlib.resources.files("lib.lab.slots").joinpath("keeper.py").read_bytes()
    try:
        _replace(folder / "keeper.py", code)
        (folder / keeper.USED).touch()
        _watch(folder, linger_s, tick_s)
        lease = {**_identity(os.getpid()), "above": pants_above(os.getppid())}
        _replace(folder / keeper.LEASE, json.dumps(lease).encode())
    except OSError as error:
        raise errors.LabError(f"cannot use the test slot {folder}: {error}") from error


def _watch(folder: pathlib.Path, linger_s: float, tick_s: float) -> None:
    """Have both keepers run."""
    for role in keeper.ROLES:
        python = pexes.command(pathlib.Path())[0]
        keeper.start(folder, python, role, linger_s, tick_s)


def _give_back(folder: pathlib.Path) -> None:
    """Keep what runs for the next user; after a reset there is nothing to keep."""
    if (folder / keeper.USED).exists():
        (folder / keeper.USED).touch()
    (folder / keeper.LEASE).unlink(missing_ok=True)


def _replace(file: pathlib.Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.new")
    part.write_bytes(content)
    part.replace(file)


def _identity(pid: int) -> dict[str, float]:
    known = keeper.stat(pid)
    return {"pid": pid, "started": known[2] if known else 0}


def pants_above(pid: int) -> Mapping[str, float] | None:
    """Return the nearest Pants at or above a process, or None: pid and start."""
    while pid > 1:
        known = keeper.stat(pid)
        if known is None:
            return None
        words = _command_line(pid)[:3]
        if any(w.startswith("pantsd") or w.endswith("/pants") for w in words):
            return _identity(pid)
        pid = known[0]
    return None


def _command_line(pid: int) -> list[str]:
    try:
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return text.decode(errors="replace").split("\0")
