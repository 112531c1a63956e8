"""The files that one Node, Service, call of CSI and cycle of discovery enter.

Between the watch, or the edge, and the provider: the packages of Kubernetes, of the
process and of the cloud are not counted. The bounds are the figures of
docs/design.md.
"""

import pathlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import prometheus_client

import lib
from lib.balancers import flow as balancers_flow
from lib.balancers import model as balancers_model
from lib.balancers import observe as balancers_observe
from lib.cloud import catalog
from lib.cloud.fake import catalog as fake_catalog
from lib.cloud.fake import instances as fake_instances
from lib.cloud.fake import load_balancers as fake_load_balancers
from lib.cloud.fake import volumes as fake_volumes
from lib.cloud.fake.clock import Clock
from lib.cloud.load_balancers import Cluster
from lib.cloud.model import Address, AddressType, Instance, InstanceId, Phase
from lib.csi import clouds, controller, messages
from lib.csi.spec import csi_pb2 as pb
from lib.discoverer import metrics as discoverer_metrics
from lib.discovery import act as discovery_act
from lib.discovery import flow as discovery_flow
from lib.discovery import model as discovery_model
from lib.discovery import observe as discovery_observe
from lib.discovery.openstack import provider
from lib.kube import events, resources, store
from lib.kube import nodes as kube_nodes
from lib.kube.fake import api as fake_api
from lib.lab.run import waiting
from lib.nodes import act as nodes_act
from lib.nodes import flow as nodes_flow
from lib.nodes import model as nodes_model
from lib.nodes import observe as nodes_observe
from lib.reconcile import metrics as reconcile_metrics
from lib.reconcile import queue, runner
from lib.volumes import callers
from lib.volumes import flow as volumes_flow
from tests.walks import tracing

S = TypeVar("S")
A = TypeVar("A")
LIB = pathlib.Path(lib.__file__).parent
BEYOND = ("kube/", "process/", "cloud/", "lab/")
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
WRITER = pb.VolumeCapability.AccessMode.Mode.SINGLE_NODE_WRITER


def counted(walk: str, files: set[str]) -> None:
    own = sorted(file for file in files if not file.startswith(BEYOND))
    print(f"{walk}: {len(own)} files: {' '.join(own)}")
    assert 0 < len(own) <= tracing.drawn(walk)


def run(
    flow: runner.Flow[S, A],
    waiting_keys: queue.Queue,
    is_done: Callable[[], bool],
    reading: runner.SlowReading[S] | None = None,
) -> None:
    """Run a flow until something holds."""
    reconciler = runner.Runner(
        flow,
        waiting_keys,
        reconcile_metrics.ReconcileMetrics(prometheus_client.CollectorRegistry()),
        runner.RunnerSettings(),
        reading=reading,
    )
    stop = threading.Event()
    thread = threading.Thread(target=reconciler.run, args=(stop,))
    thread.start()
    try:
        waiting.until("the walk has ended", is_done)
    finally:
        stop.set()
        thread.join()


