"""In a crowded project servers are read one by one; else by one list."""

import re
from collections.abc import Callable
from typing import Protocol

import pytest

from lib.cloud import errors
from lib.cloud.model import (
    Absent,
    Address,
    AddressType,
    Instance,
    InstanceRef,
    Seen,
    Unknown,
)
from lib.cloud.openstack.http import client
from lib.cloud.openstack.instances import cloud, singles

Json = dict[str, object]


class StandIn(Protocol):
    servers: list[Json]
    ports: list[Json]
    networks: list[Json]
    calls: list[object]

    def fail(self, name: str, status: int, body: bytes = b"{}") -> None: ...

    def paths(self) -> list[str]: ...


class Clock(Protocol):
    now: float


Make = Callable[..., Json]
MakeInstances = Callable[..., cloud.OpenStackInstances]


@pytest.mark.parametrize(
    ("desired", "listed", "singly"),
    [
        pytest.param(0, 0, False, id="not known yet: list"),
        pytest.param(10, 1000, False, id="one page is enough: list"),
        pytest.param(10, 1001, True, id="ten among a crowd: singly"),
        pytest.param(200, 1001, True, id="just more than five times"),
        pytest.param(201, 1005, False, id="just not more than five times"),
        pytest.param(1000, 5000, False, id="a big cluster: list"),
        pytest.param(1000, 5001, True, id="a big cluster in a huge project"),
    ],
)
def test_the_decision(desired: int, listed: int, singly: bool) -> None:
    assert singles.are_better(desired, listed) is singly


def ref(number: int) -> InstanceRef:
    return InstanceRef(f"node-{number}", f"openstack:///s-{number}")


def counts(stand_in: StandIn) -> dict[str, int]:
    """Count the calls by kind, and begin anew."""
    kinds = [re.sub(r"s-.*", "ID", path) for path in stand_in.paths()]
    stand_in.calls.clear()
    kept = ("servers/detail", "servers/ID", "ports", "networks", "flavors/detail")
    return {kind: kinds.count(kind) for kind in kept if kind in kinds}


