"""csi-controller under the real provisioner, attacher, resizer and scheduler.

There is no kubelet: Nodes and what their node plugins would say of them (CSINode) are
made by hand, pods never run. Attaching needs neither: kube-controller-manager does it
for whatever is scheduled.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import pathlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from lib.cloud.model import InstanceId
from lib.cloud.openstack import with_volumes
from lib.cloud.openstack.config import reader as openstack_config
from lib.cloud.openstack.instances import cloud as openstack_cloud
from lib.cloud.volumes import (
    ById,
    Volume,
    VolumeId,
    VolumePhase,
    VolumeRequest,
    Volumes,
)
from lib.csi.spec import csi_pb2
from lib.kube import client, resources
from lib.lab import places
from lib.lab.daemons import csi
from lib.lab.kube import control_plane, kube_objects
from lib.lab.openstack import accounts, cloud, tenant
from lib.lab.run import processes, progress, waiting
from tests.harness import testing
from tests.harness.csi import csi_keeper, csi_wire
from tests.harness.kube import audit, roles

GIB = 2**30
DRIVER = "cinder.csi.openstack.org"
ZONE_KEY = f"topology.{DRIVER}/zone"
CLUSTER_KEY = f"{DRIVER}/cluster"
CLUSTER = "csi-kubernetes"
NAMESPACE = "default"
SERVERS = ("csi-node-1", "csi-node-2", "csi-node-3")
CLAIMS = testing.by_tier(12, 50)
PODS = testing.by_tier(4, 10)
"""Each with two volumes; one half of them ends."""
KEPT = testing.by_tier(10, 30)
"""Volumes that are not deleted: those of the pods and some that are free."""
GROWN = testing.by_tier(2, 5)
"""Of those attached, and of those free."""
KILLS = testing.by_tier(3, 5)
PATIENCE_S = waiting.LIMIT_S
SEED = 7

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
Json = kube_objects.Json
Right = tuple[str, str, str]
"""API group, resource with its subresource, verb."""


@dataclasses.dataclass
class Ground:
    """The cluster and the cloud.

    instances: servers' ids by the names of Nodes. words: more of the sidecars' command
    line, the next time they start.
    """

    where: places.Places
    objects: kube_objects.Objects
    volumes: Volumes
    instances: Mapping[str, str]
    keeper: csi_keeper.CsiKeeper
    words: list[str]
    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def until(self, what: str, is_met: Callable[[], object]) -> None:
        """Wait until something is so; it becomes a row of the table."""
        began = time.monotonic()
        while not is_met():
            assert time.monotonic() - began < PATIENCE_S, what
            time.sleep(0.25)
        self.rows.append((what, f"{time.monotonic() - began:.1f} s"))

    def show(self, *rows: tuple[str, object]) -> None:
        self.rows += [(what, str(value)) for what, value in rows]
        for what, value in self.rows:
            print(f"{what:68} {value}")
        self.rows.clear()

    def claim(self, name: str, storage_class: str, gib: int = 1) -> None:
        self.objects.make(
            kube_objects.CLAIM,
            name,
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "resources": {"requests": {"storage": f"{gib}Gi"}},
            },
        )

    def pod(self, name: str, *claims: str, node: str = "") -> None:
        spec: Json = {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "none"}],
            # Nobody reports these Nodes as ready.
            "tolerations": [{"operator": "Exists"}],
            "volumes": [
                {"name": claim, "persistentVolumeClaim": {"claimName": claim}}
                for claim in claims
            ],
        }
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        self.objects.make(kube_objects.POD, name, spec=spec)

    def bound(self, claim: str) -> Json | None:
        """Return the PersistentVolume of a claim."""
        stored = self.objects.get(kube_objects.CLAIM, claim)
        name = (stored or {"spec": {}})["spec"].get("volumeName", "")
        is_bound = stored and stored.get("status", {}).get("phase") == "Bound"
        return (
            self.objects.get(kube_objects.VOLUME, name) if is_bound and name else None
        )

    def handle(self, claim: str) -> VolumeId:
        bound = self.bound(claim)
        assert bound is not None
        return VolumeId(bound["spec"]["csi"]["volumeHandle"])

    def observed(self, handle: VolumeId) -> Volume | None:
        observation = self.volumes.observe([ById(handle)]).by_ref[ById(handle)]
        assert isinstance(observation, tuple), observation
        return observation[0] if observation else None

    def attachment(self, volume_name: str) -> Json | None:
        for attachment_ in self.objects.all(kube_objects.ATTACHMENT):
            if attachment_["spec"]["source"].get("persistentVolumeName") == volume_name:
                return attachment_
        return None


def conf_text(where: places.Places, account: accounts.Account) -> str:
    """Return cloud.conf: the lab's three zones of servers share one of volumes."""
    zones = "az1:nova,az2:nova,az3:nova"
    text = accounts.cloud_conf(where, account)
    return f"{text}\n[BlockStorage]\navailability-zone-map = {zones}\n"


