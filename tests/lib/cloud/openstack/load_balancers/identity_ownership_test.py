"""Whose a load balancer is: made, adopted, shared, foreign, lost, made twice."""

import dataclasses
import datetime

import pytest

from lib.cloud.load_balancers import (
    Cluster,
    Depth,
    Ingress,
    Owned,
    Plan,
    Port,
    PortProtocol,
    Reason,
)
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.fake import driver, session, wire
from lib.cloud.openstack.load_balancers.read import identity
from lib.cloud.openstack.load_balancers.spec import annotations as keys
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.reasons import OctaviaReason
from lib.cloud.steps import CommonReason, ProblemReason
from lib.cloud.support import absence

NAME = "kube_service_kubernetes_default_web"
URL = "fake://load-balancer/lbaas/loadbalancers"


def make(
    on: driver.Ground, name: str = NAME, tags: tuple[str, ...] = (NAME,), port: int = 80
) -> wire.Json:
    """Make a load balancer the way the reference leaves one; give it."""
    listener: wire.Json = {
        "name": f"listener_0_{name}",
        "protocol": "TCP",
        "protocol_port": port,
        "tags": list(tags),
        "allowed_cidrs": ["0.0.0.0/0"],
        "default_pool": {
            "name": f"pool_0_{name}",
            "protocol": "TCP",
            "lb_algorithm": "ROUND_ROBIN",
            "members": [
                {
                    "name": "node-1",
                    "address": "10.0.0.1",
                    "protocol_port": 30080,
                    "subnet_id": on.subnet_id,
                }
            ],
        },
    }
    body: wire.Json = {
        "loadbalancer": {
            "name": name,
            "description": "Kubernetes external service default/web from cluster"
            " kubernetes",
            "provider": "amphora",
            "vip_subnet_id": on.subnet_id,
            "tags": list(tags),
            "listeners": [listener],
        }
    }
    answer = on.cloud.octavia.answer(
        wire.call_of("load-balancer", "POST", URL, body, {})
    )
    on.cloud.octavia.finish()
    created = wire.part(answer.body or {}, "loadbalancer")
    return on.cloud.octavia.load_balancers[str(created["id"])]


def add_floating_ip(on: driver.Ground, balancer: wire.Json) -> str:
    """Put a floating IP on it, as the reference does; give its address."""
    body: wire.Json = {
        "floatingip": {
            "floating_network_id": on.external_id,
            "port_id": balancer["vip_port_id"],
            "description": "Floating IP for Kubernetes external service default/web"
            " from cluster kubernetes",
        }
    }
    answer = on.cloud.neutron.answer(
        wire.call_of("network", "POST", "fake://network/floatingips", body, {})
    )
    created = wire.part(answer.body or {}, "floatingip")
    return str(created["floating_ip_address"])


def test_the_floating_ip_of_a_renamed_cluster_goes_with_its_load_balancer() -> None:
    """The reference renames load balancers, but not what it says of floating IPs."""
    driven = start()
    result = make(driven.ground)
    address = add_floating_ip(driven.ground, result)
    (ip,) = driven.cloud.neutron.floating_ips.values()
    ip["description"] = str(ip["description"]).replace("kubernetes", "before")
    driven.change(ingress=(Ingress(address),))
    driven.settle()
    assert driven.floating_ip is ip
    driven.settle(gone=True)
    assert driven.cloud.neutron.floating_ips == {}


def test_what_another_service_was_given_stays_on_an_adopted_load_balancer() -> None:
    """Its description names the other; it is only taken off."""
    driven = start()
    result = make(driven.ground)
    address = add_floating_ip(driven.ground, result)
    (ip,) = driven.cloud.neutron.floating_ips.values()
    ip["description"] = str(ip["description"]).replace("default/web", "default/web-2")
    driven.change(ingress=(Ingress(address),))
    driven.settle()
    driven.settle(gone=True)
    assert list(driven.cloud.neutron.floating_ips.values()) == [ip]


