"""Every setting of [LoadBalancer]: on a new load balancer, and on one that is there.

openstack-ccm, the PEX, lives with one cloud.conf after the other: some it finds at its
start, some it reloads as it runs. What it made of them is read from Octavia and
Neutron past it. A row for each setting and each of both; without one the test fails.
The default tier tries the rows of the first two files.
"""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping

import pytest

from lib.cloud.openstack.config import settings
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.lab import places
from lib.lab.daemons import ccm, metrics
from lib.lab.openstack import accounts, cloud, layout
from lib.lab.run import processes, waiting
from tests.harness.openstack import balancer_watch, balancers, cases, prerequisites
from tests.harness.openstack.cases import Observed, Probe, members, of
from tests.harness.services import stages

NAMESPACE = "settings"
NODES: Mapping[str, Mapping[str, str]] = {"set-1": {"role": "edge"}, "set-2": {}}
TIMEOUT_S = waiting.LIMIT_S
POLL_S = 0.5
REOPENED = "configuration reloaded"
"""Of the daemon's log."""

FIRST = """
subnet-id = {subnet}
member-subnet-id = {other_subnet}
member-cidr = 10.250.0.0/24
floating-network-id = {external}
container-store = external
"""
SECOND = """
lb-provider = amphora
lb-method = LEAST_CONNECTIONS
subnet-id = {other_subnet}
member-subnet-id = {subnet}
node-selector = role=edge
floating-network-id = {second_external}
floating-subnet-id = {subnet_b}
flavor-id = {flavor}
availability-zone = {zone}
create-monitor = true
monitor-delay = 7s
monitor-timeout = 4s
monitor-max-retries = 2
monitor-max-retries-down = 4
manage-security-groups = true
enable-ingress-hostname = true
ingress-hostname-suffix = example.test
max-shared-lb = 1
container-store = barbican
"""
THIRD = """
network-id = {other_network}
floating-network-id = {second_external}
floating-subnet = second-?
floating-subnet-tags = !blue
create-monitor = true
monitor-delay = 8s
monitor-timeout = 5s
monitor-max-retries = 3
monitor-max-retries-down = 5
enable-ingress-hostname = true
ingress-hostname-suffix = another.test
max-shared-lb = 2
container-store = external
default-tls-container-ref = a-reference
provider-requires-serial-api-calls = true
"""
FOURTH = f"{THIRD}internal-lb = true\ncascade-delete = false\n"
FIFTH = f"{FOURTH}lb-provider = noop\n"
OFF = "enabled = false\n"


@dataclasses.dataclass(frozen=True)
class Row:
    """What is seen of a setting on a Service's load balancer.

    message: part of an Event's message.
    """

    setting: str
    service: str
    probe: Probe
    shows: object
    message: str = ""


@dataclasses.dataclass
class Ground(cases.Ground):
    """Beside that, where the daemon runs, with a cloud.conf that changes."""

    stage: stages.Stage

    def start(self, text: str, *flags: str) -> None:
        """Run the daemon with a file, in the place of one that runs."""
        processes.stop(self.stage.where, [ccm.NAME])
        self.stage.serve(flags, self._section(text))

    def rewrite(self, text: str) -> None:
        """Change the file of the daemon that runs, and wait until it has read it."""
        log = self.stage.where.log / f"{ccm.NAME}.log"
        file = self.stage.where.state / f"{NAMESPACE}-cloud.conf"
        before = log.read_text().count(REOPENED)
        file.write_text(self.stage.conf + self._section(text))
        waiting.until(
            "the file is read", lambda: log.read_text().count(REOPENED) > before
        )

    def _section(self, text: str) -> str:
        return f"\n[LoadBalancer]\n{text}".format_map(self.names)


# ------------------------------------------------------------------------ what is seen


def floating_range(observed: Observed) -> object:
    """Return the first two parts of the floating IP, its subnet; empty without one."""
    return ".".join(observed.address.split(".")[:2])


def status(observed: Observed) -> object:
    """The status, with "address" in the place of the floating IP."""
    return [
        address.replace(observed.address or "?", "address")
        for address in observed.ingress
    ]


def groups(observed: Observed) -> object:
    """How many rules for ingress the Service's group has, on how many ports it is."""
    network = observed.view.connection.network
    prefix = f"lb-sg-{observed.service['metadata']['uid']}"
    for group in network.security_groups():
        if group.name.startswith(prefix):
            ports = list(network.ports(security_groups=[group.id]))
            rules = [rule["direction"] for rule in group.security_group_rules]
            return rules.count("ingress"), len(ports)
    return 0, 0


