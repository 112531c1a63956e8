"""What the real sidecars do with each code: each row of lib/csi/sidecars.py.

The sidecars connect to an entrance that records each call, and answers some with the
code of a row. Situations of a creation are brought about in the cloud, and the driver
chooses the code. After each row the claim is deleted, and the cloud holds nothing.
"""

import concurrent.futures
import dataclasses
import http.client
import http.server
import pathlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import grpc
import openstack.connection
import pytest

from lib.cloud.openstack import with_volumes
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.instances import cloud as openstack_cloud
from lib.cloud.volumes import VolumeRequest, Volumes, VolumeSpec
from lib.csi import sidecars
from lib.csi.sidecars import Next
from lib.csi.spec import csi_pb2
from lib.kube import client, resources
from lib.lab import places
from lib.lab.daemons import csi
from lib.lab.kube import control_plane, kube_objects
from lib.lab.openstack import accounts, layout, tenant
from lib.lab.openstack import cloud as lab_cloud
from lib.lab.run import processes, progress, waiting
from lib.volumes.csi_codes import NOT_FINAL, Code
from tests.harness.csi import csi_front
from tests.harness.openstack import front

GIB = 2**30
DRIVER = "cinder.csi.openstack.org"
ZONE_KEY = f"topology.{DRIVER}/zone"
HOSTNAME = "kubernetes.io/hostname"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLUSTER = "csi-sidecars"
BROKEN = "sidecars-broken"
"""A type that no back end can create."""
PATIENCE_S = waiting.LIMIT_S
POLL_S = 0.5
"""Some forty rows wait at the same time."""
QUIET_S = 15.0
"""Three times the longest pause of the sidecars: --retry-interval-max=5s. No call is
expected in this time; one that is expected may take PATIENCE_S."""
CALLS = 200
"""That may wait in the driver at the same time."""
EXISTS = "a volume of the name exists or may appear"
INCOMPATIBLE = "an incompatible volume of the name exists"
ZONE = "no zone of the topology can hold it"
QUOTA = "the quota is used up"
IMPOSSIBLE = "the request can't be fulfilled, nothing exists"
FAILED = "it failed and was deleted"
OVERLOAD = "too many calls"
INFEASIBLE = "ControllerResizeInfeasible"
"""Source: Kubernetes core/v1, ClaimResourceStatus."""

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Json = kube_objects.Json
Row = tuple[str, str]
"""A sidecar, and a code or a situation."""
Result = tuple[str, str]
"""What is expected, and what was observed."""


class Entrance(front.Front):
    """The cloud's entrance. lost: creations whose answers are lost, by a part of the
    body; held: calls to Cinder wait while it is cleared."""

    def __init__(self, upstream: dict[str, int]) -> None:
        super().__init__(upstream)
        self.lost: set[bytes] = set()
        self.held = threading.Event()
        self.held.set()
        self.came = self._hold

    def _hold(self, service: str, method: str, path: str) -> None:
        del method, path
        if service == layout.CINDER:
            self.held.wait(PATIENCE_S)

    def forward(
        self, service: str, request: http.server.BaseHTTPRequestHandler, body: bytes
    ) -> tuple[http.client.HTTPResponse, bytes]:
        answer = super().forward(service, request, body)
        if request.command == "POST" and any(part in body for part in self.lost):
            raise OSError
        return answer


