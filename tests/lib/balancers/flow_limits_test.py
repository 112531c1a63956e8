"""Load balancers at Kubernetes' own limits: 5,000 Nodes, 2,000 Services of 3 ports.

In the long tier; a tenth of it otherwise. On the fake, in this process: calls are
asserted; printed is processor time and memory, in the long tier by function as well.
Each Service selects the Nodes of one label, as clusters of this size do: members on all
Nodes would be 30 million. The first Service is served by the provider; the others are
copies of what that left in the cloud.
"""

import cProfile
import dataclasses
import functools
import io
import os
import pstats
import re
import time
from collections.abc import Callable, Mapping, Sequence

import psutil

from lib.balancers import flow
from lib.cloud.load_balancers import (
    Depth,
    Facts,
    Node,
    Port,
    PortProtocol,
    Spec,
    Target,
)
from lib.cloud.model import Address, AddressType, Seen
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import copies, driver
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.spec import annotations as keys

IS_LONG = os.environ.get("MOORING_TIER") == "long"
SCALE = 10 if IS_LONG else 1
NODES, MEMBERS, SERVICES, PORTS = 500 * SCALE, 10, 200 * SCALE, 3
LOOKS = 6
"""Drift checks in an hour."""
MOST_CALLS = SERVICES + 100
MOST_AN_HOUR = min(SERVICES * PORTS, LOOKS * flow.CALLS_PER_CHECK) + 30 * LOOKS
"""2,000 Services: 1,980. Bound: 2,100."""
LABEL = (("pool", "edge"),)
ROWS = 8
TCP = PortProtocol.TCP


def node(number: int) -> Node:
    address = Address(
        AddressType.INTERNAL_IP, f"10.0.{number // 250}.{number % 250 + 1}"
    )
    labels = LABEL if number < MEMBERS else (("pool", "inner"),)
    return Node(
        f"node-{number:04}", f"openstack:///server-{number}", (address,), labels
    )


@dataclasses.dataclass(frozen=True)
class Project:
    """A project with all Services served, and a process that knows nothing yet."""

    on: driver.Ground
    room: OctaviaLoadBalancers
    facts: Sequence[Facts]


def project() -> Project:
    on = driver.ground()
    octavia, neutron = on.cloud.octavia, on.cloud.neutron
    octavia.build_s = octavia.update_s = 0.0
    nodes = tuple(map(node, range(NODES)))
    for row in nodes[:MEMBERS]:
        address, server = row.addresses[0].address, row.provider_id[13:]
        neutron.add_port(on.subnet_id, address, server)
    config = settings.LoadBalancer(
        subnet_id=on.subnet_id,
        floating_network_id=on.external_id,
        node_selector="pool=edge",
    )
    ports = tuple(Port(80 + at, TCP, 30080 + at) for at in range(PORTS))
    facts = driver.service(nodes, name="s-0", uid="uid-0", ports=ports)
    first = driver.Driver(on, facts, config)
    first.settle()
    copier = copies.Copier(on.cloud)
    all_facts = [first.facts]
    for number in range(1, SERVICES):
        address = f"198.18.{number // 250}.{number % 250}"
        copier.add(number, functools.partial(renamed, number), address)
        all_facts.append(facts_of(first.facts, number, address, copier))
    room = OctaviaLoadBalancers(on.cloud.client(), config)
    return Project(on, room, all_facts)


def renamed(number: int, text: str) -> str:
    text = re.sub("uid-0(?![0-9])", f"uid-{number}", text)
    return re.sub("([_/])s-0(?![0-9])", rf"\g<1>s-{number}", text)


def facts_of(first: Facts, number: int, address: str, copier: copies.Copier) -> Facts:
    written = {
        key: (
            address
            if key == keys.LOAD_BALANCER_ADDRESS
            else copier.id_of(value, number)
        )
        for key, value in first.annotations.items()
    }
    return dataclasses.replace(
        first,
        name=f"s-{number}",
        uid=f"uid-{number}",
        annotations=written,
        ingress=(dataclasses.replace(first.ingress[0], ip=address),),
    )


def spent(project: Project, what: str, do: Callable[[], int]) -> int:
    """Do something that returns the steps planned; print its cost; return the calls."""
    before, began = len(project.on.cloud.calls), time.process_time()
    profile = cProfile.Profile()
    if IS_LONG:  # it makes everything three times as slow
        profile.enable()
    steps = do()
    profile.disable()
    calls = len(project.on.cloud.calls) - before
    mib = psutil.Process().memory_info().rss / 2**20
    cpu_s = time.process_time() - began
    print(f"{what}: {calls} calls, {steps} steps, {cpu_s:.1f} CPU s, RSS {mib:.0f} MiB")
    if IS_LONG:
        shown = io.StringIO()
        stats = pstats.Stats(profile, stream=shown)
        stats.sort_stats("tottime").print_stats("lib/", ROWS)
        print(*shown.getvalue().splitlines()[-ROWS - 2 :], sep="\n")
    assert steps == 0
    return calls


def targets(project: Project) -> list[Target]:
    targets: list[Target] = []
    for facts in project.facts:
        spec = project.room.parse(facts)
        assert isinstance(spec, Spec)
        targets.append(Target(project.room.refer(facts), spec))
    return targets


def compared(project: Project, parts: Mapping[Depth, Sequence[Target]]) -> int:
    """Observe and plan; return the number of steps."""
    steps = 0
    for depth, some in parts.items():
        observations = project.room.observe(some, depth)
        for target in some:
            observation = observations[target.ref]
            assert isinstance(observation, Seen)
            steps += len(project.room.plan(target, observation.value, driver.NOW).steps)
    return steps


def test_restart_and_an_idle_hour() -> None:
    """Each at most 2,100 calls, and nothing is written."""
    existing = project()
    all_ = targets(existing)
    whole = {Depth.CHANGED: all_}
    restart = spent(existing, "restart", lambda: compared(existing, whole))
    assert restart <= MOST_CALLS
    existing.on.cloud.clock.sleep(600)
    # What was read right after a change may be stale, so it is read once more.
    spent(existing, "first check after the restart", lambda: compared(existing, whole))
    hour = 0
    turn = flow.CALLS_PER_CHECK // PORTS
    for look in range(LOOKS):
        existing.on.cloud.clock.sleep(600)
        deep = all_[look * turn : (look + 1) * turn]
        listed = [*all_[: look * turn], *all_[(look + 1) * turn :]]
        parts = {Depth.FULL: deep, Depth.CHANGED: listed}
        hour += spent(existing, "a look", functools.partial(compared, existing, parts))
    print(f"an idle hour: {hour} calls, bound {MOST_AN_HOUR}")
    assert hour <= MOST_AN_HOUR <= 2100
