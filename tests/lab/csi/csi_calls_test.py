"""What each RPC costs the real cloud, counted by the driver's own metrics."""

import collections
import concurrent.futures
import contextlib
import pathlib
import re
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator

import grpc
import pytest
from google.protobuf import message

from lib.csi.spec import csi_pb2
from lib.lab import places
from lib.lab.daemons import csi
from lib.lab.openstack import accounts, tenant
from lib.lab.run import processes, waiting
from lib.volumes import outcomes, poll_interval
from tests.harness.csi import csi_wire

GIB = 2**30
TIMEOUT_S = 120.0
POLLS = frozenset({"get volume", "find volumes", "list volumes"})
"""Reads that a call repeats while it waits."""
_LINE = re.compile(
    r'^mooring_cloud_requests_total\{operation="([^"]+)".*\} (\d+)\.0$', re.M
)
_ARRIVED = re.compile(
    r"^csi_plugin_(?:calls_waiting|operations_seconds_count"
    r"\{[^}]*/ControllerPublishVolume[^}]*\}) (\d+)\.0$",
    re.M,
)
IN_ORDER = 20
LIMIT = 21
"""Volumes of one server. Source: lib/lab/openstack/templates/nova.conf."""
APART_S = 0.1

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
ABLE = csi_pb2.VolumeCapability(
    mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
    access_mode=csi_pb2.VolumeCapability.AccessMode(
        mode=csi_pb2.VolumeCapability.AccessMode.SINGLE_NODE_WRITER
    ),
)

# What is done: calls besides polls that it may cost, and what the reference costs
# besides polls. Source: counted on the same cloud.
LIMITS = {
    "create": (2, 2),
    "create again": (1, 1),
    "publish": (3, 7),
    "publish again": (2, 5),
    "expand": (3, 4),
    "unpublish": (2, 5),
    "delete": (3, 2),
}


class Driver:
    """A driver, and what it has asked of the cloud."""

    def __init__(
        self, where: places.Places, caller: csi_wire.Caller, port: int
    ) -> None:
        self.where = where
        self.caller = caller
        self._url = f"http://127.0.0.1:{port}/metrics"

    def counts(self) -> collections.Counter[str]:
        with urllib.request.urlopen(self._url, timeout=30) as answer:
            text = answer.read().decode()
        counts = collections.Counter[str]()
        for name, number in _LINE.findall(text):
            counts[name] += int(number)  # whatever the outcome
        return counts

    def arrived(self) -> int:
        """Return how many calls of ControllerPublishVolume began, or are under way."""
        with urllib.request.urlopen(self._url, timeout=30) as answer:
            text = answer.read().decode()
        return sum(int(number) for number in _ARRIVED.findall(text))

    def cost(
        self, method: str, request: message.Message, kind: type[message.Message]
    ) -> tuple[message.Message, collections.Counter[str], float]:
        """Return the answer, the calls it cost, and how many seconds it took."""
        before, began = self.counts(), time.monotonic()
        answer = self.caller(f"Controller/{method}", request, kind, TIMEOUT_S)
        took_s = time.monotonic() - began
        return answer, self.counts() - before, took_s


@pytest.fixture(scope="module")
def mine(project: MakeProject) -> tuple[accounts.Account, tenant.Tenant]:
    return project("csi-calls")


