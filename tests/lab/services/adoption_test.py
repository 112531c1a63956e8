"""Migration from the reference to openstack-ccm and back; no object is lost.

Load balancers of many kinds are made by openstack-cloud-controller-manager itself, on
the lab's Octavia. Then it is stopped and openstack-ccm takes over: it may write that
these are its own, and nothing else. Then the other way round.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import openstack.connection
import pytest

from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.kube import control_plane
from lib.lab.kube.kube_objects import Json
from lib.lab.openstack import accounts, cloud, layout, tenant
from lib.lab.run import processes, progress
from lib.lab.slots import leases
from tests.harness.openstack import balancers, front, inventory, offers
from tests.harness.openstack.inventory import Change, Inventory
from tests.harness.services import handover, reference, services, transcripts

MakeProject = Callable[[str], tuple[accounts.Account, tenant.Tenant]]
NODES = {"adopted-1": "usual", "adopted-2": "usual", "adopted-3": "special"}
"""Names, and values of the label "kind"."""
FIRST_PORT = 400
"""Of the control planes here, in the block of ports that a run of tests has."""
MARKED = ("PUT loadbalancers", "PUT listeners")
LOCAL = {"externalTrafficPolicy": "Local"}
METHOD = {keys.METHOD: "LEAST_CONNECTIONS"}
LIMITS = {
    keys.SOURCE_RANGES: "192.0.2.0/24, 10.0.0.0/8",
    keys.CONNECTION_LIMIT: "100",
    keys.TIMEOUT_CLIENT_DATA: "7001",
    keys.TIMEOUT_MEMBER_CONNECT: "7002",
    keys.TIMEOUT_MEMBER_DATA: "7003",
    keys.TIMEOUT_TCP_INSPECT: "7004",
}
PROBED = {
    keys.ENABLE_MONITOR: "true",
    keys.MONITOR_DELAY: "9",
    keys.MONITOR_TIMEOUT: "8",
    keys.MONITOR_RETRIES: "4",
    keys.MONITOR_RETRIES_DOWN: "5",
}


@dataclasses.dataclass(frozen=True)
class Ground:
    """A project with Nodes on a network of its own, and what Services may ask for.

    free_ip: that nothing has. port_id: for the VIP of one load balancer.
    """

    connection: openstack.connection.Connection
    subnet_id: str
    network_id: str
    external_id: str
    free_ip: str
    port_id: str
    flavor_id: str
    zone: str


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of Service. ports: as "80/TCP". on: that whose load balancer it uses."""

    name: str
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    spec: Mapping[str, object] = dataclasses.field(default_factory=dict)
    ports: tuple[str, ...] = ("80/TCP",)
    on: str = ""


def kinds(on: Ground) -> tuple[Kind, ...]:
    """Return every kind that is tried by what its annotations and its spec say."""
    internal = {keys.INTERNAL: "true"}
    return (
        Kind("plain"),
        Kind("sctp", internal, ports=("36412/SCTP",)),
        Kind("ports", ports=("80/TCP", "443/TCP", "53/UDP")),
        Kind("internal", internal),
        Kind("given-ip", spec={"loadBalancerIP": on.free_ip}),
        Kind("kept-ip", {keys.KEEP_FLOATING_IP: "true", keys.FLOATING_SUBNET: "pub*"}),
        Kind("proxy-v2", {keys.PROXY_PROTOCOL: "v2"}),
        Kind("forwarded", {keys.FORWARDED_FOR: "true"}),
        Kind("ranges", spec={"loadBalancerSourceRanges": ["192.0.2.0/24"]}),
        Kind("local", internal, LOCAL),
        Kind("local-probed", {keys.ENABLE_MONITOR: "true"}, LOCAL),
        Kind("probed", internal | PROBED, ports=("80/TCP", "53/UDP")),
        Kind("limits", internal | LIMITS),
        Kind("class", {keys.CLASS: "other"}),
        Kind("affine", internal | METHOD, {"sessionAffinity": "ClientIP"}),
        Kind("selected", {**internal, keys.NODE_SELECTOR: "kind=special"}),
        Kind(
            "flavored",
            {
                **internal,
                keys.FLAVOR_ID: on.flavor_id,
                keys.AVAILABILITY_ZONE: on.zone,
            },
        ),
        Kind("tls", {**internal, keys.TLS_REF: "external-ref"}, ports=("443/TCP",)),
        Kind("vip-port", {keys.PORT_ID: on.port_id, keys.HOSTNAME: "a.example.com"}),
        Kind(
            "placed",
            {
                **internal,
                keys.NETWORK_ID: on.network_id,
                keys.SUBNET_ID: on.subnet_id,
                keys.MEMBER_SUBNET_ID: on.subnet_id,
            },
            {"loadBalancerIP": "10.42.3.77"},
        ),
        Kind("no-node-ports", internal, {"allocateLoadBalancerNodePorts": False}),
        Kind("shared-owner"),
        Kind("shared-guest", ports=("8080/TCP",), on="shared-owner"),
    )


