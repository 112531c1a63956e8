"""State of each release, and its next step. Pure."""

import dataclasses
import datetime
import enum
from collections.abc import Iterator, Mapping, Sequence

from lib.helm import model as helm
from lib.osdpl.api import annotations, hashing, model
from lib.osdpl.reconcile import release_table, restore
from lib.osdpl.reconcile.release_table import TABLE, Desired, Move, Observed
from lib.osdpl.reconcile.snapshot import Attempt, Snapshot, chart_key
from lib.osdpl.values import graph

HASH_LABEL = f"{model.GROUP}/values-hash"
OWNER_LABEL = f"{model.GROUP}/owner"
DIGEST_LABEL = f"{model.GROUP}/chart-digest"
"""Digest of the chart: the pin of a release whose HelmBundle was deleted."""
CATCH_UP_S = 10.0
"""After a run that succeeded: for this long its Secret may be missing in the cache."""


class State(enum.StrEnum):
    """State of a release, as `mooring plan` and the HelmBundle show it."""

    IN_SYNC = "InSync"
    PENDING = "Pending"
    INVALID = "Invalid"


class Step(enum.StrEnum):
    """Next step of a release."""

    NOTHING = "skip"
    INSTALL = "install"
    UPGRADE = "upgrade"
    DELETE = "delete"
    REFUSED = "refused"


class Why(enum.StrEnum):
    """Why a release is not as desired yet; the worst first."""

    FAILED = "failed"
    """Its last run has failed."""
    INVALID = "invalid"
    """It cannot be applied as the spec is."""
    DELETING = "deleting"
    RUNNING = "running"
    """A job works on it."""
    DUE = "due"
    """Its step can be taken now."""
    WAITING = "waiting"
    """For another release, or for what it needs."""
    DONE = "done"


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """How far a release is: what services, HelmBundles and conditions show of it.

    message: of the failure, or what it waits for; empty: there is nothing to say.
    """

    why: Why
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseState:
    """One release.

    missing: workloads of the deployed revision that were deleted. is_damaged: they are
    the only reason for an upgrade. is_changed: another helm process has changed it.
    digest, hash: None while the chart has not been read. repairs: the Secret of its
    pending revision is deleted first. waits: why the step cannot be
    taken now; empty: it can. is_running: a job works on it. is_failed, failure: the
    last run failed, and its message; both are kept until a run succeeds. wait_s: when
    to check again, None for an event.
    """

    name: str
    service: str
    release: model.Release | None
    revision: helm.Revision | None
    state: State
    step: Step
    digest: str | None = None
    hash: str | None = None
    repairs: bool = False
    missing: tuple[model.Workload, ...] = ()
    is_damaged: bool = False
    is_changed: bool = False
    waits: str = ""
    is_running: bool = False
    is_failed: bool = False
    failure: str = ""
    wait_s: float | None = None

    @property
    def progress(self) -> Progress:
        """Why it is not as desired yet."""
        if self.is_failed or self.state is State.INVALID:
            why = Why.FAILED if self.is_failed else Why.INVALID
            return Progress(why, self.failure or self.waits)
        if self.step is Step.DELETE:
            return Progress(Why.DELETING, self.waits)
        if self.is_running or self.can_run:
            return Progress(Why.RUNNING if self.is_running else Why.DUE)
        if self.state is State.IN_SYNC:
            return Progress(Why.DONE)
        return Progress(Why.WAITING, self.waits)

    @property
    def can_run(self) -> bool:
        """Report whether its step can be taken now."""
        is_step = self.step in (Step.INSTALL, Step.UPGRADE, Step.DELETE)
        return is_step and not self.waits and not self.is_running


def pinned(snapshot: Snapshot, release: model.Release) -> str | None:
    """Return the digest of a release's chart: of the spec, or as first recorded.

    What is recorded counts once the release is installed: before, it may be a pin that
    no chart has, or that of an OpenStackDeployment which has been deleted.
    """
    if release.chart.digest is not None:
        return release.chart.digest
    key = chart_key(release.chart)
    recorded = _recorded(snapshot, release)
    if recorded is not None and recorded.matches(key) and recorded.digest:
        return recorded.digest
    return snapshot.work.digests.get(key)


