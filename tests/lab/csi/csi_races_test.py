"""What others do to a volume while a call waits for it, on the real Cinder and Nova.

Each race is a row of the table that is printed. Volumes that are stuck are helped along
after minutes; those rows are told that time passes thirty times as fast.
"""

import concurrent.futures
import copy
import dataclasses
import datetime
import math
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator

import openstack.connection
import pytest

from lib.cloud.model import InstanceId
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.http import client, session
from lib.cloud.openstack.volumes import cloud as volumes_cloud
from lib.cloud.support import absence
from lib.cloud.volumes import (
    ById,
    ByName,
    Ref,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    VolumeSpec,
    VolumesReading,
)
from lib.lab import places
from lib.lab.grounds import servers
from lib.lab.openstack import accounts, tenant
from lib.lab.openstack import cloud as lab_cloud
from lib.lab.run import waiting
from lib.volumes import callers, flow, model
from lib.volumes.csi_codes import RefusedCall

GIB = 2**30
CLUSTER = "races"
BROKEN = "race-broken"
"""A type that no back end can make."""
SHARED = "race-shared"
"""A type whose volumes several servers may hold."""
TIMES = 30.0
ABORTED_S = 20.0
"""Real seconds of a request that ends as ABORTED: no limit for the others."""
PATIENCE_S = waiting.LIMIT_S
NOWHERE = InstanceId("00000000-0000-0000-0000-000000000000")

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]


def quick_clock() -> float:
    return time.monotonic() * TIMES


def quick_wait(condition: threading.Condition, seconds: float) -> None:
    condition.wait(seconds / TIMES)


def in_an_hour() -> datetime.datetime:
    """Whatever Cinder's volumes went through was long ago then."""
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)


class Watched:
    """Tells when the first read of a cloud's volumes has been seen."""

    def __init__(self) -> None:
        self.is_read = threading.Event()

    def observed(
        self, volumes: volumes_cloud.OpenStackVolumes
    ) -> volumes_cloud.OpenStackVolumes:
        """Return the same volumes; their first read sets the event."""
        observe = volumes.observe

        def watched(
            refs: Collection[Ref], within_s: float | None = None
        ) -> VolumesReading:
            reading = observe(refs, within_s)
            self.is_read.set()
            return reading

        own = copy.copy(volumes)
        own.observe = watched  # type: ignore[method-assign]  # of this copy only
        return own