def start(config: settings.LoadBalancer | None = None) -> driver.Driver:
    on = driver.ground()
    return driver.Driver(on, driver.service((on.node(1),)), config)


def test_two_clusters_of_one_name_do_not_take_each_others() -> None:
    """Both have default/web in a project: two load balancers, one event, two ends."""
    on = driver.ground()
    facts = driver.service((on.node(1),))
    row = driver.Driver(on, facts)
    other_facts = dataclasses.replace(
        facts, cluster=Cluster("cluster-2", "kubernetes"), uid="99999999-0000"
    )
    other = driver.Driver(on, other_facts)
    row.settle()
    assert not other.one_pass()
    assert [p.reason for p in other.problems] == [Reason.NOT_OWNED]
    other.settle()
    assert row.balancer["name"] == NAME
    assert other.balancer["name"] == f"{NAME}_99999999"
    assert row.balancer["id"] != other.balancer["id"]
    assert row.floating_ip != other.floating_ip
    assert (row.settle(), other.settle()) == ([], [])
    before = repr((row.balancer, row.listener, row.pool, row.floating_ip))
    other.settle(gone=True)
    assert repr((row.balancer, row.listener, row.pool, row.floating_ip)) == before
    assert list(on.cloud.octavia.load_balancers) == [row.balancer["id"]]


def test_another_clusters_is_not_taken_even_if_its_id_is_in_the_annotation() -> None:
    """As in a manifest that was copied: same name, but it carries another mark."""
    on = driver.ground()
    row = driver.Driver(on, driver.service((on.node(1),)))
    row.settle()
    copied = dataclasses.replace(
        row.facts, cluster=Cluster("cluster-2", "kubernetes"), uid="99999999-0000"
    )
    other = driver.Driver(on, copied)
    writes = len(on.cloud.writes)
    assert other.settle() == []
    assert [problem.reason for problem in other.problems] == [Reason.PORT_CONFLICT]
    other.settle(gone=True)
    assert len(on.cloud.writes) == writes


@pytest.mark.parametrize("internal", [False, True])
def test_annotations_alone_never_take_ownership(internal: bool) -> None:
    """Anyone who may edit Services writes both; the API server's stays as it is."""
    driven = start()
    created = make(driven.ground, "k8s-api", (), 6443)
    add_floating_ip(driven.ground, created)
    octavia = driven.cloud.octavia
    before = repr((octavia.listeners, octavia.pools, octavia.members))
    ips = repr(driven.cloud.neutron.floating_ips)
    id_ = str(created["id"])
    driven.annotate({keys.LOAD_BALANCER_ID: id_, keys.OWNED_ID: id_})
    if internal:
        driven.annotate({keys.INTERNAL: "true"})
    driven.settle()
    others = [x for x in octavia.listeners.values() if x["protocol_port"] == 6443]
    assert len(others) == 1
    assert "mooring-made" not in wire.texts(created["tags"])
    assert identity.ownership_tags(wire.texts(created["tags"])) == frozenset()
    driven.settle(gone=True)
    assert repr((octavia.listeners, octavia.pools, octavia.members)) == before
    assert repr(driven.cloud.neutron.floating_ips) == ips
    assert list(octavia.load_balancers) == [id_]


def test_sharing_another_clusters_namesake_never_becomes_ownership() -> None:
    """Also when the first write after the status fails: the address proves nothing."""
    driven = start()
    other = "kube_service_other-cluster_default_web"
    created = make(driven.ground, other, (other,), 6443)
    add_floating_ip(driven.ground, created)
    octavia = driven.cloud.octavia
    before = repr((octavia.listeners, octavia.pools, octavia.members))
    driven.annotate({keys.LOAD_BALANCER_ID: str(created["id"])})
    refused = [session.Fault(409)]
    driven.cloud.fault = lambda call: (
        refused.pop() if refused and call.method != "GET" else None
    )
    driven.settle()
    assert identity.ownership_tags(wire.texts(created["tags"])) == frozenset()
    driven.settle(gone=True)
    assert repr((octavia.listeners, octavia.pools, octavia.members)) == before
    assert list(octavia.load_balancers) == [created["id"]]