def listened(observed: Observed) -> object:
    """Protocols of listener and pool, and whether it has members."""
    listener, pool = observed.part("listener"), observed.part("pool")
    return listener.get("protocol"), pool.get("protocol"), bool(observed.members)


def served(observed: Observed) -> object:
    return bool(observed.ingress)


def inside(observed: Observed) -> object:
    """Whether it is reached at its VIP, and nowhere else."""
    vip = str(observed.balancer.get("vip_address"))
    shown = [address.removesuffix(" VIP") for address in observed.ingress]
    return shown in ([vip], [f"{vip}.another.test"]) and not observed.address


# --------------------------------------------------------------------------- the table

INTERNAL: Mapping[str, str] = {keys.INTERNAL: "true"}
PROXY: Mapping[str, str] = {keys.PROXY_PROTOCOL: "true"}
FAR: Mapping[str, str] = {
    keys.FLOATING_NETWORK_ID: "{second_external}",
    keys.FLOATING_SUBNET_ID: "{subnet_a}",
}
# Its listener stays as it is under a file that names a certificate.
PLAIN: Mapping[str, str] = {**PROXY, keys.TLS_REF: ""}
TLS = ("TERMINATED_HTTPS", "HTTP", True)
NEW_UNDER_FIRST = (
    Row("container_store", "tls", of("listener", "default_tls_container_ref"), "any"),
    Row("member_cidr", "old", members("address"), ["10.250.0.1", "10.250.0.2"]),
    Row("member_subnet_id", "old", members("subnet_id"), ["{other_subnet}"]),
    Row("lb_method", "old", of("pool", "lb_algorithm"), "ROUND_ROBIN"),
    Row("create_monitor", "old", of("pool", "healthmonitor_id"), None),
    Row("enable_ingress_hostname", "old", status, ["address Proxy"]),
    Row("manage_security_groups", "old", groups, (0, 0)),
)
NEW_UNDER_SECOND = (
    Row("lb_provider", "new", of("balancer", "provider"), "amphora"),
    Row("lb_method", "new", of("pool", "lb_algorithm"), "LEAST_CONNECTIONS"),
    Row("subnet_id", "inner", of("balancer", "vip_subnet_id"), "{other_subnet}"),
    Row("member_subnet_id", "new", members("subnet_id"), ["{subnet}"]),
    Row("node_selector", "new", members("name"), ["set-1"]),
    Row("floating_network_id", "new", floating_range, "198.21"),
    Row("floating_subnet_id", "new", floating_range, "198.21"),
    Row("flavor_id", "new", of("balancer", "flavor_id"), "{flavor}"),
    Row("availability_zone", "new", of("balancer", "availability_zone"), "{zone}"),
    Row("create_monitor", "new", of("monitor", "type"), "TCP"),
    Row("monitor_delay_s", "new", of("monitor", "delay"), 7),
    Row("monitor_timeout_s", "new", of("monitor", "timeout"), 4),
    Row("monitor_max_retries", "new", of("monitor", "max_retries"), 2),
    Row("monitor_max_retries_down", "new", of("monitor", "max_retries_down"), 4),
    Row("manage_security_groups", "new", groups, (1, 1)),
    Row("enable_ingress_hostname", "new", status, ["address.example.test"]),
    Row("ingress_hostname_suffix", "new", status, ["address.example.test"]),
    Row("max_shared_lb", "shared", served, False, "max-shared-lb is 1"),
)
THERE_UNDER_SECOND = (
    Row("lb_method", "old", of("pool", "lb_algorithm"), "LEAST_CONNECTIONS"),
    Row(
        "subnet_id",
        "old",
        of("balancer", "vip_subnet_id"),
        "{subnet}",
        "subnet-id is {subnet}, desired {other_subnet}",
    ),
    Row("member_subnet_id", "old", members("subnet_id"), ["{subnet}"]),
    Row("member_cidr", "old", members("address"), ["{address}"]),
    Row("node_selector", "old", members("name"), ["set-1"]),
    Row(
        "floating_network_id",
        "old",
        floating_range,
        "198.18",
        "floating-network-id is {external}, desired {second_external}",
    ),
    Row(
        "floating_subnet_id",
        "far",
        floating_range,
        "198.20",
        "is in no floating subnet {subnet_b}",
    ),
    Row("flavor_id", "old", of("balancer", "flavor_id"), None, "flavor-id is none"),
    Row(
        "availability_zone",
        "old",
        of("balancer", "availability_zone"),
        None,
        "availability-zone is none",
    ),
    Row("create_monitor", "old", of("monitor", "type"), "TCP"),
    Row("manage_security_groups", "old", groups, (1, 1)),
    Row("enable_ingress_hostname", "old", status, ["address.example.test"]),
    Row(
        "container_store",
        "tls",
        of("listener", "default_tls_container_ref"),
        "any",
        "ends in containers/<uuid> or secrets/<uuid>",
    ),
)
NEW_UNDER_THIRD = (
    Row("network_id", "last", of("balancer", "vip_network_id"), "{other_network}"),
    Row("floating_subnet", "newest", floating_range, "198.20"),
    Row("floating_subnet_tags", "newest", floating_range, "198.20"),
    Row(
        "default_tls_container_ref",
        "newest",
        of("listener", "default_tls_container_ref"),
        "a-reference",
    ),
    Row("provider_requires_serial_api_calls", "newest", listened, TLS),
)
THERE_UNDER_THIRD = (
    Row(
        "network_id",
        "old",
        of("balancer", "vip_network_id"),
        "{network}",
        "network-id is {network}, desired {other_network}",
    ),
    Row("floating_subnet", "new", floating_range, "198.21", 'floating subnet "second'),
    Row("floating_subnet_tags", "new", floating_range, "198.21", 'with tags "!blue"'),
    Row("monitor_delay_s", "new", of("monitor", "delay"), 8),
    Row("monitor_timeout_s", "new", of("monitor", "timeout"), 5),
    Row("monitor_max_retries", "new", of("monitor", "max_retries"), 3),
    Row("monitor_max_retries_down", "new", of("monitor", "max_retries_down"), 5),
    Row("manage_security_groups", "new", groups, (0, 0)),
    Row("ingress_hostname_suffix", "new", status, ["address.another.test"]),
    Row("max_shared_lb", "shared", served, True),
    Row("default_tls_container_ref", "inner", listened, TLS),
)
NEW_UNDER_FOURTH = (Row("internal_lb", "inside", inside, True),)
THERE_UNDER_FOURTH = (Row("internal_lb", "new", inside, True),)
THERE_UNDER_FIFTH = (
    Row(
        "lb_provider",
        "new",
        of("balancer", "provider"),
        "amphora",
        "lb-provider is amphora, desired noop",
    ),
)
NEW = (*NEW_UNDER_FIRST, *NEW_UNDER_SECOND, *NEW_UNDER_THIRD, *NEW_UNDER_FOURTH)
THERE = (
    *THERE_UNDER_SECOND,
    *THERE_UNDER_THIRD,
    *THERE_UNDER_FOURTH,
    *THERE_UNDER_FIFTH,
)
ELSEWHERE = {
    "enabled": "test_a_daemon_without_load_balancers_leaves_services_alone",
    "cascade_delete": "all are deleted with it switched off",
    "classes": "load_balancer_annotations_test.py",
    "lb_version": "there is only one",
    "wait_active_steps": "nothing waits",
}
ONLY_NEW = {"provider_requires_serial_api_calls": "says how a new one is made"}


