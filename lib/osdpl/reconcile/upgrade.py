"""Order of an upgrade to another OpenStack version. Pure.

Rules: the version of a release is a label of its Secret, so the order survives a
restart. A release of another version than the desired one waits until all services
before it in the order are upgraded and their workloads are Ready at their newest
generation. No service is skipped: one that fails, or cannot be rendered, holds up those
after it.
"""

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence

from lib.osdpl.api import model
from lib.osdpl.reconcile.snapshot import Snapshot
from lib.osdpl.reconcile.states import ReleaseState, State
from lib.osdpl.values import graph

VERSION_LABEL = f"{model.GROUP}/openstack-version"


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradeStep:
    """Where an upgrade is.

    service: the one that is upgraded now. done, total: services. waits: what its end
    waits for; empty: for nothing that is wrong. is_late: for longer than the time-out.
    """

    before: str
    after: str
    service: str
    done: int
    total: int
    waits: str = ""
    is_late: bool = False

    @property
    def progress(self) -> str:
        """Services that are upgraded, of all."""
        return f"{self.done}/{self.total}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Wait:
    """The cause for which the upgrade of a service waits.

    wait_s: seconds to the next check, None for an event.
    """

    service: str
    text: str
    wait_s: float | None = None
    is_late: bool = False


def version_of(state: ReleaseState) -> str:
    """Return the OpenStack version of the installed release; empty: unknown."""
    labels = state.revision.labels if state.revision is not None else {}
    return labels.get(VERSION_LABEL, "")


def is_behind(state: ReleaseState) -> bool:
    """Report whether a release is of another version than the desired one."""
    if state.release is None:
        return False
    return version_of(state) not in ("", state.release.openstack_version)


def is_unlabelled(state: ReleaseState) -> bool:
    """Report whether a release in sync lacks the label of the desired version."""
    if state.release is None or state.revision is None:
        return False
    return version_of(state) != state.release.openstack_version


def in_order(
    snapshot: Snapshot, all_states: Sequence[ReleaseState], now: datetime.datetime
) -> tuple[ReleaseState, ...]:
    """Return the states with those that must not be upgraded yet waiting."""
    if not any(map(is_behind, all_states)):
        return tuple(all_states)
    blocked = _first_wait(snapshot, all_states, now)
    return tuple(
        _held(state, blocked) if _is_after(state, blocked) else state
        for state in all_states
    )


def relabelled(
    snapshot: Snapshot, all_states: Sequence[ReleaseState], now: datetime.datetime
) -> Iterator[ReleaseState]:
    """Yield the releases that only lack the label of the desired version.

    Their values are the same for both versions, so helm has nothing to do.
    """
    blocked: _Wait | None = None
    if any(map(is_behind, all_states)):
        blocked = _first_wait(snapshot, all_states, now)
    for state in all_states:
        is_same = state.state is State.IN_SYNC and is_unlabelled(state)
        if is_same and not _is_after(state, blocked):
            yield state


def step(
    snapshot: Snapshot, all_states: Sequence[ReleaseState], now: datetime.datetime
) -> UpgradeStep | None:
    """Return the progress of an upgrade; None without one."""
    behind = [state for state in all_states if is_behind(state)]
    if not behind:
        return None
    services = list(
        dict.fromkeys(state.service for state in all_states if state.release)
    )
    blocked = _first_wait(snapshot, all_states, now)
    left = {state.service for state in behind}
    if blocked is not None:
        left.add(blocked.service)
    current = blocked.service if blocked is not None else _next(left)
    release = behind[0].release
    return UpgradeStep(
        before=version_of(behind[0]),
        after=release.openstack_version if release is not None else "",
        service=current,
        done=len(services) - len(left & set(services)),
        total=len(services),
        waits=blocked.text if blocked is not None else "",
        is_late=blocked is not None and blocked.is_late,
    )


def _next(services: set[str]) -> str:
    return next(
        (service for service in graph.UPGRADE_ORDER if service in services),
        min(services),
    )


def _is_after(state: ReleaseState, blocked: _Wait | None) -> bool:
    """Report whether a release waits for a service of the order.

    Also one that is not installed yet, unless services of the order may require it.
    """
    order = graph.UPGRADE_ORDER
    if blocked is None or state.release is None:
        return False
    if state.service not in order:
        return is_behind(state)
    is_new = is_behind(state) or state.revision is None
    return is_new and order.index(state.service) > order.index(blocked.service)


def _held(state: ReleaseState, blocked: _Wait | None) -> ReleaseState:
    if state.state is not State.PENDING or blocked is None:
        return state
    words = f"the upgrade of {blocked.service}"
    return dataclasses.replace(state, waits=words, wait_s=blocked.wait_s)


def _first_wait(
    snapshot: Snapshot, all_states: Sequence[ReleaseState], now: datetime.datetime
) -> _Wait | None:
    """Return what the first service of the order that is not done waits for."""
    by_service: dict[str, list[ReleaseState]] = {}
    for state in all_states:
        by_service.setdefault(state.service, []).append(state)
    refused = _refusals(snapshot)
    for service in graph.UPGRADE_ORDER:
        if service in refused:
            return _Wait(service, refused[service])
        for own_state in by_service.get(service, ()):
            wait = next(_waits(snapshot, own_state, now), None)
            if wait is not None:
                return wait
    return None


def _refusal_text(refusal: model.Refusal) -> str:
    problems = "; ".join(map(str, refusal.problems))
    return f"{refusal.reason.value}: {problems}"


def _refusals(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the refused services of which releases are installed, and why."""
    rendered = snapshot.desired.rendered
    installed = {graph.SERVICE_OF.get(name) for name in snapshot.revisions}
    return {
        refusal.service: _refusal_text(refusal)
        for refusal in (rendered.refusals if rendered is not None else ())
        if refusal.service in installed
    }


def _waits(
    snapshot: Snapshot, state: ReleaseState, now: datetime.datetime
) -> Iterator[_Wait]:
    """Yield what is missing before a release counts as upgraded."""
    if state.release is None:
        return
    if state.state is not State.IN_SYNC or is_behind(state):
        yield _Wait(state.service, state.failure or state.waits, state.wait_s)
        return
    age_s = _age_s(snapshot, state, now)
    for workload in snapshot.workloads.releases.get(state.name, ()):
        if not snapshot.workloads.ready.get(workload):
            pods = snapshot.workloads.pods.get(workload, "")
            text = f"{workload.kind} {workload.name} is not Ready: {pods}"
            limit_s = snapshot.settings.timeout_s(state.service)
            late_s = limit_s - age_s
            yield _Wait(
                state.service,
                text if late_s > 0 else f"{text} after {limit_s:.0f} s",
                late_s if late_s > 0 else None,
                late_s <= 0,
            )
    left_s = snapshot.settings.delay_s(state.service) - age_s
    if left_s > 0:
        yield _Wait(state.service, "", left_s)


def _age_s(snapshot: Snapshot, state: ReleaseState, now: datetime.datetime) -> float:
    """Return how long ago helm wrote a release, or its run by this process ended."""
    written = state.revision.modified_at if state.revision is not None else None
    attempt = snapshot.work.attempts.get(state.name)
    ended = attempt.ended_at if attempt is not None else None
    times = [time for time in (written, ended) if time is not None]
    return (now - max(times)).total_seconds() if times else float("inf")