def renamed(driven: driver.Driver) -> None:
    """Start the process again with another --cluster-id."""
    driven.change(cluster=Cluster("prod-1", "kubernetes"))
    driven.restart()


@pytest.mark.parametrize("version", [(2, 30), (2, 4)])
def test_a_changed_cluster_id_leaves_every_service_its_load_balancer(
    version: tuple[int, int],
) -> None:
    """Members are updated, and the deletion leaves nothing behind."""
    driven = start()
    driven.cloud.octavia.version = version
    driven.settle()
    before = (driven.balancer["id"], driven.facts.ingress)
    renamed(driven)
    nodes = (*driven.facts.nodes, driven.ground.node(2), driven.ground.node(3))
    driven.change(nodes=nodes)
    driven.settle()
    assert len(driven.members) == 3
    assert driven.problems == ()
    assert (driven.balancer["id"], driven.facts.ingress) == before
    text = repr((driven.balancer, driven.listener))
    assert "cluster-1" not in text
    assert f"mooring:prod-1:{driver.UID}" in text
    assert driven.settle() == []
    driven.settle(gone=True)
    assert driven.cloud.octavia.load_balancers == {}
    assert driven.cloud.neutron.floating_ips == {}


def test_a_changed_cluster_id_leaves_a_guest_its_listeners() -> None:
    """Also on the load balancer of another Service."""
    owner, second = share()
    for driven in (owner, second):
        renamed(driven)
        driven.change(nodes=(*driven.facts.nodes, owner.ground.node(7)))
    owner.settle()
    second.settle()
    assert (len(owner.members), second.problems) == (2, ())
    assert len(owner.cloud.octavia.listeners) == 2
    assert "cluster-1" not in repr(owner.cloud.octavia.listeners)
    second.settle(gone=True)
    owner.settle(gone=True)
    assert owner.cloud.octavia.load_balancers == {}
    assert owner.cloud.neutron.floating_ips == {}


def test_a_former_cluster_id_proves_nothing_for_another_service() -> None:
    """As after a restore into a new cluster: the original may still be running."""
    driven = start()
    driven.settle()
    before = repr((driven.balancer, driven.listener, driven.pool))
    renamed(driven)
    driven.change(uid="99999999-2222-4333-8444-555555555555")
    driven.settle()
    driven.settle(gone=True)
    assert repr((driven.balancer, driven.listener, driven.pool)) == before


def test_an_address_in_the_status_does_not_beat_a_mark() -> None:
    """One that another Service made stays its own, whatever our status says."""
    on = driver.ground()
    row = driver.Driver(on, driver.service((on.node(1),)))
    row.settle()
    facts = dataclasses.replace(row.facts, uid="99999999-0000", annotations={})
    other = driver.Driver(on, facts)
    before = repr((row.balancer, row.listener, row.floating_ip))
    other.settle()
    assert other.balancer["id"] != row.balancer["id"]
    assert repr((row.balancer, row.listener, row.floating_ip)) == before


