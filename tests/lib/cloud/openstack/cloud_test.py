"""The instances protocol over the stand-in: what is seen, and at which cost."""

import concurrent.futures
import threading
import time
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud import errors, protocol
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    Instance,
    InstanceId,
    InstanceRef,
    NotManaged,
    Observation,
    Phase,
    Seen,
    Unknown,
)
from lib.cloud.openstack import with_load_balancers, with_volumes
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.instances import cloud
from lib.cloud.support import absence_scope

Json = dict[str, object]


class Call(Protocol):
    path: str
    query: dict[str, list[str]]


class StandIn(Protocol):
    url: str
    servers: list[Json]
    ports: list[Json]
    networks: list[Json]
    flavors: list[Json]
    newest: str
    neutron_limit: int
    project: str
    calls: list[Call]
    silent: set[str]
    release: threading.Event

    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...

    def paths(self) -> list[str]: ...


class Clock(Protocol):
    now: float


MakeConfig = Callable[..., settings.Config]
MakeInstances = Callable[..., cloud.OpenStackInstances]
Make = Callable[..., Json]

INT = AddressType.INTERNAL_IP
EXT = AddressType.EXTERNAL_IP


def by_id(server_id: str) -> InstanceRef:
    return InstanceRef(f"node-{server_id}", f"openstack:///{server_id}")


def only(
    instances: cloud.OpenStackInstances, ref: InstanceRef, not_before: float = 1000.0
) -> Observation[Instance]:
    (observation,) = instances.observe([ref], not_before).values()
    return observation


def read_value(
    instances: cloud.OpenStackInstances, ref: InstanceRef, not_before: float = 1000.0
) -> Instance:
    observation = only(instances, ref, not_before)
    assert isinstance(observation, Seen)
    return observation.value


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("count", "neutron_limit", "calls"),
    [
        (10, 1_000_000, 2),
        (999, 1_000_000, 2),
        (1000, 1_000_000, 3),
        (1000, 1000, 5),
        (2000, 1_000_000, 4),
        (3000, 1_000_000, 6),
    ],
)
def test_a_pass_costs_pages_and_not_servers(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
    clock: Clock,
    count: int,
    neutron_limit: int,
    calls: int,
) -> None:
    """Two lists for ten servers with two ports each; more only by full pages.

    A page that is exactly full is followed by an empty one: the cloud can't know. A
    Neutron may have a limit of its own (pagination_max_limit), by default it has none.
    """
    stand_in.neutron_limit = neutron_limit
    stand_in.servers = [make_server(f"s-{n}") for n in range(count)]
    stand_in.ports = [
        make_port(f"p-{n}-{k}", f"s-{n}", f"10.{k}.{n // 250}.{n % 250}")
        for n in range(count)
        for k in range(2)
    ]
    refs = [by_id(f"s-{n}") for n in range(count)]
    instances = make_instances()
    instances.observe(refs, clock.now)
    stand_in.calls.clear()
    clock.now += 1
    observations = instances.observe(refs, clock.now)
    assert all(isinstance(value, Seen) for value in observations.values())
    assert len(observations) == count
    assert len(stand_in.calls) == calls <= 6


