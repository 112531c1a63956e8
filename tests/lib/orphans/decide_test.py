"""What is unknown, what is young, and which IDs are a cluster's own, by tables."""

import dataclasses
import datetime

import pytest

from lib.cloud.layouts import ProjectObject
from lib.cloud.load_balancers import Cluster, Owned, Role
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Attachment, Volume, VolumeId, VolumePhase
from lib.kube import objects
from lib.kube import persistent_volumes as kube_volumes
from lib.orphans import cluster_identity, decide, model
from lib.orphans.model import CloudLists, ClusterLists, FailedList, FindingState, Other

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
OLD = NOW - datetime.timedelta(hours=1)
YOUNG = NOW - datetime.timedelta(minutes=9)
OWN = "0b1d4a6e-0000-4000-8000-00000000000a"
SETTINGS = model.Settings(Cluster(OWN, "kubernetes"), OWN, own_id=OWN)
FAILED = FailedList("list things: HTTP 503")


def owned(
    role: Role = Role.LOAD_BALANCER,
    uid: str = "lost",
    created: datetime.datetime | None = OLD,
    **fields: object,
) -> Owned:
    usual = Owned(role, f"id-{role}", "name", uid, role, created)
    return dataclasses.replace(usual, **fields)  # type: ignore[arg-type]  # any field


def service(uid: str, type_: str = "LoadBalancer", **annotations: str) -> model.Service:
    about = objects.ObjectMeta(name="web", uid=uid, annotations=annotations)
    return model.Service(about, model.ServiceSpec(type_))


def disk(name: str = "pvc-1", **fields: object) -> Volume:
    usual = Volume(
        VolumeId("volume-1"),
        name,
        2**30,
        VolumePhase.AVAILABLE,
        cluster=OWN,
        created_at=OLD,
    )
    return dataclasses.replace(usual, **fields)  # type: ignore[arg-type]  # any field


def persistent(handle: str) -> kube_volumes.PersistentVolume:
    spec = kube_volumes.PersistentVolumeSpec(kube_volumes.CsiSource(handle))
    return kube_volumes.PersistentVolume(objects.ObjectMeta(name="other"), spec)


LIVING = ClusterLists(services=(service("alive"),), persistent=(persistent("x"),))
BALANCER = CloudLists({Role.LOAD_BALANCER: (owned(),)})
DISK = CloudLists({}, (disk(),))
HOLDER = (Attachment(InstanceId("server-1")),)

