"""Finding a Service's load balancer by the index is finding it among all."""

import hypothesis
from hypothesis import strategies

from lib.cloud.load_balancers import Cluster, Ref
from lib.cloud.openstack.load_balancers.read import identity, native
from lib.cloud.openstack.load_balancers.spec import names
from lib.cloud.openstack.load_balancers.spec.desired import Hints

IDS = [f"lb-{number}" for number in range(5)]
IPS = [f"198.51.100.{number}" for number in range(4)]
CLUSTER, FORMER = Cluster("kubernetes", "c-1"), Cluster("kubernetes", "c-0")
REFS = [
    Ref(cluster, "default", name, uid)
    for cluster in (CLUSTER, FORMER)
    for name in ("web", "api")
    for uid in ("u-1", "u-2")
]
NAMES = ["other", *{names.load_balancer(ref) for ref in REFS}]
NAMES += [*{names.distinct(ref) for ref in REFS}, *{names.legacy(ref) for ref in REFS}]
TAGS = [*map(names.ownership_tag, REFS), *map(names.user, REFS), *NAMES, names.MADE]
some = strategies.sampled_from
optional = strategies.one_of(strategies.just(""), some(IDS))
BALANCERS = strategies.builds(
    native.LoadBalancer,
    id=some(IDS),
    name=some(sorted(NAMES)),
    description=strategies.one_of(
        strategies.just(""), some([f"made {names.ownership_tag(ref)}" for ref in REFS])
    ),
    tags=strategies.lists(some(sorted(TAGS)), max_size=3).map(tuple),
    vip_address=some(IPS),
    vip_port_id=some(["", "p-0", "p-1", "p-2"]),
    provisioning_status=some(["ACTIVE", "ERROR", "PENDING_DELETE", "DELETED"]),
    created_at=some(["", "2026-01-01T00:00:00", "2026-01-02T00:00:00"]),
)
ADDRESSES = strategies.builds(
    native.FloatingIp,
    id=some(["f-0", "f-1", "f-2"]),
    floating_ip_address=some(IPS),
    port_id=some([None, "p-0", "p-1", "p-2"]),
)
HINTS = strategies.builds(
    Hints,
    given_id=optional,
    owned_id=optional,
    addresses=strategies.lists(some(IPS), max_size=2).map(tuple),
    shown_ips=strategies.lists(some(IPS), max_size=2).map(tuple),
)


@hypothesis.settings(max_examples=400, deadline=None)
@hypothesis.given(
    strategies.lists(BALANCERS, max_size=6, unique_by=lambda row: row.id),
    strategies.lists(ADDRESSES, max_size=3, unique_by=lambda row: row.id),
    some(REFS[:4]),
    HINTS,
)
def test_the_index_finds_what_a_search_finds(
    load_balancers: list[native.LoadBalancer],
    floating_ips: list[native.FloatingIp],
    ref: Ref,
    hints: Hints,
) -> None:
    row = Ref(ref.cluster, ref.namespace, ref.name, ref.uid, native=hints)
    observed = identity.Index(load_balancers, floating_ips).identify(row)
    assert observed == identity.identify(row, load_balancers, floating_ips)
