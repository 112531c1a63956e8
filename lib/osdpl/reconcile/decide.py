"""What a reconciliation does about what it observed. Pure.

Rules: helm is never run for a release whose hash and status are as desired; nothing is
written that already holds; what cannot be served does not stop the others.
"""

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lib.osdpl.api import annotations, model
from lib.osdpl.api.model import Document
from lib.osdpl.reconcile import applied, bundles, conditions, states, upgrade
from lib.osdpl.reconcile.actions import (
    Action,
    AddFinalizer,
    ApplyBundle,
    ApplyBundleStatus,
    ApplyConditions,
    ApplyStatus,
    Cancel,
    EnsureCredentials,
    ReadChart,
    Relabel,
    RemoveFinalizer,
    Uninstall,
    Upgrade,
)
from lib.osdpl.reconcile.conditions import Condition, ServiceState
from lib.osdpl.reconcile.snapshot import (
    Blocker,
    Desired,
    Refused,
    Snapshot,
    reference_finalizers,
)
from lib.osdpl.reconcile.states import ReleaseState, State, Step
from lib.osdpl.rules import openstack, table
from lib.osdpl.values import graph, required_secrets
from lib.process.config import FieldProblem
from lib.reconcile.outcome import Outcome

FINALIZER = f"{model.GROUP}/osdpl-controller"
HELD_S = 0.5
"""Between two checks for a write of ours that is not in the caches yet."""
CANCEL_S = 10.0
"""Between two requests to end the jobs of releases that are deleted."""
BLOCKED_S = 30.0
"""Between two checks of a problem that only an administrator can repair."""


def decide(snapshot: Snapshot, now: datetime.datetime) -> Outcome[Action]:
    """Return the actions for one OpenStackDeployment."""
    if snapshot.held or _is_served_by_another(snapshot):
        return Outcome((), HELD_S if snapshot.held else None)
    if snapshot.key != snapshot.oldest:
        words = (
            f"only one OpenStackDeployment per cluster is supported:"
            f" {snapshot.oldest} is older and is served"
        )
        reported = conditions.refused(Refused.SECOND_DEPLOYMENT, words)
        return Outcome(tuple(_report(snapshot, reported, now)))
    if annotations.is_paused(snapshot.document):
        # Running helm processes continue: an upgrade must not be left half done.
        reported = conditions.paused(_refusal(snapshot))
        return Outcome(tuple(_report(snapshot, reported, now)))
    if snapshot.is_deleted:
        return _deletion(snapshot, now)
    if snapshot.blockers:
        return _blocked(snapshot, snapshot.blockers, now)
    return _serve(snapshot, snapshot.desired, now)


def _is_served_by_another(snapshot: Snapshot) -> bool:
    """Report whether a controller of another namespace has written the conditions."""
    reasons = [blocker.reason for blocker in snapshot.blockers]
    if Refused.NAMESPACE_NOT_SERVED not in reasons:
        return False
    rows = (snapshot.document.get("status") or {}).get("conditions") or ()
    accepted = [row for row in rows if row["type"] == conditions.ACCEPTED]
    return any(
        row.get("reason") != Refused.NAMESPACE_NOT_SERVED.value for row in accepted
    )


def _serve(
    snapshot: Snapshot, desired: Desired, now: datetime.datetime
) -> Outcome[Action]:
    """Apply the desired state, as far as it is known."""
    reported = _refusal(snapshot)
    if reported:
        pass
    elif desired.deployment is not None and desired.deployment.is_draft:
        reported = conditions.draft()
    if reported:
        return Outcome(tuple(_report(snapshot, reported, now)))
    if FINALIZER not in (snapshot.document["metadata"].get("finalizers") or ()):
        return Outcome((AddFinalizer(),), HELD_S)
    lost = tuple(_lost_credentials(snapshot, desired))
    if lost:
        refused = conditions.refused(Refused.SECRET_MISSING, "; ".join(lost))
        return Outcome(tuple(_report(snapshot, refused, now)))
    if desired.missing:
        return Outcome(tuple(map(EnsureCredentials, desired.missing)), HELD_S)
    if desired.rendered is None:
        return Outcome((), BLOCKED_S)
    return _apply(snapshot, desired.rendered, now)


