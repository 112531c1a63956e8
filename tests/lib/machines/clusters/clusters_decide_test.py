"""Tables of decisions: each stage of an infrastructure cluster, each write."""

import dataclasses
import datetime
from typing import Any

import msgspec
import pytest

from lib.cloud import errors
from lib.cloud.fake import machines as fake_cloud
from lib.cloud.machines import Observed, Owned, Ref, Target
from lib.cloud.model import Seen, Unknown
from lib.kube import resources
from lib.machines.clusters import decide, model, translate
from lib.machines.kinds import (
    ClusterObject,
    ClusterSpec,
    ControlPlaneEndpoint,
    MachineObject,
    OwnedMeta,
    OwnerCluster,
    OwnerReference,
)
from lib.machines.model import MachineSettings

FINALIZER = "fakecluster.infrastructure.cluster.x-k8s.io"
KINDS = model.ClusterKinds(
    resources.Resource("infrastructure.cluster.x-k8s.io", "v1", "fakes", "Fake", True),
    FINALIZER,
    "fake-capi",
)
NOW = datetime.datetime(2026, 11, 25, tzinfo=datetime.UTC)
OWNER = OwnerCluster(OwnedMeta(name="one", namespace="x", uid="c-1"))
REFERENCE = OwnerReference("Cluster", "one", "c-1", "cluster.x-k8s.io/v1beta2")
ENDPOINT = {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}
Stage = model.ClusterStage


def cluster(
    *, deleted: bool = False, finalizer: bool = True, **fields: Any
) -> ClusterObject:
    about = OwnedMeta(
        name="infra",
        namespace="x",
        uid="i-1",
        generation=1,
        finalizers=(FINALIZER,) if finalizer else (),
        deletion_timestamp=NOW if deleted else None,
        owner_references=(REFERENCE,),
        labels=fields.pop("labels", {}),
        annotations=fields.pop("annotations", {}),
    )
    return ClusterObject(about, **fields)


PAUSED = {"cluster.x-k8s.io/paused": "false"}
MANAGED = {"cluster.x-k8s.io/managed-by": "terraform"}
PAUSED_OWNER = OwnerCluster(OWNER.metadata, ClusterSpec(paused=True))
STAGES: list[tuple[str, ClusterObject, OwnerCluster | None, dict[str, str], Stage]] = [
    ("usual", cluster(), OWNER, {}, Stage.DESIRED),
    ("no owner", cluster(), None, {}, Stage.IGNORED),
    ("paused object", cluster(annotations=PAUSED), OWNER, {}, Stage.PAUSED),
    ("paused Cluster", cluster(), PAUSED_OWNER, {}, Stage.PAUSED),
    ("managed by label", cluster(labels=MANAGED), OWNER, {}, Stage.IGNORED),
    ("managed by annotation", cluster(annotations=MANAGED), OWNER, {}, Stage.IGNORED),
    (
        "managed, deleted",
        cluster(annotations=MANAGED, deleted=True),
        OWNER,
        {},
        Stage.IGNORED,
    ),
    ("other filter", cluster(), OWNER, {"watch_filter": "a"}, Stage.IGNORED),
    (
        "own filter",
        cluster(labels={"cluster.x-k8s.io/watch-filter": "a"}),
        OWNER,
        {"watch_filter": "a"},
        Stage.DESIRED,
    ),
    ("other namespace", cluster(), OWNER, {"namespace": "y"}, Stage.IGNORED),
    ("deleted", cluster(deleted=True), OWNER, {}, Stage.DELETED),
    ("deleted, no Cluster", cluster(deleted=True), None, {}, Stage.DELETED),
    (
        "deleted, released",
        cluster(deleted=True, finalizer=False),
        OWNER,
        {},
        Stage.IGNORED,
    ),
    (
        "deleted, paused",
        cluster(deleted=True, annotations=PAUSED),
        OWNER,
        {},
        Stage.PAUSED,
    ),
]