def test_a_node_is_initialised() -> None:
    api, cloud = fake_api.FakeApi(), fake_instances.FakeInstances()
    cloud.put(
        Instance(
            InstanceId("node-1"),
            "node-1",
            Phase.RUNNING,
            fake_instances.provider_id("node-1"),
            (Address(AddressType.INTERNAL_IP, "10.0.0.1"),),
            "m1.small",
        )
    )
    taint = {"key": TAINT, "value": "true", "effect": "NoSchedule"}
    spec = {"taints": [taint]}
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    status = {
        "addresses": [address],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    node = {"metadata": {"name": "node-1"}, "spec": spec, "status": status}
    api.put(resources.NODES, node)
    nodes = store.Store(api, resources.NODES, kube_nodes.Node)
    recorders = {
        source: events.Recorder(api, component=source, host="")
        for source in nodes_model.Source
    }
    settings = nodes_model.NodeSettings()
    done = threading.Event()
    flow = nodes_flow.NodesFlow(
        nodes_observe.NodeObserver(nodes, api, lambda: cloud, settings),
        nodes_act.NodeActor(api, nodes, recorders),
        settings,
        lambda node: done.set(),
    )
    keys = queue.Queue(queue.Backoff(1, 1))
    nodes_flow.watch(nodes, flow, keys.add)
    with tracing.entered(LIB) as files:
        nodes.relist()
        run(flow, keys, done.is_set)
    counted("a Node is initialised", files)


def test_a_service_gets_its_load_balancer() -> None:
    api = fake_api.FakeApi()
    cloud = fake_load_balancers.FakeLoadBalancers(
        time.monotonic, busy_s=0.05, poll_s=0.02
    )
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
    api.put(
        resources.SERVICES,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "ports": ports},
        },
    )
    services = store.Store(api, resources.SERVICES, balancers_model.Service)
    recorders = {
        source: events.Recorder(api, component=source, host="")
        for source in balancers_model.Source
    }
    keys = queue.Queue(queue.Backoff(1, 1))
    cluster = Cluster("cluster-1", "kubernetes")
    flow = balancers_flow.BalancersFlow(
        sources=balancers_observe.Sources(services, api, tuple, lambda: cluster),
        load_balancers=lambda: cloud,
        writing=api,
        recorders=recorders,
        on_open=keys.add_all,
    )
    balancers_flow.watch(services, flow, keys.add)

    def is_served() -> bool:
        services.relist()
        (service,) = services.items().values()
        return bool(service.status.load_balancer.ingress)

    with tracing.entered(LIB) as files:
        services.relist()
        run(flow, keys, is_served, reading=flow)
    counted("a Service gets its load balancer", files)


def test_a_volume_is_created() -> None:
    moments = Clock()
    cloud = fake_volumes.FakeVolumes(moments)
    flow = volumes_flow.VolumesFlow(
        lambda: cloud,
        callers.CallEffects(moments, moments.wait),
        metrics=reconcile_metrics.ReconcileMetrics(
            prometheus_client.CollectorRegistry()
        ),
    )
    topology = messages.Topology("zone", False)
    edge = controller.Controller(
        clouds.Clouds({"": flow}), controller.ControllerSettings("c", topology)
    )
    capability = pb.VolumeCapability(
        access_mode=pb.VolumeCapability.AccessMode(mode=WRITER)
    )
    capability.mount.SetInParent()
    request = pb.CreateVolumeRequest(name="pvc-1", volume_capabilities=[capability])
    with tracing.entered(LIB) as files:
        edge.create_volume(request, callers.Caller(moments() + 300))
    counted("CreateVolume", files)


def test_a_cycle_of_discovery_publishes_and_keeps_classes() -> None:
    api = fake_api.FakeApi()
    document: dict[str, object] = {
        "apiVersion": "deckhouse.io/v1alpha1",
        "kind": "OpenStackCloudProviderDiscoveryData",
        "flavors": ["m1.small"],
        "additionalNetworks": ["net"],
        "additionalSecurityGroups": ["default"],
        "defaultImageName": "ubuntu",
        "images": ["ubuntu"],
        "mainNetwork": "net",
        "zones": ["az1"],
        "volumeTypes": [{"id": "1", "name": "fast"}],
    }
    cloud = fake_catalog.FakeCatalog(
        instance_types=(catalog.InstanceType("m1.small", 2, 2048, 20),),
        document=document,
        storage_types=(catalog.StorageType("fast", "id-1"),),
    )
    settings = discovery_model.DiscoverySettings(
        cluster_id="c", manages_classes=True, provider=provider.OPENSTACK
    )
    discovery_metrics = discoverer_metrics.DiscoveryMetrics(
        prometheus_client.CollectorRegistry(), settings.steps
    )
    flow = discovery_flow.DiscoveryFlow(
        discovery_observe.CatalogObserver(
            cloud, api, settings, discovery_metrics.shown
        ),
        discovery_act.DiscoveryActor(api, discovery_metrics, settings.provider),
        settings,
        discovery_metrics,
    )
    keys = queue.Queue(queue.Backoff(1, 1))

    def is_published() -> bool:
        return bool(api.all(resources.SECRETS)) and bool(
            api.all(resources.STORAGE_CLASSES)
        )

    with tracing.entered(LIB) as files:
        for step in settings.steps:
            keys.add(step.value, discovery_flow.CYCLE)
        run(flow, keys, is_published)
    counted("a cycle of discovery", files)
