"""What a list lacks exists until Octavia itself has said twice that it does not."""

import dataclasses
from collections.abc import Callable

import pytest

from lib.cloud.load_balancers import Ingress, Plan
from lib.cloud.model import Unknown
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.support import absence


def start() -> driver.Driver:
    """Return a Service that is served."""
    on = driver.ground()
    driven = driver.Driver(on, driver.service((on.node(1),)))
    driven.settle()
    return driven


def run(driven: driver.Driver, seconds: float, *, gone: bool = False) -> bool:
    """Make passes for some time; return whether one of them was settled."""
    end = driven.cloud.clock.now + seconds
    settled = False
    while driven.cloud.clock.now < end:
        settled |= driven.one_pass(gone=gone)
        driven.cloud.clock.sleep(1.0)
    return settled


def state(driven: driver.Driver) -> str:
    """Return all that the cloud holds of the Service, and its status."""
    octavia = driven.cloud.octavia
    ips = driven.cloud.neutron.floating_ips
    things = (octavia.load_balancers, octavia.listeners, octavia.members, ips)
    return repr((things, driven.facts.ingress))


@pytest.mark.parametrize("seconds", [1, 30, 300])
@pytest.mark.parametrize("forgets", [False, True])
def test_an_incomplete_list_changes_nothing(seconds: float, forgets: bool) -> None:
    """Whether or not the process was restarted; it is read directly meanwhile."""
    driven = start()
    before, writes = state(driven), len(driven.cloud.writes)
    if forgets:
        driven.restart()
    driven.cloud.octavia.hidden.update(driven.cloud.octavia.load_balancers)
    run(driven, seconds)
    driven.cloud.octavia.hidden.clear()
    run(driven, 60)
    assert len(driven.cloud.writes) == writes
    assert state(driven) == before


@pytest.mark.parametrize("seconds", [1, 30])
def test_a_deletion_with_incomplete_lists_leaves_nothing(seconds: float) -> None:
    """The finalizer is the only thing that keeps track of the load balancer."""
    driven = start()
    driven.restart()
    driven.cloud.octavia.hidden.update(driven.cloud.octavia.load_balancers)
    settled = run(driven, seconds, gone=True)
    driven.cloud.octavia.hidden.clear()
    if not settled:
        driven.settle(gone=True)
    driven.cloud.octavia.finish()
    assert driven.cloud.octavia.load_balancers == {}
    assert driven.cloud.neutron.floating_ips == {}


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("status", [404, 403, 500, 502])
def test_a_short_lie_of_direct_reads_too_changes_nothing(
    status: int, gone: bool
) -> None:
    """Lists lack it, and reads by ID fail, or say for ten seconds that it is absent."""
    driven = start()
    before, writes = state(driven), len(driven.cloud.writes)
    driven.cloud.octavia.hidden.update(driven.cloud.octavia.load_balancers)

    def lie(call: wire.Call) -> session.Fault | None:
        is_direct = call.parts[1:2] == ("loadbalancers",) and len(call.parts) == 3
        return session.Fault(status) if is_direct and call.method == "GET" else None

    driven.cloud.fault = lie
    assert not run(driven, 10 if status == 404 else 60, gone=gone)
    assert len(driven.cloud.writes) == writes
    assert state(driven) == before


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("gone", [False, True])
def test_another_project_is_not_an_absence(gone: bool, annotated: bool) -> None:
    """After a restart with wrong credentials, too: the Nodes' servers are elsewhere."""
    driven = start()
    facts = driven.facts
    if not annotated:
        ids = {keys.LOAD_BALANCER_ID: None, keys.OWNED_ID: None}
        driven.annotate(ids)
        facts = driven.facts
    wrong = driver.Driver(driver.ground(), facts)
    for _ in range(5):
        plan = wrong.plan(gone=gone)
        assert isinstance(plan, Unknown), plan
        assert "project" in plan.error.summary
        wrong.cloud.clock.sleep(60)
    assert wrong.cloud.writes == []


def test_what_does_not_exist_is_confirmed_after_a_restart() -> None:
    """The Nodes' servers are here: then the load balancer was deleted by somebody."""
    driven = start()
    driven.cloud.octavia.finish()
    driven.cloud.octavia._drop(str(driven.balancer["id"]))
    driven.restart()
    began = driven.cloud.clock.now
    writes = len(driven.cloud.writes)
    while len(driven.cloud.writes) == writes:
        driven.one_pass()
    assert absence.CONFIRM_S <= driven.cloud.clock.now - began <= 60
    driven.settle()
    assert len(driven.cloud.octavia.load_balancers) == 1


def test_a_second_one_is_deleted_only_while_the_one_in_use_is_read() -> None:
    """Never at first sight, and never when the first one can't be read directly."""
    driven = start()
    octavia = driven.cloud.octavia
    row = driven.balancer
    twin = {**row, "id": "00000004-0000-4000-8000-0000000000ff", "vip_port_id": "x"}
    twin["vip_address"] = "10.0.99.99"
    octavia.load_balancers[str(twin["id"])] = twin
    writes = len(driven.cloud.writes)
    assert not driven.one_pass()
    assert len(driven.cloud.writes) == writes
    driven.cloud.fault = lambda call: (
        session.Fault(503)
        if call.method == "GET" and call.parts[-1] == row["id"]
        else None
    )
    run(driven, 60)
    assert len(driven.cloud.writes) == writes
    driven.cloud.fault = session.nothing
    driven.settle()
    octavia.finish()
    assert list(octavia.load_balancers) == [row["id"]]