@pytest.mark.parametrize("by", ["id", "floating IP", "VIP", "nip.io"])
def test_what_the_reference_made_is_adopted_and_only_marked(by: str) -> None:
    """The Service points at it: ids, names, settings and address stay."""
    driven = start(settings.LoadBalancer(internal_lb=by == "VIP"))
    created = make(driven.ground)
    address = str(created["vip_address"])
    if by != "VIP":
        address = add_floating_ip(driven.ground, created)
    match by:
        case "id":
            driven.annotate({keys.LOAD_BALANCER_ID: str(created["id"])})
        case "nip.io":
            driven.change(ingress=(Ingress(hostname=f"{address}.nip.io"),))
        case _:
            driven.change(ingress=(Ingress(ip=address),))
    before = repr((driven.cloud.octavia.pools, driven.cloud.octavia.members))
    ips = repr(driven.cloud.neutron.floating_ips)
    steps = driven.settle()
    assert [step.split(":")[0].split(" / ")[-1] for step in steps] == [
        "tags",
        f"listener listener_0_{NAME}",
    ]
    mark = f"mooring:cluster-1:{driver.UID}"
    assert created["tags"] == [NAME, mark]
    assert driven.listener["tags"] == [NAME, mark]
    assert repr((driven.cloud.octavia.pools, driven.cloud.octavia.members)) == before
    assert repr(driven.cloud.neutron.floating_ips) == ips
    assert driven.facts.ingress[0].ip == address
    assert driven.facts.annotations[keys.LOAD_BALANCER_ID] == created["id"]
    driven.settle(gone=True)
    assert driven.cloud.octavia.load_balancers == {}
    assert driven.cloud.neutron.floating_ips == {}


def test_a_name_alone_proves_nothing() -> None:
    """One with our name that the Service does not point at is left alone."""
    driven = start()
    created = make(driven.ground)
    address = add_floating_ip(driven.ground, created)
    before = repr((created, driven.cloud.octavia.listeners))
    assert not driven.one_pass()
    assert [problem.reason for problem in driven.problems] == [Reason.NOT_OWNED]
    assert str(created["id"]) in driven.problems[0].message
    driven.settle()
    assert driven.balancer["id"] != created["id"]
    assert driven.facts.ingress[0].ip != address
    driven.settle(gone=True)
    left = {created["id"]: created}
    assert driven.cloud.octavia.load_balancers == left
    assert repr((created, driven.cloud.octavia.listeners)) == before


def test_one_marked_by_another_service_is_shared_not_taken() -> None:
    """Its id in the annotation means sharing, whatever its name says."""
    owner = start()
    owner.settle()
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        ports=(Port(443, PortProtocol.TCP, 30443),),
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    second = driver.Driver(owner.ground, facts)
    before = repr((owner.listener, owner.pool, owner.floating_ip))
    second.settle()
    assert second.facts.ingress == owner.facts.ingress
    assert owner.balancer["tags"] == [
        NAME,
        f"mooring:cluster-1:{driver.UID}",
        names.MADE,
        "kube_service_kubernetes_default_second",
        "mooring-user:cluster-1:second-uid",
    ]
    assert keys.OWNED_ID not in second.facts.annotations
    assert (owner.settle(), second.settle()) == ([], [])
    assert repr((owner.listener, owner.pool, owner.floating_ip)) == before
    owner.settle(gone=True)
    assert len(owner.cloud.octavia.load_balancers) == 1  # the other is still on it
    assert [x["protocol_port"] for x in owner.cloud.octavia.listeners.values()] == [443]
    assert second.settle() == []
    second.settle(gone=True)
    assert owner.cloud.octavia.load_balancers == {}
    assert owner.cloud.neutron.floating_ips == {}


def share() -> tuple[driver.Driver, driver.Driver]:
    """Return an owner and a second user of one load balancer, in one process."""
    owner = start()
    owner.settle()
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        ports=(Port(443, PortProtocol.TCP, 30443),),
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    second = driver.Driver(owner.ground, facts)
    second.settle()
    second.balancers = owner.balancers
    return owner, second


def test_one_in_error_goes_when_all_who_use_it_go() -> None:
    """Octavia refuses every change of it, so neither can leave before the other."""
    owner, second = share()
    owner.balancer["provisioning_status"] = "ERROR"
    for _ in range(10):
        owner.one_pass(gone=True)
        second.one_pass(gone=True)
    owner.cloud.octavia.finish()
    assert owner.cloud.octavia.load_balancers == {}
    assert owner.cloud.neutron.floating_ips == {}
    owner.settle(gone=True)
    second.settle(gone=True)


