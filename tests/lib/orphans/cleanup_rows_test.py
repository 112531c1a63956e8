"""Every kind of leftover: how it is listed, and what becomes of it.

The cloud's API is the fake Octavia and Neutron behind the real client; a table is
printed, and a leftover of the list without a row fails.
"""

import dataclasses
import datetime
from collections.abc import Callable, Iterator

import pytest

from lib.cloud import protocol, provider_id, route_records
from lib.cloud import volumes as cloud_volumes
from lib.cloud.fake import volumes as fake_volumes
from lib.cloud.load_balancers import Cluster, Node, Port, Role
from lib.cloud.model import InstanceId
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.routes.cloud import NeutronRoutes
from lib.cloud.routes import AddressPair, Record, Recorded, Route
from lib.cloud.volumes import Attachment
from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.orphans import cleanup, decide, deletion_flow, model, observe
from lib.orphans.model import Finding, FindingState, Other, Survey
from lib.process.clock import utc_now

CLUSTER = driver.CLUSTER
VOLUME_CLUSTER = "0b1d4a6e-0000-4000-8000-000000000001"
GROUPS = settings.LoadBalancer(manage_security_groups=True, max_shared_lb=4)
KEPT, ORPHAN, NOT_OWNED = FindingState.KEPT, FindingState.ORPHAN, FindingState.NOT_OWNED
FOREIGN = "kube_service_other_default_web"


@dataclasses.dataclass
class Scene:
    """A cloud with load balancers of Services, and the cluster with the Services."""

    cloud: session.FakeOpenStack
    ground: driver.Ground
    volumes: fake_volumes.FakeVolumes
    api: fake_api.FakeApi = dataclasses.field(default_factory=fake_api.FakeApi)
    router_id: str = ""

    def __post_init__(self) -> None:
        self.router_id = self.cloud.neutron.add_router(self.ground.subnet_id)

    @property
    def router(self) -> wire.Json:
        """The router of the configuration."""
        return self.cloud.neutron.l3.routers[self.router_id]

    def serve(
        self, name: str, nodes: tuple[Node, ...] = (), **fields: object
    ) -> driver.Driver:
        """Have a Service with all that is created for it. nodes: one by default."""
        about = {"name": name, "namespace": "default"}
        created = self.api.put(resources.SERVICES, {"metadata": about, "spec": {}})
        uid = str(wire.part(created, "metadata")["uid"])
        nodes = nodes or (self.ground.node(len(self.cloud.neutron.ports) + 1),)
        facts = driver.service(nodes, name=name, uid=uid, **fields)
        driven = driver.Driver(self.ground, facts, GROUPS)
        driven.settle()
        self.put(driven)
        return driven

    def put(self, driven: driver.Driver) -> None:
        """Have the Service in the cluster, as it is now."""
        facts = driven.facts
        ingress = [{"ip": item.ip} for item in facts.ingress if item.ip]
        self.api.put(
            resources.SERVICES,
            {
                "metadata": {
                    "name": facts.name,
                    "namespace": facts.namespace,
                    "uid": facts.uid,
                    "annotations": dict(facts.annotations),
                },
                "spec": {"type": "LoadBalancer"},
                "status": {"loadBalancer": {"ingress": ingress}},
            },
        )

    def lose(self, driven: driver.Driver) -> None:
        """Remove a Service with nobody there to clean up."""
        self.api.remove(resources.SERVICES, driven.facts.name, "default")

    def protocols(self) -> protocol.Cloud:
        client = self.cloud.client()
        return protocol.Cloud(
            provider_id.OPENSTACK,
            load_balancers=OctaviaLoadBalancers(client, GROUPS),
            volumes=self.volumes,
            routes=NeutronRoutes(client, self.router_id),
        )

    def survey(
        self, min_age: datetime.timedelta = datetime.timedelta(0)
    ) -> tuple[Survey, cleanup.Cleanup]:
        cluster = Cluster(CLUSTER.id, CLUSTER.name)
        observed = model.Settings(cluster, VOLUME_CLUSTER, min_age=min_age)
        opened = self.protocols()
        recorded = observe.records(self.api, observed)
        lists = observe.cloud_lists(opened, observed, recorded)
        survey = decide.decide(
            lists, observe.cluster_lists(self.api, observed), observed, utc_now()
        )
        clocks = deletion_flow.PollClocks(self.cloud.clock, self.cloud.clock.sleep)
        return survey, cleanup.Cleanup(opened, self.api, observed, lists, clocks)

    def clean(self, *states: FindingState) -> list[cleanup.CleanupResult]:
        """Delete the findings of these states; usually orphans."""
        survey, work = self.survey()
        results: list[cleanup.CleanupResult] = []
        work.run(survey.of(*(states or (ORPHAN,))), results.append)
        return results


