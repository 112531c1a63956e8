"""Hostile input: annotations of users, answers of services, lists that lack things.

MOORING_FUZZ multiplies the number of inputs; 50 gives 100,000 annotation sets and
20,000 malformed answers of each service.
"""

import dataclasses
import os
import random
import time
from collections import Counter
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies

from lib.cloud.load_balancers import (
    Depth,
    Facts,
    Plan,
    Problems,
    Spec,
    Target,
)
from lib.cloud.model import Seen, Unknown
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.http import client
from lib.cloud.openstack.load_balancers.cloud import OctaviaLoadBalancers
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import parse, subnets
from lib.cloud.openstack.load_balancers.spec.desired import Desired
from lib.cloud.support import absence
from tests.lib.cloud.openstack import mangling

SCALE = int(os.environ.get("MOORING_FUZZ", "1"))
SETS, ANSWERS = 2_000 * SCALE, 400 * SCALE
ID = "00000000-0000-4000-8000-00000000000a"
ATOMS = (
    *("", "~", "!", "*", "?", "[", "]", "{", "}", "(", ")", "|", "+", "\\", ",", "="),
    *("a", "public", "-1", "1", "999999999999999999", "true", "false", "v2", "0x1"),
    *("10.0.0.1", "10.0.0.0/8", "::/0", "/33", ID, "..", "%2f", "\x1b[2K", "\u202e"),
    *("https://k/v1/containers/" + ID, "{4294967296}", "(.?){60}", "a" * 300),
)
CONTAINER = f"https://keys.example/v1/containers/{ID}"
KEYS = sorted(keys.READ)
VALUES = strategies.lists(strategies.sampled_from(ATOMS), max_size=8).map("".join)
ANNOTATIONS = strategies.dictionaries(strategies.sampled_from(KEYS), VALUES, max_size=8)


Happen = Callable[[], object]


def random_annotations(chance: random.Random) -> dict[str, str]:
    result: dict[str, str] = {}
    for key in chance.sample(KEYS, chance.randint(1, 8)):
        value = "".join(chance.choices(ATOMS, k=chance.randint(0, 8)))
        result[key] = value * (10_000 if chance.random() < 0.001 else 1)
    return result


def test_any_annotations_give_short_problems_and_nothing_else() -> None:
    """No exception, no long message, no time: patterns are matched as well."""
    chance = random.Random(14)  # noqa: S311 # inputs that repeat
    facts = driver.service((driver.ground().node(1),))
    slowest = 0.0
    for _ in range(SETS):
        values = random_annotations(chance)
        began = time.thread_time()
        row = dataclasses.replace(facts, annotations=values)
        parse.refer(row, settings.LoadBalancer())
        spec = parse.parse(row, settings.LoadBalancer())
        for problem in spec.problems:
            assert len(problem.message) < 1024, values
            assert problem.message.isprintable(), values
        if isinstance(spec, Spec):
            assert isinstance(spec.native, Desired)
            subnets.matches(spec.native.floating.subnet)("public-v4" * 20)
        slowest = max(slowest, time.thread_time() - began)
    print(f"{SETS} sets, the slowest took {slowest * 1000:.1f} ms of processor time")
    assert slowest < 0.5


def target_of(balancers: OctaviaLoadBalancers, facts: Facts) -> Target | None:
    parsed = balancers.parse(facts)
    ref = balancers.refer(facts)
    return None if isinstance(parsed, Problems) else Target(ref, parsed)