@dataclasses.dataclass(frozen=True, slots=True)
class _Recorded:
    """Chart of an installed release. url: None: not recorded."""

    url: str | None
    chart: str
    version: str
    digest: str | None

    def matches(self, key: tuple[str, str, str]) -> bool:
        """Report whether it is the chart of a key, as far as it is recorded."""
        return self.url in (None, key[0]) and (self.chart, self.version) == key[1:]


def _recorded(snapshot: Snapshot, release: model.Release) -> _Recorded | None:
    """Return the record of an installed release: of its HelmBundle, else its Secret."""
    revision = snapshot.revisions.get(release.name)
    if revision is None:
        return None
    bundle = snapshot.bundles.get(f"openstack-{release.service}")
    recorded = (bundle or {}).get("spec") or {}
    urls = {
        repository["name"]: repository["url"]
        for repository in recorded.get("repositories") or ()
    }
    for row in recorded.get("releases") or ():
        repository, _, chart = str(row.get("chart")).rpartition("/")
        if row.get("name") == release.name and repository in urls:
            version, digest = str(row.get("version")), row.get("digest")
            return _Recorded(urls[repository], chart, version, digest)
    installed = snapshot.installed.get(release.name)
    if installed is None:
        return None
    digest = hashing.of_label(revision.labels.get(DIGEST_LABEL, ""))
    return _Recorded(None, installed.chart, installed.version, digest)


def of_desired(
    snapshot: Snapshot, release: model.Release, now: datetime.datetime
) -> ReleaseState:
    """Return the state of a release that is desired."""
    revision = snapshot.revisions.get(release.name)
    is_running = release.name in snapshot.work.running
    digest = pinned(snapshot, release)
    hash = hashing.release_hash(release, digest, {}) if digest is not None else None
    condition = _observed(snapshot, release.name, revision, hash, now, release)
    move = TABLE[condition, Desired.INSTALLED, is_running]
    base = ReleaseState(
        name=release.name,
        service=release.service,
        release=release,
        revision=revision,
        state=State.PENDING,
        step=Step.INSTALL if revision is None else Step.UPGRADE,
        digest=digest,
        hash=hash,
        repairs=move is Move.REPAIR,
        missing=_missing(snapshot, release.name, condition),
        is_damaged=condition is Observed.DAMAGED,
        is_changed=condition is Observed.CHANGED,
        is_running=is_running,
    )
    match move:
        case Move.SKIP:
            return dataclasses.replace(base, state=State.IN_SYNC, step=Step.NOTHING)
        case Move.REFUSE:
            words = _refusal(snapshot, release.name, condition)
            return _refused(base, words)
        case Move.INSTALL | Move.UPGRADE | Move.REPAIR if restore.is_refused(
            snapshot, release, condition in (Observed.DIFFERENT, Observed.NOT_OWNED)
        ):
            return _refused(base, restore.REFUSAL)
        case Move.WAIT if condition is Observed.BUSY and not is_running:
            return _busy(base, snapshot, now)
        case _:
            return _as_soon_as_possible(base, snapshot, release, now)


def _missing(
    snapshot: Snapshot, name: str, condition: Observed
) -> tuple[model.Workload, ...]:
    deployed = (Observed.DAMAGED, Observed.CHANGED, Observed.DIFFERENT)
    is_deployed = condition in deployed
    return snapshot.missing.get(name, ()) if is_deployed else ()


def _as_soon_as_possible(
    base: ReleaseState,
    snapshot: Snapshot,
    release: model.Release,
    now: datetime.datetime,
) -> ReleaseState:
    """Have a release wait for its backoff, the caches and its gates."""
    attempt = snapshot.work.attempts.get(release.name)
    if base.hash is None:
        return _backing_off(base, attempt, _about_chart(release), now)
    about = about_hash(base.hash, base.missing)
    if attempt is not None and attempt.is_ok and attempt.about == about:
        late_s = CATCH_UP_S - (now - attempt.ended_at).total_seconds()
        if late_s > 0:
            words = "the release's new revision to appear in the cache"
            return dataclasses.replace(base, waits=words, wait_s=late_s)
    late = _backing_off(base, attempt, about, now)
    if late.waits:
        return late
    gates = [gate for gate in release.gates if not snapshot.workloads.ready.get(gate)]
    words = ", ".join(f"{gate.kind} {gate.name}" for gate in gates)
    return dataclasses.replace(late, waits=words)