@pytest.fixture(scope="module")
def ground(
    where: places.Places,
    api: client.Api,
    project: MakeProject,
    csi_pex: pathlib.Path,
    csi_programs: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ground]:
    """Start the driver, the sidecars and the scheduler; end them, and tidy up."""
    del csi_programs
    account, mine = project("csi-kubernetes")
    text = conf_text(where, account)
    conf = tmp_path_factory.mktemp("csi") / "cloud.conf"
    conf.write_text(text)
    read = openstack_config.read(text, {})
    opened = with_volumes.of_client(openstack_cloud.open_client(read), read)
    assert opened.volumes is not None
    objects = kube_objects.Objects(api, NAMESPACE)
    machines = mine.boot_all(SERVERS)
    kubeconfig = csi.allow(where)
    control_plane.start_scheduler(where, progress.Silent())

    words = list(csi.ELECTION)

    def start() -> None:
        csi.start_driver(where, csi_pex, conf, CLUSTER)
        csi.start_sidecars(where, kubeconfig, words)

    for name, machine in machines.items():
        add_node(objects, name, machine.id, machine.zone)
    add_classes(objects)
    chance = random.Random(SEED)  # noqa: S311 - when to kill
    keeper = csi_keeper.CsiKeeper(where, start, chance)
    instances = {name: machine.id for name, machine in machines.items()}
    new_ground = Ground(where, objects, opened.volumes, instances, keeper, words)
    try:
        yield new_ground
        clear(new_ground)
    finally:
        keeper.end()
        csi.stop(where)
        processes.stop(where, [control_plane.SCHEDULER])
        for name in SERVERS:
            objects.delete(kube_objects.NODE, name)
            objects.delete(kube_objects.CSI_NODE, name)


def add_node(
    objects: kube_objects.Objects, name: str, server_id: str, zone: str
) -> None:
    """Make what kubelet, cloud controller manager and node plugin would make."""
    room = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    objects.make(
        kube_objects.NODE,
        name,
        metadata={
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": zone,
                ZONE_KEY: zone,
            },
            "annotations": {
                "volumes.kubernetes.io/controller-managed-attach-detach": "true"
            },
        },
        spec={"providerID": f"openstack:///{server_id}"},
        status={"capacity": room, "allocatable": room},
    )
    driver = {"name": DRIVER, "nodeID": server_id, "topologyKeys": [ZONE_KEY]}
    objects.make(kube_objects.CSI_NODE, name, spec={"drivers": [driver]})


def add_classes(objects: kube_objects.Objects) -> None:
    """Make two classes, which differ in when a volume is made."""
    for name, mode in (("late", "WaitForFirstConsumer"), ("now", "Immediate")):
        objects.make(
            kube_objects.CLASS,
            name,
            provisioner=DRIVER,
            parameters={"type": "fast"},
            volumeBindingMode=mode,
            allowVolumeExpansion=True,
            reclaimPolicy="Delete",
        )