@pytest.fixture(scope="module")
def ground(where: places.Places, open_stage: stages.Open) -> Iterator[Ground]:
    names: dict[str, str] = {}
    with contextlib.ExitStack() as ends:
        admin = cloud.connect(where, accounts.ADMIN)
        ends.callback(admin.close)
        prerequisites.offer(admin, names)
        ends.callback(prerequisites.withdraw, admin, names)
        stage = ends.enter_context(open_stage(NAMESPACE))
        connection = stage.mine.connection
        prerequisites.furnish(connection, names)
        states = ends.enter_context(balancer_watch.states(layout.of(where), connection))
        node_ports = balancers.node_ports(connection, names["network"], len(NODES))
        addresses = {}
        for number, (name, some) in enumerate(zip(NODES, node_ports, strict=True), 1):
            first = min(some, key=lambda address: ":" in address)
            addresses[name] = (first, f"10.250.0.{number}")
            names.setdefault("address", first)
        stage.add_nodes(addresses, NODES)
        yield Ground(stage.services, connection, names, states, stage)


def wait(ground: Ground, title: str, rows: tuple[Row, ...]) -> None:
    """Read until all rows show what they must; print them."""
    began = time.monotonic()
    results: dict[int, str] = {}
    while True:
        if ground.states.pending() and time.monotonic() - began < TIMEOUT_S:
            time.sleep(POLL_S)
            continue
        view = balancers.look(ground.connection)
        existing, events = ground.services.all(), ground.services.events()
        for number, row in enumerate(rows):
            if results.get(number) != "ok":
                observed = Observed(existing[row.service], view, ground.names)
                messages = [event.message for event in events.get(row.service, ())]
                results[number] = judge(ground, row, observed, messages)
        took_s = time.monotonic() - began
        is_done = set(results.values()) == {"ok"}
        if is_done or took_s > TIMEOUT_S:
            break
        time.sleep(POLL_S)
    for number, row in enumerate(rows):
        event = f"  Event: {row.message}" if row.message else ""
        print(f"{title:19} {row.setting:34} {row.service:7} {results[number]}{event}")
    print(f"{title:19} {took_s:.0f} s")
    assert is_done