@pytest.mark.parametrize("who", ["second", "another cluster", "user's listener"])
def test_one_in_error_stays_while_anything_else_uses_it(who: str) -> None:
    """Another Service that stays, one of another cluster, or a listener of a user."""
    owner, second = share()
    match who:
        case "another cluster":
            tags = wire.texts(owner.balancer["tags"])
            owner.balancer["tags"] = [*tags, "mooring-user:cluster-2:x"]
        case "user's listener":
            second.listener["tags"] = []
    owner.balancer["provisioning_status"] = "ERROR"
    for _ in range(10):
        owner.one_pass(gone=True)
        second.one_pass(gone=who != "second")
    assert owner.balancer["provisioning_status"] == "ERROR"
    assert not [call for call in owner.cloud.writes if call.method == "DELETE"]


def test_the_owner_stays_when_the_other_leaves() -> None:
    """Only the leaver's listener, pool and tag go."""
    owner = start()
    owner.settle()
    before = repr((owner.balancer["tags"], owner.listener, owner.pool, owner.members))
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        ports=(Port(443, PortProtocol.TCP, 30443),),
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    second = driver.Driver(owner.ground, facts)
    second.settle()
    second.settle(gone=True)
    after = repr((owner.balancer["tags"], owner.listener, owner.pool, owner.members))
    assert after == before
    assert len(owner.cloud.octavia.listeners) == len(owner.cloud.octavia.pools) == 1


def test_sharing_an_internal_one_does_not_expose_it() -> None:
    """Only the owner may give it a floating IP; the other's problem says so."""
    owner = start()
    owner.annotate({keys.INTERNAL: "true"})
    owner.settle()
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        ports=(Port(443, PortProtocol.TCP, 30443),),
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    second = driver.Driver(owner.ground, facts)
    second.settle()
    assert owner.cloud.neutron.floating_ips == {}
    assert [problem.reason for problem in second.problems] == [
        OctaviaReason.NO_FLOATING_NETWORK
    ]
    assert second.facts.ingress == ()


def test_the_last_to_leave_a_load_balancer_of_the_users_leaves_it_there() -> None:
    """Neither it nor its floating IP was made for a Service."""
    driven = start()
    created = make(driven.ground, "users", (), 81)
    address = add_floating_ip(driven.ground, created)
    before = repr((driven.cloud.octavia.listeners, driven.cloud.octavia.pools))
    driven.annotate({keys.LOAD_BALANCER_ID: str(created["id"])})
    driven.settle()
    assert driven.facts.ingress[0].ip == address
    driven.settle(gone=True)
    assert list(driven.cloud.octavia.load_balancers) == [created["id"]]
    assert created["tags"] == []
    assert repr((driven.cloud.octavia.listeners, driven.cloud.octavia.pools)) == before
    assert len(driven.cloud.neutron.floating_ips) == 1


def test_a_colliding_port_on_a_shared_one_is_refused() -> None:
    """Also when the listener there is HTTP: both would listen on TCP."""
    owner = start()
    owner.annotate({keys.FORWARDED_FOR: "true"})
    owner.settle()
    facts = driver.service(
        owner.facts.nodes,
        name="second",
        uid="second-uid",
        annotations={keys.LOAD_BALANCER_ID: str(owner.balancer["id"])},
    )
    second = driver.Driver(owner.ground, facts)
    writes = len(owner.cloud.writes)
    assert second.settle() == []
    assert [p.reason for p in second.problems] == [Reason.PORT_CONFLICT]
    assert len(owner.cloud.writes) == writes


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("limit", OctaviaReason.SHARED_LIMIT),
        ("internal", CommonReason.UNSUPPORTED),
        ("no tags", CommonReason.UNSUPPORTED),
        ("missing", Reason.MISSING),
    ],
)
def test_sharing_is_refused_with_a_reason(case: str, reason: ProblemReason) -> None:
    """Nothing is written, and nothing is asked for again at once."""
    driven = start()
    created = make(driven.ground, "users", ("kube_service_a", "kube_service_b"), 81)
    if case != "limit":
        created["tags"] = []
    id_ = str(created["id"]) if case != "missing" else driver.UID
    driven.annotate({keys.LOAD_BALANCER_ID: id_})
    if case == "internal":
        driven.annotate({keys.INTERNAL: "true"})
    if case == "no tags":
        driven.cloud.octavia.version = (2, 4)
    assert driven.settle() == []
    assert [(p.reason, p.is_fatal) for p in driven.problems] == [(reason, True)]