def test_calls_in_a_crowd_grow_with_the_refs_and_not_with_the_project(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
    clock: Clock,
) -> None:
    """The first pass counts the project; an hour later it is counted again."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(1500)]
    stand_in.ports = [make_port(f"p-{n}", f"s-{n}", "10.0.0.1") for n in range(150)]
    instances = make_instances()
    refs = [ref(n) for n in range(120)]
    whole = instances.observe(refs, clock.now)
    assert counts(stand_in) == {"servers/detail": 2, "ports": 1}
    clock.now += 1
    assert instances.observe(refs, clock.now) == whole
    assert counts(stand_in) == {"servers/ID": 120, "ports": 2}
    clock.now += 1
    instances.observe(refs[:1], clock.now)
    assert counts(stand_in) == {"servers/ID": 1, "ports": 1}
    clock.now += 1
    instances.observe([*refs[:1], InstanceRef("name-s-7")], clock.now)
    assert counts(stand_in) == {"servers/detail": 2, "ports": 1}
    clock.now += cloud.RECOUNT_S + 1
    instances.observe(refs, clock.now)
    assert counts(stand_in) == {"servers/detail": 2, "ports": 1}


def test_a_project_that_is_mostly_ours_is_listed(
    stand_in: StandIn, make_instances: MakeInstances, make_server: Make, clock: Clock
) -> None:
    """One Node of many is no reason to read singly: the others will be wanted."""
    stand_in.servers = [make_server(f"s-{n}") for n in range(1100)]
    instances = make_instances()
    instances.observe([ref(n) for n in range(300)], clock.now)
    counts(stand_in)
    clock.now += 1
    instances.observe([ref(1)], clock.now)
    assert counts(stand_in) == {"servers/detail": 2, "ports": 1}


def test_each_single_look_stands_for_itself(
    stand_in: StandIn, make_client: Callable[[], client.Client], make_server: Make
) -> None:
    """Nova's own 404 is absence, a proxy's or an error is unknown, the rest is seen."""
    stand_in.servers = [make_server("s-1"), make_server("s-2")]
    stand_in.fail("servers/s-2", 500)
    stand_in.fail("servers/s-4", 404, b"<html/>")
    api = make_client()
    observations = singles.servers(api, ["s-1", "s-2", "s-3", "s-4"], api.now() + 60)
    assert isinstance(observations["s-1"], Seen)
    assert observations["s-3"] == Absent(by_id=True)
    for server_id in ("s-2", "s-4"):
        unknown = observations[server_id]
        assert isinstance(unknown, Unknown)
        assert isinstance(unknown.error, errors.Unavailable)
    assert singles.servers(api, [], api.now() + 60) == {}


def test_ports_on_trunks_are_found_singly_as_well(
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    make_port: Make,
    clock: Clock,
) -> None:
    """Such a port carries the trunk's id, so it is asked for by its own."""
    crowd = [make_server(f"s-{n}") for n in range(1500)]
    stand_in.servers = crowd
    trunk = {"trunk_id": "t-1", "sub_ports": [{"port_id": "p-sub"}]}
    stand_in.ports = [
        make_port("p-1", "s-1", "10.0.0.1", trunk_details=trunk),
        make_port("p-sub", "t-1", "10.9.0.1", network_id="network-2"),
    ]
    stand_in.networks = [{"id": "network-2", "name": "trunked"}]
    instances = make_instances()
    by_list = instances.observe([ref(1)], clock.now)[ref(1)]
    counts(stand_in)
    clock.now += 1
    singly = instances.observe([ref(1)], clock.now)[ref(1)]
    assert counts(stand_in) == {"servers/ID": 1, "ports": 2, "networks": 1}
    assert singly == by_list
    assert isinstance(singly, Seen)
    instance = singly.value
    assert isinstance(instance, Instance)
    internal = AddressType.INTERNAL_IP
    assert Address(internal, "10.9.0.1") in instance.addresses


@pytest.mark.parametrize(
    ("desired", "listed", "is_list"),
    [
        pytest.param(10, None, False, id="not counted yet"),
        pytest.param(2, 50, False, id="two of fifty"),
        pytest.param(3, 50, True, id="three of fifty"),
        pytest.param(10, 5001, False, id="six pages for ten servers"),
        pytest.param(200, 1000, True, id="200 of 1,000"),
    ],
)
def test_looks_take_whatever_needs_fewer_calls(
    desired: int, listed: int | None, is_list: bool
) -> None:
    assert singles.is_list_cheaper(desired, listed) is is_list


@pytest.mark.parametrize(
    ("nodes", "not_ready", "a_pass"),
    [pytest.param(50, 10, 1, id="10 of 50"), pytest.param(1000, 200, 2, id="200")],
)
def test_not_ready_nodes_cost_lists_and_no_single_reads(  # fixtures
    stand_in: StandIn,
    make_instances: MakeInstances,
    make_server: Make,
    clock: Clock,
    nodes: int,
    not_ready: int,
    a_pass: int,
) -> None:
    """Twelve passes a minute: 12 calls for 10 of 50, where single reads were 120.

    200 of 1,000 cost two pages a pass; the bound is 3.
    """
    stand_in.servers = [make_server(f"s-{n}") for n in range(nodes)]
    instances = make_instances()
    instances.observe([ref(n) for n in range(nodes)], clock.now)
    counts(stand_in)
    for _ in range(12):
        clock.now += 5
        observations = instances.look([ref(n) for n in range(not_ready)])
        assert all(
            isinstance(observation, Seen) for observation in observations.values()
        )
    assert counts(stand_in) == {"servers/detail": 12 * a_pass}
    stand_in.fail("servers/detail", 500)
    stand_in.fail("servers/detail", 500)
    clock.now += 5
    observations = instances.look([ref(n) for n in range(10)])
    assert all(
        isinstance(observation, Unknown) for observation in observations.values()
    )