@pytest.fixture()
def scene() -> Scene:
    cloud = session.FakeOpenStack()
    observed = Scene(cloud, driver.ground(cloud), fake_volumes.FakeVolumes(cloud.clock))
    observed.api.put(
        resources.SERVICES,
        {
            "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"type": "ClusterIP"},
        },
    )
    observed.api.put(resources.PERSISTENT_VOLUMES, persistent("used", "used-id"))
    return observed


def persistent(name: str, handle: str) -> dict[str, object]:
    source = {"driver": "cinder.csi.openstack.org", "volumeHandle": handle}
    return {"metadata": {"name": name}, "spec": {"csi": source}}


def volume(scene: Scene, name: str, cluster: str | None = VOLUME_CLUSTER) -> str:
    """Have a volume; give its ID."""
    created = scene.volumes.create(
        cloud_volumes.VolumeSpec(name, 2**30, cluster or "", provider=None)
    )
    scene.cloud.clock.sleep(60)
    return created.id


Made = Callable[[Scene], None]


def stripped(scene: Scene) -> None:
    scene.lose(scene.serve("web"))


def force_deleted(scene: Scene) -> None:
    for number in (1, 2):
        scene.lose(scene.serve(f"web-{number}"))


def recreated(scene: Scene) -> None:
    stripped(scene)
    scene.serve("web")


def kept(scene: Scene) -> None:
    driven = scene.serve("web", annotations={keys.KEEP_FLOATING_IP: "true"})
    driven.settle(gone=True)
    scene.lose(driven)


def in_error(scene: Scene) -> None:
    driven = scene.serve("web")
    driven.balancer["provisioning_status"] = "ERROR"
    scene.lose(driven)


def shared(scene: Scene) -> tuple[driver.Driver, driver.Driver]:
    """Have a Service on the load balancer of another one."""
    before = len(scene.cloud.octavia.load_balancers) + 1
    owner = scene.serve("owner")
    id_ = str(owner.balancer["id"])
    user = scene.serve(
        "user",
        annotations={keys.LOAD_BALANCER_ID: id_},
        ports=(Port(81, node_port=30081),),
    )
    assert len(scene.cloud.octavia.load_balancers) == before
    return owner, user


def use_left(scene: Scene) -> None:
    _, user = shared(scene)
    scene.lose(user)


def pool_left(scene: Scene) -> None:
    """The listener is deleted by hand, then the Service by an older daemon."""
    owner, user = shared(scene)
    octavia = scene.cloud.octavia
    (listener,) = (
        listener
        for listener in octavia.listeners.values()
        if listener["protocol_port"] == 81
    )
    del octavia.listeners[str(listener["id"])]
    for pool in octavia.pools.values():
        observed = wire.objects(pool, "listeners")
        pool["listeners"] = [item for item in observed if item["id"] != listener["id"]]
    owner.balancer["tags"] = [
        tag for tag in wire.texts(owner.balancer["tags"]) if "user" not in tag
    ]
    groups = scene.cloud.neutron.groups
    (group,) = (
        id_ for id_, group in groups.items() if user.facts.uid in str(group["name"])
    )
    for port in scene.cloud.neutron.ports.values():
        port["security_groups"] = [
            id_ for id_ in wire.texts(port["security_groups"]) if id_ != group
        ]
    del groups[group]
    scene.lose(user)


def old_pool_left(scene: Scene) -> None:
    pool_left(scene)
    for pool in scene.cloud.octavia.pools.values():
        pool["tags"] = []