@dataclasses.dataclass(frozen=True)
class Ground:
    """The cloud as the driver sees it, and as others do.

    later: the same cloud an hour from now. here, elsewhere: servers that stay.
    """

    volumes: volumes_cloud.OpenStackVolumes
    later: volumes_cloud.OpenStackVolumes
    mine: tenant.Tenant
    admin: openstack.connection.Connection
    here: InstanceId
    elsewhere: InstanceId

    def settle(self, request: model.Request) -> str:
        """Settle a wish as one process would; give the code it ends with."""
        call = callers.Caller(time.monotonic() + PATIENCE_S)
        return ended(
            flow.VolumesFlow(lambda: self.volumes, started=-math.inf), request, call
        )

    def settle_while(self, request: model.Request, event: Callable[[], None]) -> str:
        """Settle a wish; let something happen once its first read was seen."""
        watched = Watched()
        volumes = watched.observed(self.volumes)

        def happen() -> None:
            assert watched.is_read.wait(PATIENCE_S)
            event()

        call = callers.Caller(time.monotonic() + PATIENCE_S)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            happened = pool.submit(happen)
            code = ended(
                flow.VolumesFlow(lambda: volumes, started=-math.inf), request, call
            )
            happened.result()
        return code

    def settle_quickly(
        self, request: model.Request, within_s: float = PATIENCE_S
    ) -> str:
        """Settle a request on a clock that is TIMES as fast, within real seconds."""
        effects = callers.CallEffects(quick_clock, quick_wait)
        call = callers.Caller(quick_clock() + within_s * TIMES)
        return ended(
            flow.VolumesFlow(lambda: self.later, effects, -math.inf), request, call
        )

    def volume(self, kind: str = "fast") -> VolumeId:
        """Have one more volume that is available."""
        volume = self.volumes.create(spec(self.volumes, kind))
        self.wait(volume.id, VolumePhase.AVAILABLE)
        return volume.id

    def held(self, instance_id: InstanceId) -> VolumeId:
        """Have one more volume that is attached."""
        volume_id = self.volume()
        self.volumes.attach(self.see(volume_id), instance_id)
        self.wait(volume_id, VolumePhase.IN_USE)
        return volume_id

    def look(self, volume_id: VolumeId) -> Volume | None:
        observation = self.volumes.observe([ById(volume_id)]).by_ref[ById(volume_id)]
        assert isinstance(observation, tuple), observation
        return observation[0] if observation else None

    def see(self, volume_id: VolumeId) -> Volume:
        volume = self.look(volume_id)
        assert volume is not None
        return volume

    def wait(self, volume_id: VolumeId, phase: VolumePhase) -> None:
        end = time.monotonic() + PATIENCE_S
        while self.see(volume_id).phase is not phase:
            assert time.monotonic() < end, self.see(volume_id)
            time.sleep(0.1)

    def say(self, volume_id: VolumeId, status: str) -> None:
        """Put a volume into a status, as an administrator may."""
        self.admin.block_storage.reset_volume_status(volume_id, status=status)

    def reserve(self, volume_id: VolumeId, instance_id: InstanceId) -> None:
        """Reserve a volume for a server, as Nova does before it dies."""
        storage = self.mine.connection.block_storage
        project = self.mine.connection.current_project_id
        body = {"attachment": {"instance_uuid": instance_id, "volume_uuid": volume_id}}
        answer = storage.post("/attachments", json=body, microversion="3.50")
        assert answer.status_code == 200, (project, answer.text)
        self.wait(volume_id, VolumePhase.ATTACHING)

    def boot(self) -> InstanceId:
        server = self.mine.boot_another(f"race-{uuid.uuid4()}")
        self.mine.wait({server.id}, servers.ACTIVE)
        return InstanceId(server.id)

    def kill(self, instance_id: InstanceId) -> None:
        self.mine.delete(instance_id)
        end = time.monotonic() + PATIENCE_S
        while instance_id in {server.id for server in self.mine.items()}:
            assert time.monotonic() < end
            time.sleep(0.2)

    def holders(self, volume_id: VolumeId) -> set[str]:
        volume = self.look(volume_id)
        return (
            {attachment.instance_id for attachment in volume.attachments}
            if volume
            else set()
        )


def ended(
    process: flow.VolumesFlow, request: model.Request, call: callers.Caller
) -> str:
    try:
        process.settle(request, call)
    except RefusedCall as refused:
        return refused.code.value
    return "OK"


def spec(volumes: volumes_cloud.OpenStackVolumes, kind: str = "fast") -> VolumeSpec:
    request = VolumeRequest(
        f"race-{uuid.uuid4()}", GIB, CLUSTER, parameters={"type": kind}
    )
    parsed = volumes.parse(request)
    assert isinstance(parsed, VolumeSpec)
    return parsed


def not_yet_available(ground: Ground) -> str:
    own = ground.volume()
    ground.say(own, "creating")
    request = model.PublishVolume(own, ground.here)
    return ground.settle_while(request, lambda: ground.say(own, "available"))


def reserved_for_it(ground: Ground) -> str:
    own = ground.volume()
    ground.reserve(own, ground.here)
    return ground.settle_quickly(model.PublishVolume(own, ground.here))


def reserved_for_one_that_is_gone(ground: Ground) -> str:
    """Nova must report twice that it is absent, 15 real seconds apart."""
    own = ground.volume()
    ground.reserve(own, NOWHERE)
    codes = [ground.settle_quickly(model.PublishVolume(own, ground.here), ABORTED_S)]
    time.sleep(absence.CONFIRM_S + 1)
    codes.append(ground.settle_quickly(model.PublishVolume(own, ground.here)))
    return " ".join(codes)


def reserved_for_another_server(ground: Ground) -> str:
    """Its attach may be slow: neither request releases what is reserved for it."""
    own = ground.volume()
    ground.reserve(own, ground.elsewhere)
    codes = [ground.settle_quickly(model.PublishVolume(own, ground.here), ABORTED_S)]
    time.sleep(absence.CONFIRM_S + 1)
    codes.append(
        ground.settle_quickly(model.PublishVolume(own, ground.here), ABORTED_S)
    )
    codes.append(ground.settle_quickly(model.UnpublishVolume(own, ground.here)))
    ref = ById(own, shows_reserved=True)
    observed = ground.volumes.observe([ref]).by_ref[ref]
    assert isinstance(observed, tuple), observed
    (reserved,) = observed[0].attachments
    assert reserved.instance_id == ground.elsewhere
    codes.append(ground.settle_quickly(model.UnpublishVolume(own, ground.elsewhere)))
    return " ".join(codes)