@dataclasses.dataclass(frozen=True)
class Ground:
    """The cluster, the cloud, and the two entrances."""

    where: places.Places
    objects: kube_objects.Objects
    volumes: Volumes
    admin: openstack.connection.Connection
    project_id: str
    calls: csi_front.CsiFront
    entrance: Entrance

    def claim(self, name: str, storage_class: str) -> str:
        """Create a claim; return the name of the volume that it is to get."""
        created = self.objects.make(
            kube_objects.CLAIM,
            name,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        )
        return f"pvc-{created['metadata']['uid']}"

    def node(self, name: str, zone: str) -> None:
        """Create what kubelet and node plugin would create."""
        room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        labels = {HOSTNAME: name, ZONE_KEY: zone}
        self.objects.make(
            kube_objects.NODE,
            name,
            metadata={"labels": labels},
            status={"capacity": room, "allocatable": room},
        )
        driver = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE_KEY]}
        self.objects.make(kube_objects.CSI_NODE, name, spec={"drivers": [driver]})

    def pod(self, claim: str, node: str) -> None:
        """Create a pod of the claim's name that only one Node suits."""
        spec: Json = {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "none"}],
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {HOSTNAME: node},
            "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": claim}},
            ],
        }
        self.objects.make(kube_objects.POD, claim, spec=spec)

    def is_selected(self, claim: str) -> bool:
        stored = self.objects.get(kube_objects.CLAIM, claim)
        return SELECTED_NODE in (stored or {})["metadata"].get("annotations", {})

    def delete(self, claim: str) -> None:
        """Delete a claim and its pod, and wait until they do not exist."""
        self.objects.delete(kube_objects.POD, claim)
        self.objects.delete(kube_objects.CLAIM, claim)
        waiting.until(
            f"claim {claim} is deleted",
            lambda: not self.objects.get(kube_objects.CLAIM, claim),
            poll_s=POLL_S,
        )

    def require_nothing(self, volume: str) -> None:
        """Wait until neither the cluster nor the cloud has a volume of that name."""

        def is_absent() -> bool:
            names = {existing.name for existing in self.volumes.listing()}
            stored = self.objects.get(kube_objects.VOLUME, volume)
            return stored is None and volume not in names

        waiting.until(f"volume {volume} is deleted", is_absent, poll_s=POLL_S)

    def bound(self, claim: str) -> Json:
        """Wait until a claim is bound; return its PersistentVolume."""

        def volume() -> Json | None:
            stored = self.objects.get(kube_objects.CLAIM, claim) or {}
            if stored.get("status", {}).get("phase") != "Bound":
                return None
            return self.objects.get(kube_objects.VOLUME, stored["spec"]["volumeName"])

        waiting.until(f"claim {claim} is bound", volume, poll_s=POLL_S)
        existing = volume()
        assert existing is not None
        return existing

    def wait_for_calls(self, method: str, subject: str, least: int) -> None:
        waiting.until(
            f"{least} calls of {method} for {subject}",
            lambda: len(self.calls.codes(method, subject)) >= least,
            poll_s=POLL_S,
        )

    def is_repeated(self, method: str, subject: str, patience_s: float) -> bool:
        """Report whether two more calls come in time; the first may be under way."""
        enough = len(self.calls.codes(method, subject)) + 2
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if len(self.calls.codes(method, subject)) >= enough:
                return True
            time.sleep(0.2)
        return False

    def is_infeasible(self, claim: str) -> bool:
        """Report whether the provisioner announced that it will retry much later."""
        return any(
            event["involvedObject"]["name"] == claim
            and event["reason"] == "ProvisioningFailed"
            and "infeasible" in event["message"]
            for event in self.objects.all(resources.EVENTS)
        )


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    api: client.Api,
    project: MakeProject,
    csi_pex: pathlib.Path,
    csi_programs: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    """Start the driver behind one entrance, and the sidecars behind another."""
    del csi_programs
    account, mine = project("csi-sidecars")
    folder = tmp_path_factory.mktemp("sidecars")
    read = openstack_config.read(accounts.cloud_conf(where, account), {})
    opened = with_volumes.of_client(openstack_cloud.open_client(read), read)
    assert opened.volumes is not None
    calls = csi_front.CsiFront(csi.address(where))
    socket = where.state / "csi-front.sock"
    entrance = Entrance({name: layout.ports(where)[name] for name in layout.SERVICES})
    with (
        lab_cloud.connect(where, accounts.ADMIN) as admin,
        entrance.opened(),
        calls.opened(socket),
    ):
        conf = folder / "cloud.conf"
        url = entrance.url(layout.KEYSTONE, "/v3")
        text = accounts.cloud_conf(where, account, url)
        conf.write_text(f"{text}\n[BlockStorage]\navailability-zone-map = az1:nova\n")
        new_ground = Ground(
            where,
            kube_objects.Objects(api, "default"),
            opened.volumes,
            admin,
            str(mine.connection.current_project_id),
            calls,
            entrance,
        )
        kubeconfig = csi.allow(where)
        control_plane.start_scheduler(where, progress.Silent())
        prepare(new_ground)
        try:
            csi.start_driver(where, csi_pex, conf, CLUSTER)
            csi.start_sidecars(where, kubeconfig, ["--leader-election=false"], socket)
            yield new_ground
        finally:
            entrance.held.set()
            csi.stop(where)
            processes.stop(where, [control_plane.SCHEDULER])


