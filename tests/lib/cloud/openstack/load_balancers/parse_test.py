"""Facts and configuration become what is wanted; each bad value is named."""

import dataclasses
import fnmatch
import time

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.load_balancers import (
    Facts,
    Ingress,
    IpFamily,
    Node,
    Port,
    PortProtocol,
    Problems,
    Reason,
    Spec,
)
from lib.cloud.model import Address, AddressType
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import parse, subnets
from lib.cloud.openstack.load_balancers.spec.desired import Desired, Hints
from lib.cloud.steps import CommonReason

A, B, C = (f"00000000-0000-4000-8000-00000000000{x}" for x in "abc")
NODE = Node("node-1", "", (Address(AddressType.INTERNAL_IP, "10.0.0.1"),))
FACTS = driver.service((NODE,))
Config = settings.LoadBalancer
Class = settings.LoadBalancerClass


def annotated(**values: str) -> Facts:
    """Return the usual facts with annotations, by the names of their keys."""
    both = {getattr(keys, name): value for name, value in values.items()}
    return dataclasses.replace(FACTS, annotations=both)


def desired_of(facts: Facts, config: Config | None = None) -> Desired:
    spec = parse.parse(facts, config or Config())
    assert isinstance(spec, Spec), spec
    assert isinstance(spec.native, Desired)
    return spec.native


# name of the key, value, what is allowed, what is used ("" : fatal)
BAD = [
    ("INTERNAL", "yes", "one of true, false", "false"),
    ("SOURCE_RANGES", "10.0.0.0/8,anywhere", "CIDRs such as 10.0.0.0/24", ""),
    ("SOURCE_RANGES", "10.0.0.1", "CIDRs such as 10.0.0.0/24", ""),
    ("CLASS", "none", '[LoadBalancerClass "..."]: gold, silver', ""),
    ("NETWORK_ID", "net", "a UUID", ""),
    ("SUBNET_ID", "net", "a UUID", ""),
    ("MEMBER_SUBNET_ID", "net", "a UUID", ""),
    ("PORT_ID", "port", "a UUID", ""),
    ("FLOATING_NETWORK_ID", "public", "a UUID", ""),
    ("FLOATING_SUBNET_ID", "public", "a UUID", ""),
    ("FLOATING_SUBNET", "~(", "a regular expression behind ~", ""),
    ("KEEP_FLOATING_IP", "1", "one of true, false", "false"),
    ("LOAD_BALANCER_ID", "mine", "a UUID", ""),
    ("DECKHOUSE_ID", "mine", "a UUID", ""),
    ("DECKHOUSE_ADDRESS", "10.0.0", "an IP address", ""),
    ("HOSTNAME", "No_Name", "a DNS name in lower case", "the address"),
    ("PROXY_PROTOCOL", "v3", "one of true, v1, v2, false", "false"),
    ("FORWARDED_FOR", "on", "one of true, false", "false"),
    ("TLS_REF", "certificate", "containers/<uuid> or secrets/<uuid>", ""),
    ("CONNECTION_LIMIT", "-2", "a whole number from -1 to", "-1"),
    ("CONNECTION_LIMIT", "1.5", "a whole number from -1 to", "-1"),
    ("TIMEOUT_CLIENT_DATA", "5s", "a whole number from 0 to 2073600000", "50000"),
    ("TIMEOUT_MEMBER_CONNECT", "-1", "a whole number from 0 to", "5000"),
    ("TIMEOUT_MEMBER_DATA", "9999999999", "a whole number from 0 to", "50000"),
    ("TIMEOUT_TCP_INSPECT", "", "a whole number from 0 to", "0"),
    ("ENABLE_MONITOR", "yes", "one of true, false", "false"),
    ("MONITOR_DELAY", "x", "a whole number from 0 to", "5"),
    ("MONITOR_TIMEOUT", "x", "a whole number from 0 to", "3"),
    ("MONITOR_RETRIES", "0", "a whole number from 1 to 10", "1"),
    ("MONITOR_RETRIES_DOWN", "11", "a whole number from 1 to 10", "3"),
    ("NODE_SELECTOR", "=x", "key=value or key", ""),
    ("MEMBER_CIDR", "10.0.0", "CIDRs, separated by commas", ""),
    ("ON_ERROR", "panic", "one of report, failover, recreate", "report"),
]
ANYTHING_GOES = {
    keys.FLOATING_SUBNET_TAGS,
    keys.FLAVOR_ID,
    keys.AVAILABILITY_ZONE,
    keys.OWNED_ID,
    keys.METHOD,  # has an Event of its own; see below
}


