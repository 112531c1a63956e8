"""Settles one request: observe, decide and act until it is fulfilled or fails.

Rules: nothing is remembered between calls; the caller sees to it that there is one
call per volume at a time. Waiting, for a disk or for its new size, is done here only.
"""

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator

from lib.kernel import errors
from lib.kernel.protocol import Changes, Kernel
from lib.node_volumes import act, decide, fields, observe
from lib.node_volumes.call_failures import CallFailed, FailureReason, from_kernel
from lib.node_volumes.model import (
    Action,
    CostlyRead,
    ExpandFileSystem,
    MakeFileSystem,
    MountDisk,
    NodeCallHistory,
    RemountReadOnly,
    Request,
    RescanDisk,
    Snapshot,
)

LeftS = Callable[[], float]
"""Seconds for which the caller still waits; 0 after it has disconnected."""
OnAction = Callable[[str, Action, float], None]
"""Reports an action that was carried out: volume id, action, seconds."""

_ACTIONS_MAX = 32
"""No request needs more; a guard against a kernel that contradicts itself."""
_WHILE_MOUNTED = (ExpandFileSystem, RemountReadOnly)
"""Actions on what is mounted already."""
_POLL_FIRST_S, _POLL_FACTOR, _POLL_LAST_S = 0.2, 1.5, 5.0
"""Between two rescans. inotify ends the wait earlier. Source: the last is that of the
reference's device search (28 s in 15 steps)."""


class NodeVolumesFlow:
    """The volumes of one node."""

    def __init__(
        self,
        kernel: Kernel,
        hints: observe.Hints = observe.no_hints,
        on_action: OnAction | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.kernel = kernel
        self._hints = hints
        self._on_action = on_action
        self._clock = clock

    def settle(self, request: Request, left_s: LeftS) -> Snapshot:
        """Fulfil a request; return the last snapshot.

        Raises:
            Failure: it is not fulfilled.
        """
        request = observe.resolved(self.kernel, request)
        with contextlib.ExitStack() as stack:
            waiting = _Waiting(self.kernel, stack, left_s)
            return self._settle(request, waiting)

    def _settle(self, request: Request, waiting: "_Waiting") -> Snapshot:
        past, read = NodeCallHistory(), None
        for _ in itertools.count():
            snapshot = self._observe(request, read, past)
            if snapshot.content is not None:
                past = dataclasses.replace(past, content=snapshot.content)
            if snapshot.needs_recovery is not None:
                needs_recovery = snapshot.needs_recovery
                past = dataclasses.replace(past, needs_recovery=needs_recovery)
            outcome = decide.decide(request, snapshot, past)
            if outcome.failure is not None:
                raise outcome.failure
            read = outcome.read
            if outcome.waiting_for:
                past = _without_rescans(past)
                with _translated(request, past):
                    waiting.wait(outcome.waiting_for)
            elif outcome.action is not None:
                past = self._act(request, outcome.action, past)
            elif read is None:
                return snapshot
        raise AssertionError("unreachable")

    def _observe(
        self, request: Request, read: CostlyRead | None, past: NodeCallHistory
    ) -> Snapshot:
        with _translated(request, past):
            return observe.observe(self.kernel, request, read, self._hints)

    def _act(
        self, request: Request, action: Action, past: NodeCallHistory
    ) -> NodeCallHistory:
        if len(past.actions) >= _ACTIONS_MAX:
            text = f"not settled after {_ACTIONS_MAX} actions; the next is {action}"
            raise CallFailed(
                FailureReason.UNCERTAIN, f'volume "{request.volume.id}": {text}'
            )
        began = self._clock()
        with _translated(request, past, action):
            check = act.act(self.kernel, action, request.volume)
        if self._on_action is not None:
            self._on_action(request.volume.id, action, self._clock() - began)
        actions = (*past.actions, action)
        past = dataclasses.replace(past, actions=actions, check=check or past.check)
        if isinstance(action, MakeFileSystem):
            return dataclasses.replace(past, content=None, needs_recovery=None)
        return past


@contextlib.contextmanager
def _translated(
    request: Request, past: NodeCallHistory, action: Action | None = None
) -> Iterator[None]:
    """Translate errors of the kernel; messages name the volume and the field."""
    try:
        yield
    except errors.KernelError as error:
        is_mounted = past.has(MountDisk) or isinstance(action, _WHILE_MOUNTED)
        parts = [f'volume "{request.volume.id}": {error}']
        if field := fields.named(request, action):
            parts.append(field)
        raise from_kernel(error, is_mounted, "; ".join(parts)) from error


def _without_rescans(past: NodeCallHistory) -> NodeCallHistory:
    """Forget rescans of a disk: its new size may arrive later."""
    actions = tuple(a for a in past.actions if not isinstance(a, RescanDisk))
    return dataclasses.replace(past, actions=actions)


class _Waiting:
    """Waits for device events, with rescans in growing intervals."""

    def __init__(
        self, kernel: Kernel, stack: contextlib.ExitStack, left_s: LeftS
    ) -> None:
        self._kernel = kernel
        self._stack = stack
        self._left_s = left_s
        self._changes: Changes | None = None
        self._poll_s = _POLL_FIRST_S

    def wait(self, waiting_for: str) -> None:
        """Return when the state should be read again.

        The first call opens the watch, so that no event after it is missed.

        Raises:
            Failure: the caller does not wait any longer.
        """
        left_s = self._left_s()
        if left_s <= 0:
            raise CallFailed(FailureReason.TIMED_OUT, waiting_for)
        if self._changes is None:
            self._changes = self._stack.enter_context(self._kernel.watch())
            self._kernel.rescan_hosts()
        elif not self._changes.wait(min(self._poll_s, left_s)):
            self._kernel.rescan_hosts()
            self._poll_s = min(self._poll_s * _POLL_FACTOR, _POLL_LAST_S)