def test_one_that_was_deleted_by_hand_is_made_again_with_its_address() -> None:
    """The floating IP that was made for it comes to the new one."""
    driven = start()
    driven.settle()
    was, ingress = driven.balancer["id"], driven.facts.ingress
    driven.cloud.octavia._drop(str(was))
    assert not driven.one_pass()  # it is read again 15 seconds later
    assert driven.cloud.octavia.load_balancers == {}
    assert not driven.one_pass()
    assert [problem.reason for problem in driven.problems] == [CommonReason.DRIFT]
    driven.settle()
    assert driven.balancer["id"] != was
    assert driven.facts.ingress == ingress
    assert len(driven.cloud.neutron.floating_ips) == 1


@pytest.mark.parametrize("shown", [True, False])
def test_the_references_floating_ip_goes_though_its_load_balancer_went_before(
    shown: bool,
) -> None:
    """Only the address in the status proves it: a namesake's is described alike."""
    driven = start()
    driven.settle()
    ip = driven.floating_ip
    ip["description"] = names.floating_ip(driven.balancers.refer(driven.facts))
    driven.cloud.octavia.load_balancers.clear()
    ip["port_id"] = None
    if not shown:
        driven.change(ingress=())
    driven.settle(gone=True)
    assert bool(driven.cloud.neutron.floating_ips) is not shown


def test_of_two_with_our_mark_the_one_in_use_stays() -> None:
    """The other, never used, is deleted; one that something refers to is not."""
    driven = start()
    driven.settle()
    twin = make(driven.ground, NAME, (NAME, f"mooring:cluster-1:{driver.UID}"))
    was = driven.balancer["id"]
    steps = driven.settle()
    assert len(steps) == 1
    assert "created twice" in steps[0]
    assert driven.balancer["id"] == was
    driven.cloud.clock.sleep(10)
    driven.cloud.octavia.advance()
    assert twin["id"] not in driven.cloud.octavia.load_balancers


@pytest.mark.parametrize("gone", [False, True])
def test_one_made_twice_is_waited_for_until_it_can_be_deleted(gone: bool) -> None:
    """Octavia is still at the second one when all else is done."""
    driven = start()
    driven.settle()
    twin = make(driven.ground, NAME, (NAME, f"mooring:cluster-1:{driver.UID}"))
    twin["provisioning_status"] = "PENDING_CREATE"
    for _ in range(8):
        assert not driven.one_pass(gone=gone)
    twin["provisioning_status"] = "ACTIVE"
    driven.settle(gone=gone)
    driven.cloud.clock.sleep(10)
    driven.cloud.octavia.advance()
    assert twin["id"] not in driven.cloud.octavia.load_balancers
    assert len(driven.cloud.octavia.load_balancers) == (0 if gone else 1)


@pytest.mark.parametrize("gone", [False, True])
def test_one_made_twice_that_fails_to_go_is_tried_again_with_a_backoff(
    gone: bool,
) -> None:
    """What goes from ERROR may end there again."""
    driven = start()
    driven.settle()
    tags = tuple(wire.texts(driven.balancer["tags"]))
    second = make(driven.ground, str(driven.balancer["name"]), tags, 81)
    second["provisioning_status"] = "ERROR"
    driven.plan(gone=gone)
    driven.cloud.clock.sleep(absence.CONFIRM_S)
    plan = driven.plan(gone=gone)
    assert isinstance(plan, Plan)
    assert plan.backs_off
    second["provisioning_status"] = "ACTIVE"
    plan = driven.plan(gone=gone)
    assert isinstance(plan, Plan)
    assert not plan.backs_off


