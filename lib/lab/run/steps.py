"""Runs steps that need each other, each in a thread, as early as it can.

Rules: the first error wins and no further step begins; a step which is under way is
ended from outside, by `interrupt`, never waited for without end. Threads are daemons,
so that one which can't be ended does not keep the command alive.
"""

import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

LOOK_S = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class StartStep:
    """One thing to do. needs: names of the steps that must be done before."""

    name: str
    run: Callable[[], object]
    needs: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is. elapsed_s: since the beginning of each step that has begun.

    A step that is done keeps the time that it took.
    """

    done: frozenset[str]
    elapsed_s: Mapping[str, float]


def ready(
    steps: Sequence[StartStep], begun: frozenset[str], done: frozenset[str]
) -> tuple[StartStep, ...]:
    """Return the steps that may begin now, in their order.

    A need which is no step of this run counts as met: that part is not ours to do.
    """
    known = {step.name for step in steps}
    return tuple(
        step
        for step in steps
        if step.name not in begun and known.intersection(step.needs) <= done
    )


def run(
    steps: Sequence[StartStep],
    interrupt: Callable[[], None],
    patience_s: float = 2,
    watch: Callable[[RunState], object] = lambda state: None,
) -> None:
    """Run all steps; raise the first error after the others have ended.

    interrupt: ends what the steps under way wait for; called repeatedly until
    they have ended, or until `patience_s` is over. Ctrl-C is such an error too.
    watch: called several times a second, and at last with all steps done.
    """
    ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
    began: dict[str, float] = {}
    took_s: dict[str, float] = {}

    def show() -> None:
        now = time.monotonic()
        elapsed_s = {name: now - at for name, at in began.items()}
        watch(RunState(frozenset(took_s), {**elapsed_s, **took_s}))

    try:
        while len(took_s) < len(steps):
            for step in ready(steps, frozenset(began), frozenset(took_s)):
                began[step.name] = time.monotonic()
                _begin(step, ended)
            if began.keys() == took_s.keys():
                raise ValueError("steps need each other in a circle")
            name, error = _next(ended, show)
            took_s[name] = time.monotonic() - began[name]
            if error is not None:
                raise error
        show()
    except BaseException:
        _end(began.keys() - took_s.keys(), ended, interrupt, patience_s)
        raise


def _begin(
    step: StartStep, ended: "queue.SimpleQueue[tuple[str, BaseException | None]]"
) -> None:
    def body() -> None:
        error: BaseException | None = None
        try:
            step.run()
        except BaseException as caught:  # handed to the main thread
            error = caught
        ended.put((step.name, error))

    threading.Thread(target=body, name=step.name, daemon=True).start()


def _next(
    ended: "queue.SimpleQueue[tuple[str, BaseException | None]]",
    show: Callable[[], None],
) -> tuple[str, BaseException | None]:
    # Short waits: a wait without end is deaf to Ctrl-C on some systems.
    while True:
        show()
        try:
            return ended.get(timeout=LOOK_S)
        except queue.Empty:
            continue


def _end(
    running: set[str],
    ended: "queue.SimpleQueue[tuple[str, BaseException | None]]",
    interrupt: Callable[[], None],
    patience_s: float,
) -> None:
    interrupt()
    left = set(running)
    for _ in range(round(patience_s / LOOK_S)):
        if not left:
            return
        try:
            left.discard(ended.get(timeout=LOOK_S)[0])
        except queue.Empty:
            interrupt()