def duplicate(scene: Scene) -> None:
    driven = scene.serve("web")
    octavia = scene.cloud.octavia
    second = dict(driven.balancer)
    second |= {
        "id": scene.cloud.new_id("balancer"),
        "created_at": "2026-09-01T00:00:00",
    }
    second |= {"vip_port_id": "", "vip_address": "10.0.9.9"}
    octavia.load_balancers[str(second["id"])] = second


def group_on_port(
    scene: Scene, name: str = "web", nodes: tuple[Node, ...] = ()
) -> None:
    """The load balancer was deleted by hand."""
    driven = scene.serve(name, nodes)
    octavia, neutron = scene.cloud.octavia, scene.cloud.neutron
    del neutron.floating_ips[str(driven.floating_ip["id"])]
    del octavia.pools[str(driven.pool["id"])]
    del octavia.listeners[str(driven.listener["id"])]
    del octavia.load_balancers[str(driven.balancer["id"])]
    scene.lose(driven)


def lone_volume(scene: Scene) -> None:
    volume(scene, "pvc-lost")


def pending_claim(scene: Scene) -> None:
    about = {"name": "data", "namespace": "default"}
    claim = scene.api.put(resources.CLAIMS, {"metadata": about, "spec": {}})
    volume(scene, f"pvc-{wire.part(claim, 'metadata')['uid']}")


HELD = (Route("10.244.9.0/24", "10.0.0.250"), Route("192.0.2.0/24", "10.0.0.251"))
"""Of a Node that exists, and a blackhole route of the reference."""


def routes_left(scene: Scene) -> None:
    """The Node was deleted while no daemon ran."""
    neutron = scene.cloud.neutron
    port = neutron.add_port(scene.ground.subnet_id, "10.0.0.240", "server-lost")
    neutron.ports[port]["allowed_address_pairs"] = [
        {"ip_address": "10.244.1.0/24", "mac_address": ""},
        {"ip_address": "10.0.0.9/32", "mac_address": ""},
    ]
    lost = Route("10.244.1.0/24", "10.0.0.240")
    listed = (lost, *HELD)
    scene.router["routes"] = [
        {"destination": item.destination, "nexthop": item.next_hop} for item in listed
    ]
    record = Record(
        scene.router_id,
        CLUSTER.id,
        (
            Recorded(lost, "node-lost"),
            Recorded(HELD[0], "node-here"),
            Recorded(AddressPair(port, "10.244.1.0/24"), "node-lost"),
        ),
    )
    about = {"name": route_records.NAME, "namespace": route_records.NAMESPACE}
    data = {route_records.key(record): route_records.written(record)}
    scene.api.put(resources.CONFIG_MAPS, {"metadata": about, "data": data})
    scene.api.put(resources.NODES, {"metadata": {"name": "node-here"}})


def look_alikes(scene: Scene) -> None:
    """What the reference leaves of a Service in another cluster."""
    driven = scene.serve("web")
    for thing in (driven.balancer, driven.listener):
        thing["tags"] = [t for t in wire.texts(thing["tags"]) if "mooring" not in t]
    groups = scene.cloud.neutron.groups.values()
    (group,) = (group for group in groups if driven.facts.uid in str(group["name"]))
    for thing in (driven.floating_ip, group):
        thing["description"] = str(thing["description"]).split(" (mooring:")[0]
    scene.lose(driven)


