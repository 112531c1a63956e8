"""What many volumes cost: calls and memory are asserted, seconds are printed.

The cloud is a fake one that counts calls; where memory is measured, it is Cinder's wire
format on loopback, and the driver is the real program.
"""

import concurrent.futures
import http.server
import json
import math
import pathlib
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator

import psutil
import pytest
import rich.console
import rich.table

from lib.cloud.fake import volumes as fake_volumes
from lib.cloud.model import InstanceId
from lib.cloud.volumes import Volume, VolumeId, VolumePhase
from lib.csi.spec import csi_pb2
from lib.lab import places
from lib.lab.artifacts import pexes
from lib.lab.daemons import csi
from lib.lab.run import processes
from lib.lab.slots import leases
from lib.volumes import callers, flow, model
from tests.harness.csi import csi_wire

GIB = 2**30
ATTACHES = 100
ATTACH_S = 5.0
MOST_CALLS = 500
"""A slow machine polls oftener; by the clock of the test, the bound of 330 is kept in
tests/lib/volumes/turns_test.py."""
VOLUMES = 5000
FEW = 20
"""Volumes of a usual cluster."""
PAGE = 1000
ROUNDS = 8
ASKED_AT_ONCE = 40
MOST_RSS_MB = 120
MOST_RSS_OF_FEW_MB = 100
MOST_GROWTH_MB = 20
CLUSTER = "bench"


def show(title: str, rows: list[tuple[str, str]]) -> None:
    table = rich.table.Table(title=title)
    for column in ("what", "seen"):
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    rich.console.Console(width=100, file=sys.stdout).print(table)


def test_a_hundred_attaches_at_once_share_their_polls() -> None:
    """To a hundred instances; the reference makes about ten calls for each."""
    cloud = fake_volumes.FakeVolumes(time.monotonic, ATTACH_S)
    requests = []
    for number in range(ATTACHES):
        instance = InstanceId(f"instance-{number}")
        cloud.instances.add(instance)
        own = VolumeId(f"{number:08x}-0000-4000-8000-000000000000")
        cloud.put(Volume(own, f"pvc-{number}", GIB, VolumePhase.AVAILABLE))
        requests.append(model.PublishVolume(own, instance))
    process = flow.VolumesFlow(lambda: cloud, started=-math.inf)

    def settle(request: model.PublishVolume) -> float:
        began = time.monotonic()
        settled = process.settle(request, callers.Caller(began + 60))
        assert settled is not None
        assert [attachment.instance_id for attachment in settled.attachments] == [
            request.instance_id
        ]
        return time.monotonic() - began

    with concurrent.futures.ThreadPoolExecutor(ATTACHES) as pool:
        seconds = sorted(pool.map(settle, requests))
    rows = [
        ("calls (<= 330; reference about 1,000)", str(len(cloud.calls))),
        *((f"of them {name}", str(cloud.calls.count(name))) for name in {*cloud.calls}),
        ("p99 (<= 6.5 s)", f"{seconds[-1]:.1f} s"),
        ("median", f"{seconds[ATTACHES // 2]:.1f} s"),
    ]
    show("100 attaches of 5 s to 100 instances", rows)
    assert len(cloud.calls) <= MOST_CALLS