def _refusal(snapshot: Snapshot) -> tuple[Condition, ...]:
    """Return the conditions of a spec that is refused; empty: it is valid."""
    desired = snapshot.desired
    problems = desired.problems or violations(
        snapshot.document, desired, snapshot.status, snapshot.revisions
    )
    if desired.reason is None and not problems:
        return ()
    words = "; ".join(map(str, problems))
    return conditions.refused(desired.reason or Refused.INVALID_SPEC, words)


def _lost_credentials(snapshot: Snapshot, desired: Desired) -> Iterator[str]:
    """Yield a text per deleted Secret that holds passwords of installed releases.

    New ones would not be those of the database, the message bus and Identity.
    """
    adopted = annotations.names(snapshot.document, annotations.ADOPT)
    installed = {*states.owned(snapshot), *(adopted & snapshot.revisions.keys())}
    for name in desired.absent:
        services = required_secrets.users_of(name)
        users = [
            release
            for release in sorted(installed)
            if graph.SERVICE_OF.get(release) in services
        ]
        if users:
            yield (
                f"Secret {name}: not found, and {', '.join(users)} with its passwords"
                " installed: restore it; if it is created without data, new passwords"
                " are generated"
            )


def violations(
    document: Document,
    desired: Desired,
    status: Document | None,
    revisions: applied.Revisions,
) -> tuple[FieldProblem, ...]:
    """Return the problems of a spec beyond its schema; see lib/osdpl/rules.

    status: the OpenStackDeploymentStatus.
    """
    if not desired.spec:
        return ()
    written = desired.deployment.spec if desired.deployment is not None else {}
    change = applied.change_of(document, status, revisions)
    change = dataclasses.replace(change, spec=desired.spec, written=written)
    problems = table.problems(change)
    if problems or desired.rendered is None:
        return problems
    return tuple(applied.endless(change, desired.rendered, status, revisions))


def release_states(
    snapshot: Snapshot, rendered: model.Rendered, now: datetime.datetime
) -> tuple[ReleaseState, ...]:
    """Return the state of each release that is desired, or installed and owned.

    Releases of a service that cannot be rendered are left as they are. Those that
    another OpenStack version reaches later wait.
    """
    desired = {
        release.name: release
        for bundle in rendered.bundles
        for release in bundle.releases
    }
    refused = frozenset(refusal.service for refusal in rendered.refusals)
    all_states = (
        *(states.of_desired(snapshot, release, now) for release in desired.values()),
        *states.of_surplus(snapshot, now, frozenset(desired), refused),
    )
    return upgrade.in_order(snapshot, all_states, now)


def _apply(
    snapshot: Snapshot, rendered: model.Rendered, now: datetime.datetime
) -> Outcome[Action]:
    all_states = release_states(snapshot, rendered, now)
    by_name = {state.name: state for state in all_states}
    step = upgrade.step(snapshot, all_states, now)
    services = service_states(rendered, all_states, step)
    statuses, later_s = _bundle_statuses(snapshot, rendered, by_name)
    actions: list[Action] = [
        *_bundle_actions(snapshot, rendered, by_name),
        *statuses,
        *_runs(snapshot, all_states),
        *_relabels(snapshot, all_states, now),
        *_bundle_deletions(snapshot, rendered),
        *_status_actions(snapshot, services, _versions(snapshot), step, now),
        *_report(snapshot, _conditions(snapshot, services, all_states, step), now),
    ]
    waits = [state.wait_s for state in all_states if state.wait_s is not None]
    return Outcome(tuple(actions), min([*waits, *later_s], default=None))