@pytest.mark.parametrize("older", [False, True])
def test_of_two_that_nothing_points_at_the_older_is_ours(older: bool) -> None:
    """As after two processes that did not know of each other; then ids decide."""
    driven = start()
    tags = (NAME, f"mooring:cluster-1:{driver.UID}")
    first, second = make(driven.ground, NAME, tags), make(driven.ground, NAME, tags)
    if older:
        created = datetime.datetime.fromisoformat(str(first["created_at"]))
        second["created_at"] = str(created - datetime.timedelta(minutes=1))
    driven.settle()
    kept, gone = (second, first) if older else (first, second)
    assert driven.balancer["id"] == kept["id"]
    driven.cloud.clock.sleep(10)
    driven.cloud.octavia.advance()
    assert gone["id"] not in driven.cloud.octavia.load_balancers


def test_one_that_is_in_use_is_not_deleted_for_an_older_one() -> None:
    """The status shows its address; the older twin never was used."""
    driven = start()
    driven.settle()
    was = driven.balancer["id"]
    twin = make(driven.ground, NAME, (NAME, f"mooring:cluster-1:{driver.UID}"))
    twin["created_at"] = "2001-01-01T00:00:00"
    driven.settle()
    assert driven.balancer["id"] == was
    assert was in driven.cloud.octavia.load_balancers


def test_without_tags_the_mark_is_in_the_description() -> None:
    """Octavia below 2.5: found again after a death, and gone without a trace."""
    driven = start()
    driven.cloud.octavia.version = (2, 4)
    driven.settle()
    mark = f"mooring:cluster-1:{driver.UID}"
    assert str(driven.balancer["description"]).endswith(f" ({mark})")
    assert driven.balancer["tags"] == []
    driven.change(annotations={}, ingress=())
    driven.restart()
    assert driven.settle() == []
    assert len(driven.cloud.octavia.load_balancers) == 1
    driven.settle(gone=True)
    assert driven.cloud.octavia.load_balancers == {}


def test_names_are_cut_at_255_bytes_and_never_inside_a_letter() -> None:
    """Whatever the names of clusters, namespaces and Services are."""
    ref = start().balancers.refer(
        driver.service((), namespace="n" * 63, name="ж" * 200)
    )
    for text in (
        names.load_balancer(ref),
        names.distinct(ref),
        names.with_ownership_tag(names.floating_ip(ref), ref),
        names.child("listener", 3, names.load_balancer(ref)),
    ):
        assert len(text.encode()) <= 255
    assert identity.ownership_tags_in(
        names.with_ownership_tag(names.floating_ip(ref), ref)
    ) == {names.ownership_tag(ref)}


def test_owned_finds_everything_that_carries_the_mark() -> None:
    """Load balancer, floating IP and group of this cluster; nothing of another."""
    driven = start(settings.LoadBalancer(manage_security_groups=True))
    driven.settle()
    make(driven.ground)
    result = list(driven.balancers.owned("cluster-1"))
    owned = [row for row in result if isinstance(row, Owned)]
    assert sorted(owned.kind for owned in owned) == [
        "floating IP",
        "load balancer",
        "security group",
    ]
    assert {(owned.uid, owned.service) for owned in owned} == {
        (driver.UID, "default/web")
    }
    assert [row.kind for row in result if row not in owned] == ["load balancer"]
    driven.balancer["tags"] = ["mooring-user:cluster-1:guest-1", "mooring-user:c-2:x"]
    (used,) = (x for x in driven.balancers.owned("cluster-1") if x.uid == "guest-1")
    assert (used.kind, used.id) == ("use of a load balancer", driven.balancer["id"])
    others = driven.balancers.owned("cluster-2")
    assert not any(isinstance(other, Owned) for other in others)


