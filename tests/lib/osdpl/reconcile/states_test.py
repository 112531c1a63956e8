"""Every state of a release and what is done about it, as a table."""

import dataclasses
import datetime
import pathlib

import pytest

from lib.helm import model as helm
from lib.osdpl.api import hashing, model
from lib.osdpl.reconcile import actions, decide, states
from lib.osdpl.reconcile.snapshot import Attempt, Snapshot, Work, Workloads
from lib.osdpl.reconcile.states import HASH_LABEL, OWNER_LABEL, State, Step

NOW = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(seconds=30)
DIGEST = f"sha256:{'a' * 64}"
GATE = model.Workload(kind=model.Kind.STATEFUL_SET, name="mariadb-server")
RELEASE = model.Release(
    name="openstack-keystone",
    chart=model.ChartRef(
        repository=model.Source(name="r", url="http://r"),
        name="keystone",
        version="1.0.0",
        digest=DIGEST,
    ),
    namespace="openstack",
    service="identity",
    values={"a": 1},
    gates=(GATE,),
)
HASH = hashing.release_hash(RELEASE, DIGEST, {})
OPEN = Workloads(ready={GATE: True})


def revision(status: str, hash: str = HASH, owner: str = "uid") -> helm.Revision:
    labels = {HASH_LABEL: hash, OWNER_LABEL: owner}
    return helm.Revision(
        RELEASE.name, "openstack", 1, helm.Status(status), labels, "s", "u", "1"
    )


def snapshot(
    helm_revision: helm.Revision | None = None,
    *,
    workloads: Workloads = OPEN,
    work: Work | None = None,
) -> Snapshot:
    return Snapshot(
        key="openstack/cloud",
        document={"metadata": {"uid": "uid"}},
        oldest="openstack/cloud",
        revisions={} if helm_revision is None else {RELEASE.name: helm_revision},
        workloads=workloads,
        work=work or Work(free=4),
    )


def failed(about: str = HASH, is_final: bool = False) -> Work:
    attempt = Attempt(about, NOW, "no", is_final, 1, LATER)
    return Work(free=4, attempts={RELEASE.name: attempt})


SUCCEEDED = Work(free=4, attempts={RELEASE.name: Attempt(HASH, NOW)})
RUNNING = Work(frozenset((RELEASE.name,)), 3)

# Snapshot, state, step, whether it can run now.
TABLE = [
    ("none", snapshot(), State.PENDING, Step.INSTALL, True),
    ("gate", snapshot(workloads=Workloads()), State.PENDING, Step.INSTALL, False),
    ("same", snapshot(revision("deployed")), State.IN_SYNC, Step.NOTHING, False),
    (
        "same, gate closed",
        snapshot(revision("deployed"), workloads=Workloads()),
        State.IN_SYNC,
        Step.NOTHING,
        False,
    ),
    ("other", snapshot(revision("deployed", "x")), State.PENDING, Step.UPGRADE, True),
    ("failed", snapshot(revision("failed")), State.PENDING, Step.UPGRADE, True),
    *(
        (status, snapshot(revision(status)), State.PENDING, Step.UPGRADE, True)
        for status in (
            "pending-install",
            "pending-upgrade",
            "pending-rollback",
            "uninstalling",
            "uninstalled",
            "superseded",
        )
    ),
    ("unknown", snapshot(revision("unknown")), State.INVALID, Step.REFUSED, False),
    (
        "of others",
        snapshot(revision("deployed", owner="x")),
        State.INVALID,
        Step.REFUSED,
        False,
    ),
    ("running", snapshot(work=RUNNING), State.PENDING, Step.INSTALL, False),
    (
        "running on it",
        snapshot(revision("pending-upgrade"), work=RUNNING),
        State.PENDING,
        Step.UPGRADE,
        False,
    ),
    ("backoff", snapshot(work=failed()), State.PENDING, Step.INSTALL, False),
    ("final", snapshot(work=failed(is_final=True)), State.INVALID, Step.INSTALL, False),
    ("new input", snapshot(work=failed("x")), State.PENDING, Step.INSTALL, True),
    ("not seen yet", snapshot(work=SUCCEEDED), State.PENDING, Step.INSTALL, False),
]


