"""Cinder's real behaviour: volumes of hosts, snapshots, zones, reservations."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator

import openstack.connection
import pytest

from lib.cloud.model import InstanceId
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.volumes import cloud as volumes_cloud
from lib.cloud.support import cluster_witnesses
from lib.cloud.volumes import ById, VolumeId, VolumePhase, VolumeRequest, VolumeSpec
from lib.lab import places
from lib.lab.openstack import accounts, tenant
from lib.lab.openstack import cloud as lab_cloud
from lib.lab.run import waiting
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import RefusedCall

GIB = 2**30
PATIENCE_S = waiting.LIMIT_S
SHARED = "repairs-shared"
"""A type whose volumes several servers may hold."""

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


@dataclasses.dataclass(frozen=True)
class Ground:
    """The cloud as the driver sees it, and as others do. counted: its calls so far."""

    counted: list[str]
    volumes: volumes_cloud.OpenStackVolumes
    account: accounts.Account
    mine: tenant.Tenant
    admin: openstack.connection.Connection
    here: InstanceId
    elsewhere: InstanceId

    def ends(self, request: model.Request) -> str:
        """Settle a request as a process that has run for long; return its code."""
        return ended(self.volumes, request)

    def volume(self, name: str, **parts: object) -> VolumeId:
        """Create a volume and wait until it is available."""
        assert self.ends(model.Make(spec(self.volumes, name, **parts))) == "OK"
        (volume,) = (v for v in self.volumes.listing() if v.name == name)
        return volume.id

    def act(self, volume_id: VolumeId, body: dict[str, object]) -> None:
        """Call an action of Cinder as an administrator."""
        storage = self.admin.block_storage
        path = f"/volumes/{volume_id}/action"
        answer = storage.post(path, json=body, microversion="3.50")
        assert answer.status_code == 202, answer.text


def ended(volumes: volumes_cloud.OpenStackVolumes, request: model.Request) -> str:
    """Settle a request by these volumes; return its code."""
    process = flow.VolumesFlow(lambda: volumes, started=-math.inf)
    try:
        process.settle(request, callers.Caller(time.monotonic() + PATIENCE_S))
    except RefusedCall as refused:
        print(refused)
        return refused.code.value
    return "OK"


def spec(
    volumes: volumes_cloud.OpenStackVolumes, name: str, **parts: object
) -> VolumeSpec:
    values: dict[str, object] = {"name": name, "size_bytes": GIB, "cluster": "repairs"}
    request = VolumeRequest(**values | parts)  # type: ignore[arg-type]  # any part
    parsed = volumes.parse(request)
    assert isinstance(parsed, VolumeSpec), parsed
    return dataclasses.replace(parsed, requisite=request.requisite)


OpenVolumes = Callable[
    [cluster_witnesses.OfCluster | None], volumes_cloud.OpenStackVolumes
]


@contextlib.contextmanager
def opened(
    where: places.Places, account: accounts.Account, counted: list[str]
) -> Iterator[OpenVolumes]:
    """Return what opens the volumes of a project as a new process does."""
    config = openstack_config.read(accounts.cloud_conf(where, account), {})
    whole = session.open_session(config.credentials, 60.0)
    at = client.Where(config.credentials.region, config.credentials.endpoint_type)
    api = client.Client(whole, at, lambda name, *_: counted.append(name))
    with contextlib.closing(whole.session):
        yield lambda cluster: volumes_cloud.OpenStackVolumes(
            api, config.block_storage, cluster=cluster
        )


@pytest.fixture(scope="module")
def ground(where: places.Places, project: MakeProject) -> Iterator[Ground]:
    account, mine = project("csi-repairs")
    counted: list[str] = []
    two = mine.boot_all(["repairs-1", "repairs-2"])
    with (
        opened(where, account, counted) as open_volumes,
        lab_cloud.connect(where, accounts.ADMIN) as admin,
    ):
        if not admin.block_storage.find_type(SHARED):
            specs = {"multiattach": "<is> True"}
            admin.block_storage.create_type(
                name=SHARED, is_public=True, extra_specs=specs
            )
        yield Ground(
            counted,
            open_volumes(None),
            account,
            mine,
            admin,
            InstanceId(two["repairs-1"].id),
            InstanceId(two["repairs-2"].id),
        )


def test_a_volume_that_is_attached_to_a_host_affects_no_other(ground: Ground) -> None:
    """Bare metal, or `cinder local-attach`: Cinder shows it with server_id null."""
    hosted = ground.volume("hosted")
    others = [ground.volume(f"beside-{number}") for number in range(4)]
    ground.act(hosted, {"os-reserve": {}})
    body = {"host_name": "metal-1", "mountpoint": "/dev/sdx", "mode": "rw"}
    ground.act(hosted, {"os-attach": body})
    shown = {volume.id: volume for volume in ground.volumes.listing()}
    assert set(others) < set(shown)
    # The name of the host is shown to administrators only.
    (attachment,) = shown[hosted].attachments
    assert (attachment.instance_id, attachment.holder) == ("", "host unknown")
    observations = ground.volumes.observe(
        [ById(volume_id) for volume_id in others]
    ).by_ref
    assert all(
        isinstance(observation, tuple) and observation
        for observation in observations.values()
    )
    assert (
        ground.ends(model.PublishVolume(hosted, ground.here)) == "FAILED_PRECONDITION"
    )
    assert ground.ends(model.RemoveVolume(hosted)) == "FAILED_PRECONDITION"


def test_a_volume_with_snapshots_is_refused_at_once(ground: Ground) -> None:
    """Not retried until the deadline (before: 113 calls in three minutes)."""
    own = ground.volume("with-snapshot")
    storage = ground.mine.connection.block_storage
    snapshot = storage.create_snapshot(volume_id=own, name="snapshot")
    storage.wait_for_status(snapshot, "available", wait=60)
    before = len(ground.counted)
    assert ground.ends(model.RemoveVolume(own)) == "FAILED_PRECONDITION"
    calls_made = ground.counted[before:]
    print(f"DeleteVolume of a volume with a snapshot: {calls_made}")
    assert calls_made == ["get volume", "delete volume"] * 2
    storage.delete_snapshot(snapshot.id)
    storage.wait_for_delete(snapshot, wait=60)
    assert ground.ends(model.RemoveVolume(own)) == "OK"


def test_zones_are_tried_in_order_and_nothing_is_left(ground: Ground) -> None:
    """The lab's Cinder has one zone, and falls back to it from any other."""
    beyond = spec(ground.volumes, "beyond", preferred=("moon",), requisite=("moon",))
    assert ground.ends(model.Make(beyond)) == "RESOURCE_EXHAUSTED"
    both = {"preferred": ("moon", "nova"), "requisite": ("nova", "moon")}
    ground.volume("near", **both)
    shown = [
        (volume.name, volume.zones)
        for volume in ground.volumes.listing()
        if volume.name in ("beyond", "near")
    ]
    assert shown == [("near", ("nova",))]


