"""The counts of docs/explanation/cloud-calls.md are those of the code: both printed."""

import pathlib
import re
from collections.abc import Callable
from typing import Any

from lib.cloud.fake import volumes as fake_volumes
from lib.cloud.model import InstanceRef, Seen
from lib.volumes import cache, callers
from tests.harness.routing import memory

PAGE = pathlib.Path("docs/explanation/cloud-calls.md")
NODES, JOINED = 1000, 100
MINUTE_S = 60.0


def row(what: str) -> tuple[int, ...]:
    """Return the numbers of one row, in the column of this project."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 2 and cells[1] == what:
            text = re.sub(r"of \d+,\d{3}", "", cells[2])
            return tuple(int(digits) for digits in re.findall(r"\d+", text))
    raise AssertionError(f"{PAGE} has no row {what!r}")


def same(what: str, *counted: int) -> None:
    print(f"{what}: {row(what)} on the page, {counted} counted")
    assert row(what) == counted


def addresses(
    stand_in: Any, instances: Any, refs: list[InstanceRef], clock: Any
) -> int:
    """Return the calls of one pass over all Nodes."""
    stand_in.calls.clear()
    clock.now += 1
    observed = instances.observe(refs, clock.now)
    assert all(isinstance(value, Seen) for value in observed.values())
    return len(stand_in.calls)


def test_addresses_of_1000_nodes(
    stand_in: Any,
    make_instances: Callable[..., Any],
    make_server: Callable[..., Any],
    make_port: Callable[..., Any],
    clock: Any,
) -> None:
    stand_in.servers = [make_server(f"s-{n}") for n in range(NODES)]
    stand_in.ports = [
        make_port(f"p-{n}-{k}", f"s-{n}", f"10.{k}.{n // 250}.{n % 250}")
        for n in range(NODES)
        for k in range(2)
    ]
    refs = [InstanceRef(f"node-{n}", f"openstack:///s-{n}") for n in range(NODES)]
    instances = make_instances()
    instances.observe(refs, clock.now)
    usual = addresses(stand_in, instances, refs, clock)
    stand_in.neutron_limit = NODES
    paged = addresses(stand_in, instances, refs, clock)
    same("addresses of 1,000 Nodes with two ports each", usual, paged)


def test_routes_of_100_new_nodes_and_an_idle_check() -> None:
    ground = memory.Ground()
    process = memory.Process(ground)
    ground.node("node-0", "10.100.0.0/24")
    process.settle()
    before = len(ground.cloud.calls)
    for number in range(1, JOINED + 1):
        ground.node(f"node-{number}", f"10.100.{number}.0/24")
    process.settle()
    calls = ground.cloud.calls[before:]
    ports = [call for call in calls if (call.method, call.parts[0]) == ("PUT", "ports")]
    assert len(ports) == JOINED, "one for each port"
    same("routes of 100 new Nodes", len(calls) - len(ports))
    process.drift()
    same("idle check of routes", len(process.drift()))


def test_list_volumes() -> None:
    """The page says: at most one list of the project per minute."""
    now = [0.0]
    cloud = fake_volumes.FakeVolumes(lambda: now[0])
    effects = callers.CallEffects(lambda: now[0])
    known = cache.Cache(lambda: cloud, effects)
    lists = []
    for second in range(int(2 * MINUTE_S)):
        now[0] = float(second)
        known.all(callers.Caller(now[0] + MINUTE_S))
        lists = [call for call in cloud.calls if call.startswith("list")]
    print(f"ListVolumes: {len(lists)} lists in two minutes with a call each second")
    assert len(lists) == 2
    assert "at most one list of the project per minute" in PAGE.read_text()