@pytest.mark.parametrize(("name", "value", "allowed", "used"), BAD)
def test_a_bad_value_is_named_with_what_is_allowed(
    name: str, value: str, allowed: str, used: str
) -> None:
    """One problem, of this annotation alone; a default is used, or nothing is done."""
    config = Config(classes={"gold": Class(), "silver": Class()})
    spec = parse.parse(annotated(**{name: value}), config)
    problems = spec.problems
    assert len(problems) == 1, problems
    assert isinstance(spec, Problems) == (used == "")
    message = problems[0].message
    assert message.startswith(f"annotation {getattr(keys, name)}: ")
    assert allowed in message
    default = f'; using the default "{used}"'
    assert message.endswith(default) if used else "using" not in message


def test_every_annotation_has_a_bad_value_or_takes_any() -> None:
    """The table above is whole."""
    assert {getattr(keys, name) for name, *_ in BAD} | ANYTHING_GOES == keys.READ


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (
            Config(lb_method="BEST"),
            '[LoadBalancer] lb-method: unsupported value "BEST"',
        ),
        (
            Config(default_tls_container_ref="x"),
            '[LoadBalancer] default-tls-container-ref: invalid value "x"',
        ),
        (
            Config(node_selector="=x"),
            '[LoadBalancer] node-selector: invalid value "=x"',
        ),
        (
            Config(floating_subnet="~("),
            '[LoadBalancer] floating-subnet: invalid value "~("',
        ),
    ],
)
def test_a_bad_value_of_the_configuration_is_not_called_an_annotation(
    config: Config, named: str
) -> None:
    """Who reads the Event must know where to put it right."""
    (problem,) = parse.parse(FACTS, config).problems
    assert named in problem.message
    assert "annotation" not in problem.message


def test_all_problems_are_reported_together() -> None:
    """Also those of the Service itself; one wrong thing hides no other."""
    facts = annotated(SUBNET_ID="x", ENABLE_MONITOR="x", NODE_SELECTOR="=")
    facts = dataclasses.replace(
        facts, ports=(), nodes=(), load_balancer_ip="x", source_ranges=("y",)
    )
    spec = parse.parse(facts, Config())
    assert isinstance(spec, Problems)
    assert sorted(problem.reason.name for problem in spec.problems) == [
        "INVALID_ANNOTATION",
        "INVALID_ANNOTATION",
        "INVALID_ANNOTATION",
        "INVALID_SERVICE",
        "INVALID_SERVICE",
        "INVALID_SERVICE",
        "NO_NODES",
    ]


def test_an_unknown_method_is_said_as_the_reference_says_it() -> None:
    """Its Event, and the configured method in its place."""
    spec = parse.parse(annotated(METHOD="BEST"), Config(lb_method="SOURCE_IP"))
    assert isinstance(spec, Spec)
    desired = desired_of(annotated(METHOD="BEST"), Config(lb_method="SOURCE_IP"))
    assert desired.algorithm == "SOURCE_IP"
    assert [problem.event for problem in spec.problems] == [
        "LoadBalancerLbMethodUnknown"
    ]


def test_proxy_protocol_and_forwarded_for_exclude_each_other() -> None:
    """As with the reference; the message names both."""
    spec = parse.parse(annotated(PROXY_PROTOCOL="v1", FORWARDED_FOR="true"), Config())
    assert isinstance(spec, Problems)
    assert keys.PROXY_PROTOCOL in spec.problems[0].message


def test_what_is_only_for_tcp_is_not_done_to_udp() -> None:
    """The UDP port works all the same, and a problem says what does not count."""
    ports = (Port(80, PortProtocol.TCP, 30080), Port(53, PortProtocol.UDP, 30053))
    facts = dataclasses.replace(annotated(PROXY_PROTOCOL="v2"), ports=ports)
    spec = parse.parse(facts, Config())
    assert [problem.reason for problem in spec.problems] == [CommonReason.UNSUPPORTED]
    assert "53/UDP" in spec.problems[0].message