def as_the_reference_leaves_it(driven: driver.Driver) -> None:
    """Take away all that only we write; names, tags and settings are the same."""
    octavia = driven.cloud.octavia
    for thing in (*octavia.load_balancers.values(), *octavia.listeners.values()):
        thing["tags"] = [
            tag for tag in wire.texts(thing["tags"]) if "mooring" not in tag
        ]
    for thing in (
        *driven.cloud.neutron.floating_ips.values(),
        *driven.cloud.neutron.groups.values(),
    ):
        thing["description"] = str(thing["description"]).split(" (mooring:")[0]
    driven.annotate({keys.OWNED_ID: None})
    driven.restart()


TLS = "https://keys.example/v1/containers/00000000-0000-4000-8000-0000000000aa"
UDP, SCTP = PortProtocol.UDP, PortProtocol.SCTP
LOCAL: dict[str, object] = {"is_local": True, "health_check_node_port": 31000}
KINDS: dict[str, tuple[dict[str, str], dict[str, object]]] = {
    "plain": ({}, {}),
    "internal": ({keys.INTERNAL: "true"}, {}),
    "monitored": ({keys.ENABLE_MONITOR: "true", keys.MONITOR_DELAY: "9"}, {}),
    "local": ({keys.ENABLE_MONITOR: "true"}, LOCAL),
    "proxy v1": ({keys.PROXY_PROTOCOL: "true"}, {}),
    "proxy v2": ({keys.PROXY_PROTOCOL: "v2", keys.ENABLE_MONITOR: "true"}, {}),
    "forwarded for": ({keys.FORWARDED_FOR: "true"}, {}),
    "tls": ({keys.TLS_REF: TLS}, {}),
    "timeouts": ({keys.TIMEOUT_CLIENT_DATA: "7", keys.CONNECTION_LIMIT: "9"}, {}),
    "ranges": ({}, {"source_ranges": ("10.0.0.0/8", "192.0.2.0/24")}),
    "affinity": ({keys.METHOD: "SOURCE_IP"}, {"has_affinity": True}),
    "udp": ({keys.ENABLE_MONITOR: "true"}, {"ports": (Port(53, UDP, 30053),)}),
    "sctp": ({}, {"ports": (Port(53, SCTP, 30053),)}),
    "several ports": ({}, {"ports": tuple(Port(p, node_port=p) for p in (80, 81, 82))}),
    "hostname": ({keys.HOSTNAME: "a.example"}, {}),
    "kept address": ({keys.KEEP_FLOATING_IP: "true"}, {}),
}


@pytest.mark.parametrize("managed", [False, True], ids=["", "managed group"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_adopted_by_adding_tags_and_nothing_else(
    kind: str, managed: bool
) -> None:
    """Ids, names, settings, members, addresses, rules and ports stay as they are."""
    annotations, fields = KINDS[kind]
    config = settings.LoadBalancer(manage_security_groups=managed)
    on = driver.ground()
    on.cloud.tls_refs.add(TLS)
    nodes = (on.node(1), on.node(2))
    facts = driver.service(nodes, annotations=annotations, **fields)
    driven = driver.Driver(on, facts, config)
    driven.settle()
    as_the_reference_leaves_it(driven)
    before, ingress = len(on.cloud.writes), driven.facts.ingress
    driven.depth = Depth.FULL
    driven.settle()
    for call in on.cloud.writes[before:]:
        (body,) = call.body.values()
        assert isinstance(body, dict)
        assert (call.method, list(body)) == ("PUT", ["tags"])
    assert driven.facts.ingress == ingress
    assert driven.settle() == []
    driven.settle(gone=True)
    assert on.cloud.octavia.load_balancers == {}
    assert len(on.cloud.neutron.floating_ips) == (kind == "kept address")