LB, USE, PART, IP, SG = (
    Role.LOAD_BALANCER,
    Role.USE,
    Role.PART,
    Role.ADDRESS,
    Role.FILTER,
)
WHOLE = ((ORPHAN, LB), (ORPHAN, IP), (ORPHAN, SG))
Expected = tuple[tuple[FindingState, model.Subject], ...]
ROWS: dict[str, tuple[Made, Expected, str]] = {
    "finalizer stripped": (stripped, WHOLE, "does not exist"),
    "namespace force-deleted": (force_deleted, WHOLE * 2, "does not exist"),
    "recreated under the same name": (recreated, WHOLE, "another UID"),
    "floating IP retained": (kept, ((KEPT, IP),), "retained"),
    "load balancer in ERROR": (in_error, WHOLE, "ERROR"),
    "use of a shared load balancer": (
        use_left,
        ((ORPHAN, USE), (ORPHAN, SG)),
        "does not exist",
    ),
    "pool without its listener": (pool_left, ((ORPHAN, PART),), "does not exist"),
    "older pool without a tag": (old_pool_left, ((NOT_OWNED, PART),), "no ownership"),
    "younger of two duplicates": (duplicate, ((ORPHAN, LB),), "second one"),
    "security group still on a port": (group_on_port, ((ORPHAN, SG),), "on port"),
    "route of a Node deleted meanwhile": (
        routes_left,
        (
            (ORPHAN, Other.ROUTE),
            (ORPHAN, Other.PAIR),
            (NOT_OWNED, Other.ROUTE),
        ),
        "Node node-lost does not exist",
    ),
    "volume without PersistentVolume": (
        lone_volume,
        ((ORPHAN, Other.VOLUME),),
        "no PersistentVolume",
    ),
    "volume of a pending claim": (pending_claim, (), ""),
    "untagged look-alikes": (
        look_alikes,
        ((NOT_OWNED, LB), (NOT_OWNED, IP), (NOT_OWNED, SG)),
        "no ownership tag",
    ),
}


def summary(
    findings: tuple[Finding, ...],
) -> Iterator[tuple[FindingState, model.Subject]]:
    return ((finding.state, finding.subject) for finding in findings)


@pytest.mark.parametrize("row", ROWS)
def test_each_leftover_is_listed_and_deleted(scene: Scene, row: str) -> None:
    """What belongs to living Services, and what is not owned, stays as it was."""
    make, expected, word = ROWS[row]
    living = scene.serve("living")
    held = held_by(living)
    make(scene)
    survey, _ = scene.survey()
    for finding in survey.findings:
        print(
            f"{row:34} {finding.state:10} {finding.kind:22}"
            f" {finding.created_for:16} {finding.reason}"
        )
    assert survey.unknown == ()
    assert sorted(summary(survey.findings), key=repr) == sorted(expected, key=repr)
    assert word in " ".join(finding.reason for finding in survey.findings)
    chosen = survey.of(ORPHAN, KEPT)
    results = scene.clean(ORPHAN, KEPT)
    assert [result.why for result in results] == [""] * len(chosen)
    left, _ = scene.survey()
    assert {finding.state for finding in left.findings} <= {NOT_OWNED}
    assert {finding.id for finding in left.findings} == {
        finding.id for finding in survey.of(NOT_OWNED)
    }
    assert held_by(living) == held
    count = len(scene.cloud.writes)
    assert scene.clean(ORPHAN, KEPT) == []
    assert len(scene.cloud.writes) == count


def held_by(driven: driver.Driver) -> str:
    """All that is another Service's."""
    things: list[object] = [driven.balancer, driven.listener, driven.pool]
    things += [driven.members, driven.floating_ip]
    return repr(things)


def test_kept_addresses_and_look_alikes_are_not_orphans(scene: Scene) -> None:
    """They are deleted on request alone, or never."""
    kept(scene)
    look_alikes(scene)
    before = len(scene.cloud.writes)
    assert scene.clean() == []
    assert len(scene.cloud.writes) == before


def test_a_service_of_the_same_name_keeps_the_load_balancer_it_shares(
    scene: Scene,
) -> None:
    """A manifest with the old load-balancer-id was applied after a restore."""
    former = scene.serve("web")
    scene.lose(former)
    id_ = str(former.balancer["id"])
    ports = (Port(81, node_port=30081),)
    present = scene.serve("web", annotations={keys.LOAD_BALANCER_ID: id_}, ports=ports)
    survey, _ = scene.survey()
    assert LB in {item.subject for item in survey.of(ORPHAN)}
    results = scene.clean()
    octavia = scene.cloud.octavia
    left = [result.finding.subject for result in results if result.why]
    assert left == [IP], "the address of a load balancer that is in use"
    assert list(octavia.load_balancers) == [id_]
    assert [listener["protocol_port"] for listener in octavia.listeners.values()] == [
        81
    ]
    assert f"mooring-user:{CLUSTER.id}:{present.facts.uid}" in wire.texts(
        octavia.load_balancers[id_]["tags"]
    )


