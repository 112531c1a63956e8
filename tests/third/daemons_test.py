"""The daemons run on a provider that no code of lib and cmd has heard of."""

import base64
import json
import pathlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import prometheus_client
import pytest
from google.protobuf import message

from lib.ccm import manager
from lib.ccm import options as ccm_options
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.cloud.volumes import VolumeSpec
from lib.csi import driver, flag_table
from lib.csi import options as csi_options
from lib.csi.spec import csi_pb2 as pb
from lib.daemon import reopening
from lib.discoverer import discoverer
from lib.discoverer import options as discovery_options
from lib.discovery.provider import Provider
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.lab.run import waiting
from lib.process import flags
from tests.third import cloud
from tests.third.volumes import CLASS, FEATURES, MIB

Json = dict[str, Any]
DRIVER = "meadow.csi.example"
SHEEP = InstanceId("sheep-1")
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
NODE: Json = {
    "metadata": {"name": "node-1"},
    "spec": {"taints": [{"key": TAINT, "value": "true", "effect": "NoSchedule"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    },
}
SERVICE: Json = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "type": "LoadBalancer",
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}],
    },
}
SOON = (("grpc.initial_reconnect_backoff_ms", 20),)
"""A client that comes before the socket is there tries again after this time."""
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
INVALID = grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture()
def world() -> cloud.World:
    new_world = cloud.World()
    new_world.instances[SHEEP] = Instance(
        SHEEP,
        "node-1",
        Phase.RUNNING,
        cloud.provider_id(SHEEP),
        (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
        "sheep",
        "pen-1",
    )
    return new_world


@pytest.fixture()
def api() -> fake_api.FakeApi:
    new_api = fake_api.FakeApi()
    new_api.put(resources.NAMESPACES, {"metadata": {"name": "kube-system"}})
    return new_api


class Process:
    """A daemon in a thread of this process."""

    def __init__(self, run: Callable[[], int], stop: threading.Event) -> None:
        """Start it. stop: ends it, as a signal does."""
        self._stop = stop
        self.codes: list[int] = []
        self._thread = threading.Thread(target=lambda: self.codes.append(run()))
        self._thread.start()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join(60)
        assert self.codes == [0]


def only(api: fake_api.FakeApi, resource: resources.Resource) -> Json:
    (object_,) = api.all(resource)
    copied: Json = json.loads(json.dumps(object_))
    return copied


def until(holds: Callable[[], object], what: str) -> None:
    waiting.until(what, holds)


def test_the_cloud_controller_manager_serves_nodes_and_services(
    world: cloud.World, api: fake_api.FakeApi
) -> None:
    """Initialises a Node, gives a Service its load balancer, and takes it away."""
    api.put(resources.NODES, NODE)
    api.put(resources.SERVICES, SERVICE)
    words = [f"--cloud-provider={cloud.NAME}", "--secure-port=0"]
    values = flags.parse(ccm_options.FLAGS, words)
    ccm_values = ccm_options.read(values, cloud.NAME)
    opened = reopening.Opened(world.open(), lambda: False)
    program = manager.ManagerProgram("ccm", "0", cloud.NAME, lambda calls: opened)
    registry = prometheus_client.CollectorRegistry()
    stop = threading.Event()
    daemon = manager.Manager(program, values, ccm_values, registry, stop)
    cloud_files = reopening.Reopening(lambda: opened)
    with Process(lambda: daemon.run(cloud_files, api, {}), stop):
        serve_node_and_service(world, api)
    shown = {family.name for family in registry.collect()}
    assert "mooring_load_balancer_problem" in shown
    assert not [name for name in shown if "openstack" in name]


def serve_node_and_service(world: cloud.World, api: fake_api.FakeApi) -> None:
    until(lambda: not only(api, resources.NODES)["spec"].get("taints"), "no taint")
    node = only(api, resources.NODES)
    assert node["spec"]["providerID"] == "meadow://sheep-1"
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "sheep"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "pen-1"

    def status() -> object:
        return only(api, resources.SERVICES).get("status", {}).get("loadBalancer")

    until(status, "a status of the Service")
    (relay,) = world.relays.values()
    assert status() == {"ingress": [{"hostname": f"{relay.id}.meadow.example"}]}
    assert (relay.ports, relay.nodes) == (((80, 30080),), ("node-1",))
    api.remove(resources.SERVICES, "web", "default")
    until(lambda: not world.relays, "no relay")
    until(lambda: not api.all(resources.SERVICES), "no Service")


class Plugin:
    """csi-controller on a socket, and a client of it."""

    def __init__(self, world: cloud.World, folder: pathlib.Path) -> None:
        self._socket = folder / "csi.sock"
        table = (
            flag_table.cloud((cloud.NAME,)),
            *flag_table.WORKING,
            *flag_table.INERT,
        )
        words = [f"--endpoint=unix://{self._socket}", "--cluster=cluster-1"]
        csi_values = csi_options.read(flags.parse(table, words))
        opened = reopening.Opened(world.open(), lambda: False)
        program = driver.DriverProgram(
            name="csi-controller",
            version="0",
            provider=cloud.NAME,
            driver=DRIVER,
            features=FEATURES,
            openers={"": lambda calls: opened},
        )
        registry = prometheus_client.CollectorRegistry()
        stop = threading.Event()
        # As one that was started long ago: no request of a killed one is awaited.
        times = driver.PluginTimes(grace_s=1.0, started=float("-inf"))
        plugin = driver.Plugin(program, csi_values, registry, stop, times)
        self.process = Process(lambda: plugin.run({}), stop)

    def call(self, rpc: str, request: message.Message, kind: type[Any]) -> Any:
        with grpc.insecure_channel(f"unix:{self._socket}", SOON) as channel:
            method: Any = channel.unary_unary(
                f"/csi.v1.{rpc}",
                request_serializer=lambda body: body.SerializeToString(),
                response_deserializer=kind.FromString,
            )
            return method(request, timeout=60, wait_for_ready=True)

    def code(self, rpc: str, request: message.Message) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as raised:
            self.call(rpc, request, pb.ProbeResponse)
        error: Any = raised.value
        return error.code(), str(error.details())


@pytest.fixture()
def plugin(world: cloud.World, tmp_path: pathlib.Path) -> Iterator[Plugin]:
    new_plugin = Plugin(world, tmp_path)
    with new_plugin.process:
        yield new_plugin


CAPABILITY = pb.VolumeCapability(
    block=pb.VolumeCapability.BlockVolume(),
    access_mode=pb.VolumeCapability.AccessMode(mode="SINGLE_NODE_WRITER"),
)


def creation(name: str, type_: str, **fields: Any) -> pb.CreateVolumeRequest:
    return pb.CreateVolumeRequest(
        name=name,
        parameters={CLASS: type_},
        volume_capabilities=[CAPABILITY],
        **fields,
    )


def test_csi_controller_serves_a_volume_from_its_creation_to_its_end(
    world: cloud.World, plugin: Plugin
) -> None:
    created = plugin.call(
        "Controller/CreateVolume", creation("pvc-1", "slow"), pb.CreateVolumeResponse
    ).volume
    (brick,) = world.bricks.values()
    assert (created.volume_id, created.capacity_bytes) == (brick.id, MIB)
    assert (brick.type, brick.cluster) == ("slow", "cluster-1")
    assert list(created.accessible_topology) == []
    held = plugin.call(
        "Controller/ControllerPublishVolume",
        pb.ControllerPublishVolumeRequest(
            volume_id=created.volume_id, node_id=SHEEP, volume_capability=CAPABILITY
        ),
        pb.ControllerPublishVolumeResponse,
    )
    assert dict(held.publish_context) == {"device": f"/dev/meadow/{brick.id}"}
    assert world.bricks[brick.id].holder == SHEEP
    unpublish = pb.ControllerUnpublishVolumeRequest(
        volume_id=created.volume_id, node_id=SHEEP
    )
    plugin.call(
        "Controller/ControllerUnpublishVolume",
        unpublish,
        pb.ControllerUnpublishVolumeResponse,
    )
    assert world.bricks[brick.id].holder == ""
    grown = plugin.call(
        "Controller/ControllerExpandVolume",
        pb.ControllerExpandVolumeRequest(
            volume_id=created.volume_id,
            capacity_range=pb.CapacityRange(required_bytes=5 * MIB),
        ),
        pb.ControllerExpandVolumeResponse,
    )
    assert grown.capacity_bytes == world.bricks[brick.id].size_bytes == 5 * MIB
    deletion = pb.DeleteVolumeRequest(volume_id=created.volume_id)
    plugin.call("Controller/DeleteVolume", deletion, pb.DeleteVolumeResponse)
    assert world.bricks == {}


def test_csi_controller_offers_what_the_provider_has(plugin: Plugin) -> None:
    offered = plugin.call(
        "Controller/ControllerGetCapabilities",
        pb.ControllerGetCapabilitiesRequest(),
        pb.ControllerGetCapabilitiesResponse,
    )
    kind = pb.ControllerServiceCapability.RPC
    assert [capability.rpc.type for capability in offered.capabilities] == [
        kind.CREATE_DELETE_VOLUME,
        kind.PUBLISH_UNPUBLISH_VOLUME,
        kind.GET_VOLUME,
        kind.VOLUME_CONDITION,
        kind.EXPAND_VOLUME,
        kind.SINGLE_NODE_MULTI_WRITER,
    ]
    who = plugin.call(
        "Identity/GetPluginCapabilities",
        pb.GetPluginCapabilitiesRequest(),
        pb.GetPluginCapabilitiesResponse,
    )
    service, expansion = who.capabilities
    assert service.service.type == pb.PluginCapability.Service.CONTROLLER_SERVICE
    offline = pb.PluginCapability.VolumeExpansion.OFFLINE
    assert expansion.volume_expansion.type == offline
    for rpc, request in (
        ("GetCapacity", pb.GetCapacityRequest()),
        ("ListVolumes", pb.ListVolumesRequest()),
        ("ControllerModifyVolume", pb.ControllerModifyVolumeRequest(volume_id="x")),
    ):
        assert plugin.code(f"Controller/{rpc}", request)[0] is UNIMPLEMENTED


def test_csi_controller_refuses_what_the_provider_lacks(plugin: Plugin) -> None:
    code, text = plugin.code("Controller/CreateVolume", creation("pvc-2", "golden"))
    assert (code, CLASS in text, "fast" in text) == (INVALID, True, True)
    volume = pb.VolumeContentSource.VolumeSource(volume_id="brick-1")
    source = pb.VolumeContentSource(volume=volume)
    clone = creation("pvc-3", "fast", volume_content_source=source)
    code, text = plugin.code("Controller/CreateVolume", clone)
    assert (code, "volume_content_source" in text) == (INVALID, True)


def test_the_discoverer_publishes_what_there_is_and_nothing_else(
    world: cloud.World, api: fake_api.FakeApi
) -> None:
    volumes = world.open().volumes
    assert volumes is not None
    orphan = volumes.create(VolumeSpec("pvc-1", MIB, "cluster-1"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    of = Provider(
        provisioner=DRIVER,
        type_parameter=CLASS,
        parameters=(("thin", "yes"),),
        access_deployment="d8-meadow/cloud-data-discoverer",
        lasting=("zones",),
    )
    table = discovery_options.table((cloud.NAME,), of.access_deployment)
    words = [
        f"--cloud={cloud.NAME}",
        "--manage-storage-classes",
        "--discovery-period=1s",
        f"--listen-address=127.0.0.1:{port}",
    ]
    env = {"CLUSTER_UUID": "cluster-1"}
    settings = discovery_options.read(flags.parse(table, words), env, of)
    registry = prometheus_client.CollectorRegistry()
    stop = threading.Event()
    daemon = discoverer.Discoverer(world.open(), api, settings, registry, stop)
    labels = {"id": orphan.id, "name": "pvc-1"}
    series = "cloud_data_discovery_orphaned_disk_info"
    with Process(daemon.run, stop):
        until(lambda: len(api.all(resources.STORAGE_CLASSES)) == 2, "StorageClasses")
        until(lambda: api.all(resources.SECRETS), "the document")
        until(lambda: registry.get_sample_value(series, labels) == 1, "the orphan")
    classes: list[Any] = list(api.all(resources.STORAGE_CLASSES))
    assert {
        storage_class["metadata"]["name"]: storage_class["parameters"]
        for storage_class in classes
    } == {
        "fast": {CLASS: "fast", "thin": "yes"},
        "slow": {CLASS: "slow", "thin": "yes"},
    }
    assert {storage_class["provisioner"] for storage_class in classes} == {DRIVER}
    data = only(api, resources.SECRETS)["data"]["discovery-data.json"]
    assert json.loads(base64.b64decode(data))["kind"] == "MeadowDiscoveryData"
    assert api.all(resources.INSTANCE_TYPES_CATALOGS) == ()
    steps = {
        sample.labels["step"]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "mooring_discovery_step_error" and not sample.value
    }
    assert steps == {"discovery_data", "orphaned_disks", "storage_classes"}