def test_many_that_a_list_lacks_are_read_at_the_same_time() -> None:
    """A list that is empty costs one direct read each, and no Service fails."""
    on = driver.ground()
    node = on.node(1)
    facts = driver.service((node,))
    driven = [
        driver.Driver(on, dataclasses.replace(facts, name=f"web-{at}", uid=f"uid-{at}"))
        for at in range(40)
    ]
    for row in driven:
        row.settle()
    on.cloud.octavia.hidden.update(on.cloud.octavia.load_balancers)
    calls = len(on.cloud.calls)
    for row in driven:
        plan = row.plan()
        assert isinstance(plan, Plan)
        assert plan.settled
    assert len(on.cloud.calls) - calls <= 40 * 8


def twin_of(driven: driver.Driver, **fields: object) -> str:
    """Add a load balancer with the same tags; return its ID."""
    twin = {**driven.balancer, "id": "00000004-0000-4000-8000-0000000000ff"}
    twin |= {"vip_port_id": "x", "vip_address": "10.0.99.99", **fields}
    driven.cloud.octavia.load_balancers[str(twin["id"])] = twin
    return str(twin["id"])


def with_floating_ip(driven: driver.Driver) -> str:
    """Return a twin to whose VIP a floating IP leads."""
    ip = driven.floating_ip
    more = {**ip, "id": "ip-2", "floating_ip_address": "198.51.100.77", "port_id": "x"}
    driven.cloud.neutron.floating_ips["ip-2"] = more
    return twin_of(driven)


def once_in_the_status(driven: driver.Driver) -> str:
    """Return a twin whose address was in the status while this process ran."""
    before, id_ = driven.facts.ingress, twin_of(driven)
    ids = {keys.LOAD_BALANCER_ID: id_, keys.OWNED_ID: id_}
    was = {key: driven.facts.annotations[key] for key in ids}
    driven.annotate(dict(ids))
    driven.change(ingress=(Ingress(ip="10.0.99.99"),))
    driven.one_pass()
    driven.annotate(dict(was))
    driven.change(ingress=before)
    return id_


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda driven: twin_of(driven, created_at="2020-01-01T00:00:00"), id="older"
        ),
        pytest.param(with_floating_ip, id="with a floating IP"),
        pytest.param(once_in_the_status, id="once in the status"),
    ],
)
def test_a_second_one_that_may_have_been_in_use_is_left_to_a_person(
    make: Callable[[driver.Driver], str],
) -> None:
    """A Problem names it and what to do; then, or with the Service, it is deleted."""
    driven = start()
    row, id_ = driven.balancer, make(driven)
    run(driven, 900)
    octavia = driven.cloud.octavia
    assert {str(row["id"]), id_} <= octavia.load_balancers.keys()
    (problem,) = (p for p in driven.problems if id_ in p.message)
    assert f"mooring.io/confirm-deletion: {id_}" in problem.message
    driven.annotate({"mooring.io/confirm-deletion": id_})
    run(driven, 60)
    octavia.finish()
    assert list(octavia.load_balancers) == [row["id"]]


def test_a_list_that_names_the_one_in_use_twice_deletes_nothing() -> None:
    """Pages overlap, and nothing on the Service refers to its ID."""
    driven = start()
    driven.annotate({keys.LOAD_BALANCER_ID: None, keys.OWNED_ID: None})
    driven.change(ingress=(Ingress(hostname="web.example"),))

    def double(call: wire.Call, answer: wire.Answer) -> wire.Answer:
        body = answer.body or {}
        if "loadbalancers" not in body:
            return answer
        items = wire.objects(body, "loadbalancers")
        return wire.Answer(200, {"loadbalancers": [*items, *items]})

    driven.cloud.forge = double
    before = set(driven.cloud.octavia.load_balancers)
    for _ in range(3):
        driven.annotate({keys.LOAD_BALANCER_ID: None, keys.OWNED_ID: None})
        run(driven, 20)
    assert set(driven.cloud.octavia.load_balancers) == before
    assert driven.balancer["provisioning_status"] == "ACTIVE"


def test_one_that_was_deleted_on_purpose_is_recreated_after_a_word_of_its_owner() -> (
    None
):
    """An internal one: nothing but time would prove its absence."""
    driven = start()
    driven.annotate({keys.INTERNAL: "true"})
    driven.settle()
    driven.cloud.octavia.finish()
    was = str(driven.balancer["id"])
    driven.cloud.octavia._drop(was)
    run(driven, 60)
    assert driven.cloud.octavia.load_balancers == {}
    assert any("11 minutes" in problem.message for problem in driven.problems)
    driven.annotate({"mooring.io/confirm-deletion": was})
    run(driven, 60)
    assert len(driven.cloud.octavia.load_balancers) == 1