def test_the_first_pass_adds_the_log_in_and_two_version_documents(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """Nothing else is asked, and only once."""
    stand_in.servers = [make_server("s-1")]
    only(make_instances(), by_id("s-1"))
    assert stand_in.paths() == [
        "auth/tokens",
        "/compute/v2.1",
        "servers/detail",
        "/network",
        "ports",
    ]


def test_a_server_is_seen_whole(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
) -> None:
    """The wire format of Nova and Neutron becomes one instance."""
    nova = {
        "int": [
            {"addr": "10.0.0.1", "version": 4, "OS-EXT-IPS:type": "fixed"}
            | {"OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"},
            {"addr": "5.5.5.5", "version": 4, "OS-EXT-IPS:type": "floating"},
        ]
    }
    stand_in.servers = [
        make_server("s-1", "worker-1", status="SHUTOFF", addresses=nova)
    ]
    stand_in.ports = [make_port("p-1", "s-1", "10.0.0.1")]
    assert read_value(make_instances(regional=True), by_id("s-1")) == Instance(
        id=InstanceId("s-1"),
        name="worker-1",
        phase=Phase.STOPPED,
        provider_id="openstack://RegionOne/s-1",
        addresses=(Address(INT, "10.0.0.1"), Address(EXT, "5.5.5.5")),
        instance_type="m1.small",
        zone="nova",
        region="RegionOne",
    )


def test_a_name_finds_its_server_exactly_or_with_letter_case_aside(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """Exact wins; a Node is in lower case even when its server is not."""
    stand_in.servers = [
        make_server("s-1", "worker-1"),
        make_server("s-2", "Worker-1"),
        make_server("s-3", "Worker-3"),
    ]
    instances = make_instances()
    assert read_value(instances, InstanceRef("worker-1")).id == "s-1"
    assert read_value(instances, InstanceRef("worker-3")).id == "s-3"
    assert only(instances, InstanceRef("worker-33")) == Absent(by_id=False)


def test_two_servers_of_one_name_are_ambiguous(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """Neither is taken; by id each is found."""
    stand_in.servers = [make_server("s-1", "twin"), make_server("s-2", "twin")]
    instances = make_instances()
    observation = only(instances, InstanceRef("twin"))
    assert isinstance(observation, Unknown)
    assert isinstance(observation.error, errors.Ambiguous)
    assert "twin" in str(observation.error)
    assert read_value(instances, InstanceRef("twin", "openstack:///s-2")).id == "s-2"


@pytest.mark.parametrize(
    ("provider_id", "reason"),
    [
        ("static://", "of another cloud"),
        ("static:///abc", "of another cloud"),
        ("dvp://worker-1", "of another cloud"),
        ("openstack://Elsewhere/s-1", "of region 'Elsewhere', not of 'RegionOne'"),
        ("openstack://no-slash", "not of the form"),
    ],
)
def test_what_is_foreign_costs_no_call_and_says_why(
    stand_in: StandIn, make_instances: MakeInstances, provider_id: str, reason: str
) -> None:
    """Other clouds, other regions and nonsense are never ours, nor ever absent."""
    ref = InstanceRef("node", provider_id)
    instances = make_instances()
    observation = only(instances, ref)
    assert isinstance(observation, NotManaged)
    assert reason in observation.reason
    assert not instances.confirm_absent(ref)
    assert stand_in.calls == []


@pytest.mark.parametrize(
    "provider_id", ["openstack:///s-1", "openstack://RegionOne/s-1", "/s-1"]
)
def test_each_own_form_of_a_provider_id_finds_its_server(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    provider_id: str,
) -> None:
    """With our region, without one, and without a scheme."""
    stand_in.servers = [make_server("s-1")]
    assert read_value(make_instances(), InstanceRef("n", provider_id)).id == "s-1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_a_failed_list_makes_all_unknown_but_the_foreign(
    stand_in: StandIn, make_instances: MakeInstances, status: int
) -> None:
    """No key raises, none is absent, and the error is not kept."""
    for _ in range(2):
        stand_in.fail("servers/detail", status)
    instances = make_instances()
    foreign = InstanceRef("f", "static://")
    observations = instances.observe([by_id("s-1"), InstanceRef("n"), foreign], 1000.0)
    assert isinstance(observations[by_id("s-1")], Unknown)
    assert isinstance(observations[InstanceRef("n")], Unknown)
    assert isinstance(observations[foreign], NotManaged)
    assert instances.observe([], 1000.0) == {}


def test_after_an_outage_the_next_pass_sees_again(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """An error is given to those who waited for it and to nobody else."""
    stand_in.servers = [make_server("s-1")]
    stand_in.fail("servers/detail", 500)
    instances = make_instances()
    assert isinstance(only(instances, by_id("s-1")), Unknown)
    assert isinstance(only(instances, by_id("s-1")), Seen)


def test_without_ports_existence_is_known_and_addresses_are_not(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
) -> None:
    """Liveness goes on while Neutron is down; no Node loses an address by it."""
    stand_in.servers = [make_server("s-1", status="SHUTOFF", accessIPv4="1.1.1.1")]
    stand_in.ports = [make_port("p-1", "s-1", "10.0.0.1")]
    stand_in.fail("ports", 500)
    instances = make_instances()
    instance = read_value(instances, by_id("s-1"))
    assert instance.phase is Phase.STOPPED
    assert (instance.addresses, instance.addresses_known) == ((), False)
    again = read_value(instances, by_id("s-1"))
    assert again.addresses_known
    assert again.addresses == (Address(INT, "10.0.0.1"), Address(EXT, "1.1.1.1"))


def test_an_id_that_no_list_shows_is_absent(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """By id and by name, each told apart, at the price of the one list."""
    stand_in.servers = [make_server("s-1")]
    instances = make_instances()
    observations = instances.observe([by_id("s-9"), InstanceRef("n")], 1000.0)
    assert observations == {
        by_id("s-9"): Absent(by_id=True),
        InstanceRef("n"): Absent(False),
    }
    assert "ports" not in stand_in.paths()


def test_an_empty_list_where_servers_were_is_not_believed(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make, clock: Clock
) -> None:
    """A server that the list no longer shows, but is there, makes all unknown."""
    stand_in.servers = [make_server("s-1"), make_server("s-2")]
    instances = make_instances()
    read_value(instances, by_id("s-1"))
    stand_in.fail("servers/detail", 200, b'{"servers": []}')
    clock.now += 1
    observation = only(instances, by_id("s-1"), clock.now)
    assert isinstance(observation, Unknown)
    assert "the list is empty, but server s-1 is there" in str(observation.error)
    clock.now += 1
    assert isinstance(only(instances, by_id("s-1"), clock.now), Seen)


def test_an_empty_list_is_believed_once_its_servers_are_gone_one_by_one(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make, clock: Clock
) -> None:
    """Who deletes his last server gets his Node deleted, at three looks at most."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(5)]
    instances = make_instances()
    read_value(instances, by_id("s-1"))
    stand_in.servers = []
    stand_in.fail("servers/s-1", 500)
    clock.now += 1
    assert isinstance(only(instances, by_id("s-1"), clock.now), Unknown)
    clock.now += 1
    stand_in.calls.clear()
    assert only(instances, by_id("s-1"), clock.now) == Absent(by_id=True)
    assert stand_in.paths() == [
        "servers/detail",
        "servers/s-0",
        "servers/s-1",
        "servers/s-2",
    ]
    clock.now += 1
    stand_in.calls.clear()
    assert only(instances, by_id("s-1"), clock.now) == Absent(by_id=True)
    assert stand_in.paths() == ["servers/detail"]


def test_absence_is_confirmed_by_a_direct_look(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """By id a 404 of Nova, by name an empty answer to an exact pattern."""
    stand_in.servers = [make_server("s-1", "worker.1"), make_server("s-2", "Upper")]
    instances = make_instances()
    assert not instances.confirm_absent(by_id("s-1"))
    assert instances.confirm_absent(by_id("s-9"))
    assert not instances.confirm_absent(InstanceRef("worker.1"))
    assert not instances.confirm_absent(InstanceRef("upper"))
    assert instances.confirm_absent(InstanceRef("workerx1"))
    assert instances.confirm_absent(InstanceRef("worker"))
    patterns = [call.query.get("name") for call in stand_in.calls]
    assert [r"^worker\.1$"] in patterns


def test_an_odd_id_stays_one_word_of_the_path(
    stand_in: StandIn, make_instances: MakeInstances
) -> None:
    """A provider id can't lead the look elsewhere."""
    stand_in.fail("servers/..%3Fx%23", 404, b'{"itemNotFound": {}}')
    assert make_instances().confirm_absent(InstanceRef("n", "openstack:///..?x#"))


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_failed_direct_look_is_no_confirmation(
    stand_in: StandIn, make_instances: MakeInstances, status: int
) -> None:
    """Only a clear answer counts; everything else raises."""
    instances = make_instances()
    for path in ("servers/s-1", "servers"):
        for _ in range(2):
            stand_in.fail(path, status)
    with pytest.raises(errors.CloudError):
        instances.confirm_absent(by_id("s-1"))
    with pytest.raises(errors.CloudError):
        instances.confirm_absent(InstanceRef("n"))


def test_a_404_of_a_proxy_is_no_confirmation(
    stand_in: StandIn, make_instances: MakeInstances
) -> None:
    """Nodes outlive a load balancer that lost its back ends."""
    stand_in.fail("servers/s-1", 404, b"<html>404</html>")
    with pytest.raises(errors.Unavailable):
        make_instances().confirm_absent(by_id("s-1"))


def test_an_old_nova_costs_one_list_of_flavors_once(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make, clock: Clock
) -> None:
    """At microversion 2.1 names come from the flavors, private ones too."""
    stand_in.newest = "2.1"
    stand_in.flavors = [{"id": "flavor-1", "name": "m1.small", "ram": 1}]
    stand_in.servers = [make_server("s-1")]
    instances = make_instances()
    assert read_value(instances, by_id("s-1")).instance_type == "m1.small"
    (listed,) = (call for call in stand_in.calls if "flavors" in call.path)
    assert listed.query["is_public"] == ["None"]
    stand_in.calls.clear()
    clock.now += 1
    assert read_value(instances, by_id("s-1"), clock.now).instance_type == "m1.small"
    assert stand_in.paths() == ["servers/detail", "ports"]


def test_flavors_that_can_not_be_read_or_are_gone_leave_the_type_unknown(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make, clock: Clock
) -> None:
    """The instance is seen all the same, and the next pass tries again."""
    stand_in.newest = "2.1"
    stand_in.flavors = [{"id": "flavor-1", "name": "bad name!"}]
    stand_in.servers = [
        make_server("s-1"),
        make_server("s-2", flavor={"id": "flavor-gone", "links": []}),
    ]
    stand_in.fail("flavors/detail", 500)
    instances = make_instances()
    assert read_value(instances, by_id("s-1")).instance_type is None
    clock.now += 1
    assert read_value(instances, by_id("s-1"), clock.now).instance_type == "flavor-1"
    assert read_value(instances, by_id("s-2"), clock.now).instance_type is None


def test_ports_on_trunks_cost_one_list_of_networks(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
) -> None:
    """Their addresses count by the network's name; an invisible port is left out."""
    details = {
        "trunk_id": "t-1",
        "sub_ports": [
            {"port_id": "sub-1", "segmentation_id": 7, "segmentation_type": "vlan"},
            {"port_id": "sub-gone", "segmentation_id": 8, "segmentation_type": "vlan"},
        ],
    }
    stand_in.servers = [make_server("s-1")]
    stand_in.ports = [
        make_port("p-1", "s-1", "10.0.0.1", trunk_details=details),
        make_port("sub-1", "t-1", "10.7.0.1", network_id="n-7")
        | {"device_owner": "trunk:subport"},
    ]
    stand_in.networks = [{"id": "n-7", "name": "vlan-7", "mtu": 1450}]
    networking = settings.Networking(public_network_names=("vlan-7",))
    instances = make_instances(networking=networking)
    instance = read_value(instances, by_id("s-1"))
    assert instance.addresses == (Address(INT, "10.0.0.1"), Address(EXT, "10.7.0.1"))
    lists = [path for path in stand_in.paths() if path in ("ports", "networks")]
    assert lists == ["ports", "networks"]


def test_many_passes_at_once_share_their_reads(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """Eight workers that ask at the same time cost one list of servers."""
    stand_in.servers = [make_server("s-1")]
    stand_in.silent = {"servers/detail"}
    instances = make_instances()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(read_value, instances, by_id("s-1")) for _ in range(8)]
        stand_in.release.set()
        assert {call.result(10).id for call in asked} == {"s-1"}
    assert stand_in.paths().count("servers/detail") == 1


def test_connecting_makes_no_call_and_gives_the_protocols_bundle(
    stand_in: StandIn, make_config: MakeConfig, make_server: Make
) -> None:
    """The factory is lazy; the first question logs in, and calls are reported."""
    stand_in.servers = [make_server("s-1")]
    messages: list[tuple[str, str]] = []
    config = make_config()
    api = cloud.open_client(
        config, lambda operation, outcome, _: messages.append((operation, outcome))
    )
    created = cloud.of_client(api, config, cloud.guard_of(api, config))
    assert (created.load_balancers, created.volumes) == (None, None)
    assert with_volumes.of_client(api, config).volumes is not None
    assert with_load_balancers.of_client(api, config).load_balancers is not None
    assert created.name == "openstack"
    assert stand_in.calls == []
    assert created.instances is not None
    (observation,) = created.instances.observe([by_id("s-1")], 0.0).values()
    assert isinstance(observation, Seen)
    assert messages == [("list servers", "ok"), ("list ports", "ok")]


def moved(
    stand_in: StandIn,
    make_config: MakeConfig,
    memory: absence_scope.HomeMemory,
    project: str,
) -> protocol.Instances:
    """Connect anew, after the credentials became those of that project."""
    stand_in.project = project
    config = make_config()
    api = cloud.open_client(config)
    opened = cloud.of_client(api, config, cloud.guard_of(api, config, memory))
    assert opened.instances is not None
    return opened.instances


def test_absence_does_not_count_in_a_project_where_no_server_was_ever_seen(
    stand_in: StandIn, make_config: MakeConfig, make_server: Make
) -> None:
    """Wrong credentials answer every id with an honest 404; no Node may go for it."""
    memory = absence_scope.HomeMemory()
    stand_in.servers = [make_server("s-1")]
    before = moved(stand_in, make_config, memory, "project-1")
    assert before.observe([by_id("s-1")], 0.0)
    stand_in.servers = [make_server("x-1"), make_server("x-2", "name-s-1")]
    after = moved(stand_in, make_config, memory, "project-2")
    named = InstanceRef("never-seen")
    observations = after.observe([by_id("s-1"), named], 0.0)
    for ref in (by_id("s-1"), named):
        seen_there = observations[ref]
        assert isinstance(seen_there, Unknown)
        assert "observed in project 'project-1'" in str(seen_there.error)
        with pytest.raises(errors.Unavailable, match="found in project 'project-2'"):
            after.confirm_absent(ref)


def test_a_server_of_the_same_name_does_not_make_a_project_ours(
    stand_in: StandIn, make_config: MakeConfig, make_server: Make
) -> None:
    """Only ids are proof; two clusters may both have a master-0."""
    memory = absence_scope.HomeMemory(absence_scope.Scope("project-1", "RegionOne"))
    stand_in.servers = [make_server("x-1", "master-0")]
    instances = moved(stand_in, make_config, memory, "project-2")
    observations = instances.observe([InstanceRef("master-0"), by_id("s-1")], 0.0)
    assert isinstance(observations[InstanceRef("master-0")], Seen)
    assert isinstance(observations[by_id("s-1")], Unknown)


def test_absence_counts_again_once_one_id_is_seen_in_the_new_project(
    stand_in: StandIn, make_config: MakeConfig, make_server: Make
) -> None:
    """Who really moves the cluster to another project is not held up for ever."""
    memory = absence_scope.HomeMemory(absence_scope.Scope("project-1", "RegionOne"))
    stand_in.servers = [make_server("s-2")]
    instances = moved(stand_in, make_config, memory, "project-2")
    observations = instances.observe([by_id("s-1"), by_id("s-2")], 0.0)
    assert observations[by_id("s-1")] == Absent(by_id=True)
    assert instances.confirm_absent(by_id("s-1"))


def test_absence_counts_on_with_new_credentials_of_the_same_project(
    stand_in: StandIn, make_config: MakeConfig
) -> None:
    """A rotated password changes nothing, even when the last server is gone."""
    memory = absence_scope.HomeMemory(
        absence_scope.Scope("project-1", "RegionOne"), ("s-1",)
    )
    instances = moved(stand_in, make_config, memory, "project-1")
    assert instances.observe([by_id("s-1")], 0.0)[by_id("s-1")] == Absent(by_id=True)
    assert instances.confirm_absent(by_id("s-1"))


@pytest.mark.parametrize(
    ("known", "project", "is_refused"),
    [
        (None, "project-2", False),
        (absence_scope.Scope("project-1", "RegionOne"), "project-1", False),
        (absence_scope.Scope("project-1", "RegionOne"), "project-2", True),
        (absence_scope.Scope("project-1", "RegionTwo"), "project-1", True),
    ],
)
def test_a_reload_may_not_change_the_project_or_region(
    stand_in: StandIn,
    make_config: MakeConfig,
    known: absence_scope.Scope | None,
    project: str,
    is_refused: bool,
) -> None:
    """Before any object was observed, every project is accepted, without a call."""
    stand_in.project = project
    config = make_config()
    api = cloud.open_client(config)
    guard = cloud.guard_of(api, config, absence_scope.HomeMemory(known))
    opened = cloud.of_client(api, config, guard)
    assert opened.check_reload is not None
    if is_refused:
        with pytest.raises(errors.Unavailable, match="restart the process to move it"):
            opened.check_reload()
    else:
        opened.check_reload()
    assert known is not None or not stand_in.calls


def test_a_look_costs_one_call_for_each_and_no_list(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """One of a thousand costs one call; its addresses are said to be unknown."""
    stand_in.servers = [
        make_server(f"s-{n}") | ({"status": "SHUTOFF"} if n == 1 else {})
        for n in range(1000)
    ]
    instances = make_instances()
    instances.look([by_id("s-0")])
    stand_in.calls.clear()
    (observation,) = instances.look([by_id("s-1")]).values()
    assert stand_in.paths() == ["servers/s-1"]
    assert isinstance(observation, Seen)
    assert observation.value.phase is Phase.STOPPED
    assert (observation.value.addresses, observation.value.addresses_known) == (
        (),
        False,
    )
    stand_in.calls.clear()
    assert len(instances.look([by_id(f"s-{n}") for n in range(20)])) == 20
    assert sorted(stand_in.paths()) == sorted(f"servers/s-{n}" for n in range(20))


def test_looks_go_on_side_by_side(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make
) -> None:
    """One server whose answer is slow does not keep the others waiting."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(4)]
    instances = make_instances()
    instances.look([by_id("s-0")])
    stand_in.calls.clear()
    stand_in.silent = {"servers/s-0"}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        looking = pool.submit(instances.look, [by_id(f"s-{n}") for n in range(4)])
        wait_until(lambda: len(stand_in.paths()) == 4)
        assert not looking.done()
        stand_in.release.set()
        assert all(
            isinstance(observation, Seen) for observation in looking.result(10).values()
        )


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"{}"), (403, b"{}"), (404, b"<html>404</html>")],
    ids=["broken", "forbidden", "404 of a proxy"],
)
def test_a_look_that_fails_is_unknown_and_the_others_are_not(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    status: int,
    body: bytes,
) -> None:
    stand_in.servers = [make_server("s-1"), make_server("s-2")]
    for _ in range(2):
        stand_in.fail("servers/s-1", status, body)
    observations = make_instances().look([by_id("s-1"), by_id("s-2"), by_id("s-9")])
    assert isinstance(observations[by_id("s-1")], Unknown)
    assert isinstance(observations[by_id("s-2")], Seen)
    assert observations[by_id("s-9")] == Absent(by_id=True)
