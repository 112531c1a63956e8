"""State of each release, and what is to be done about it. Pure."""

import dataclasses
import datetime
import enum
from collections.abc import Iterator, Mapping

from lib.helm import model as helm
from lib.osdpl import hashing, model
from lib.osdpl.snapshot import Attempt, Snapshot, chart_key

HASH_LABEL = f"{model.GROUP}/values-hash"
OWNER_LABEL = f"{model.GROUP}/owner"
CATCH_UP_S = 10.0
"""After a run that succeeded: for so long its Secret may be missing in the cache."""


class State(enum.StrEnum):
    """State of a release, as `mooring plan` and the HelmBundle show it."""

    IN_SYNC = "InSync"
    PENDING = "Pending"
    INVALID = "Invalid"


class Step(enum.StrEnum):
    """What a release needs next."""

    NOTHING = "skip"
    INSTALL = "install"
    UPGRADE = "upgrade"
    DELETE = "delete"
    REFUSED = "refused"


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseState:
    """One release.

    digest, hash: None while the chart has not been read. waits: why the step cannot be
    taken now; empty: it can. is_running: a job works on it. is_failed, failure: the
    last run failed, and its message; both are kept until a run succeeds. wait_s: when
    to look again, None for an event.
    """

    name: str
    service: str
    release: model.Release | None
    revision: helm.Revision | None
    state: State
    step: Step
    digest: str | None = None
    hash: str | None = None
    waits: str = ""
    is_running: bool = False
    is_failed: bool = False
    failure: str = ""
    wait_s: float | None = None

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
    if release.name not in snapshot.revisions:
        return snapshot.work.digests.get(chart_key(release.chart))
    bundle = snapshot.bundles.get(f"openstack-{release.service}")
    recorded = (bundle or {}).get("spec") or {}
    urls = {one["name"]: one["url"] for one in recorded.get("repositories") or ()}
    for one in recorded.get("releases") or ():
        repository, _, chart = str(one.get("chart")).rpartition("/")
        kept = (urls.get(repository), chart, one.get("version"))
        is_same = one.get("name") == release.name and kept == chart_key(release.chart)
        if is_same and one.get("digest"):
            return str(one["digest"])
    return snapshot.work.digests.get(chart_key(release.chart))


def of_desired(
    snapshot: Snapshot, release: model.Release, now: datetime.datetime
) -> ReleaseState:
    """Return the state of a release that is desired."""
    revision = snapshot.revisions.get(release.name)
    is_running = release.name in snapshot.work.running
    base = ReleaseState(
        name=release.name,
        service=release.service,
        release=release,
        revision=revision,
        state=State.PENDING,
        step=Step.INSTALL if revision is None else Step.UPGRADE,
        is_running=is_running,
    )
    if revision is not None and revision.labels.get(OWNER_LABEL) != snapshot.uid:
        return dataclasses.replace(
            base, state=State.INVALID, step=Step.REFUSED, waits=_not_owned(revision)
        )
    digest = pinned(snapshot, release)
    attempt = snapshot.work.attempts.get(release.name)
    if digest is None:
        return _backing_off(base, attempt, _about_chart(release), now)
    hash = hashing.release_hash(release, digest, {})
    known = dataclasses.replace(base, digest=digest, hash=hash)
    if revision is not None and _is_current(revision, hash) and not is_running:
        return dataclasses.replace(known, state=State.IN_SYNC, step=Step.NOTHING)
    if attempt is not None and attempt.is_ok and attempt.about == hash:
        late_s = CATCH_UP_S - (now - attempt.ended_at).total_seconds()
        if late_s > 0:
            words = "the release's new revision to appear in the cache"
            return dataclasses.replace(known, waits=words, wait_s=late_s)
    late = _backing_off(known, attempt, hash, now)
    if late.waits:
        return late
    gates = [one for one in release.gates if not snapshot.workloads.ready.get(one)]
    words = ", ".join(f"{gate.kind} {gate.name}" for gate in gates)
    return dataclasses.replace(late, waits=words)


def of_surplus(
    snapshot: Snapshot, now: datetime.datetime, desired: frozenset[str]
) -> Iterator[ReleaseState]:
    """Yield the releases of ours that are not desired any more.

    Those that others of them require are deleted after these others.
    """
    surplus = {
        name: revision
        for name, revision in snapshot.revisions.items()
        if name not in desired and revision.labels.get(OWNER_LABEL) == snapshot.uid
    }
    requires = recorded_requires(snapshot)
    for name, revision in sorted(surplus.items()):
        users = [one for one in sorted(surplus) if name in requires.get(one, ())]
        base = ReleaseState(
            name=name,
            service=recorded_service(snapshot, name),
            release=None,
            revision=revision,
            state=State.PENDING,
            step=Step.DELETE,
            is_running=name in snapshot.work.running,
            waits=f"deletion of {', '.join(users)}" if users else "",
        )
        attempt = snapshot.work.attempts.get(name)
        yield base if users else _backing_off(base, attempt, "delete", now)


def recorded_requires(snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """Return the releases that each release requires, as the HelmBundles say."""
    return {
        str(one.get("name")): tuple(one.get("requires") or ())
        for bundle in snapshot.bundles.values()
        for one in (bundle.get("spec") or {}).get("releases") or ()
    }


def recorded_service(snapshot: Snapshot, release: str) -> str:
    """Return the service of a release, as the HelmBundles say; empty: none does."""
    for name, bundle in snapshot.bundles.items():
        for one in (bundle.get("spec") or {}).get("releases") or ():
            if one.get("name") == release:
                return name.removeprefix("openstack-")
    return ""


def _is_current(revision: helm.Revision, hash: str) -> bool:
    is_same = revision.labels.get(HASH_LABEL) == hash
    return revision.status is helm.Status.DEPLOYED and is_same


def _not_owned(revision: helm.Revision) -> str:
    return (
        f"release {revision.name}: want one with the label {OWNER_LABEL} of this"
        " OpenStackDeployment, or none; it belongs to another program"
    )


def _about_chart(release: model.Release) -> str:
    return "chart " + " ".join(chart_key(release.chart))


def about(state: ReleaseState) -> str:
    """Return what an attempt for a release is tried with."""
    if state.step is Step.DELETE:
        return "delete"
    if state.hash is None and state.release is not None:
        return _about_chart(state.release)
    return state.hash or ""


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