def judge(ground: Ground, row: Row, observed: Observed, messages: list[str]) -> str:
    """Return "ok", or what is wrong."""
    observed_value, expected = row.probe(observed), ground.fill(row.shows)
    words = ground.fill(row.message)
    if observed_value != expected:
        return f"shows {observed_value!r}, wanted {expected!r}"
    if not any(words in message for message in messages) and words:
        return f"no Event says {words!r}, only {messages}"
    return "ok"


def test_a_daemon_without_load_balancers_leaves_services_alone(
    ground: Ground,
) -> None:
    """With enabled = false the other controllers run, and nothing is written."""
    stage = ground.stage
    ground.start(OFF, "--controllers=cloud-node,service")
    token = ccm.reader_token(stage.cluster.api)
    ground.services.make("nobodys", INTERNAL)
    end = time.monotonic() + TIMEOUT_S
    while not (running := controllers(stage.where, token)):
        assert time.monotonic() < end
        time.sleep(POLL_S)
    assert running == {"cloud-node"}
    service = ground.services.get("nobodys")
    assert service is not None
    assert "finalizers" not in service["metadata"]
    ground.services.delete(["nobodys"])


def controllers(where: places.Places, token: str) -> set[str]:
    """Read from the metrics which controllers run."""
    text = ccm.metrics(where, token)
    return set(metrics.by(text, "running_managed_controllers", "name"))


def test_every_setting_shows_on_new_load_balancers_and_on_those_there(
    ground: Ground,
) -> None:
    """Two files, in the long tier five, one after the other; then nothing is left."""
    served_by = ground.services
    ground.start(FIRST)
    served_by.make("old", PROXY)
    served_by.make("far", ground.fill(dict(FAR)))
    served_by.make("tls", {**INTERNAL, keys.TLS_REF: "any"})
    first = (*NEW_UNDER_FIRST, Row("", "far", floating_range, "198.20"))
    wait(ground, "new, first file", first)
    served_by.change("far", dict.fromkeys(FAR))
    share(ground)
    ground.rewrite(SECOND)
    served_by.make("new", {**PLAIN, keys.SUBNET_ID: ground.names["subnet"]})
    served_by.make("inner", INTERNAL)
    served_by.make("shared", {keys.LOAD_BALANCER_ID: ground.names["u1"]})
    wait(ground, "second file", (*THERE_UNDER_SECOND, *NEW_UNDER_SECOND))
    later_files(ground)
    served_by.clear()
    left = balancers.look(ground.connection)
    assert {balancer["name"] for balancer in left.balancers.values()} == {"u1", "u2"}
    assert left.pools == left.listeners == {}
    names = [group.name for group in ground.connection.network.security_groups()]
    assert not [name for name in names if name.startswith("lb-sg-")]


def later_files(ground: Ground) -> None:
    """Go on with three files more, one of them at a new start."""
    served_by = ground.services
    ground.rewrite(THIRD)
    served_by.make("newest", {keys.NETWORK_ID: ground.names["network"]})
    served_by.make("last", INTERNAL)
    wait(ground, "third file", (*THERE_UNDER_THIRD, *NEW_UNDER_THIRD))
    ground.start(FOURTH)
    served_by.make("inside", {keys.NETWORK_ID: ground.names["network"]})
    wait(ground, "fourth file", (*NEW_UNDER_FOURTH, *THERE_UNDER_FOURTH))
    ground.rewrite(FIFTH)
    wait(ground, "there, fifth file", THERE_UNDER_FIFTH)


def share(ground: Ground) -> None:
    """Change the user's load balancer as if a Service were on it."""
    path = f"/lbaas/loadbalancers/{ground.names['u1']}"
    body = {"loadbalancer": {"tags": ["kube_service_of_somebody"]}}
    ground.connection.load_balancer.put(path, json=body).raise_for_status()


def test_no_setting_is_without_its_rows() -> None:
    """Each field of the section, on a new load balancer and on one that is there."""
    fields = {field.name for field in dataclasses.fields(settings.LoadBalancer)}
    assert {row.setting for row in NEW} | ELSEWHERE.keys() == fields
    existing = {row.setting for row in THERE}
    assert existing | ELSEWHERE.keys() | ONLY_NEW.keys() == fields