@hypothesis.settings(max_examples=60 * min(SCALE, 20), deadline=None)
@hypothesis.given(ANNOTATIONS)
def test_annotations_of_one_service_change_nothing_for_another(
    values: dict[str, str],
) -> None:
    """Its plan is the same with and without the other in its batch."""
    on = driver.ground()
    facts = driver.service((on.node(1),))
    healthy = driver.Driver(on, facts)
    healthy.settle()
    healthy.change(nodes=(*facts.nodes, on.node(2)))
    balancers = healthy.balancers
    good = target_of(balancers, healthy.facts)
    assert good is not None
    own = own_ids(on)
    on.cloud.latency_s = 1.0
    alone_cost = Cost(on.cloud, own)
    alone = balancers.observe([good], Depth.TREE)[good.ref]
    alone_cost.end()
    balancers.observe([good], Depth.FULL)
    on.cloud.fault = no_keys(on.cloud)
    bad_facts = driver.service(
        facts.nodes, name="bad", uid="bad-uid", annotations=values
    )
    bad = target_of(balancers, bad_facts)
    batch = [good] if bad is None else [bad, good]
    for depth in (Depth.TREE, Depth.FULL):
        cost = Cost(on.cloud, own)
        beside = balancers.observe(batch, depth)[good.ref]
        cost.end()
        if depth is Depth.TREE:
            assert cost.own == alone_cost.own
            assert cost.waited_s <= len(cost.calls) + KEYS_S
        assert isinstance(alone, Seen)
        assert isinstance(beside, Seen)
        plans = [
            balancers.plan(good, x.value, driver.NOW).steps for x in (alone, beside)
        ]
        assert plans[0] == plans[1] != ()


KEYS_S = 30.0
"""Of a key manager that does not answer, however many containers are named."""


class Cost:
    """What one observation costs. own: the calls that name one of these IDs."""

    def __init__(self, cloud: session.FakeOpenStack, ids: frozenset[str]) -> None:
        self._cloud, self._ids = cloud, ids
        self._from, self._began = len(cloud.calls), cloud.clock()
        self.calls: list[wire.Call] = []
        self.own: list[str] = []
        self.waited_s = 0.0

    def end(self) -> None:
        self.calls = self._cloud.calls[self._from :]
        own = (call.path for call in self.calls if self._ids & {*call.parts})
        self.own = sorted(own)
        self.waited_s = self._cloud.clock() - self._began


def own_ids(on: driver.Ground) -> frozenset[str]:
    octavia = on.cloud.octavia
    return frozenset((*octavia.load_balancers, *octavia.listeners, *octavia.pools))


def no_keys(
    cloud: session.FakeOpenStack,
) -> Callable[[wire.Call], session.Fault | None]:
    """Return a fault: each call of the key manager lasts until its time-out."""

    def fault(call: wire.Call) -> session.Fault | None:
        if call.service != client.Service.KEY_MANAGER.value:
            return None
        cloud.clock.sleep(cloud.timeout_s)
        return session.Fault()

    return fault


EVENTS = ("hide", "show", "fail", "lie", "answer", "restart", "move", "wait")


@hypothesis.settings(max_examples=60 * min(SCALE, 20), deadline=None)
@hypothesis.given(
    strategies.lists(strategies.sampled_from(EVENTS), min_size=1, max_size=12),
    strategies.sampled_from([403, 500, 502, 503]),
    strategies.booleans(),
)
def test_no_sequence_of_lies_deletes_or_recreates_what_exists(
    events: list[str], status: int, keeps_annotations: bool
) -> None:
    """Incomplete lists, failing or lying reads, restarts, another project and back.

    A lie is shorter than the time between the two reads that prove an absence.
    """
    on = driver.ground()
    driven = driver.Driver(on, driver.service((on.node(1),)))
    driven.settle()
    if not keeps_annotations:
        driven.restart()
    octavia = on.cloud.octavia
    before = repr((octavia.load_balancers, octavia.listeners, driven.facts.ingress))
    writes = len(on.cloud.writes)
    wrong = driver.ground()

    def fail(code: int) -> None:
        on.cloud.fault = lambda call: (
            session.Fault(code) if is_direct_read(call) else None
        )

    def lie() -> None:
        fail(404)
        driven.one_pass()
        on.cloud.fault = session.nothing
        driven.one_pass()

    def move() -> None:
        elsewhere = driver.Driver(wrong, driven.facts)
        elsewhere.one_pass()
        elsewhere.one_pass()

    happen: dict[str, Happen] = {
        "hide": lambda: octavia.hidden.update(octavia.load_balancers),
        "show": octavia.hidden.clear,
        "fail": lambda: fail(status),
        "lie": lie,
        "answer": lambda: setattr(on.cloud, "fault", session.nothing),
        "restart": driven.restart,
        "move": move,
        "wait": lambda: on.cloud.clock.sleep(absence.CONFIRM_S),
    }
    for event in events:
        happen[event]()
        driven.one_pass()
    octavia.hidden.clear()
    on.cloud.fault = session.nothing
    driven.settle()
    assert wrong.cloud.writes == []
    assert len(on.cloud.writes) == writes
    after = repr((octavia.load_balancers, octavia.listeners, driven.facts.ingress))
    assert after == before