def prepare(ground: Ground) -> None:
    """Create classes and Nodes, and a volume type that no back end can serve."""
    storage = ground.admin.block_storage
    if not storage.find_type(BROKEN):
        nowhere = {"volume_backend_name": "nowhere"}
        storage.create_type(name=BROKEN, is_public=True, extra_specs=nowhere)
    zone = {"key": ZONE_KEY, "values": ["az1"]}
    reachable = {"matchLabelExpressions": [zone]}
    for name, kind, mode in (
        ("now", "fast", "Immediate"),
        ("late", "fast", "WaitForFirstConsumer"),
        ("unknown", "no-such-type", "Immediate"),
        ("broken", BROKEN, "Immediate"),
    ):
        ground.objects.make(
            kube_objects.CLASS,
            name,
            provisioner=DRIVER,
            parameters={"type": kind},
            volumeBindingMode=mode,
            allowVolumeExpansion=True,
            reclaimPolicy="Delete",
            allowedTopologies=None if name == "late" else [reachable],
        )
    for node, place in (("here", "az1"), ("exhausted", "az1"), ("moon", "moon")):
        ground.node(node, place)


CREATE, PUBLISH, UNPUBLISH, EXPAND = (
    "CreateVolume",
    "ControllerPublishVolume",
    "ControllerUnpublishVolume",
    "ControllerExpandVolume",
)


def fault(code: Code) -> csi_front.Fault:
    """Answer with a code; the driver carries out what may be in progress after it."""
    return csi_front.Fault(grpc.StatusCode[code.value], code in NOT_FINAL)


def provisioner_row(ground: Ground, code: Code) -> Result:
    """Delete a claim while CreateVolume ends with one code."""
    name = f"provisioner-{code.value.lower().replace('_', '-')}"
    expected = sidecars.provisioner(code)
    ground.calls.faults[CREATE, name] = fault(code)
    volume = ground.claim(name, "now")
    observed = Next.INFEASIBLE if is_delayed(ground, name) else Next.FINAL
    ground.delete(name)
    patience_s = PATIENCE_S if expected is Next.RETRY else QUIET_S
    if ground.is_repeated(CREATE, name, patience_s):
        observed = Next.RETRY
    del ground.calls.faults[CREATE, name]
    ground.require_nothing(volume)
    return expected.name, observed.name


def is_delayed(ground: Ground, claim: str) -> bool:
    """Wait for a second CreateVolume, or for the report that there is none for long."""
    waiting.until(
        f"CreateVolume of {claim} is repeated, or infeasible",
        lambda: len(ground.calls.codes(CREATE, claim)) >= 2
        or ground.is_infeasible(claim),
        poll_s=POLL_S,
    )
    if not ground.is_infeasible(claim):
        return False
    return not ground.is_repeated(CREATE, claim, QUIET_S)


def exhausted_row(ground: Ground) -> Result:
    """Return the scheduler's choice of a Node, as the provisioner does."""
    name, code = "provisioner-resource-exhausted", Code.RESOURCE_EXHAUSTED
    ground.calls.faults[CREATE, name] = fault(code)
    volume = ground.claim(name, "late")
    ground.pod(name, "exhausted")
    observed = reschedule(ground, name, "exhausted")
    ground.delete(name)
    is_repeated = ground.is_repeated(CREATE, name, QUIET_S)
    del ground.calls.faults[CREATE, name]
    ground.require_nothing(volume)
    observed = "RETRY" if is_repeated else observed
    return sidecars.provisioner(code).name, observed


def reschedule(ground: Ground, claim: str, node: str) -> str:
    """Report whether a claim loses its Node after a call failed.

    The Node suits the pod no longer by then, so that it is not selected again.
    """
    ground.wait_for_calls(CREATE, claim, 1)
    labels = {HOSTNAME: f"not-{node}"}
    ground.objects.patch(kube_objects.NODE, node, metadata={"labels": labels})
    waiting.until(
        f"claim {claim} has no selected Node",
        lambda: not ground.is_selected(claim),
        poll_s=POLL_S,
    )
    return Next.RESCHEDULE.name


def attach_and_expand_rows(ground: Ground, code: Code) -> dict[Row, Result]:
    """Fail Publish, then Expand of one volume with a code; then delete its claim."""
    name = f"volume-{code.value.lower().replace('_', '-')}"
    ground.claim(name, "now")
    volume = ground.bound(name)
    rows = {
        ("attacher", code.value): attacher_row(ground, code, volume),
        ("resizer", code.value): resizer_row(ground, code, name, volume),
    }
    ground.delete(name)
    ground.require_nothing(str(volume["metadata"]["name"]))
    return rows