def test_only_recorded_routes_and_pairs_of_absent_nodes_are_removed(
    scene: Scene,
) -> None:
    """Everything else of the router and the port stays, field by field."""
    routes_left(scene)
    ports = {id_: dict(port) for id_, port in scene.cloud.neutron.ports.items()}
    assert [result.why for result in scene.clean()] == ["", ""]
    assert scene.router["routes"] == [
        {"destination": item.destination, "nexthop": item.next_hop} for item in HELD
    ]
    for id_, port in scene.cloud.neutron.ports.items():
        changed = {key for key in port if port[key] != ports[id_][key]}
        assert changed <= {"allowed_address_pairs", "revision_number"}
        if changed:
            (kept,) = wire.objects(port, "allowed_address_pairs")
            assert kept["ip_address"] == "10.0.0.9/32"


def test_a_record_that_cannot_be_read_is_unknown(scene: Scene) -> None:
    """Edited by hand: nothing of it is known to be owned."""
    routes_left(scene)
    (stored,) = scene.api.all(resources.CONFIG_MAPS)
    data = {key: f"{text} " for key, text in wire.part(stored, "data").items()}
    data = {key: text.replace("node-lost", "node-x") for key, text in data.items()}
    scene.api.put(resources.CONFIG_MAPS, {**stored, "data": data})
    survey, _ = scene.survey()
    print([item.why for item in survey.unknown])
    assert [item.subject for item in survey.unknown] == [Other.ROUTE, Other.PAIR]
    assert scene.clean() == []


def hide_services(scene: Scene) -> None:
    """The API server lists no Services any more."""
    scene.api.remove(resources.SERVICES, "kubernetes", "default")


def claim_by_others(scene: Scene) -> None:
    """Another cluster's tag takes the place of ours."""
    for thing in scene.cloud.octavia.load_balancers.values():
        thing["tags"] = ["mooring:another-cluster:uid-x"]
    neutron = scene.cloud.neutron
    for thing in (*neutron.floating_ips.values(), *neutron.groups.values()):
        thing["description"] = "taken (mooring:another-cluster:uid-x)"
    for group in neutron.groups.values():
        group["name"] = "taken"


def bind(scene: Scene) -> None:
    """A PersistentVolume for the volume comes late."""
    (disk,) = scene.volumes.volumes()
    scene.api.put(resources.PERSISTENT_VOLUMES, persistent("late", disk.id))


def attach(scene: Scene) -> None:
    """The volume is attached to a server."""
    (disk,) = scene.volumes.volumes()
    holder = (Attachment(InstanceId("server-1")),)
    used = cloud_volumes.VolumePhase.IN_USE
    scene.volumes.put(dataclasses.replace(disk, attachments=holder, phase=used))


def disown(scene: Scene) -> None:
    """The volume's ownership metadata is removed."""
    (disk,) = scene.volumes.volumes()
    scene.volumes.put(dataclasses.replace(disk, cluster=None))


CHANGES: dict[str, tuple[Made, Made, str]] = {
    "Services cannot be listed any more": (stripped, hide_services, "empty"),
    "a PersistentVolume leads to the volume": (lone_volume, bind, "uses it now"),
    "the volume is attached": (lone_volume, attach, "it is attached to server-1"),
    "the volume is not owned any more": (lone_volume, disown, "not owned by this"),
    "the load balancer is owned by others": (stripped, claim_by_others, "not owned"),
}


@pytest.mark.parametrize("row", CHANGES)
def test_what_changed_since_it_was_listed_is_not_deleted(
    scene: Scene, row: str
) -> None:
    """Each resource is read again before it is deleted."""
    make, change, why = CHANGES[row]
    make(scene)
    survey, work = scene.survey()
    orphans = survey.of(ORPHAN)
    assert orphans
    change(scene)
    writes, disks = len(scene.cloud.writes), scene.volumes.volumes()
    results: list[cleanup.CleanupResult] = []
    work.run(orphans, results.append)
    print(row, [result.why for result in results])
    assert [result.finding for result in results] == list(orphans)
    assert all(why in result.why for result in results)
    assert len(scene.cloud.writes) == writes
    assert scene.volumes.volumes() == disks