def is_direct_read(call: wire.Call) -> bool:
    """Report whether a call reads one load balancer."""
    return call.method == "GET" and (len(call.parts), call.parts[1:2]) == (
        3,
        ("loadbalancers",),
    )


class Mangling(session.FakeSession):
    """Changes the answers of one service the way broken services and proxies do.

    answered: how many of them were malformed.
    """

    def __init__(
        self, cloud: session.FakeOpenStack, service: str, share: float
    ) -> None:
        """share: of the answers that are changed."""
        super().__init__(cloud)
        self.answered = 0
        self._service = service
        self._share = share
        self.chance = random.Random(14)  # noqa: S311 # inputs that repeat

    def request(  # type: ignore[override]  # as the fake session's
        self, url: str, method: str, **kwargs: object
    ) -> object:
        answer = super().request(url, method, **kwargs)  # type: ignore[arg-type]
        if not url.startswith(f"fake://{self._service}") or method != "GET":
            return answer
        if self.chance.random() >= self._share:
            return answer
        self.answered += 1
        content = mangling.mangled(answer.content, self.chance)
        status = self.chance.choice((200, 200, 200, 404, 500))
        return dataclasses.replace(answer, status_code=status, content=content)


@pytest.mark.parametrize(
    ("service", "share"),
    [("load-balancer", 0.3), ("network", 0.3), ("key-manager", 0.8)],
)
def test_a_malformed_answer_is_unknown_or_an_observation(
    service: str, share: float
) -> None:
    """Never an unexpected error, whatever the service or a proxy sends."""
    on = driver.ground()
    driven = driver.Driver(on, driver.service((on.node(1),)))
    driven.settle()
    if service == client.Service.KEY_MANAGER.value:
        # Its listener has no container yet, so it is read each time.
        on.cloud.tls_refs.add(CONTAINER)
        driven.annotate({keys.TLS_REF: CONTAINER})
    effects = client.Effects(
        on.cloud.clock, on.cloud.clock, on.cloud.clock.sleep, lambda: 0.5
    )
    mangling_session = Mangling(on.cloud, service, share)
    api = client.Client(
        mangling_session,
        client.Where("RegionOne", "public"),
        lambda operation, outcome, seconds: None,
        effects,
    )
    balancers = OctaviaLoadBalancers(api, settings.LoadBalancer())
    target = target_of(balancers, driven.facts)
    assert target is not None
    gone = dataclasses.replace(target, spec=None)
    seen_as: Counter[str] = Counter()
    while mangling_session.answered < ANSWERS:
        on.cloud.clock.sleep(400)
        for row in (target, gone):
            observation = balancers.observe([row], Depth.FULL)[row.ref]
            seen_as[type(observation).__name__] += 1
            if isinstance(observation, Unknown):
                assert "unexpected" not in observation.error.message
            else:
                assert isinstance(
                    balancers.plan(row, observation.value, driver.NOW), Plan
                )
    print(f"{mangling_session.answered} malformed answers of {service}: {seen_as}")
    assert seen_as.keys() == {"Seen", "Unknown"}