def attacher_row(ground: Ground, code: Code, volume: Json) -> Result:
    handle = str(volume["spec"]["csi"]["volumeHandle"])
    ground.calls.faults[PUBLISH, handle] = csi_front.Fault(grpc.StatusCode[code.value])
    name = f"attachment-{handle}"
    ground.objects.make(
        kube_objects.ATTACHMENT,
        name,
        spec={
            "attacher": DRIVER,
            "nodeName": "here",
            "source": {"persistentVolumeName": volume["metadata"]["name"]},
        },
    )
    ground.wait_for_calls(PUBLISH, handle, 2)
    ground.objects.delete(kube_objects.ATTACHMENT, name)
    waiting.until(
        f"{name} is deleted",
        lambda: not ground.objects.get(kube_objects.ATTACHMENT, name),
        poll_s=POLL_S,
    )
    del ground.calls.faults[PUBLISH, handle]
    codes = ground.calls.codes(UNPUBLISH, handle)
    observed = Next.DETACH.name if codes[-1:] == ["OK"] else f"Unpublish: {codes}"
    return sidecars.attacher(code).name, observed


def resizer_row(ground: Ground, code: Code, claim: str, volume: Json) -> Result:
    """Distinguish what is reported as infeasible from what is repeated."""
    handle = str(volume["spec"]["csi"]["volumeHandle"])
    ground.calls.faults[EXPAND, handle] = csi_front.Fault(grpc.StatusCode[code.value])
    larger = {"resources": {"requests": {"storage": "2Gi"}}}
    ground.objects.patch(kube_objects.CLAIM, claim, spec=larger)

    def is_infeasible() -> bool:
        stored = ground.objects.get(kube_objects.CLAIM, claim) or {}
        statuses = stored.get("status", {}).get("allocatedResourceStatuses") or {}
        return bool(statuses.get("storage") == INFEASIBLE)

    waiting.until(
        f"claim {claim} is infeasible, or its expansion is repeated",
        lambda: is_infeasible() or len(ground.calls.codes(EXPAND, handle)) >= 3,
        poll_s=POLL_S,
    )
    observed = Next.INFEASIBLE.name if is_infeasible() else "repeated"
    del ground.calls.faults[EXPAND, handle]
    expected = sidecars.resizer(code)
    is_rare = expected is Next.INFEASIBLE
    return (expected.name if is_rare else "repeated"), observed


def lost(ground: Ground) -> list[str]:
    """Lose the answer of Cinder's creation; it takes place nevertheless."""
    name = "situation-lost"
    ground.entrance.lost.add(name.encode())
    volume = ground.claim(name, "now")
    ground.wait_for_calls(CREATE, name, 1)
    ground.entrance.lost.clear()
    return finished(ground, name, volume)


def incompatible(ground: Ground) -> list[str]:
    """Put a volume of another cluster in the way."""
    name = "situation-incompatible"
    volume = ground.claim(name, "late")
    request = VolumeRequest(volume, 3 * GIB, "another", parameters={"type": "fast"})
    spec = ground.volumes.parse(request)
    assert isinstance(spec, VolumeSpec)
    other = ground.volumes.create(spec)
    ground.pod(name, "here")
    ground.wait_for_calls(CREATE, name, 2)
    assert ground.is_selected(name), "ALREADY_EXISTS is not a matter of the Node"
    ground.delete(name)
    assert not ground.is_repeated(CREATE, name, QUIET_S)
    assert volume in {existing.name for existing in ground.volumes.listing()}
    ground.volumes.delete(other.id)
    return finished(ground, name, volume)


def unreachable_zone(ground: Ground) -> list[str]:
    """Restrict the pod to a Node of a zone without storage."""
    name = "situation-zone"
    volume = ground.claim(name, "late")
    ground.pod(name, "moon")
    assert reschedule(ground, name, "moon") == Next.RESCHEDULE.name
    return finished(ground, name, volume)


def impossible(ground: Ground) -> list[str]:
    """Ask for a volume type that does not exist."""
    name = "situation-impossible"
    volume = ground.claim(name, "unknown")
    ground.wait_for_calls(CREATE, name, 1)
    return finished(ground, name, volume)


def failing(ground: Ground) -> list[str]:
    """Ask for a volume that Cinder's scheduler can place nowhere."""
    name = "situation-failing"
    volume = ground.claim(name, "broken")
    ground.wait_for_calls(CREATE, name, 1)
    return finished(ground, name, volume)


def overload(ground: Ground) -> list[str]:
    """Fill the driver with waiting calls, while Cinder does not answer."""
    name = "situation-overload"
    ground.entrance.held.clear()
    with grpc.insecure_channel(f"unix://{csi.address(ground.where)}") as channel:
        waiters = [begun(channel, PATIENCE_S) for _ in range(CALLS)]
        waiting.until(
            "the driver rejects a call",
            lambda: begun(channel, 2.0).code() is grpc.StatusCode.UNAVAILABLE,
            poll_s=POLL_S,
        )
        volume = ground.claim(name, "now")
        ground.wait_for_calls(CREATE, name, 1)
        ground.delete(name)
        for waiter in waiters:
            waiter.cancel()
    ground.entrance.held.set()
    waiting.until(
        f"CreateVolume of {name} succeeds, though the claim was deleted",
        lambda: ground.calls.codes(CREATE, name)[-1] == "OK",
        poll_s=POLL_S,
    )
    return finished(ground, name, volume)