def _versions(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the OpenStack version of each installed service: of its oldest release."""
    by_service: dict[str, set[str]] = {}
    for name, revision in states.owned(snapshot).items():
        service = states.service_of(snapshot, name)
        version = revision.labels.get(upgrade.VERSION_LABEL, "")
        by_service.setdefault(service, set()).add(version)
    return {
        service: applied.oldest(versions) for service, versions in by_service.items()
    }


def _relabels(
    snapshot: Snapshot, all_states: Sequence[ReleaseState], now: datetime.datetime
) -> Iterator[Action]:
    """Yield labels of releases that need no run of helm.

    What is adopted and is as desired already gets its owner: without the label it
    would be no release of the object once the annotation is removed.
    """
    upgraded = {state.name for state in upgrade.relabelled(snapshot, all_states, now)}
    for state in all_states:
        revision, release = state.revision, state.release
        if revision is None or release is None or state.is_running:
            continue
        version = revision.labels.get(upgrade.VERSION_LABEL, release.openstack_version)
        is_foreign = revision.labels.get(states.OWNER_LABEL) != snapshot.uid
        if state.name in upgraded:
            yield Relabel(revision, release.openstack_version, snapshot.uid)
        elif is_foreign and state.state is states.State.IN_SYNC:
            yield Relabel(revision, version, snapshot.uid)


def _conditions(
    snapshot: Snapshot,
    services: Mapping[str, ServiceState],
    all_states: Sequence[ReleaseState],
    step: upgrade.UpgradeStep | None,
) -> tuple[Condition, ...]:
    """Return the conditions; a failure is reported once all charts have been tried.

    A source that does not answer fails for each chart, one after the other: that is one
    fact, and one Event.
    """
    rendered = snapshot.desired.rendered
    texts = ignored(snapshot, rendered)
    defaults = rendered.defaults if rendered is not None else ()
    reported = conditions.of_services(services, texts, defaults)
    counts = [
        snapshot.workloads.count(state.name) for state in all_states if state.release
    ]
    ready, total = (sum(numbers) for numbers in zip((0, 0), *counts, strict=True))
    reported = conditions.with_readiness(reported, ready, total)
    if step is not None:
        reported = conditions.upgrading(reported, step)
    # A release without a digest has failed before its chart was read.
    is_of_charts = all(state.digest is None for state in all_states if state.is_failed)
    is_reading = any(
        state.digest is None
        and not state.is_failed
        and (state.is_running or state.can_run)
        for state in all_states
    )
    # Without this, twelve charts of one dead repository would be twelve Events.
    if is_of_charts and is_reading and not conditions.has_failed(snapshot):
        return conditions.without_failure(reported)
    return reported


def ignored(snapshot: Snapshot, rendered: model.Rendered | None) -> tuple[str, ...]:
    """Return a text per field, annotation and setting that has no effect."""
    if rendered is None:
        return ()
    releases = [
        release.name for bundle in rendered.bundles for release in bundle.releases
    ]
    known = tuple(graph.RELEASES)
    problems = annotations.problems(snapshot.document, releases, known)
    return (*rendered.ignored, *problems, *snapshot.settings.ignored)


def service_states(
    rendered: model.Rendered,
    all_states: Sequence[ReleaseState],
    step: upgrade.UpgradeStep | None,
) -> Mapping[str, ServiceState]:
    """Return the state of each service, also of those that are deleted.

    step: of an upgrade; its service is not applied before its workloads are Ready.
    """
    refused = {
        refusal.service: conditions.of_refusal(refusal) for refusal in rendered.refusals
    }
    services = {**_by_service(all_states), **refused}
    if step is not None and services[step.service].phase is conditions.Phase.APPLIED:
        phase = conditions.Phase.FAILED if step.is_late else conditions.Phase.WAITING
        services[step.service] = ServiceState(phase, step.waits)
    return services


def _by_service(all_states: Sequence[ReleaseState]) -> Mapping[str, ServiceState]:
    by_service: dict[str, list[ReleaseState]] = {}
    for state in all_states:
        by_service.setdefault(state.service or state.name, []).append(state)
    return {
        name: conditions.of_service(releases) for name, releases in by_service.items()
    }


def _runs(snapshot: Snapshot, all_states: Sequence[ReleaseState]) -> Iterator[Action]:
    """Start steps while slots are free.

    Retries come last: a source that does not answer must not hold all slots. The
    longest steps come first: the deployment ends with them.
    """
    free = snapshot.work.free
    in_order = sorted(
        all_states, key=lambda state: (state.is_failed, graph.rank(state.name))
    )
    for next_state in in_order:
        if free <= 0:
            return
        if not next_state.can_run:
            continue
        free -= 1
        if next_state.step is Step.DELETE:
            has_database = snapshot.workloads.ready.get(graph.DATABASE, False)
            yield Uninstall(next_state.name, hooks=has_database)
        elif next_state.release is None:
            continue
        elif next_state.digest is None or next_state.hash is None:
            yield ReadChart(next_state.name, next_state.release.chart)
        else:
            yield Upgrade(
                release=next_state.release,
                owner=snapshot.uid,
                digest=next_state.digest,
                hash=next_state.hash,
                interrupted=next_state.revision if next_state.repairs else None,
                missing=next_state.missing,
                is_damaged=next_state.is_damaged,
            )


def _bundle_actions(
    snapshot: Snapshot,
    rendered: model.Rendered,
    by_name: Mapping[str, ReleaseState],
) -> Iterator[Action]:
    """Record the releases, the digest of a chart before the first run with it."""
    for bundle in rendered.bundles:
        observed = snapshot.bundles.get(bundle.name)
        is_known = any(_is_known(by_name[release.name]) for release in bundle.releases)
        if observed is None and not is_known:
            continue
        document = bundles.desired(snapshot, bundle, by_name)
        if observed is None or not _holds(observed, document):
            yield ApplyBundle(bundle.name, document)
    yield from _lost_bundles(snapshot, rendered)


def _lost_bundles(snapshot: Snapshot, rendered: model.Rendered) -> Iterator[Action]:
    """Record the installed releases of services that cannot be rendered again."""
    for service in sorted(refusal.service for refusal in rendered.refusals):
        name = f"openstack-{service}"
        document = bundles.of_installed(snapshot, service)
        if document is not None and name not in snapshot.bundles:
            yield ApplyBundle(name, document)


def _is_known(state: ReleaseState) -> bool:
    """Report whether the chart of a release has been read, or will not be."""
    return state.digest is not None or state.is_failed or state.state is State.INVALID


def _bundle_statuses(
    snapshot: Snapshot,
    rendered: model.Rendered,
    by_name: Mapping[str, ReleaseState],
) -> tuple[list[Action], list[float]]:
    """Return the statuses to write now, and in how many seconds others are due."""
    actions: list[Action] = []
    waits: list[float] = []
    for bundle in rendered.bundles:
        status = bundles.status(snapshot, bundle, by_name)
        due_s = bundles.status_due_s(snapshot, bundle.name, status)
        if due_s == 0:
            actions.append(ApplyBundleStatus(bundle.name, status))
        elif due_s is not None:
            waits.append(due_s)
    return actions, waits


def _bundle_deletions(snapshot: Snapshot, rendered: model.Rendered) -> Iterator[Action]:
    services = [bundle.service for bundle in rendered.bundles]
    services += [refusal.service for refusal in rendered.refusals]
    left = frozenset(snapshot.revisions) | snapshot.work.running
    yield from bundles.surplus(snapshot, services, left)


def _holds(observed: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Report whether an object has the spec and the ownership labels already."""
    labels = observed["metadata"].get("labels") or {}
    own_labels: Mapping[str, str] = document["metadata"]["labels"]
    has_labels = all(labels.get(key) == value for key, value in own_labels.items())
    return has_labels and observed.get("spec") == document["spec"]


def _status_actions(
    snapshot: Snapshot,
    services: Mapping[str, ServiceState],
    versions: Mapping[str, str],
    step: upgrade.UpgradeStep | None,
    now: datetime.datetime,
) -> Iterator[Action]:
    progress = conditions.Progress(versions, step)
    document = conditions.whole_status(snapshot, services, progress, now)
    before = (snapshot.status or {}).get("status") or {}
    desired = document["status"]
    own = before.get("osdpl") or {}
    is_same = before.get("services") == desired["services"] and all(
        own.get(key) == value for key, value in desired["osdpl"].items()
    )
    is_stale = any(
        key in own and key not in desired["osdpl"] for key in ("cause", "upgrade")
    )
    if not is_same or is_stale:
        yield ApplyStatus(document)


def _report(
    snapshot: Snapshot, reported: Sequence[Condition], now: datetime.datetime
) -> Iterator[Action]:
    status = conditions.status(snapshot, reported, now)
    before = (snapshot.document.get("status") or {}).get("conditions") or []
    if before != status["conditions"]:
        yield ApplyConditions(status, conditions.events(snapshot, reported))


def _blocked(
    snapshot: Snapshot, blockers: Sequence[Blocker], now: datetime.datetime
) -> Outcome[Action]:
    words = "; ".join(blocker.message for blocker in blockers)
    reported = conditions.refused(blockers[0].reason, words)
    return Outcome(tuple(_report(snapshot, reported, now)), BLOCKED_S)


def _finalizers_of_others(
    snapshot: Snapshot, now: datetime.datetime
) -> Outcome[Action]:
    """Report what keeps an object whose releases are deleted.

    The reference's finalizers are removed when it does not run any more.
    """
    reference = reference_finalizers(snapshot.document)
    if reference and snapshot.is_reference_absent:
        return Outcome((RemoveFinalizer(reference),))
    others = snapshot.document["metadata"].get("finalizers") or ()
    if not others:
        return Outcome()
    reported = conditions.kept_by(tuple(others))
    wait_s = BLOCKED_S if reference else None
    return Outcome(tuple(_report(snapshot, reported, now)), wait_s)


def deletion_problems(snapshot: Snapshot) -> tuple[FieldProblem, ...]:
    """Return why an OpenStackDeployment must not be deleted now."""
    change = applied.deletion_of(snapshot.document, snapshot.status, snapshot.revisions)
    is_by_definition = snapshot.is_definition_deleted
    change = dataclasses.replace(change, is_by_definition=is_by_definition)
    return tuple(openstack.deletion(change))


def _deletion(snapshot: Snapshot, now: datetime.datetime) -> Outcome[Action]:
    """Delete all owned releases, without hooks: the database is deleted, too.

    Running installations are canceled first. No chart is read, so none has to exist.
    """
    if FINALIZER not in (snapshot.document["metadata"].get("finalizers") or ()):
        return _finalizers_of_others(snapshot, now)
    if snapshot.unlisted:
        # A release that is not listed yet would run on, owned by no object.
        return _blocked(snapshot, snapshot.unlisted, now)
    left = tuple(states.of_deletion(snapshot, now))
    running = snapshot.work.running - snapshot.work.reading
    is_empty = not left and not running
    is_free = is_empty and not snapshot.is_definition_deleted
    # Once nothing is installed any more, no rule has anything to protect.
    problems = () if is_free else deletion_problems(snapshot)
    if problems:
        words = "; ".join(map(str, problems))
        refused = conditions.refused(Refused.DELETION_REFUSED, words)
        return Outcome(tuple(_report(snapshot, refused, now)))
    if is_empty:
        return _deleted(snapshot, now)
    installing = running - snapshot.work.deleting
    if installing:
        # Its hooks would wait for deleted objects, until the time-out of helm.
        return Outcome(tuple(map(Cancel, sorted(installing))), CANCEL_S)
    runs: list[Action] = []
    for state in left:
        if state.can_run and len(runs) < snapshot.work.free:
            runs.append(Uninstall(state.name, hooks=False))
    services = _by_service(left)
    reported = conditions.deleting(conditions.of_services(services))
    report = _report(snapshot, reported, now)
    waits = [state.wait_s for state in left if state.wait_s is not None]
    return Outcome((*runs, *report), min(waits, default=None))


def _deleted(snapshot: Snapshot, now: datetime.datetime) -> Outcome[Action]:
    """Release an object without releases, unless workloads of theirs are left."""
    left = tuple(states.unrecorded(snapshot))
    forced = annotations.names(snapshot.document, annotations.FORCE)
    if left and annotations.FORCE_DELETION not in forced:
        words = (
            f"{'; '.join(left)}: helm has no record any more, the Secret of the release"
            " was deleted: restore it, or delete the workloads; the annotation"
            f" {annotations.FORCE}: {annotations.FORCE_DELETION} leaves them"
        )
        reported = conditions.deletion_held(words)
        return Outcome(tuple(_report(snapshot, reported, now)), HELD_S)
    recorded = tuple(bundles.surplus(snapshot, (), frozenset()))
    return Outcome(recorded, HELD_S) if recorded else Outcome((RemoveFinalizer(),))