def clear(ground: Ground) -> None:
    """Take away what the tests left, and see it go everywhere."""
    objects = ground.objects
    delete_claims(objects)
    ground.until("all claims are gone", lambda: not objects.all(kube_objects.CLAIM))
    ground.until("all volumes are gone", lambda: not objects.all(kube_objects.VOLUME))
    ground.until("Cinder holds nothing", lambda: not ground.volumes.listing())
    for name in ("late", "now"):
        objects.delete(kube_objects.CLASS, name)


def delete_claims(objects: kube_objects.Objects) -> None:
    """Delete all claims, and the Pods that use them."""
    for kind in (kube_objects.POD, kube_objects.CLAIM):
        for item in objects.all(kind):
            objects.delete(kind, item["metadata"]["name"])


def test_a_claim_lives_from_its_first_consumer_to_its_end(ground: Ground) -> None:
    """Claim, volume, attachment, growth, and everything away again.

    The sidecars have been elected by then, with the rights of the chart.
    """
    objects = ground.objects
    ground.claim("one", "late")
    ground.pod("first", "one")
    ground.until(
        "the claim is bound once its pod is placed", lambda: ground.bound("one")
    )
    volume = ground.bound("one")
    assert volume is not None
    name = volume["metadata"]["name"]
    handle = ground.handle("one")
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][:1]
    assert term["matchExpressions"][0]["key"] == ZONE_KEY
    zones = {
        value
        for each in volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        for value in each["matchExpressions"][0]["values"]
    }
    # The map adds zones of Nodes to the zone of volumes that has the same name.
    assert zones == {"az1", "az2", "az3", "nova"}
    volume_ = ground.observed(handle)
    assert volume_ is not None
    assert (volume_.name, volume_.size_bytes, volume_.type) == (name, GIB, "fast")
    assert volume_.cluster == CLUSTER
    pod = objects.get(kube_objects.POD, "first")
    assert pod is not None
    ground.until("its attachment is reported", lambda: is_attached(ground, name))
    attachment = ground.attachment(name)
    assert attachment is not None
    volume_ = ground.observed(handle)
    assert volume_ is not None
    held = volume_.attachments[0]
    assert held.instance_id == ground.instances[attachment["spec"]["nodeName"]]
    assert attachment["status"]["attachmentMetadata"] == dict(held.publish_context)
    grow(ground, "one", 2)
    ground.until("it has grown, attached as it is", lambda: has_grown(ground, "one", 2))
    objects.delete(kube_objects.POD, "first")
    ground.until("without its pod it is detached", lambda: not ground.attachment(name))
    volume_ = ground.observed(handle)
    assert volume_ is not None
    assert volume_.phase is VolumePhase.AVAILABLE
    objects.delete(kube_objects.CLAIM, "one")
    ground.until(
        "with the claim goes the volume",
        lambda: not objects.get(kube_objects.VOLUME, name),
    )
    assert ground.observed(handle) is None
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    leases = json.loads(objects.api.request("GET", path, timeout_s=30))["items"]
    mark = DRIVER.replace(".", "-")
    elected = [lease for lease in leases if lease["metadata"]["name"].endswith(mark)]
    ground.show(("Leases of the sidecars", len(elected)))
    assert len(elected) == len(csi.SIDECARS)


def is_attached(ground: Ground, volume_name: str) -> bool:
    attachment_ = ground.attachment(volume_name)
    return bool(attachment_ and attachment_.get("status", {}).get("attached"))


def grow(ground: Ground, claim: str, gib: int) -> None:
    requested = {"resources": {"requests": {"storage": f"{gib}Gi"}}}
    ground.objects.patch(kube_objects.CLAIM, claim, spec=requested)


def has_grown(ground: Ground, claim: str, gib: int) -> bool:
    bound = ground.bound(claim)
    return bound is not None and bound["spec"]["capacity"]["storage"] == f"{gib}Gi"


SELDOM: Mapping[Right, str] = {
    ("storage.k8s.io", "volumeattributesclasses", "get"): "a claim with such a class",
    ("", "events", "patch"): "an Event that is repeated",
}
"""Permissions that need no use in a test, and what they are for."""
LISTS = collections.defaultdict(str, list="API servers that don't stream lists")
"""Source: client-go, WatchListClient: informers list where a watch can't begin."""