def test_stages() -> None:
    for name, infrastructure, owner, settings, expected in STAGES:
        limits = MachineSettings("cluster-1", **settings)  # type: ignore[arg-type]
        stage = translate.stage(infrastructure, owner, FINALIZER, limits)
        print(f"{name:24} {stage.value}")
        assert stage is expected, name
    assert {row[-1] for row in STAGES} == set(Stage)


def actions(snapshot: model.Snapshot, zones: tuple[str, ...] = ()) -> list[Any]:
    cloud = fake_cloud.FakeMachines(lambda: 0.0)
    rules = decide.ClusterRules(KINDS, cloud.plan, zones)
    return list(decide.decide(snapshot, NOW, rules).actions)


def desired(**fields: Any) -> model.Snapshot:
    return model.Snapshot(
        cluster(**fields),
        stage=Stage.DESIRED,
        endpoint=ControlPlaneEndpoint("10.0.0.1", 6443),
    )


def test_the_order_of_the_first_writes() -> None:
    kinds = [type(action) for action in actions(desired(finalizer=False))]
    assert kinds == [
        model.AddClusterFinalizer,
        model.SetEndpoint,
        model.WriteClusterStatus,
    ]


def written(snapshot: model.Snapshot, zones: tuple[str, ...] = ()) -> Any:
    (write,) = (
        action
        for action in actions(snapshot, zones)
        if isinstance(action, model.WriteClusterStatus)
    )
    return write


def shown(snapshot: model.Snapshot, zones: tuple[str, ...] = ()) -> model.Snapshot:
    """Return a snapshot in which the status is as it is written."""
    document = dict(written(snapshot, zones).document)
    document["conditions"] = [
        {**row, "observedGeneration": 1} for row in document["conditions"]
    ]
    infrastructure = cluster(spec=ENDPOINT, status=document)
    return dataclasses.replace(snapshot, cluster=infrastructure)


def test_nothing_is_written_twice() -> None:
    settled = shown(desired(), ("a",))
    assert actions(settled, ("a",)) == []
    assert [type(action) for action in actions(settled, ("a", "b"))] == [
        model.WriteClusterStatus
    ]


def test_a_removed_zone_and_fields_of_the_reference_are_removed() -> None:
    assert written(shown(desired(), ("a",))).removed == ("failureDomains",)
    old = {"ready": True, "failureReason": "x", "failureMessage": "y"}
    write = written(desired(spec=ENDPOINT, status=old))
    assert write.removed == ("failureReason", "failureMessage")


def test_provisioned_never_reverts() -> None:
    """Also while it is paused or deleted."""
    old = {"ready": True}
    for stage, deleted in ((Stage.PAUSED, False), (Stage.DELETED, True)):
        snapshot = model.Snapshot(
            cluster(status=old, deleted=deleted), stage=stage, machines=("m",)
        )
        document = written(snapshot).document
        assert document["initialization"] == {"provisioned": True}
        assert document["ready"] is True
    new = model.Snapshot(cluster(), stage=Stage.PAUSED)
    assert "initialization" not in written(new).document


@pytest.mark.parametrize(
    ("own", "of_cluster", "expected"),
    [
        (
            ControlPlaneEndpoint("a", 1),
            ControlPlaneEndpoint(),
            ControlPlaneEndpoint("a", 1),
        ),
        (
            ControlPlaneEndpoint("a", 1),
            ControlPlaneEndpoint("b", 2),
            ControlPlaneEndpoint("b", 2),
        ),
        (
            ControlPlaneEndpoint("a", 1),
            ControlPlaneEndpoint("b", 0),
            ControlPlaneEndpoint("a", 1),
        ),
    ],
)
def test_the_endpoint(
    own: ControlPlaneEndpoint,
    of_cluster: ControlPlaneEndpoint,
    expected: ControlPlaneEndpoint,
) -> None:
    owner = OwnerCluster(OWNER.metadata, ClusterSpec(control_plane_endpoint=of_cluster))
    assert translate.endpoint(owner, own) == expected