@pytest.mark.parametrize(
    ("observed", "state", "step", "can_run"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_a_state(observed: Snapshot, state: State, step: Step, can_run: bool) -> None:
    release = states.of_desired(observed, RELEASE, NOW)
    assert (release.state, release.step, release.can_run) == (state, step, can_run)


def test_every_status_of_helm_has_a_row() -> None:
    statuses = {
        item.status
        for _, arguments, *_ in TABLE
        for item in arguments.revisions.values()
    }
    assert statuses == set(helm.Status)


def test_after_the_backoff_it_runs() -> None:
    observed = states.of_desired(snapshot(work=failed()), RELEASE, LATER)
    assert observed.can_run
    assert observed.is_failed


def test_a_success_that_never_shows_is_repeated() -> None:
    late = NOW + datetime.timedelta(seconds=states.CATCH_UP_S)
    assert states.of_desired(snapshot(work=SUCCEEDED), RELEASE, late).can_run


def test_another_digest_is_another_hash() -> None:
    chart = dataclasses.replace(RELEASE.chart, digest=f"sha256:{'b' * 64}")
    changed = dataclasses.replace(RELEASE, chart=chart)
    observed = states.of_desired(snapshot(revision("deployed")), changed, NOW)
    assert observed.step is Step.UPGRADE


def test_the_recorded_digest_is_used() -> None:
    chart = dataclasses.replace(RELEASE.chart, digest=None)
    release = dataclasses.replace(RELEASE, chart=chart)
    recorded = {
        "name": RELEASE.name,
        "chart": "r/keystone",
        "version": "1.0.0",
        "digest": DIGEST,
    }
    repositories = [{"name": "r", "url": "http://r"}]
    bundle = {"spec": {"repositories": repositories, "releases": [recorded]}}
    bundles = {"openstack-identity": bundle}
    arguments = dataclasses.replace(snapshot(revision("deployed")), bundles=bundles)
    assert states.pinned(arguments, release) == DIGEST
    never_installed = dataclasses.replace(snapshot(), bundles=bundles)
    assert states.pinned(never_installed, release) is None
    moved = [{"name": "r", "url": "http://elsewhere"}]
    bundle = {"spec": {"repositories": moved, "releases": [recorded]}}
    bundles = {"openstack-identity": bundle}
    arguments = dataclasses.replace(snapshot(revision("deployed")), bundles=bundles)
    assert states.pinned(arguments, release) is None


def test_of_what_is_not_desired_the_users_are_deleted_first() -> None:
    names = ("openstack-mariadb", "openstack-keystone")
    observed = {
        name: dataclasses.replace(revision("deployed"), name=name) for name in names
    }
    arguments = dataclasses.replace(snapshot(), revisions=observed)
    rows = {item.name: item for item in states.of_surplus(arguments, NOW, frozenset())}
    assert rows["openstack-keystone"].can_run
    assert not rows["openstack-mariadb"].can_run
    assert "openstack-keystone" in rows["openstack-mariadb"].waits


def test_releases_of_others_are_never_surplus() -> None:
    arguments = snapshot(revision("deployed", owner="other"))
    assert list(states.of_surplus(arguments, NOW, frozenset())) == []


def test_values_are_not_printed() -> None:
    secret = dataclasses.replace(RELEASE, values={"password": "pa55-word"})
    assert "pa55" not in repr(states.of_desired(snapshot(), secret, NOW))
    upgrade = helm.Upgrade(
        "r", "n", pathlib.Path("c"), {"password": "pa55-word"}, {}, 1, 1
    )
    assert "pa55" not in repr(upgrade)


def test_what_is_being_installed_is_canceled_before_it_is_deleted() -> None:
    """Its hooks would wait for what is deleted until helm's time-out."""
    metadata = {
        "uid": "uid",
        "finalizers": [decide.FINALIZER],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    installing = dataclasses.replace(
        snapshot(revision("pending-install"), work=RUNNING),
        document={"metadata": metadata},
    )
    assert runs(installing) == (actions.Cancel(RELEASE.name),)
    deleting = Work(RUNNING.running, 3, deleting=RUNNING.running)
    assert runs(dataclasses.replace(installing, work=deleting)) == ()
    idle = dataclasses.replace(installing, work=Work(free=4))
    assert runs(idle) == (actions.Uninstall(RELEASE.name, hooks=False),)


def runs(observed: Snapshot) -> tuple[actions.Action, ...]:
    """Return what is done to releases."""
    return tuple(
        action
        for action in decide.decide(observed, NOW).actions
        if not isinstance(action, actions.ApplyConditions)
    )


def pending(**changes: object) -> helm.Revision:
    """Return a revision that a helm process has just written."""
    observed = revision("pending-upgrade", "another-hash")
    return dataclasses.replace(observed, modified_at=NOW, **changes)  # type: ignore[arg-type]


PATIENT = Work(free=4, limit_s=660)


def test_another_helm_process_is_awaited() -> None:
    arguments = snapshot(pending(), work=PATIENT)
    observed = states.of_desired(arguments, RELEASE, NOW)
    assert (observed.step, observed.can_run) == (Step.UPGRADE, False)
    assert "another helm process" in observed.waits
    assert observed.wait_s == PATIENT.limit_s
    late = NOW + datetime.timedelta(seconds=PATIENT.limit_s)
    repaired = states.of_desired(arguments, RELEASE, late)
    assert (repaired.can_run, repaired.repairs) == (True, True)
    (absent,) = states.of_surplus(arguments, NOW, frozenset())
    assert (absent.step, absent.can_run) == (Step.DELETE, False)
    (absent,) = states.of_surplus(arguments, late, frozenset())
    assert absent.can_run


def test_what_was_pending_at_the_start_is_repaired_immediately() -> None:
    arguments = dataclasses.replace(
        snapshot(pending(), work=PATIENT), earlier=frozenset(("u",))
    )
    observed = states.of_desired(arguments, RELEASE, NOW)
    assert (observed.can_run, observed.repairs) == (True, True)


def test_what_a_run_of_ours_left_is_repaired_immediately() -> None:
    work = dataclasses.replace(PATIENT, unfinished={RELEASE.name: "another-hash"})
    observed = states.of_desired(snapshot(pending(), work=work), RELEASE, NOW)
    assert (observed.can_run, observed.repairs) == (True, True)
    work = dataclasses.replace(PATIENT, unfinished={RELEASE.name: "a third one"})
    observed = states.of_desired(snapshot(pending(), work=work), RELEASE, NOW)
    assert not observed.can_run


def test_only_a_pending_revision_is_deleted() -> None:
    for status in helm.Status:
        arguments = snapshot(revision(status.value, "x"))
        observed = states.of_desired(arguments, RELEASE, NOW)
        assert observed.repairs == status.is_pending


def test_a_release_of_others_is_adopted_by_an_annotation() -> None:
    others = helm.Revision(
        RELEASE.name, "openstack", 1, helm.Status.DEPLOYED, {}, "s", "u", "1"
    )
    refused = states.of_desired(snapshot(others), RELEASE, NOW)
    assert (refused.state, refused.step) == (State.INVALID, Step.REFUSED)
    assert "mooring.io/adopt: openstack-keystone" in refused.waits
    annotated = dataclasses.replace(
        snapshot(others),
        document={
            "metadata": {
                "uid": "uid",
                "annotations": {"mooring.io/adopt": "x, openstack-keystone"},
            }
        },
    )
    adopted = states.of_desired(annotated, RELEASE, NOW)
    assert (adopted.step, adopted.can_run, adopted.repairs) == (
        Step.UPGRADE,
        True,
        False,
    )
    assert list(states.of_surplus(annotated, NOW, frozenset())) == []


def test_an_unreadable_release_is_refused_and_named() -> None:
    arguments = dataclasses.replace(
        snapshot(revision("deployed")),
        unreadable={RELEASE.name: "Secret x: invalid value: must be y"},
    )
    observed = states.of_desired(arguments, RELEASE, NOW)
    assert (observed.state, observed.step, observed.can_run) == (
        State.INVALID,
        Step.REFUSED,
        False,
    )
    assert "Secret x: invalid value: must be y" in observed.waits
    (absent,) = states.of_surplus(arguments, NOW, frozenset())
    assert (absent.step, absent.can_run) == (Step.REFUSED, False)


def test_a_service_that_cannot_be_rendered_is_kept() -> None:
    arguments = snapshot(revision("deployed"))
    kept = frozenset(("identity",))
    assert list(states.of_surplus(arguments, NOW, frozenset(), kept)) == []
    assert len(list(states.of_surplus(arguments, NOW, frozenset()))) == 1
