"""What finding 1,000 owned resources among 5,000 costs before the first is deleted.

On the fake Octavia and Neutron behind the real client. Counts are asserted; seconds
are those of this machine, and printed. The token and documents of versions are not
counted: three calls more where the process has just started.
"""

import time

import pytest

from lib.cloud import protocol, provider_id, route_records
from lib.cloud.fake import volumes as fake_volumes
from lib.cloud.load_balancers import Cluster
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import session, wire
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from lib.cloud.routes import Record, Recorded, Route
from lib.cloud.volumes import Volume, VolumeId, VolumePhase
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.orphans import cleanup, decide, deletion_flow, model, observe
from lib.orphans.model import FindingState
from lib.process.clock import utc_now

MOST_CALLS = 15
CREATED = "2026-01-01T00:00:00"
CLUSTER = "0b1d4a6e-0000-4000-8000-00000000000a"
EACH, OWNED_EACH, ROUTES = 1000, 200, 30
KINDS = ("load balancers", "pools", "floating IPs", "security groups", "volumes")


def uid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def fill(cloud: session.FakeOpenStack, volumes: fake_volumes.FakeVolumes) -> None:
    """Have 1,000 resources of each kind, 200 of them owned by the cluster."""
    octavia, neutron = cloud.octavia, cloud.neutron
    for number in range(EACH):
        owner = CLUSTER if number < OWNED_EACH else "another-cluster"
        tag = f"mooring:{owner}:{uid(number)}"
        name = f"kube_service_kubernetes_default_web-{number}"
        about = f"service default/web-{number} from cluster kubernetes"
        id_ = f"{number:08x}-1111-4000-8000-000000000000"
        balancer: wire.Json = {
            "id": id_,
            "name": name,
            "description": f"Kubernetes external {about}",
            "provisioning_status": "ACTIVE",
            "created_at": CREATED,
            "updated_at": CREATED,
            "vip_address": f"10.9.{number // 250}.{number % 250}",
            "vip_port_id": "",
            "tags": [name, tag, "mooring-made"],
        }
        octavia.load_balancers[id_] = balancer
        octavia.pools[f"pool-{id_}"] = {
            "id": f"pool-{id_}",
            "name": f"pool_0_{name}",
            "tags": [tag],
            "listeners": [],
            "loadbalancers": [{"id": id_}],
            "created_at": CREATED,
        }
        neutron.floating_ips[f"ip-{id_}"] = {
            "id": f"ip-{id_}",
            "floating_ip_address": f"198.18.{number // 250}.{number % 250}",
            "port_id": None,
            "description": f"Floating IP for Kubernetes external {about} ({tag})",
            "created_at": f"{CREATED}Z",
            "revision_number": 0,
        }
        neutron.groups[f"group-{id_}"] = {
            "id": f"group-{id_}",
            "name": f"lb-sg-{uid(number)}-default-web-{number}",
            "description": f"Security Group for default/web-{number} Service"
            f" LoadBalancer in cluster kubernetes ({tag})",
            "security_group_rules": [],
            "created_at": f"{CREATED}Z",
        }
        disk = Volume(VolumeId(f"volume-{id_}"), f"pvc-{uid(number)}", 2**30,
                      VolumePhase.AVAILABLE, cluster=owner)  # fmt: skip
        volumes.put(disk)


def add_routes(cloud: session.FakeOpenStack, api: fake_api.FakeApi) -> str:
    """Have a router with recorded routes of a Node that is absent; give its ID."""
    neutron = cloud.neutron
    subnet = neutron.add_subnet(neutron.add_network("inside"), "10.0.0.0/16")
    router_id = neutron.add_router(subnet)
    routes = [Route(f"10.244.{n}.0/24", "10.0.0.9") for n in range(ROUTES)]
    neutron.l3.routers[router_id]["routes"] = [
        {"destination": route.destination, "nexthop": route.next_hop}
        for route in routes
    ]
    entries = tuple(Recorded(route, "lost") for route in routes)
    record = Record(router_id, CLUSTER, entries)
    about = {"name": route_records.NAME, "namespace": route_records.NAMESPACE}
    data = {route_records.key(record): route_records.written(record)}
    api.put(resources.CONFIG_MAPS, {"metadata": about, "data": data})
    api.put(resources.NODES, {"metadata": {"name": "present"}})
    return router_id


class FirstWrite(Exception):
    """The first write is about to be sent."""


def test_few_calls_are_made_before_the_first_deletion() -> None:
    cloud = session.FakeOpenStack()
    volumes = fake_volumes.FakeVolumes(cloud.clock)
    fill(cloud, volumes)
    api = fake_api.FakeApi()
    for number in range(EACH):
        about = {"name": f"other-{number}", "namespace": "default"}
        api.put(resources.SERVICES, {"metadata": about, "spec": {}})
        source = {"driver": "example.com", "volumeHandle": f"other-{number}"}
        persistent = {"metadata": {"name": f"v-{number}"}, "spec": {"csi": source}}
        api.put(resources.PERSISTENT_VOLUMES, persistent)
    client = cloud.client()
    opened = protocol.Cloud(
        provider_id.OPENSTACK,
        load_balancers=OctaviaLoadBalancers(client, settings.LoadBalancer()),
        volumes=volumes,
        routes=NeutronRoutes(client, add_routes(cloud, api)),
    )
    began = time.monotonic()
    configured = model.Settings(Cluster(CLUSTER, "kubernetes"), CLUSTER, own_id=CLUSTER)
    lists = observe.cloud_lists(opened, configured, observe.records(api, configured))
    cluster = observe.cluster_lists(api, configured)
    survey = decide.decide(lists, cluster, configured, utc_now())
    surveyed = len(cloud.calls) + len(volumes.calls)
    seconds = time.monotonic() - began

    def stop(call: wire.Call) -> None:
        if call.method != "GET":
            raise FirstWrite

    cloud.fault = stop
    clocks = deletion_flow.PollClocks(cloud.clock, cloud.clock.sleep)
    work = cleanup.Cleanup(opened, api, configured, lists, clocks)
    with pytest.raises(FirstWrite):
        work.run(survey.of(FindingState.ORPHAN, FindingState.KEPT), lambda result: None)
    reads = [call for call in cloud.calls if call.method == "GET"]
    calls = len(reads) + len(volumes.calls)
    orphaned = survey.of(FindingState.ORPHAN, FindingState.KEPT)
    kinds = len(KINDS)
    print(
        f"{kinds * EACH + ROUTES} resources, {len(orphaned)} owned and orphaned:"
        f" {surveyed} calls of the cloud for the list ({seconds:.1f} s),"
        f" {calls} before the first deletion (at most {MOST_CALLS});"
        f" {len(api.calls)} calls of the API server"
    )
    assert len(orphaned) == kinds * OWNED_EACH + ROUTES
    assert survey.unknown == ()
    assert calls <= MOST_CALLS