def configured() -> tuple[Kind, ...]:
    """Return the kinds for which the configuration matters."""
    return (
        Kind("plain"),
        Kind("internal", {keys.INTERNAL: "true"}, ports=("80/TCP", "53/UDP")),
        Kind("hostname", {keys.PROXY_PROTOCOL: "v1"}),
        Kind("local", spec=LOCAL),
        Kind("shared-owner", spec={"loadBalancerSourceRanges": ["192.0.2.0/24"]}),
        Kind("shared-guest", ports=("8080/TCP",), on="shared-owner"),
    )


TYPICAL = frozenset(
    "plain ports internal proxy-v2 forwarded ranges local local-probed limits affine"
    " tls placed hostname".split()
)
"""Kinds of which two transcripts are compared."""

CONFIGURED = {
    "manage-security-groups": "true",
    "create-monitor": "true",
    "enable-ingress-hostname": "true",
    "lb-method": "SOURCE_IP",
    "provider-requires-serial-api-calls": "true",
}


@dataclasses.dataclass(frozen=True)
class Look:
    """What there is at one time, and what was asked and written since the last."""

    cloud: Inventory
    services: Mapping[str, Json]
    calls: int
    writes: tuple[front.Call, ...]
    transcripts: Mapping[str, transcripts.Transcript]


@dataclasses.dataclass(frozen=True)
class Story:
    """What was seen after each had its turn; own: the reference over its own state."""

    kinds: tuple[Kind, ...]
    empty: Look
    own: Look
    adopted: Look
    back: Look
    gone: Look
    mooring: Look


class Teller:
    """Lets both have their turns on one cluster."""

    def __init__(self, on: Ground, daemons: handover.Handover) -> None:
        self.on = on
        self.daemons = daemons
        self.calls_before = 0

    def tell(self, kinds: tuple[Kind, ...], pex: pathlib.Path) -> Story:
        daemons = self.daemons
        empty = self.look()
        with daemons.reference():
            self.make(kinds)
            daemons.settle()
        self.look()
        with daemons.reference():
            daemons.settle()
        own = self.look()
        with daemons.ours(pex):
            is_claimed = functools.partial(self.is_claimed, kinds)
            daemons.until(is_claimed, "our annotation")
            daemons.settle()
        adopted = self.look()
        with daemons.reference():
            daemons.settle()
        back = self.look()
        with daemons.ours(pex):
            daemons.services.delete([kind.name for kind in kinds])
            daemons.until(lambda: daemons.services.all() == {}, "all Services to go")
            gone = self.look()
            self.make([kind for kind in kinds if kind.name in TYPICAL])
            # Polls of a slow Octavia are further apart than calls are waited for.
            daemons.until(lambda: daemons.unannounced() == [], "the Events of an end")
            daemons.settle()
        return Story(kinds, empty, own, adopted, back, gone, self.look())

    def make(self, kinds: Sequence[Kind]) -> None:
        """Make Services; a guest once its host has a load balancer."""
        daemons = self.daemons
        for kind in kinds:
            more = {}
            if kind.on:
                has_one = functools.partial(self.has_balancer, kind.on)
                daemons.until(has_one, f"a load balancer of {kind.on}")
                host = daemons.services.all()[kind.on]
                more[keys.LOAD_BALANCER_ID] = services.balancer_id(host)
            named = [port.split("/") for port in kind.ports]
            ports = [services.port(int(number), name) for number, name in named]
            annotations = {**kind.annotations, **more}
            daemons.services.make(kind.name, annotations, ports, **kind.spec)

    def has_balancer(self, name: str) -> bool:
        return services.balancer_id(self.daemons.services.all()[name]) != ""

    def is_claimed(self, kinds: Sequence[Kind]) -> bool:
        """Report whether all name their own load balancer; guests have none."""
        guests = {kind.name for kind in kinds if kind.on}
        return all(
            keys.OWNED_ID in service["metadata"]["annotations"]
            or service_name in guests
            for service_name, service in self.daemons.services.all().items()
        )

    def look(self) -> Look:
        """Read everything, and what was asked since the last look."""
        calls = len(self.daemons.entrance.calls)
        writes = self.daemons.writes(self.calls_before)
        made_calls, self.calls_before = calls - self.calls_before, calls
        cloud_now = inventory.take(self.on.connection)
        existing, events = self.daemons.services.all(), self.daemons.events()
        seen_by_user = {
            name: transcripts.of(service, events) for name, service in existing.items()
        }
        return Look(cloud_now, existing, made_calls, writes, seen_by_user)