PLACES = [
    # annotations, class, configuration, internal -> VIP subnet, member subnet
    ({}, Class(), Config(subnet_id=C), False, (C, C)),
    ({"SUBNET_ID": A}, Class(), Config(), False, (A, A)),
    ({"SUBNET_ID": A}, Class(subnet_id=B), Config(), True, (A, A)),
    ({"SUBNET_ID": A}, Class(subnet_id=B), Config(), False, (B, A)),
    ({}, Class(subnet_id=B), Config(subnet_id=C), False, (B, C)),
    ({"SUBNET_ID": A}, Class(), Config(subnet_id=C), False, (A, C)),
    ({"MEMBER_SUBNET_ID": A}, Class(), Config(subnet_id=C), False, (C, A)),
    ({}, Class(member_subnet_id=B), Config(subnet_id=C), False, (C, B)),
    ({}, Class(), Config(member_subnet_id=B, subnet_id=C), False, (C, B)),
    ({}, Class(), Config(), False, ("", "")),
]


@pytest.mark.parametrize(("values", "class_", "config", "internal", "expected"), PLACES)
def test_subnets_are_chosen_in_the_references_order(
    values: dict[str, str],
    class_: Class,
    config: Config,
    internal: bool,
    expected: tuple[str, str],
) -> None:
    """Annotation, class, configuration; for an external VIP the class comes first."""
    facts = annotated(CLASS="x", INTERNAL=str(internal).lower(), **values)
    config = dataclasses.replace(config, classes={"x": class_})
    place = desired_of(facts, config).placement
    assert (place.subnet_id, place.member_subnet_id) == expected


FLOATS = [
    ({}, Class(), Config(floating_network_id=C), (C, "", "", "")),
    (
        {"FLOATING_NETWORK_ID": A},
        Class(),
        Config(floating_network_id=C),
        (A, "", "", ""),
    ),
    ({"FLOATING_NETWORK_ID": ""}, Class(), Config(floating_network_id=C), ("",) * 4),
    (
        {"FLOATING_NETWORK_ID": A},
        Class(floating_network_id=B),
        Config(),
        (B, "", "", ""),
    ),
    (
        {"FLOATING_SUBNET_ID": A},
        Class(floating_subnet="b"),
        Config(),
        ("", "", "b", ""),
    ),
    (
        {"FLOATING_SUBNET": "a"},
        Class(),
        Config(floating_subnet_id=C),
        ("", "", "a", ""),
    ),
    (
        {"FLOATING_SUBNET_ID": A, "FLOATING_SUBNET": "a", "FLOATING_SUBNET_TAGS": "t"},
        Class(),
        Config(),
        ("", A, "", ""),
    ),
    ({}, Class(), Config(floating_subnet_tags="t"), ("", "", "", "t")),
]


@pytest.mark.parametrize(("values", "class_", "config", "expected"), FLOATS)
def test_floating_networks_are_chosen_class_first(
    values: dict[str, str],
    class_: Class,
    config: Config,
    expected: tuple[str, str, str, str],
) -> None:
    """An annotation that is there but empty beats the configuration."""
    config = dataclasses.replace(config, classes={"x": class_})
    floating = desired_of(annotated(CLASS="x", **values), config).floating
    assert (
        floating.network_id,
        floating.subnet_id,
        floating.subnet,
        floating.tags,
    ) == expected


@pytest.mark.parametrize(
    ("config", "changed", "field", "value"),
    [
        (Config(internal_lb=True), {"INTERNAL": "false"}, "is_internal", True),
        (Config(create_monitor=True), {}, "monitored", "YES"),
        (Config(create_monitor=True), {"ENABLE_MONITOR": "false"}, "monitored", "NO"),
        (Config(lb_method="SOURCE_IP"), {}, "algorithm", "SOURCE_IP"),
        (Config(lb_method="SOURCE_IP"), {"METHOD": "ROUND_ROBIN"}, "algorithm", None),
        (Config(default_tls_container_ref="x/secrets/y"), {}, "tls_ref", "x/secrets/y"),
        (Config(default_tls_container_ref="x"), {"TLS_REF": ""}, "tls_ref", ""),
    ],
)
def test_settings_are_defaults_of_annotations(
    config: Config, changed: dict[str, str], field: str, value: object
) -> None:
    """But internal-lb, which users can't switch off."""
    result = getattr(desired_of(annotated(**changed), config), field)
    expected = "ROUND_ROBIN" if value is None else value
    assert getattr(result, "name", result) == expected or result == expected


def test_monitor_settings_come_from_the_configuration() -> None:
    """As Deckhouse writes them: seconds."""
    config = Config(
        monitor_delay_s=2.0,
        monitor_timeout_s=1.0,
        monitor_max_retries=2,
        monitor_max_retries_down=4,
        flavor_id="f",
        availability_zone="z",
        node_selector="role=edge",
    )
    node = dataclasses.replace(NODE, labels=(("role", "edge"),))
    desired = desired_of(dataclasses.replace(FACTS, nodes=(NODE, node)), config)
    got = desired.monitoring
    shown = (got.delay_s, got.timeout_s, got.max_retries, got.max_retries_down)
    assert shown == (2, 1, 2, 4)
    assert (desired.placement.flavor_id, desired.placement.availability_zone) == (
        "f",
        "z",
    )
    assert len(desired.members) == 1