ROWS: dict[str, tuple[CloudLists, ClusterLists, list[str], list[str]]] = {
    "an orphan": (BALANCER, LIVING, ["load balancer"], []),
    "of a Service": (
        BALANCER,
        ClusterLists(services=(service("lost"),)),
        [],
        [],
    ),
    "of a Service of another type, without finalizer": (
        BALANCER,
        ClusterLists(services=(service("lost", "ClusterIP"),)),
        ["load balancer"],
        [],
    ),
    "younger than ten minutes": (
        CloudLists({Role.LOAD_BALANCER: (owned(created=YOUNG),)}),
        LIVING,
        [],
        [],
    ),
    "of unknown age": (
        CloudLists({Role.LOAD_BALANCER: (owned(created=None),)}),
        LIVING,
        ["load balancer"],
        [],
    ),
    "the list of load balancers failed, that of addresses did not": (
        CloudLists({Role.LOAD_BALANCER: FAILED, Role.FILTER: (owned(Role.FILTER),)}),
        LIVING,
        ["packet filter"],
        ["load balancer"],
    ),
    "Services could not be listed": (
        BALANCER,
        ClusterLists(services=FAILED),
        [],
        ["load balancer"],
    ),
    "no Services, although tags point to some": (
        BALANCER,
        ClusterLists(),
        [],
        ["load balancer"],
    ),
    "no Services and nothing owned": (
        CloudLists({Role.LOAD_BALANCER: ()}),
        ClusterLists(),
        [],
        [],
    ),
    "a volume without PersistentVolume": (DISK, LIVING, ["volume"], []),
    "a volume of a PersistentVolume": (
        DISK,
        ClusterLists(persistent=(persistent("volume-1"),)),
        [],
        [],
    ),
    "a volume in creation": (
        CloudLists({}, (disk(phase=VolumePhase.CREATING),)),
        LIVING,
        [],
        [],
    ),
    "an attached volume": (
        CloudLists({}, (disk(attachments=HOLDER),)),
        LIVING,
        ["volume"],
        [],
    ),
    "a volume of another cluster": (
        CloudLists({}, (disk(cluster="another"),)),
        LIVING,
        [],
        [],
    ),
    "no PersistentVolumes, although volumes are owned": (
        DISK,
        ClusterLists(services=LIVING.services),
        [],
        ["volume"],
    ),
    "PersistentVolumes could not be listed": (
        DISK,
        ClusterLists(persistent=FAILED),
        [],
        ["volume"],
    ),
    "claims could not be listed": (
        DISK,
        dataclasses.replace(LIVING, claims=FAILED),
        [],
        ["volume"],
    ),
    "volumes could not be listed": (
        CloudLists({}, FAILED),
        LIVING,
        [],
        ["volume"],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_what_is_orphaned_and_what_is_unknown(row: str) -> None:
    cloud, cluster, orphans, unknown = ROWS[row]
    survey = decide.decide(cloud, cluster, SETTINGS, NOW)
    print(row, [finding.reason for finding in survey.findings], survey.unknown)
    assert [str(item.subject) for item in survey.of(FindingState.ORPHAN)] == orphans
    assert [str(item.subject) for item in survey.unknown] == unknown
    assert all(item.why for item in survey.unknown)


def test_of_a_cluster_that_is_gone_everything_is_orphaned() -> None:
    """The cluster is not read: not even its lists could show an object."""
    gone = dataclasses.replace(SETTINGS, is_gone=True)
    cloud = CloudLists({Role.LOAD_BALANCER: (owned(uid="alive"),)}, (disk(),))
    survey = decide.decide(cloud, LIVING, gone, NOW)
    subjects = [item.subject for item in survey.of(FindingState.ORPHAN)]
    assert subjects == [Role.LOAD_BALANCER, Other.VOLUME]
    assert all(
        "does not exist any more" in finding.reason for finding in survey.findings
    )


def test_only_the_kinds_that_were_asked_for_are_found_or_unknown() -> None:
    some = dataclasses.replace(SETTINGS, subjects=frozenset({Role.FILTER}))
    cloud = CloudLists(
        {Role.LOAD_BALANCER: FAILED, Role.FILTER: (owned(Role.FILTER),)}, FAILED
    )
    survey = decide.decide(cloud, LIVING, some, NOW)
    assert [finding.subject for finding in survey.findings] == [Role.FILTER]
    assert survey.unknown == ()


def _network(owner: str) -> ProjectObject:
    return ProjectObject("network", f"n-{owner[:2]}", "prod", owner, OLD)


LAYOUTS = CloudLists({}, layouts=(_network(OWN), _network("another")))


@pytest.mark.parametrize(
    ("is_gone", "layout_cluster", "ids"),
    [
        pytest.param(True, OWN, [f"n-{OWN[:2]}"], id="of a cluster that is gone"),
        pytest.param(False, OWN, [], id="of a living cluster"),
        pytest.param(True, "third", [], id="of other clusters"),
    ],
)
def test_objects_of_a_layout_are_orphaned_with_their_cluster(
    is_gone: bool, layout_cluster: str, ids: list[str]
) -> None:
    settings = dataclasses.replace(
        SETTINGS, is_gone=is_gone, layout_cluster=layout_cluster
    )

    survey = decide.decide(LAYOUTS, LIVING, settings, NOW)

    assert [finding.id for finding in survey.of(FindingState.ORPHAN)] == ids
    assert survey.unknown == ()


def test_a_layout_that_could_not_be_listed_is_unknown() -> None:
    gone = dataclasses.replace(SETTINGS, is_gone=True, layout_cluster=OWN)

    survey = decide.decide(CloudLists({}, layouts=FAILED), LIVING, gone, NOW)

    assert [item.subject for item in survey.unknown] == [Other.LAYOUT]


BALANCERS = {
    "named by an annotation": ("b", {"example.com/id": "b"}, "a"),
    "nothing refers to any": ("", {}, "b"),
}


@pytest.mark.parametrize("row", BALANCERS)
def test_of_two_load_balancers_the_one_in_use_stays(row: str) -> None:
    _, annotations, orphan = BALANCERS[row]
    both = tuple(
        owned(uid="alive", id=id_, created=OLD + datetime.timedelta(seconds=at))
        for at, id_ in enumerate(("a", "b"))
    )
    both = tuple(dataclasses.replace(o, handles=frozenset({o.id})) for o in both)
    cloud = CloudLists({Role.LOAD_BALANCER: both, Role.ADDRESS: ()})
    cluster = ClusterLists(services=(service("alive", **annotations),))
    survey = decide.decide(cloud, cluster, SETTINGS, NOW)
    assert [item.id for item in survey.of(FindingState.ORPHAN)] == [orphan]
    unread = CloudLists({Role.LOAD_BALANCER: both, Role.ADDRESS: FAILED})
    assert decide.decide(unread, cluster, SETTINGS, NOW).findings == ()


IDS = {
    "its own": (OWN, BALANCER, LIVING, True),
    "another one": ("prod-1", BALANCER, LIVING, False),
    "in the tag of one of its Services": (
        "prod-1",
        CloudLists({Role.LOAD_BALANCER: (owned(uid="alive"),)}),
        LIVING,
        True,
    ),
}


@pytest.mark.parametrize("row", IDS)
def test_a_cluster_id_has_to_be_the_clusters_own(row: str) -> None:
    id_, cloud, cluster, is_own = IDS[row]
    assert cluster_identity.is_own(id_, SETTINGS, cloud, cluster) == is_own


VOLUME_IDS = {
    "its own": (OWN, "another", True),
    "that of a PersistentVolume's volume": (OWN[:-1] + "b", "volume-1", True),
    "that of no PersistentVolume": (OWN[:-1] + "b", "another", False),
    "no UUID: clusters may share it": ("kubernetes", "volume-1", False),
}


@pytest.mark.parametrize("row", VOLUME_IDS)
def test_a_volume_cluster_id_has_to_be_the_clusters_own(row: str) -> None:
    id_, handle, is_own = VOLUME_IDS[row]
    cloud = CloudLists({}, (disk(cluster=id_),))
    cluster = ClusterLists(persistent=(persistent(handle),))
    assert cluster_identity.is_volumes_own(id_, SETTINGS, cloud, cluster) == is_own