def add_key_manager(admin: openstack.connection.Connection) -> None:
    """Add a key manager that does not exist to the catalogue.

    The reference makes no listener with TLS where the catalogue has none, though it
    never asks it when its store is an external one.
    """
    identity = cloud.identity_of(admin)
    manager = identity.create_service(name="barbican", type="key-manager")
    identity.create_endpoint(
        service_id=manager.id,
        interface="public",
        region_id=layout.REGION,
        url="http://127.0.0.1:1/v1",
    )


def ground(
    where: places.Places, mine: tenant.Tenant, flavor_id: str, zone: str
) -> Ground:
    network = mine.connection.network
    inside = network.find_network(tenant.NETWORK, ignore_missing=False)
    subnet_id = str(inside.subnet_ids[0])
    public = next(iter(network.networks(is_router_external=True)))
    free = network.create_ip(floating_network_id=public.id)
    fixed = [{"subnet_id": subnet_id}]
    vip = network.create_port(network_id=inside.id, fixed_ips=fixed)
    return Ground(
        mine.connection,
        subnet_id,
        str(inside.id),
        str(public.id),
        str(free.floating_ip_address),
        str(vip.id),
        flavor_id,
        zone,
    )


def settings_of(on: Ground, more: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    """Return the settings of [LoadBalancer], and a class beside them."""
    usual = {
        "subnet-id": on.subnet_id,
        "floating-network-id": on.external_id,
        "container-store": "external",
    }
    other = f'[LoadBalancerClass "other"]\nsubnet-id = "{on.subnet_id}"\n'
    return {**usual, **more}, other


@pytest.fixture(scope="module")
def stories(
    where: places.Places,
    project: MakeProject,
    ccm_pex: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[str, Story]]:
    """Migrate a cluster for each configuration, both in parallel: Octavia is slow."""
    shown = progress.Lines(sys.stderr)
    programs.build(where, [reference.GROUP], shown)
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(
            contextlib.closing(cloud.connect(where, accounts.ADMIN))
        )
        leases.mark_damaged(where, "its catalogue has a key manager")
        add_key_manager(admin)
        offered = offers.balancers(admin, "adoption", "adoption-zone")
        tellers = []
        for number, name in enumerate(("annotated", "configured")):
            account, mine = project(f"adoption-{name}")
            on = ground(where, mine, *offered)
            stack.callback(balancers.clear, mine.connection)
            place = places.Places(
                where.cache,
                tmp_path_factory.mktemp(name),
                where.port_base + FIRST_PORT + 20 * number,
            )
            stack.callback(processes.stop, place, control_plane.PROGRAMS, patience_s=1)
            control_plane.up(place, shown)
            upstream = {
                service: layout.ports(where)[service] for service in layout.SERVICES
            }
            daemons = handover.Handover(place, upstream)
            stack.enter_context(daemons.entrance.opened())
            daemons.prepare(account, *settings_of(on, CONFIGURED if number else {}))
            daemons.add_nodes(mine, NODES)
            services_of = configured() if number else kinds(on)
            tellers.append(
                (
                    name,
                    functools.partial(Teller(on, daemons).tell, services_of, ccm_pex),
                )
            )
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            futures = {name: pool.submit(teller) for name, teller in tellers}
            yield {name: future.result() for name, future in futures.items()}


def balancer_of(state: Inventory, kind: str, id_: str) -> str:
    """Return the load balancer of an object; empty where it has none."""
    if kind == balancers.BALANCERS:
        return id_
    load_balancers = state.get(kind, {}).get(id_, {}).get("loadbalancers") or ()
    return str(load_balancers[0]["id"]) if load_balancers else ""


def written(story: Story, stored: Json) -> Counter[str]:
    """Count what was written to a Service's load balancer, by what it was."""
    counts: Counter[str] = Counter()
    for call in story.adopted.writes:
        service, *rest = call.path.partition("?")[0].split("/lbaas/")
        del service
        if call.status >= 400 or not rest:
            continue
        kind, id_, *under = rest[0].split("/")
        if balancer_of(story.own.cloud, kind, id_) == services.balancer_id(stored):
            counts[f"{call.method} {'/'.join([kind, *under])}"] += 1
    return counts


def is_ours_to_add(change: Change) -> bool:
    """Report whether a change is what adoption may do, and why.

    The reference gives members no port to be asked at where it makes them one by one,
    so that with the policy Local all of them fail; that is corrected.
    """
    if change.field == "tags":
        return change.is_addition
    was_forgotten = change.field == "monitor_port" and change.before is None
    return was_forgotten and change.kind == balancers.MEMBERS


STAGES = ("annotated", "configured")


@pytest.mark.parametrize("stage", STAGES)
def test_ours_adds_tags_and_annotations_and_nothing_else(
    stories: Mapping[str, Story], stage: str
) -> None:
    """Every id, name, setting, address, status and finalizer stays, kind by kind."""
    story = stories[stage]
    changed = inventory.changes(story.own.cloud, story.adopted.cloud)
    rows = []
    for kind in story.kinds:
        before, after = (
            look.services[kind.name] for look in (story.own, story.adopted)
        )
        counts = written(story, before)
        lost = sum(count for what, count in counts.items() if what not in MARKED)
        is_same = kubernetes_facts(before) == kubernetes_facts(after)
        shown = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        print(f"{kind.name:18} {shown:50} other {lost}  Service same: {is_same}")
        rows.append((kind.name, is_same))
    odd = [change for change in changed if not is_ours_to_add(change)]
    repaired = [change for change in changed if change.field != "tags"]
    print(f"{story.adopted.calls} calls, {len(story.adopted.writes)} writes;")
    print(f"{len(repaired)} monitor ports of members added")
    assert odd == []
    assert [name for name, is_same in rows if not is_same] == []
    if stage == "annotated":
        assert repaired == []
        assert len(rows) >= 20


@pytest.mark.parametrize("stage", STAGES)
def test_the_reference_finds_nothing_to_change_when_it_is_back(
    stories: Mapping[str, Story], stage: str
) -> None:
    """It writes nothing that it would not have written over its own state."""
    story = stories[stage]
    for name, look in (("over its own state", story.own), ("over ours", story.back)):
        print(f"{name}: {look.calls} calls, {len(look.writes)} writes")
    own = {(call.method, call.path) for call in story.own.writes}
    back = {(call.method, call.path) for call in story.back.writes}
    assert back - own == set()
    assert inventory.changes(story.adopted.cloud, story.back.cloud) == ()
    for kind in story.kinds:
        before, after = (
            look.services[kind.name] for look in (story.adopted, story.back)
        )
        assert kubernetes_facts(after) == kubernetes_facts(before)


@pytest.mark.parametrize("stage", STAGES)
def test_what_was_adopted_leaves_nothing_when_its_service_goes(
    stories: Mapping[str, Story], stage: str
) -> None:
    """Only the floating IP that is to be kept outlives its Service.

    From a port that its user gave for the VIP Octavia itself takes the groups.
    """
    story = stories[stage]
    touched = {call.path.rpartition("/")[2] for call in story.gone.writes}
    left = [
        change
        for change in inventory.changes(story.empty.cloud, story.gone.cloud)
        if change.field != "security_groups" or change.id in touched
    ]
    for change in left:
        print(change)
    kept = [kind for kind in story.kinds if keys.KEEP_FLOATING_IP in kind.annotations]
    assert [change.kind for change in left] == [balancers.ADDRESSES] * len(kept)


ADDED = {
    keys.OWNED_ID: "it distinguishes a lost load balancer from one that never existed"
}
"""Annotations of ours that the reference has none like, and why."""


def test_the_owner_of_a_service_sees_what_the_reference_would_show(
    stories: Mapping[str, Story],
) -> None:
    """Events, annotations, finalizers and status, for kinds that are typical."""
    odd, compared = [], 0
    for stage, story in stories.items():
        for name, after_adoption in sorted(story.mooring.transcripts.items()):
            before_adoption = story.own.transcripts[name]
            added = {
                k: v for k, v in after_adoption.annotations.items() if k not in ADDED
            }
            same = {
                "Events": (calm(before_adoption.events), calm(after_adoption.events)),
                "annotations": (before_adoption.annotations, added),
                "finalizers": (before_adoption.finalizers, after_adoption.finalizers),
                "status": (before_adoption.status, after_adoption.status),
            }
            wrong = {what: two for what, two in same.items() if two[0] != two[1]}
            print(
                f"{stage:12} {name:14} {len(after_adoption.events)} Events",
                wrong or "alike",
            )
            odd += [(stage, name, what, two) for what, two in wrong.items()]
            compared += 1
    assert odd == []
    assert compared >= 12


BY_CHANCE = ("SyncLoadBalancerFailed", "UpdatedLoadBalancer")
"""Octavia was busy for a while; the reference's first sync of the Nodes met a Service
that it had served already. Which Service has such an Event depends on timing."""


def calm(
    events: frozenset[transcripts.RecordedEvent],
) -> frozenset[transcripts.RecordedEvent]:
    """Return the Events without those that a Service has by chance."""
    return frozenset(event for event in events if event[2] not in BY_CHANCE)


def kubernetes_facts(stored: Json) -> Json:
    """Return what a user sees of a Service, but for our own annotation."""
    about = stored["metadata"]
    annotations = dict(about["annotations"])
    annotations.pop(keys.OWNED_ID, None)
    return {
        "annotations": annotations,
        "finalizers": about.get("finalizers"),
        "labels": about.get("labels"),
        "spec": stored["spec"],
        "status": stored["status"],
    }