def test_the_permissions_of_the_chart_are_those_that_are_used(ground: Ground) -> None:
    """None is refused, and none is granted that is not used; also for a clone."""
    objects = ground.objects
    ground.claim("source", "now")
    ground.until("the source is bound", lambda: ground.bound("source"))
    objects.make(
        kube_objects.CLAIM,
        "copy",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "now",
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "source"},
        },
    )
    ground.until("the clone is bound", lambda: ground.bound("copy"))
    names = [
        bound["metadata"]["name"]
        for c in ("source", "copy")
        if (bound := ground.bound(c))
    ]
    for claim in ("copy", "source"):
        objects.delete(kube_objects.CLAIM, claim)
    ground.until(
        "their volumes are deleted",
        lambda: not any(objects.get(kube_objects.VOLUME, name) for name in names),
    )
    granted, used = permissions(), set[Right]()
    for row in audit.rows(ground.where, csi.ACCOUNT):
        assert row.code not in (401, 403), row
        whole = f"{row.resource}/{row.subresource}".rstrip("/")
        if row.resource:  # not the versions of the API
            used.add((row.group, whole, row.verb))
    for right in sorted(granted | used):
        why = "used" if right in used else SELDOM.get(right, LISTS[right[2]])
        print(f"{' '.join(right):56} {right in granted!s:6} {why}")
    assert used <= granted
    unused = {right for right in granted - used if right[2] != "list"}
    assert unused <= set(SELDOM)


def permissions() -> set[Right]:
    """Return what the Roles of the chart grant, names of objects aside."""
    documents = yaml.safe_load_all(csi.manifest())
    granted = roles.rights(item for item in documents if "rules" in item)
    return {right[:3] for right in granted}


EXAMPLES = pathlib.Path("docs/examples")
CLASSES = ("default", "volume-type", "multiattach", "zone")
MULTIATTACH = "multiattach"


def apply_example(ground: Ground, file: str) -> None:
    """Apply an example by kubectl; its Pods tolerate that there is no kubelet."""
    documents = list(yaml.safe_load_all((EXAMPLES / file).read_text()))
    for document in documents:
        if document["kind"] == "Pod":
            document["spec"]["tolerations"] = [{"operator": "Exists"}]
    control_plane.apply_manifests(ground.where, yaml.safe_dump_all(documents))


@pytest.fixture()
def multiattach_type(ground: Ground) -> Iterator[None]:
    """Offer the volume type of the example; it is deleted after the last volume.

    A volume that a failed test left would also be counted by the next tests.
    """
    with cloud.connect(ground.where, accounts.ADMIN) as admin:
        specs = {"multiattach": "<is> True"}
        offered = admin.block_storage.create_type(
            name=MULTIATTACH, is_public=True, extra_specs=specs
        )
        yield
        remove_examples(ground)
        admin.block_storage.delete_type(str(offered.id))


@pytest.mark.skipif(testing.by_tier(True, False), reason="./pants long ::")
def test_each_volume_example_has_its_result(
    ground: Ground, multiattach_type: None
) -> None:
    """StorageClasses and claims of docs/examples, read from Cinder and Kubernetes."""
    del multiattach_type
    objects = ground.objects
    # Nova chose the zones of the servers.
    labels = {"labels": {ZONE_KEY: "az2"}}
    objects.patch(kube_objects.NODE, SERVERS[1], metadata=labels)
    apply_examples(ground)
    ground.claim("typed", "cinder-fast")
    ground.pod("uses-typed", "typed")
    for name in ("source", "rwx-block", "topology", "clone", "typed"):
        ground.until(f"{name} is bound", functools.partial(ground.bound, name))
    # The scheduler waits for the claim, then assigns the Pod.
    ground.until("the topology is used", lambda: node_of_pod(ground, "uses-topology"))
    results = results_of(ground)
    source = ground.handle("source")
    ground.until("it is attached", lambda: phase(ground, source, "IN_USE"))
    apply_example(ground, "claims/expansion.yaml")
    ground.until("it is expanded", lambda: has_grown(ground, "source", 3))
    results["expansion"] = volume_of(ground, "source").size_bytes // GIB
    ground.show(*results.items())
    assert results == {
        "rwx-block": (True, "Block", ["ReadWriteMany"]),
        "clone": (True, 2),
        "topology": "az2",
        "volume-type": ("fast", "Retain"),
        "expansion": 3,
    }