def readers_and_one_writer(ground: Ground) -> str:
    """A volume that several servers hold is attached for one writer to neither."""
    own = ground.volume(SHARED)
    codes = [
        ground.settle(model.PublishVolume(own, server, is_shared=is_shared))
        for server, is_shared in (
            (ground.here, True),
            (ground.elsewhere, True),
            (ground.here, False),
        )
    ]
    assert ground.holders(own) == {ground.here, ground.elsewhere}
    return " ".join(codes)


def stuck_in_attaching(ground: Ground) -> str:
    """Cinder does not show for whom: an administrator resets the status."""
    own = ground.volume()
    ground.say(own, "attaching")
    codes = [ground.settle_quickly(model.PublishVolume(own, ground.here), ABORTED_S)]
    ground.say(own, "available")
    codes.append(ground.settle_quickly(model.PublishVolume(own, ground.here)))
    return " ".join(codes)


def stuck_in_detaching(ground: Ground) -> str:
    own = ground.held(ground.here)
    ground.say(own, "detaching")
    code = ground.settle_quickly(model.UnpublishVolume(own, ground.here))
    assert ground.holders(own) == set()
    return code


def reserved_and_let_go(ground: Ground) -> str:
    own = ground.volume()
    ground.reserve(own, ground.here)
    code = ground.settle_quickly(model.UnpublishVolume(own, ground.here))
    assert ground.see(own).phase is VolumePhase.AVAILABLE
    return code


def just_being_detached(ground: Ground) -> str:
    own = ground.held(ground.elsewhere)
    ground.volumes.detach(ground.see(own), ground.elsewhere)
    code = ground.settle(model.PublishVolume(own, ground.here))
    assert ground.holders(own) == {ground.here}
    return code


def attached_elsewhere(ground: Ground) -> str:
    own = ground.held(ground.elsewhere)
    code = ground.settle(model.PublishVolume(own, ground.here))
    assert ground.holders(own) == {ground.elsewhere}
    return code


def two_servers_at_once(ground: Ground) -> str:
    own = ground.volume()
    requests = [
        model.PublishVolume(own, instance_id)
        for instance_id in (ground.here, ground.elsewhere)
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(ground.settle, requests))
    assert len(ground.holders(own)) == 1
    return " ".join(sorted(codes))


def one_server_twice(ground: Ground) -> str:
    own = ground.volume()
    requests = [model.PublishVolume(own, ground.here)] * 2
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(ground.settle, requests))
    assert ground.holders(own) == {ground.here}
    return " ".join(sorted(codes))


def server_deleted_while_attached(ground: Ground) -> str:
    doomed = ground.boot()
    own = ground.held(doomed)
    ground.kill(doomed)
    code = ground.settle(model.UnpublishVolume(own, doomed))
    assert ground.see(own).phase is VolumePhase.AVAILABLE
    return f"{code} {ground.settle(model.PublishVolume(own, doomed))}"


def server_deleted_while_attaching(ground: Ground) -> str:
    """Cinder lets go of it.

    Attaching it elsewhere is no part of this: with a driver that runs nothing, Nova
    may finish attaching to a server that is gone, and keep a note of it for ever.
    """
    doomed = ground.boot()
    own = ground.volume()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        published = pool.submit(ground.settle, model.PublishVolume(own, doomed))
        ground.kill(doomed)
        assert published.result() in ("OK", "NOT_FOUND")
    code = ground.settle(model.UnpublishVolume(own, doomed))
    assert ground.holders(own) == set()
    assert ground.see(own).phase is VolumePhase.AVAILABLE
    return code


def detach_of_a_volume_that_is_gone(ground: Ground) -> str:
    own = ground.volume()
    assert ground.settle(model.RemoveVolume(own)) == "OK"
    return ground.settle(model.UnpublishVolume(own, ground.here))


def detach_from_a_server_that_is_gone(ground: Ground) -> str:
    return ground.settle(model.UnpublishVolume(ground.volume(), NOWHERE))


def detach_of_what_is_not_attached(ground: Ground) -> str:
    own = ground.held(ground.elsewhere)
    code = ground.settle(model.UnpublishVolume(own, ground.here))
    assert ground.holders(own) == {ground.elsewhere}
    return code


def delete_of_what_is_attached(ground: Ground) -> str:
    return ground.settle(model.RemoveVolume(ground.held(ground.here)))