def test_deckhouse_annotations_win_and_empty_ones_fall_through() -> None:
    """Over loadBalancerIP, and over the upstream id."""
    facts = dataclasses.replace(
        annotated(DECKHOUSE_ADDRESS="192.0.2.1", DECKHOUSE_ID=A, LOAD_BALANCER_ID=B),
        load_balancer_ip="192.0.2.2",
    )
    assert (desired_of(facts).address, desired_of(facts).given_id) == ("192.0.2.1", A)
    facts = dataclasses.replace(
        annotated(DECKHOUSE_ADDRESS="", DECKHOUSE_ID="", LOAD_BALANCER_ID=B),
        load_balancer_ip="192.0.2.2",
    )
    assert (desired_of(facts).address, desired_of(facts).given_id) == ("192.0.2.2", B)


def test_source_ranges_of_the_spec_beat_the_annotation() -> None:
    """Normalised as the reference does; by default everybody of the families."""
    facts = dataclasses.replace(
        annotated(SOURCE_RANGES="192.0.2.0/24"), source_ranges=("10.1.2.3/8",)
    )
    assert desired_of(facts).cidrs == ("10.0.0.0/8",)
    both = dataclasses.replace(FACTS, ip_families=(IpFamily.IPV4, IpFamily.IPV6))
    assert desired_of(both).cidrs == ("0.0.0.0/0", "::/0")
    assert not desired_of(both).has_ranges


def node(name: str, *addresses: tuple[str, str], **labels: str) -> Node:
    addresses_ = tuple(Address(AddressType(kind), text) for kind, text in addresses)
    return Node(name, "", addresses_, tuple(labels.items()))


def test_members_are_the_first_internal_else_external_addresses() -> None:
    """Of the family, within the CIDRs; Nodes without one are named, once each."""
    nodes = (
        node("both", ("ExternalIP", "192.0.2.1"), ("InternalIP", "10.0.0.1")),
        node("outside", ("Hostname", "x"), ("ExternalIP", "192.0.2.2")),
        node("six", ("InternalIP", "fd00::1")),
        node("twin", ("InternalIP", "10.0.0.1")),
        node("two", ("InternalIP", "10.9.0.1"), ("InternalIP", "10.0.0.5")),
    )
    facts = dataclasses.replace(FACTS, nodes=nodes)
    result = {member.name: member.address for member in desired_of(facts).members}
    assert result == {"both": "10.0.0.1", "outside": "192.0.2.2", "two": "10.9.0.1"}
    problems = parse.parse(facts, Config()).problems
    assert [problem.reason for problem in problems] == [Reason.NO_ADDRESS]
    assert "no IPv4 address on six: ignored" in problems[0].message
    facts = dataclasses.replace(annotated(MEMBER_CIDR="10.0.0.0/16"), nodes=nodes)
    result = {member.name: member.address for member in desired_of(facts).members}
    assert result == {"both": "10.0.0.1", "two": "10.0.0.5"}


def test_ids_that_are_none_lead_nowhere() -> None:
    """They would be parts of URLs and of messages."""
    facts = annotated(LOAD_BALANCER_ID="../../v2/" + "x" * 9000, OWNED_ID="?a=b")
    assert parse.refer(facts, Config()).native == Hints()