class _Cinder(http.server.BaseHTTPRequestHandler):
    """Keystone and Cinder with VOLUMES volumes, and nothing else."""

    protocol_version = "HTTP/1.1"
    url: str
    volumes: tuple[dict[str, object], ...]
    lists: list[str]

    def do_POST(self) -> None:  # noqa: N802 - the standard library names it
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        endpoint = {"interface": "public", "url": f"{self.url}/volume/v3"} | {
            "region": "RegionOne",
            "region_id": "RegionOne",
            "id": "endpoint",
        }
        service = {"type": "block-storage", "name": "cinder", "id": "cinder"}
        token = {
            "methods": ["password"],
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "issued_at": "2020-01-01T00:00:00.000000Z",
            "project": {"id": "p", "name": "p", "domain": {"id": "default"}},
            "user": {"id": "u", "name": "u", "domain": {"id": "default"}},
            "roles": [],
            "catalog": [service | {"endpoints": [endpoint]}],
        }
        self._answer(201, {"token": token})

    def do_GET(self) -> None:  # noqa: N802 - the standard library names it
        split = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(split.query))
        if not split.path.endswith("/volumes/detail"):
            links = [{"rel": "self", "href": f"{self.url}/volume/v3/"}]
            versions = {"id": "v3.0", "status": "CURRENT", "version": "3.71"}
            shown = versions | {"min_version": "3.0", "links": links}
            self._answer(200, {"versions": [shown]})
            return
        if "name" in query:
            number = int(query["name"].removeprefix("pvc-"))
            self._answer(200, {"volumes": [self.volumes[number]]})
            return
        start = int(query.get("marker", "-1")[-12:]) + 1
        page = self.volumes[start : start + PAGE]
        body: dict[str, object] = {"volumes": page}
        if start == 0:
            self.lists.append(self.path)
        if start + PAGE < len(self.volumes):
            href = f"http://internal.invalid/?marker={page[-1]['id']}"
            body["volumes_links"] = [{"rel": "next", "href": href}]
        self._answer(200, body)

    def _answer(self, status: int, body: dict[str, object]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("X-Subject-Token", "token")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


def volume(number: int) -> dict[str, object]:
    """Return a volume as Cinder shows it, with all that nobody reads."""
    own = f"c0000000-0000-0000-0000-{number:012}"
    return {
        "id": own,
        "name": f"pvc-{number}",
        "size": 1,
        "status": "available",
        "availability_zone": "nova",
        "attachments": [],
        "metadata": {
            "cinder.csi.openstack.org/cluster": CLUSTER,
            "csi.storage.k8s.io/pvc/name": f"claim-{number}",
            "csi.storage.k8s.io/pvc/namespace": "default",
            "csi.storage.k8s.io/pv/name": f"pvc-{number}",
        },
        "volume_type": "fast",
        "source_volid": None,
        "multiattach": False,
        "created_at": "2026-01-01T11:00:00.000000",
        "updated_at": "2026-01-01T11:30:00.000000",
        "description": "Created by OpenStack Cinder CSI driver",
        "links": [{"rel": "self", "href": f"http://internal.invalid/v3/{own}"}] * 2,
        "user_id": "0" * 32,
        "os-vol-tenant-attr:tenant_id": "0" * 32,
        "replication_status": None,
        "encrypted": False,
        "bootable": "false",
        "snapshot_id": None,
        "consistencygroup_id": None,
    }


@pytest.fixture()
def cinder(request: pytest.FixtureRequest) -> Iterator[type[_Cinder]]:
    """Serve it; a parameter is the number of volumes."""
    volumes = tuple(map(volume, range(getattr(request, "param", VOLUMES))))

    class Handler(_Cinder):
        """One run's."""

    handler = Handler
    handler.volumes, handler.lists = volumes, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield handler
        server.shutdown()
        thread.join()


@pytest.fixture()
def where(
    cinder: type[_Cinder], lease: leases.Lease, tmp_path: pathlib.Path
) -> Iterator[places.Places]:
    """Run the driver with that cloud."""
    lab = lease.apart(tmp_path.name, 200)
    conf = tmp_path / "cloud.conf"
    conf.write_text(
        f'[Global]\nauth-url="{cinder.url}/v3"\nusername="u"\npassword="p"\n'
        'domain-id="default"\ntenant-name="p"\nregion="RegionOne"\n'
    )
    try:
        csi.start_driver(lab, pexes.beside("csi-controller"), conf, CLUSTER)
        yield lab
    finally:
        csi.stop(lab)


def rss_mb(where: places.Places) -> float:
    process = processes.find(where, csi.NAME)
    assert process is not None
    return float(process.memory_info().rss / 1e6)


def create(caller: csi_wire.Caller, number: int) -> str:
    """Ask for a volume that is there."""
    able = csi_pb2.VolumeCapability(
        mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
        access_mode=csi_pb2.VolumeCapability.AccessMode(
            mode=csi_pb2.VolumeCapability.AccessMode.SINGLE_NODE_WRITER
        ),
    )
    request = csi_pb2.CreateVolumeRequest(
        name=f"pvc-{number}",
        capacity_range=csi_pb2.CapacityRange(required_bytes=GIB),
        volume_capabilities=[able],
    )
    kind = csi_pb2.CreateVolumeResponse
    return caller("Controller/CreateVolume", request, kind, 60).volume.volume_id


def listed(caller: csi_wire.Caller) -> int:
    """Go through all pages of ListVolumes; give the number of volumes."""
    token, volume_ids = "", set()
    while True:
        request = csi_pb2.ListVolumesRequest(max_entries=700, starting_token=token)
        answer = caller(
            "Controller/ListVolumes", request, csi_pb2.ListVolumesResponse, 60
        )
        volume_ids |= {entry.volume.volume_id for entry in answer.entries}
        token = answer.next_token
        if not token:
            return len(volume_ids)


def test_five_thousand_volumes_are_listed_in_flat_memory(
    where: places.Places, cinder: type[_Cinder]
) -> None:
    """Forty creates at once make the driver read all volumes, again and again."""
    caller = csi_wire.Caller(csi.address(where))
    rows = [("RSS, nothing done yet", f"{rss_mb(where):.0f} MB")]
    try:
        assert listed(caller) == VOLUMES
        sizes = []
        with concurrent.futures.ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            for _ in range(ROUNDS):
                numbers = range(ASKED_AT_ONCE)
                ids = list(pool.map(lambda number: create(caller, number), numbers))
                assert len(set(ids)) == ASKED_AT_ONCE
                assert listed(caller) == VOLUMES
                sizes.append(rss_mb(where))
    finally:
        caller.close()
    shown = ", ".join(f"{size:.0f}" for size in sizes)
    rows += [
        ("whole lists read from the cloud", str(len(cinder.lists))),
        (f"RSS after each of {ROUNDS} rounds (<= {MOST_RSS_MB} MB)", f"{shown} MB"),
        ("CPU seconds", f"{psutil.Process(_pid(where)).cpu_times().user:.1f}"),
    ]
    show("5,000 volumes", rows)
    assert max(sizes) <= MOST_RSS_MB
    half = ROUNDS // 2
    assert max(sizes[half:]) - max(sizes[:half]) <= MOST_GROWTH_MB


@pytest.mark.parametrize("cinder", [FEW], indirect=True)
def test_twenty_volumes_take_a_hundred_megabytes_at_most(
    where: places.Places, cinder: type[_Cinder]
) -> None:
    """All are asked for at the same time, several times, and listed."""
    caller = csi_wire.Caller(csi.address(where))
    sizes = [rss_mb(where)]
    try:
        with concurrent.futures.ThreadPoolExecutor(FEW) as pool:
            for _ in range(ROUNDS):
                ids = list(pool.map(lambda number: create(caller, number), range(FEW)))
                assert len(set(ids)) == FEW
                assert listed(caller) == FEW
                sizes.append(rss_mb(where))
    finally:
        caller.close()
    shown = ", ".join(f"{size:.0f}" for size in sizes)
    rows = [
        (f"RSS, at first and after each round (<= {MOST_RSS_OF_FEW_MB} MB)", shown),
        ("whole lists read from the cloud", str(len(cinder.lists))),
    ]
    show(f"{FEW} volumes", rows)
    assert max(sizes) <= MOST_RSS_OF_FEW_MB


def _pid(where: places.Places) -> int:
    process = processes.find(where, csi.NAME)
    assert process is not None
    return process.pid