def delete_of_what_is_being_made(ground: Ground) -> str:
    own = ground.volume()
    ground.say(own, "creating")
    code = ground.settle_while(
        model.RemoveVolume(own), lambda: ground.say(own, "available")
    )
    assert ground.look(own) is None
    return code


def made_again_after_it_failed(ground: Ground) -> str:
    """What never was fit for use is deleted, and made anew under its name."""
    broken = ground.volumes.create(spec(ground.volumes, BROKEN))
    ground.wait(broken.id, VolumePhase.FAILED)
    desired = dataclasses.replace(spec(ground.volumes), name=broken.name)
    code = ground.settle(model.Make(desired))
    observation = ground.volumes.observe([ByName(broken.name)]).by_ref[
        ByName(broken.name)
    ]
    assert isinstance(observation, tuple)
    assert [volume.phase for volume in observation] == [VolumePhase.AVAILABLE]
    assert observation[0].id != broken.id
    return code


def growth_of_what_is_being_attached(ground: Ground) -> str:
    own = ground.volume()
    ground.volumes.attach(ground.see(own), ground.here)
    code = ground.settle(model.Expand(own, 2 * GIB))
    assert ground.see(own).size_bytes == 2 * GIB
    return code


RACES: tuple[tuple[Callable[[Ground], str], str], ...] = (
    (not_yet_available, "OK"),
    (reserved_for_it, "OK"),
    (reserved_for_one_that_is_gone, "ABORTED OK"),
    (reserved_for_another_server, "ABORTED ABORTED OK OK"),
    (readers_and_one_writer, "OK OK FAILED_PRECONDITION"),
    (reserved_and_let_go, "OK"),
    (stuck_in_attaching, "ABORTED OK"),
    (stuck_in_detaching, "OK"),
    (just_being_detached, "OK"),
    (attached_elsewhere, "FAILED_PRECONDITION"),
    (two_servers_at_once, "FAILED_PRECONDITION OK"),
    (one_server_twice, "OK OK"),
    (server_deleted_while_attached, "OK NOT_FOUND"),
    (server_deleted_while_attaching, "OK"),
    (detach_of_a_volume_that_is_gone, "OK"),
    (detach_from_a_server_that_is_gone, "OK"),
    (detach_of_what_is_not_attached, "OK"),
    (delete_of_what_is_attached, "FAILED_PRECONDITION"),
    (delete_of_what_is_being_made, "OK"),
    (growth_of_what_is_being_attached, "OK"),
    (made_again_after_it_failed, "OK"),
)
AT_ONCE = 6


@pytest.fixture(scope="module")
def ground(where: places.Places, project: MakeProject) -> Iterator[Ground]:
    account, mine = project("csi-races")
    config = openstack_config.read(accounts.cloud_conf(where, account), {})
    credentials = config.credentials
    opened = session.open_session(credentials, 60.0)
    api = client.Client(
        opened,
        client.Where(credentials.region, credentials.endpoint_type),
        lambda *call: None,
    )
    two = mine.boot_all(["race-1", "race-2"])
    with lab_cloud.connect(where, accounts.ADMIN) as admin:
        for name, key, value in (
            (BROKEN, "volume_backend_name", "nowhere"),
            (SHARED, "multiattach", "<is> True"),
        ):
            if not admin.block_storage.find_type(name):
                admin.block_storage.create_type(
                    name=name, is_public=True, extra_specs={key: value}
                )
        own = Ground(
            volumes_cloud.OpenStackVolumes(api, config.block_storage),
            volumes_cloud.OpenStackVolumes(api, config.block_storage, now=in_an_hour),
            mine,
            admin,
            InstanceId(two["race-1"].id),
            InstanceId(two["race-2"].id),
        )
        # Its volumes stay behind, in a project that nobody else looks into.
        yield own
    opened.session.close()


def test_each_race_ends_as_it_should(ground: Ground) -> None:
    """Whoever waits gets the volume, or is told in CSI's own words why not."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [pool.submit(race, ground) for race, _ in RACES]
        concurrent.futures.wait(futures)
    wrong = []
    for (race, expected), future in zip(RACES, futures, strict=True):
        error = future.exception()
        ending = f"{type(error).__name__}: {error}" if error else future.result()
        print(f"{race.__name__.replace('_', ' '):40} {expected:24} {ending}")
        if ending != expected:
            wrong.append(race.__name__)
    assert wrong == []