@pytest.mark.parametrize("size", [5_000, 200_000])
@pytest.mark.parametrize("key", sorted(keys.READ))
def test_a_long_value_makes_a_short_message(key: str, size: int) -> None:
    """A few short problems, whatever its length; no control character gets out."""
    for value in ("x" * size, "\x1b[2K," * (size // 5), "1.2.3.4," * (size // 8)):
        facts = dataclasses.replace(FACTS, annotations={key: value})
        spec = parse.parse(facts, Config())
        assert len(spec.problems) <= keys.MOST_NAMED + 2
        for problem in spec.problems:
            assert len(problem.message) < 500
            assert problem.message.isprintable()


def test_a_ref_is_made_of_any_facts() -> None:
    """Of wrong ones, too; hostnames of the reference give their address back."""
    facts = dataclasses.replace(
        annotated(LOAD_BALANCER_ID=B, KEEP_FLOATING_IP="true", OWNED_ID=A),
        ports=(),
        nodes=(),
        ingress=(Ingress("192.0.2.1"), Ingress(hostname="192.0.2.2.nip.io")),
    )
    ref = parse.refer(facts, Config())
    assert ref.native == Hints(
        B, A, ("192.0.2.1", "192.0.2.2"), True, shown_ips=("192.0.2.1",)
    )
    assert ref.key == "default/web"
    assert hash(ref)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("", "any", True),
        ("public", "public", True),
        ("public", "public-2", False),
        ("public-*", "public-2", True),
        ("public-?", "public-22", False),
        ("public-{1,2}", "public-2", True),
        ("public-{1,2}", "public-3", False),
        ("{pub*,ext?}-v4", "extern-v4", False),
        ("{pub*,ext?}-v4", "public-v4", True),
        ("!{public,other}", "other", False),
        ("*-{a,b}-*c", "x-y-b-z-c", True),
        ("odd{", "odd{", True),
        ("[ab]-?", "b-1", True),
        ("!public-*", "public-2", False),
        ("!public-*", "other", True),
        ("~pub.*", "public", True),
        ("~pub", "public", False),
        ("!~pub.*", "public", False),
    ],
)
def test_subnet_patterns(pattern: str, name: str, fits: bool) -> None:
    """Name, glob, regular expression of the whole name, and their negation."""
    assert subnets.is_pattern(pattern)
    assert subnets.matches(pattern)(name) is fits


@pytest.mark.parametrize(
    ("expression", "query"),
    [
        ("", ()),
        ("a,b", (("tags-any", "a,b"),)),
        ("& a, b", (("tags", "a,b"),)),
        ("!a,b", (("not-tags-any", "a,b"),)),
        ("!&a,b", (("not-tags", "a,b"),)),
    ],
)
def test_tag_expressions_become_neutron_filters(
    expression: str, query: tuple[tuple[str, str], ...]
) -> None:
    """Any, all, none, at least one missing."""
    assert subnets.tag_filter(expression) == query


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(
    values=strategies.dictionaries(
        strategies.sampled_from(sorted(keys.READ)),
        strategies.text(max_size=20) | strategies.sampled_from(["true", A, "~a", "7"]),
    ),
    address=strategies.text(max_size=8),
    ranges=strategies.lists(strategies.text(max_size=8), max_size=2).map(tuple),
)
def test_no_text_is_too_odd_to_be_judged(
    values: dict[str, str], address: str, ranges: tuple[str, ...]
) -> None:
    """Whatever users write: a spec or problems, each with a message, and a ref."""
    facts = dataclasses.replace(
        FACTS, annotations=values, load_balancer_ip=address, source_ranges=ranges
    )
    spec = parse.parse(facts, Config())
    assert isinstance(spec, Problems) == any(
        problem.is_fatal for problem in spec.problems
    )
    assert all(problem.message for problem in spec.problems)
    assert hash(parse.refer(facts, Config()))


HOSTILE = {
    "nested repeats": "~(.?){27}!",
    "groups of a glob": "*{,}" * 11 + "!",
    "alternatives": "~(a|a?)+!",
    "quantified quantifier": "~((a*)*)*!",
    "stars": "*a" * 60 + "!",
    "unlimited": "~(.?){1000}!",
    "counter of 33 bits": "~a{4294967296}",
    "deep": "~" + "(" * 3000 + ")" * 3000,
    "nested counters": "~(((a{30}){30}){30})",
    "long": "a" * 200_000,
    "half a letter": "~\ud800",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pattern_costs_little(name: str) -> None:
    """Linear in pattern and name; what can't be compiled is a bad value."""
    pattern = HOSTILE[name]
    began = time.thread_time()
    spec = parse.parse(annotated(FLOATING_SUBNET=pattern), Config())
    if isinstance(spec, Problems):
        (problem,) = spec.problems
        assert problem.message.startswith(f"annotation {keys.FLOATING_SUBNET}: ")
        assert len(problem.message) < 1000
    else:
        for subnet in ("public-v4", "a" * 255):
            subnets.matches(pattern)(subnet)
    assert time.thread_time() - began < 0.2


@hypothesis.given(
    strategies.text("ab*?[]!-^\\.z\n", max_size=12),
    strategies.text("ab[]!-^\\.z\n", max_size=6),
)
def test_globs_match_as_those_of_python(glob: str, name: str) -> None:
    """All but the groups, which Python has not."""
    if glob and not glob.startswith(("!", "~")):
        assert subnets.matches(glob)(name) is fnmatch.fnmatchcase(name, glob)