@pytest.fixture(scope="module")
def driver(
    where: places.Places,
    mine: tuple[accounts.Account, tenant.Tenant],
    csi_pex: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Driver]:
    """Run the driver."""
    conf = tmp_path_factory.mktemp("calls") / "cloud.conf"
    conf.write_text(accounts.cloud_conf(where, mine[0]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    csi.start_driver(
        where, csi_pex, conf, "calls", (f"--http-endpoint=127.0.0.1:{port}",)
    )
    with contextlib.closing(csi_wire.Caller(csi.address(where))) as caller:
        yield Driver(where, caller, port)
    # Its volumes stay behind, in a project that nobody else looks into.
    csi.stop(where)


def besides_polls(calls: collections.Counter[str], took_s: float) -> int:
    """Count calls without those that only look whether it is done.

    Of the reads one belongs to the operation; the others are polls, which are no more
    than the flow's own schedule has for so many seconds.
    """
    reads = sum(number for name, number in calls.items() if name in POLLS)
    assert reads <= most_reads(took_s)
    return sum(calls.values()) - max(reads - 1, 0)


def most_reads(took_s: float) -> int:
    """Return how many reads a call makes that waits for so many seconds.

    One before the write, one that confirms an absence, one soon after the write, and
    then one after each pause.
    """
    reads, at = 3, outcomes.SOON_S
    while at < took_s:
        at += poll_interval.after_s(at)
        reads += 1
    return reads


def test_each_rpc_costs_no_more_calls_than_promised(
    driver: Driver, mine: tuple[accounts.Account, tenant.Tenant]
) -> None:
    """Reads that are shared, and none that is not needed; the table is printed."""
    node = mine[1].boot_all(["calls"])["calls"].id
    create = csi_pb2.CreateVolumeRequest(
        name="pvc-calls",
        capacity_range=csi_pb2.CapacityRange(required_bytes=GIB),
        volume_capabilities=[ABLE],
    )
    volume_id = made(driver, create)
    publish = csi_pb2.ControllerPublishVolumeRequest(
        volume_id=volume_id, node_id=node, volume_capability=ABLE
    )
    publish_answer = csi_pb2.ControllerPublishVolumeResponse
    steps: tuple[tuple[str, str, message.Message, type[message.Message]], ...] = (
        ("create again", "CreateVolume", create, csi_pb2.CreateVolumeResponse),
        ("publish", "ControllerPublishVolume", publish, publish_answer),
        ("publish again", "ControllerPublishVolume", publish, publish_answer),
        (
            "expand",
            "ControllerExpandVolume",
            csi_pb2.ControllerExpandVolumeRequest(
                volume_id=volume_id,
                capacity_range=csi_pb2.CapacityRange(required_bytes=2 * GIB),
            ),
            csi_pb2.ControllerExpandVolumeResponse,
        ),
        (
            "unpublish",
            "ControllerUnpublishVolume",
            csi_pb2.ControllerUnpublishVolumeRequest(volume_id=volume_id, node_id=node),
            csi_pb2.ControllerUnpublishVolumeResponse,
        ),
        (
            "delete",
            "DeleteVolume",
            csi_pb2.DeleteVolumeRequest(volume_id=volume_id),
            csi_pb2.DeleteVolumeResponse,
        ),
        ("create", "CreateVolume", create, csi_pb2.CreateVolumeResponse),
    )
    rows = {}
    for title, method, request, kind in steps:
        _, calls, took_s = driver.cost(method, request, kind)
        rows[title] = besides_polls(calls, took_s)
        most, reference = LIMITS[title]
        shown = ", ".join(f"{number} {name}" for name, number in calls.items())
        print(
            f"{title:14} {rows[title]} besides polls (<= {most}; reference {reference})"
            f" {took_s:5.1f} s: {shown}"
        )
    assert rows.keys() == LIMITS.keys()
    assert {title for title in rows if rows[title] > LIMITS[title][0]} == set()
    made_again = csi_pb2.DeleteVolumeRequest(volume_id=made(driver, create))
    kind = csi_pb2.DeleteVolumeResponse
    driver.caller("Controller/DeleteVolume", made_again, kind, TIMEOUT_S)


def test_twenty_volumes_go_to_one_server_in_order_and_then_it_is_full(
    driver: Driver, mine: tuple[accounts.Account, tenant.Tenant]
) -> None:
    """None is lost, none overtakes another; what is too much is refused in words."""
    node = mine[1].boot_all(["crowded"])["crowded"].id
    requests = [
        csi_pb2.CreateVolumeRequest(name=f"pvc-{number}", volume_capabilities=[ABLE])
        for number in range(LIMIT + 1)
    ]
    with concurrent.futures.ThreadPoolExecutor(LIMIT + 1) as pool:
        ids = list(pool.map(lambda request: made(driver, request), requests))
        before, futures = driver.counts(), []
        arrived, began = driver.arrived(), time.monotonic()
        for volume_id in ids[:IN_ORDER]:
            futures.append(pool.submit(published, driver, volume_id, node))
            least = arrived + len(futures)
            waiting.until("the call arrives", lambda n=least: driver.arrived() >= n)  # type: ignore[misc]  # bound now
            time.sleep(APART_S)  # from its arrival to its place in the line
        devices = [future.result() for future in futures]
        calls, took_s = driver.counts() - before, time.monotonic() - began
        for volume_id in ids[IN_ORDER:LIMIT]:
            published(driver, volume_id, node)
        with pytest.raises(grpc.RpcError) as raised:
            published(driver, ids[LIMIT], node)
    print(f"20 attaches to one server: {sum(calls.values())} calls; {devices}")
    polls = sum(number for name, number in calls.items() if name in POLLS)
    most, _ = LIMITS["publish"]
    assert sum(calls.values()) - polls <= (most - 1) * IN_ORDER
    assert polls <= 3 * IN_ORDER + 2 * most_reads(took_s)
    print(f"RSS of csi-controller: {rss_mb(driver.where):.0f} MB")
    print(raised.value)
    assert devices == sorted(devices)
    assert len(set(devices)) == IN_ORDER
    error = raised.value
    assert isinstance(error, grpc.Call)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "takes no more volumes" in (error.details() or "")


def rss_mb(where: places.Places) -> float:
    """Return the driver's resident memory; bounded in tests/bench/volumes_test.py."""
    process = processes.find(where, csi.NAME)
    assert process is not None
    return float(process.memory_info().rss / 1e6)


def published(driver: Driver, volume_id: str, node: str) -> str:
    """Publish a volume; give the device that the node plugin is told."""
    request = csi_pb2.ControllerPublishVolumeRequest(
        volume_id=volume_id, node_id=node, volume_capability=ABLE
    )
    kind = csi_pb2.ControllerPublishVolumeResponse
    answer = driver.caller("Controller/ControllerPublishVolume", request, kind, 180)
    return answer.publish_context["DevicePath"]


def made(driver: Driver, request: csi_pb2.CreateVolumeRequest) -> str:
    """Have the volume, and both services found by the driver; give its id."""
    kind = csi_pb2.CreateVolumeResponse
    answer = driver.caller("Controller/CreateVolume", request, kind, TIMEOUT_S)
    return answer.volume.volume_id


def test_listing_asks_the_cloud_once_a_minute(driver: Driver) -> None:
    """However often the attacher asks."""
    request, kind = csi_pb2.ListVolumesRequest(), csi_pb2.ListVolumesResponse
    before = driver.counts()
    for _ in range(20):
        driver.caller("Controller/ListVolumes", request, kind, TIMEOUT_S)
    assert (driver.counts() - before)["list volumes"] <= 1