def test_unpublish_of_a_shared_volume_sees_a_reservation(ground: Ground) -> None:
    """The volume itself shows the other server alone."""
    own = ground.volume("shared", parameters={"type": SHARED}, is_shared=True)
    publish = model.PublishVolume(own, ground.elsewhere, is_shared=True)
    assert ground.ends(publish) == "OK"
    storage = ground.mine.connection.block_storage
    body = {"attachment": {"instance_uuid": ground.here, "volume_uuid": own}}
    answer = storage.post("/attachments", json=body, microversion="3.50")
    assert answer.status_code == 200, answer.text
    process = flow.VolumesFlow(lambda: ground.volumes, started=-math.inf)
    with pytest.raises(RefusedCall, match="DEADLINE_EXCEEDED"):
        process.settle(
            model.UnpublishVolume(own, ground.here),
            callers.Caller(time.monotonic() + 5),
        )
    path = f"/attachments/{answer.json()['attachment']['id']}"
    storage.delete(path, microversion="3.50")
    assert ground.ends(model.UnpublishVolume(own, ground.here)) == "OK"
    assert ground.ends(model.UnpublishVolume(own, ground.elsewhere)) == "OK"
    (volume,) = (v for v in ground.volumes.listing() if v.id == own)
    assert volume.phase is VolumePhase.AVAILABLE


ABSENT = VolumeId("00000000-1111-4222-8333-444444444444")
CLUSTER = "repairs"


def test_a_start_in_another_project_loses_no_volume(
    ground: Ground, where: places.Places, project: MakeProject
) -> None:
    """Also where another cluster with the same cluster ID has volumes there."""
    own = ground.volume("lives-on")
    nodes = cluster_witnesses.OfCluster(
        CLUSTER, lambda: (ground.here, ground.elsewhere)
    )
    unknown = cluster_witnesses.OfCluster(CLUSTER)
    account, _ = project("csi-elsewhere")
    counted: list[str] = []
    requests = (model.RemoveVolume(own, CLUSTER), model.UnpublishVolume(own, None))
    with opened(where, account, counted) as open_volumes:
        first = {
            (name, request): ended(open_volumes(cluster), request)
            for name, cluster in (("Nodes", nodes), ("volumes", unknown))
            for request in requests
        }
        named = spec(ground.volumes, "of-another-cluster")
        assert ended(open_volumes(None), model.Make(named)) == "OK"
        for request in requests:
            first["Nodes, a volume there", request] = ended(
                open_volumes(nodes), request
            )
        rows = {key: code for key, code in first.items() if code != "UNAVAILABLE"}
        # The first volume of a cluster is deleted, though nothing of it was observed.
        fresh = open_volumes(cluster_witnesses.OfCluster("fresh"))
        assert ended(fresh, model.Make(spec(fresh, "first", cluster="fresh"))) == "OK"
        (volume,) = (v for v in fresh.listing() if v.name == "first")
        assert ended(fresh, model.RemoveVolume(volume.id, "fresh")) == "OK"
    assert rows == {}
    assert own in {volume.id for volume in ground.volumes.listing()}


def test_a_server_of_the_cluster_shows_that_the_project_is_its_own(
    ground: Ground, where: places.Places
) -> None:
    """For a volume that was deleted by hand; also the last one of the cluster."""
    nodes = cluster_witnesses.OfCluster("no-volumes", lambda: (ground.here,))
    rows = {}
    for request in (
        model.RemoveVolume(ABSENT, "no-volumes"),
        model.UnpublishVolume(ABSENT, None),
        model.UnpublishVolume(ABSENT, ground.here),
    ):
        counted: list[str] = []
        with opened(where, ground.account, counted) as open_volumes:
            code = ended(open_volumes(nodes), request)
        rows[type(request).__name__, code] = counted
        print(f"{request}: {code}, {counted}")
        assert counted.count("get server") == 1
        assert "list volumes" not in counted
    assert {code for _, code in rows} == {"OK"}