def owned(name: str, uid: str = "", *, known: bool = True) -> Owned:
    ref = Ref("cluster-1", "x", name, uid) if known else None
    return Owned("VM", f"id-{name}", name, uid, ref=ref)


def test_only_what_no_machine_owns_is_left() -> None:
    living = MachineObject(OwnedMeta(name="a", namespace="x", uid="u-a"))
    resources_ = [
        owned("a", "u-a"),
        owned("a", ""),  # of the reference: without a UID
        owned("b", "u-b"),
        owned("b", "u-b"),
        owned("disk", "", known=False),
    ]
    left = translate.leftovers(resources_, [living])
    assert [each.names for each in left] == [("VM b", "VM b"), ("VM disk",)]
    assert left[0].target == Target(
        Ref("cluster-1", "x", "b", "u-b"), None, frozenset({"id-b"})
    )
    assert left[1].target is None


def test_machines_of_another_namespace_are_not_known() -> None:
    resources_ = [owned("b", "u-b")]
    assert translate.leftovers(resources_, [], "other") == ()
    assert len(translate.leftovers(resources_, [], "x")) == 1


FAULT = Unknown(errors.Unavailable("503", operation="list"))
TARGET = Target(Ref("cluster-1", "x", "b", "u-b"), None)
LEFT = model.Leftover(
    (owned("b", "u-b"),), TARGET, Seen(Observed(False, "", (None, False)))
)
KEPT = model.Leftover((owned("disk", known=False),))
DELETIONS: list[tuple[str, dict[str, Any], str, bool]] = [
    # What is left, reason of the condition or Event, whether the object is released.
    ("machines", {"machines": ("a", "b")}, "WaitingForMachines", False),
    ("another cluster", {"others": ("x/other",)}, "CleanupSkipped", True),
    ("not read", {}, "", False),
    ("unknown", {"left": FAULT}, "CleanupFailed", False),
    ("resources", {"left": (LEFT,)}, "CleaningUp", False),
    ("a failure", {"left": (LEFT,), "failures": {"m": "403"}}, "CleanupFailed", False),
    ("resources of others", {"left": (KEPT,)}, "CleanupIncomplete", True),
    ("nothing", {"left": ()}, "", True),
]


def test_deletions() -> None:
    for name, fields, reason, is_released in DELETIONS:
        infrastructure = cluster(deleted=True, spec=ENDPOINT)
        snapshot = model.Snapshot(infrastructure, stage=Stage.DELETED, **fields)
        done = actions(snapshot)
        released = model.RemoveClusterFinalizer() in done
        reasons = [
            str(row["reason"])
            for action in done
            if isinstance(action, model.WriteClusterStatus)
            for row in action.document["conditions"]  # type: ignore[attr-defined]
            if row["type"] == "Deleting"
        ]
        reasons += [
            str(action.reason)
            for action in done
            if isinstance(action, model.RecordClusterEvent)
        ]
        print(f"{name:24} {', '.join(reasons):40} released: {released}")
        assert released is is_released, name
        assert (reason in reasons) if reason else not reasons, name


def test_long_lists_are_cut() -> None:
    names = [f"vm-{number}" for number in range(30)]
    assert decide.listed(names).endswith("vm-19 and 10 more")
    assert decide.listed(names[:2]) == "vm-0, vm-1"


def test_finalizers_of_other_controllers_are_named_before_the_object_is_released() -> (
    None
):
    """Without ours nothing reports them any more: the condition stays."""
    foreign = "dvp.infrastructure.cluster.x-k8s.io/cluster"
    about = cluster(deleted=True).metadata
    about = msgspec.structs.replace(about, finalizers=(FINALIZER, foreign))
    infrastructure = ClusterObject(about, ENDPOINT)
    known = model.Snapshot(infrastructure, stage=Stage.DELETED, left=())
    *others, last = actions(known)
    assert last == model.RemoveClusterFinalizer()
    (write,) = others
    assert isinstance(write, model.WriteClusterStatus)
    assert foreign in str(write.document)
    assert FINALIZER not in str(write.document)