def test_a_router_that_changes_meanwhile_is_read_again(scene: Scene) -> None:
    """The write is refused by its revision; the other change is kept."""
    routes_left(scene)
    neutron = scene.cloud.neutron
    others: list[wire.Call] = []

    def interfere(call: wire.Call) -> session.Fault | None:
        if call.method != "GET" and not others:
            others.append(call)
            for port in neutron.ports.values():
                port["revision_number"] = int(str(port["revision_number"])) + 1
        return None

    scene.cloud.fault = interfere
    assert [result.why for result in scene.clean()] == ["", ""]
    assert others
    left, _ = scene.survey()
    assert left.of(ORPHAN) == ()


def test_security_groups_of_one_port_are_removed_without_conflicts(
    scene: Scene,
) -> None:
    """Many Services' groups are on a Node's port: no write is refused or repeated."""
    nodes = (scene.ground.node(1),)
    for number in range(8):
        group_on_port(scene, f"web-{number}", nodes)
    (port,) = (
        port
        for port in scene.cloud.neutron.ports.values()
        if len(wire.texts(port["security_groups"])) > 1
    )
    orphans = {finding.id for finding in scene.survey()[0].of(ORPHAN)}
    kept_groups = set(wire.texts(port["security_groups"])) - orphans
    before = len(scene.cloud.writes)
    assert [result.why for result in scene.clean()] == [""] * 8
    assert set(wire.texts(port["security_groups"])) == kept_groups
    writes = [(call.method, call.path) for call in scene.cloud.writes[before:]]
    print(len(writes), "writes")
    assert len(writes) == 16, writes


def test_a_port_that_another_client_keeps_changing_is_no_failure(scene: Scene) -> None:
    """More refusals than the attempts at a write that fails."""
    group_on_port(scene)
    neutron = scene.cloud.neutron
    refused: list[wire.Call] = []

    def interfere(call: wire.Call) -> session.Fault | None:
        is_port = call.method == "PUT" and "ports/" in call.path
        if is_port and len(refused) < deletion_flow.ATTEMPTS + 2:
            refused.append(call)
            for port in neutron.ports.values():
                port["revision_number"] = int(str(port["revision_number"])) + 1
        return None

    scene.cloud.fault = interfere
    assert [result.why for result in scene.clean()] == [""]
    assert len(refused) == deletion_flow.ATTEMPTS + 2


class Death(Exception):
    """The process is killed."""


@pytest.mark.parametrize(
    "row",
    [
        "namespace force-deleted",
        "pool without its listener",
        "route of a Node deleted meanwhile",
    ],
)
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_killed_at_each_write_it_ends_what_was_begun(
    row: str, *, is_after: bool
) -> None:
    """Each write of a whole run is the last one of a process once."""
    number, deaths = 0, 0
    while True:
        number += 1
        cloud = session.FakeOpenStack()
        scene = Scene(
            cloud, driver.ground(cloud), fake_volumes.FakeVolumes(cloud.clock)
        )
        living = scene.serve("living")
        held = held_by(living)
        ROWS[row][0](scene)
        begun = len(cloud.writes)

        def die(call: wire.Call, begun: int = begun, at: int = number) -> None:
            done = len(cloud.writes) - begun  # noqa: B023 - called in this round
            if call.method != "GET" and done == at:
                raise Death

        def die_before(call: wire.Call) -> None:
            die(call)  # - called in this round

        if is_after:
            cloud.after = die
        else:
            cloud.fault = die_before
        try:
            scene.clean()
        except Death:
            deaths += 1
        else:
            break
        cloud.after, cloud.fault = (lambda call: None), session.nothing
        assert all(result.why == "" for result in scene.clean())
        left, _ = scene.survey()
        assert left.of(ORPHAN, KEPT) == ()
        assert held_by(living) == held
    print(f"{row}: killed {'after' if is_after else 'before'} each of {deaths} writes")
    assert deaths >= 1