def begun(channel: grpc.Channel, timeout_s: float) -> grpc.Call:
    """Begin a call that has to look into the cloud, and changes nothing there."""
    delete: grpc.UnaryUnaryMultiCallable[
        csi_pb2.DeleteVolumeRequest, csi_pb2.DeleteVolumeResponse
    ]
    delete = channel.unary_unary(
        "/csi.v1.Controller/DeleteVolume",
        request_serializer=lambda body: body.SerializeToString(),
        response_deserializer=csi_pb2.DeleteVolumeResponse.FromString,
    )
    request = csi_pb2.DeleteVolumeRequest(volume_id=str(uuid.uuid4()))
    return delete.future(request, timeout=timeout_s)


def over_quota(ground: Ground) -> list[str]:
    """Leave no quota for a volume."""
    name = "situation-quota"
    storage = ground.admin.block_storage
    storage.update_quota_set(ground.project_id, volumes=0)
    volume = ground.claim(name, "now")
    ground.wait_for_calls(CREATE, name, 1)
    codes = finished(ground, name, volume)
    storage.update_quota_set(ground.project_id, volumes=-1)
    return codes


def finished(ground: Ground, claim: str, volume: str) -> list[str]:
    """Delete a claim, require that nothing is left, and return the calls' codes."""
    if ground.objects.get(kube_objects.CLAIM, claim) is not None:
        ground.delete(claim)
    ground.require_nothing(volume)
    return ground.calls.codes(CREATE, claim)


SITUATIONS: dict[str, Callable[[Ground], list[str]]] = {
    EXISTS: lost,
    INCOMPATIBLE: incompatible,
    ZONE: unreachable_zone,
    IMPOSSIBLE: impossible,
    FAILED: failing,
}
ALONE = {QUOTA: over_quota, OVERLOAD: overload}
"""Situations that would be those of other rows, too."""


def judged(situation: str, codes: list[str]) -> Result:
    """Compare the driver's first code with those that the situation may have."""
    allowed = sorted(code.value for code in sidecars.CREATION[situation])
    return " ".join(allowed), codes[0]


def collected(
    futures: dict[Row, "concurrent.futures.Future[Result]"],
) -> dict[Row, Result]:
    rows = {}
    for row, future in futures.items():
        error = future.exception()
        rows[row] = ("no error", repr(error)) if error else future.result()
    return rows


def test_the_sidecars_do_what_the_table_says_and_leave_nothing(ground: Ground) -> None:
    """Each code with each sidecar, and each situation of a creation."""
    rows: dict[Row, Result] = {}
    with concurrent.futures.ThreadPoolExecutor(2 * len(Code) + len(SITUATIONS)) as pool:
        futures: dict[Row, concurrent.futures.Future[Result]] = {}
        for code in Code:
            row = ("provisioner", code.value)
            if code is Code.RESOURCE_EXHAUSTED:
                futures[row] = pool.submit(exhausted_row, ground)
            else:
                futures[row] = pool.submit(provisioner_row, ground, code)
        for situation, run in SITUATIONS.items():
            futures["situation", situation] = pool.submit(
                lambda run=run, name=situation: judged(name, run(ground))  # type: ignore[misc]  # bound now
            )
        pairs = {
            code: pool.submit(attach_and_expand_rows, ground, code) for code in Code
        }
        rows |= collected(futures)
        for code, pair in pairs.items():
            error = pair.exception()
            rows |= (
                {("volume", code.value): ("", repr(error))} if error else pair.result()
            )
    for situation, run in ALONE.items():
        rows["situation", situation] = judged(situation, run(ground))
    for (sidecar, what), (expected, observed) in sorted(rows.items()):
        print(f"{sidecar:12} {what:46} {expected:44} {observed}")
    required = {
        (s, c.value) for s in ("provisioner", "attacher", "resizer") for c in Code
    }
    assert set(rows) == required | {("situation", name) for name in sidecars.CREATION}
    wrong = [
        row
        for row, (expected, observed) in rows.items()
        if observed not in (expected.split() if row[0] == "situation" else [expected])
    ]
    assert wrong == []
    assert not ground.volumes.listing()