def apply_examples(ground: Ground) -> None:
    """Apply all but the expansion; a file that is not applied fails the test."""
    files = {f.stem for f in (EXAMPLES / "storage-classes").glob("*.yaml")}
    assert files == set(CLASSES)
    for name in CLASSES:
        apply_example(ground, f"storage-classes/{name}.yaml")
    names = ("source", "rwx-block", "topology", "clone", "pods")
    files = {f.stem for f in (EXAMPLES / "claims").glob("*.yaml")}
    assert files == {*names, "expansion"}
    for name in names:
        apply_example(ground, f"claims/{name}.yaml")


def results_of(ground: Ground) -> dict[str, object]:
    """Return what was created for the examples, by example."""
    shared, copy, typed = (
        volume_of(ground, name) for name in ("rwx-block", "clone", "typed")
    )
    block = bound_spec(ground, "rwx-block")
    retained = bound_spec(ground, "typed")["persistentVolumeReclaimPolicy"]
    is_copy = copy.source == ground.handle("source")
    return {
        "rwx-block": (shared.is_shareable, block["volumeMode"], block["accessModes"]),
        "clone": (is_copy, copy.size_bytes // GIB),
        "topology": zone_of_pod(ground, "uses-topology"),
        "volume-type": (typed.type, retained),
    }


def bound_spec(ground: Ground, claim: str) -> Json:
    """Return the spec of a claim's PersistentVolume."""
    bound = ground.bound(claim)
    assert bound is not None
    return dict(bound["spec"])


def volume_of(ground: Ground, claim: str) -> Volume:
    """Return a claim's volume in Cinder."""
    volume = ground.observed(ground.handle(claim))
    assert volume is not None
    return volume


def node_of_pod(ground: Ground, name: str) -> str:
    """Return the name of the Node that a Pod is assigned to, or ""."""
    pod = ground.objects.get(kube_objects.POD, name)
    assert pod is not None
    return str(pod["spec"].get("nodeName", ""))


def zone_of_pod(ground: Ground, name: str) -> str:
    """Return the zone of the Node that a Pod is assigned to."""
    node = ground.objects.get(kube_objects.NODE, node_of_pod(ground, name))
    assert node is not None
    return str(node["metadata"]["labels"][ZONE_KEY])


def remove_examples(ground: Ground) -> None:
    """Delete all of the examples, also the volume that would be retained."""
    objects = ground.objects
    for volume in objects.all(kube_objects.VOLUME):
        objects.patch(
            kube_objects.VOLUME,
            volume["metadata"]["name"],
            spec={"persistentVolumeReclaimPolicy": "Delete"},
        )
    delete_claims(objects)
    ground.until("no volume remains", lambda: not objects.all(kube_objects.VOLUME))
    for name in ("cinder", "cinder-fast", "cinder-shared", "cinder-zone"):
        objects.delete(kube_objects.CLASS, name)


def test_what_the_reference_made_goes_on_working(ground: Ground) -> None:
    """A volume and an attachment of its making are ours from now on."""
    objects, node = ground.objects, SERVERS[0]
    name = "pvc-0f0e0d0c-1111-2222-3333-444455556666"
    parsed = ground.volumes.parse(volume_request(name))
    assert not isinstance(parsed, tuple)
    handle = ground.volumes.create(parsed).id
    ground.until("there is a volume", lambda: phase(ground, handle, "AVAILABLE"))
    volume = ground.observed(handle)
    assert volume is not None
    ground.volumes.attach(volume, InstanceId(ground.instances[node]))
    ground.until("attached by hand", lambda: phase(ground, handle, "IN_USE"))
    caller = csi_wire.Caller(csi.address(ground.where))
    try:
        check_repeated(ground, caller, name, handle, node)
    finally:
        caller.close()
    mark = hashlib.sha256(f"{handle}{DRIVER}{node}".encode()).hexdigest()
    add_reference_objects(objects, name, handle, node, f"csi-{mark}")
    ground.until("its attachment is reported", lambda: is_attached(ground, name))
    objects.delete(kube_objects.ATTACHMENT, f"csi-{mark}")
    ground.until("it is detached", lambda: phase(ground, handle, "AVAILABLE"))
    objects.delete(kube_objects.CLAIM, "reference")
    ground.until("it is deleted", lambda: ground.observed(handle) is None)
    ground.until(
        "its object, too", lambda: objects.get(kube_objects.VOLUME, name) is None
    )
    ground.show()


def volume_request(name: str) -> VolumeRequest:
    return VolumeRequest(name, GIB, CLUSTER, parameters={"type": "fast"})


def phase(ground: Ground, handle: VolumeId, expected: str) -> bool:
    volume = ground.observed(handle)
    return volume is not None and volume.phase is VolumePhase[expected]


def check_repeated(
    ground: Ground, caller: csi_wire.Caller, name: str, handle: VolumeId, node: str
) -> None:
    """The same name is the same volume, and attached is attached."""
    able = csi_pb2.VolumeCapability(
        mount=csi_pb2.VolumeCapability.MountVolume(fs_type="ext4"),
        access_mode=csi_pb2.VolumeCapability.AccessMode(
            mode=csi_pb2.VolumeCapability.AccessMode.SINGLE_NODE_WRITER
        ),
    )
    again = csi_pb2.CreateVolumeRequest(
        name=name,
        capacity_range=csi_pb2.CapacityRange(required_bytes=GIB),
        volume_capabilities=[able],
        parameters={"type": "fast"},
    )
    created = caller(
        "Controller/CreateVolume", again, csi_pb2.CreateVolumeResponse, 60
    ).volume
    assert (created.volume_id, created.capacity_bytes) == (handle, GIB)
    publish = csi_pb2.ControllerPublishVolumeRequest(
        volume_id=handle, node_id=ground.instances[node], volume_capability=able
    )
    answer = caller(
        "Controller/ControllerPublishVolume",
        publish,
        csi_pb2.ControllerPublishVolumeResponse,
        60,
    )
    volume = ground.observed(handle)
    assert volume is not None
    assert dict(answer.publish_context) == dict(volume.attachments[0].publish_context)


def add_reference_objects(
    objects: kube_objects.Objects,
    name: str,
    handle: VolumeId,
    node: str,
    attachment: str,
) -> None:
    """Write a claim, its volume and its attachment as they are with the reference."""
    claim = objects.make(
        kube_objects.CLAIM,
        "reference",
        metadata={
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "volume.kubernetes.io/storage-provisioner": DRIVER,
            }
        },
        spec={
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "now",
            "volumeName": name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    )
    zone = {"key": ZONE_KEY, "operator": "In", "values": ["nova", "az1", "az2", "az3"]}
    objects.make(
        kube_objects.VOLUME,
        name,
        metadata={"annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        spec={
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "now",
            "volumeMode": "Filesystem",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": "reference",
                "namespace": NAMESPACE,
                "uid": claim["metadata"]["uid"],
            },
            "csi": {
                "driver": DRIVER,
                "fsType": "ext4",
                "volumeHandle": handle,
                "volumeAttributes": {
                    "storage.kubernetes.io/csiProvisionerIdentity": f"1-8081-{DRIVER}"
                },
            },
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
            },
        },
    )
    objects.make(
        kube_objects.ATTACHMENT,
        attachment,
        spec={
            "attacher": DRIVER,
            "nodeName": node,
            "source": {"persistentVolumeName": name},
        },
    )