def _observed(
    snapshot: Snapshot,
    name: str,
    revision: helm.Revision | None,
    hash: str | None,
    now: datetime.datetime,
    release: model.Release | None = None,
) -> Observed:
    """Return the row of a release in the table. hash, release: the desired ones."""
    labels = revision.labels if revision is not None else {}
    adopted = annotations.names(snapshot.document, annotations.ADOPT)
    row = release_table.observed(
        revision,
        is_owned=labels.get(OWNER_LABEL) == snapshot.uid or name in adopted,
        is_readable=name not in snapshot.unreadable,
        has_hash=hash is not None and labels.get(HASH_LABEL) == hash,
        is_damaged=bool(snapshot.missing.get(name)),
        is_abandoned=abandoned_in_s(snapshot, revision, now) <= 0,
    )
    is_hash_desired = row in (Observed.EQUAL, Observed.DAMAGED)
    if is_hash_desired and _is_changed(snapshot, revision, hash, release):
        return Observed.CHANGED
    return row


def _is_changed(
    snapshot: Snapshot,
    revision: helm.Revision | None,
    hash: str | None,
    release: model.Release | None,
) -> bool:
    """Report whether another helm process has written a revision with our labels."""
    installed = snapshot.installed.get(release.name) if release is not None else None
    if installed is None or release is None or installed.holds(release):
        return False
    attempt = snapshot.work.attempts.get(release.name)
    is_ours = attempt is not None and attempt.is_ok and attempt.about == hash
    written = revision.modified_at if revision is not None else None
    # What our own last run has written is never changed again: helm recorded it so.
    return not (
        is_ours
        and attempt is not None
        and written is not None
        and written <= attempt.ended_at
    )


def abandoned_in_s(
    snapshot: Snapshot, revision: helm.Revision | None, now: datetime.datetime
) -> float:
    """Return in how many seconds a pending revision can be taken for abandoned.

    Immediately, if it was pending when this process began to act, or is the result of a
    run of this process. Any other may be of another process that runs helm now.
    """
    if revision is None or revision.secret_uid in snapshot.earlier:
        return 0.0
    unfinished = snapshot.work.unfinished.get(revision.name)
    if unfinished is not None and unfinished == revision.labels.get(HASH_LABEL):
        return 0.0
    began, limit_s = revision.modified_at, snapshot.work.limit_s
    return release_table.abandoned_in_s(revision, began, limit_s, now)


def _busy(
    base: ReleaseState, snapshot: Snapshot, now: datetime.datetime
) -> ReleaseState:
    status = base.revision.status.value if base.revision is not None else ""
    late_s = abandoned_in_s(snapshot, base.revision, now)
    words = f"another helm process: release {base.name} is {status}"
    return dataclasses.replace(base, waits=words, wait_s=late_s)


def _refused(base: ReleaseState, words: str) -> ReleaseState:
    return dataclasses.replace(
        base, state=State.INVALID, step=Step.REFUSED, waits=words
    )


def _refusal(snapshot: Snapshot, name: str, condition: Observed) -> str:
    if condition is Observed.NOT_OWNED:
        return (
            f"release {name}: conflict: it lacks the label {OWNER_LABEL} of this"
            " OpenStackDeployment and is owned by another program; the annotation"
            f" {annotations.ADOPT}: {name} adopts it"
        )
    revision = snapshot.revisions[name]
    why = snapshot.unreadable.get(name) or f"its status is {revision.status.value}"
    return (
        f"release {name}: {why}: restore the Secret {revision.secret_name}, or delete"
        " it: the installed objects are then adopted"
    )


def of_surplus(
    snapshot: Snapshot,
    now: datetime.datetime,
    desired: frozenset[str],
    kept: frozenset[str] = frozenset(),
) -> Iterator[ReleaseState]:
    """Yield the releases of ours that are not desired any more.

    A release of an unknown service, such as one of another version of this program
    whose HelmBundle was deleted, is never surplus. kept: services of which nothing is
    deleted.
    """
    never = {"", *kept}
    surplus = {
        name: revision
        for name, revision in owned(snapshot).items()
        if name not in desired and service_of(snapshot, name) not in never
    }
    yield from _absent(snapshot, now, surplus)


def of_deletion(snapshot: Snapshot, now: datetime.datetime) -> Iterator[ReleaseState]:
    """Yield all releases of ours: the OpenStackDeployment is deleted."""
    yield from _absent(snapshot, now, owned(snapshot))