def test_nothing_is_lost_or_left_when_the_driver_is_killed_at_random(
    ground: Ground,
) -> None:
    """Many claims at once, attached, grown and deleted; then all agree.

    Without an election: a sidecar that ended with the driver would wait for its own
    Lease to run out.
    """
    objects = ground.objects
    ground.words[:] = ["--leader-election=false"]
    processes.stop(ground.where, csi.SIDECARS)
    names = [f"many-{number}" for number in range(CLAIMS)]
    with ground.keeper.killing():
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: ground.claim(name, "now"), names))
        ground.until("all claims are bound", lambda: count_bound(objects) == CLAIMS)
        for number in range(PODS):
            ground.pod(f"pod-{number}", *names[2 * number : 2 * number + 2])
        ground.until(
            "all are attached",
            lambda: sum(map(is_reported, objects.all(kube_objects.ATTACHMENT)))
            == 2 * PODS,
        )
        grown = names[:GROWN] + names[2 * PODS : 2 * PODS + GROWN]
        for name in grown:
            grow(ground, name, 2)
        deleted = names[KEPT:]
        for name in deleted:
            objects.delete(kube_objects.CLAIM, name)
        for number in range(PODS // 2):
            objects.delete(kube_objects.POD, f"pod-{number}")
        ground.until(
            "some have grown",
            lambda: all(has_grown(ground, name, 2) for name in grown),
        )
        ground.until(
            "half are left attached",
            lambda: count(objects, kube_objects.ATTACHMENT) == PODS,
        )
        ground.until(
            "the others are left",
            lambda: count(objects, kube_objects.VOLUME) == KEPT,
        )
        ground.until("killed often", lambda: ground.keeper.kills >= KILLS)
    kills = ground.keeper.kills
    differences = compare(ground)
    ground.show(("csi-controller was killed", f"{kills} times"), *differences.items())
    assert set(differences.values()) == {"none"}


def count(objects: kube_objects.Objects, kind: resources.Resource) -> int:
    return len(objects.all(kind))


def count_bound(objects: kube_objects.Objects) -> int:
    return sum(
        claim.get("status", {}).get("phase") == "Bound"
        for claim in objects.all(kube_objects.CLAIM)
    )


def is_reported(attachment: Json) -> bool:
    return bool(attachment.get("status", {}).get("attached"))


def compare(ground: Ground) -> Mapping[str, str]:
    """Hold Cinder against the API server; give every difference by what is compared."""
    promised = {
        volume_["spec"]["csi"]["volumeHandle"]: volume_
        for volume_ in ground.objects.all(kube_objects.VOLUME)
    }
    names = {volume_["metadata"]["name"]: key for key, volume_ in promised.items()}
    existing = {volume.id: volume for volume in ground.volumes.listing()}
    links = {
        (
            names[attachment["spec"]["source"]["persistentVolumeName"]],
            ground.instances[attachment["spec"]["nodeName"]],
        )
        for attachment in ground.objects.all(kube_objects.ATTACHMENT)
        if is_reported(attachment)
    }
    held = {
        (volume.id, attachment.instance_id)
        for volume in existing.values()
        for attachment in volume.attachments
    }
    sizes = {
        key
        for key in promised.keys() & existing.keys()
        if promised[key]["spec"]["capacity"]["storage"]
        != f"{existing[VolumeId(key)].size_bytes // GIB}Gi"
    }
    odd = {
        volume.id
        for volume in existing.values()
        if volume.phase not in (VolumePhase.AVAILABLE, VolumePhase.IN_USE)
    }
    differences: Mapping[str, set[Any]] = {
        "volumes that only the API server knows": promised.keys() - existing.keys(),
        "volumes that only Cinder knows": existing.keys() - promised.keys(),
        "volumes whose sizes differ": sizes,
        "volumes in no settled state": odd,
        "attachments that only the API server knows": links - held,
        "attachments that only Nova knows": held - links,
    }
    return {
        what: str(sorted(ids)) if ids else "none" for what, ids in differences.items()
    }