def owned(snapshot: Snapshot) -> Mapping[str, helm.Revision]:
    """Return the releases with the label of the OpenStackDeployment, by name."""
    return {
        name: revision
        for name, revision in snapshot.revisions.items()
        if revision.labels.get(OWNER_LABEL) == snapshot.uid
    }


def unrecorded(snapshot: Snapshot) -> Iterator[str]:
    """Yield a text per release whose Secrets were deleted, and not its workloads.

    helm cannot uninstall it any more.
    """
    for name, workloads in sorted(snapshot.workloads.releases.items()):
        if name in graph.SERVICE_OF and name not in snapshot.revisions and workloads:
            things = ", ".join(f"{each.kind} {each.name}" for each in workloads)
            yield f"{things} of release {name}"


def _absent(
    snapshot: Snapshot,
    now: datetime.datetime,
    surplus: Mapping[str, helm.Revision],
) -> Iterator[ReleaseState]:
    """Yield the releases to delete; those that others of them require come last."""
    for name, revision in sorted(surplus.items()):
        users = [user for user in sorted(surplus) if name in graph.requires(user)]
        yield _of_absent(snapshot, revision, users, now)


def _of_absent(
    snapshot: Snapshot,
    revision: helm.Revision,
    users: Sequence[str],
    now: datetime.datetime,
) -> ReleaseState:
    """Return the state of a release that is not desired. users: deleted before it."""
    name = revision.name
    is_running = name in snapshot.work.running
    condition = _observed(snapshot, name, revision, None, now)
    move = TABLE[condition, Desired.ABSENT, is_running]
    base = ReleaseState(
        name=name,
        service=service_of(snapshot, name),
        release=None,
        revision=revision,
        state=State.PENDING,
        step=Step.DELETE,
        is_running=is_running,
        waits=f"deletion of {', '.join(users)}" if users else "",
    )
    if move is Move.REFUSE:
        return _refused(base, _refusal(snapshot, name, condition))
    if move is Move.WAIT and not is_running:
        return _busy(base, snapshot, now)
    attempt = snapshot.work.attempts.get(name)
    return base if users else _backing_off(base, attempt, "delete", now)


def service_of(snapshot: Snapshot, release: str) -> str:
    """Return the service of a release; empty: unknown.

    It follows from the name: a HelmBundle can be deleted. Only that of a release which
    this version does not have is read from the HelmBundles.
    """
    if release in graph.SERVICE_OF:
        return graph.SERVICE_OF[release]
    for name, bundle in snapshot.bundles.items():
        for recorded in (bundle.get("spec") or {}).get("releases") or ():
            if recorded.get("name") == release:
                return name.removeprefix("openstack-")
    return ""


def _about_chart(release: model.Release) -> str:
    return "chart " + " ".join(chart_key(release.chart))


def about(state: ReleaseState) -> str:
    """Return the input of an attempt for a release."""
    if state.step is Step.DELETE:
        return "delete"
    if state.hash is None and state.release is not None:
        return _about_chart(state.release)
    return about_hash(state.hash or "", state.missing)


def about_hash(hash: str, missing: Sequence[model.Workload]) -> str:
    """Return the input of an upgrade: it differs when more workloads are deleted."""
    names = sorted(f"{workload.kind} {workload.name}" for workload in missing)
    return f"{hash} without {', '.join(names)}" if names else hash


def _backing_off(
    base: ReleaseState,
    attempt: Attempt | None,
    about: str,
    now: datetime.datetime,
) -> ReleaseState:
    """Have a release wait after a failure with the same input."""
    if attempt is None or attempt.about != about or attempt.is_ok:
        return base
    late_s = (attempt.retry_at - now).total_seconds() if attempt.retry_at else 0.0
    failed = dataclasses.replace(base, is_failed=True, failure=attempt.message)
    if late_s <= 0:
        return failed
    return dataclasses.replace(
        failed,
        waits=attempt.message,
        wait_s=late_s,
        state=State.INVALID if attempt.is_final else State.PENDING,
    )


def failed_chart(
    release: model.Release, now: datetime.datetime, error: Exception
) -> Attempt:
    """Return the attempt to read a chart that has just failed."""
    retry_at = now + datetime.timedelta(seconds=1)
    return Attempt(_about_chart(release), now, str(error), retry_at=retry_at)
