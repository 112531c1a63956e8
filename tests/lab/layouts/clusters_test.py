"""Layouts beside other objects of a project, and with networks of others."""

import dataclasses

from lib.lab import places
from tests.harness.layouts import inputs, objects, roots, second_pool


def test_a_node_has_a_port_in_each_network_and_an_address_of_each_pool(
    where: places.Places, cluster: roots.MakeCluster
) -> None:
    mine, user = cluster("Standard")
    with second_pool.of(where, user) as pool:
        group = inputs.group(
            additionalNetworks=["prod"], floatingIPPools=["public", pool]
        )
        mine = mine.with_document({**mine.document, "nodeGroups": [group]})
        before = objects.take(user.connection)
        applied = (roots.BASE, roots.static("front", 0))
        for root in applied:
            mine.apply(root)

        after = objects.take(user.connection)
        ports = [
            port for port in after["port"].values() if port["name"] == "prod-front-0"
        ]
        pairs = sorted(len(port["allowed_address_pairs"]) for port in ports)
        added = objects.added(before, after)
        assert (pairs, len(added["floating IP"])) == ([0, 1], 2)
        assert [mine.plan(root) for root in applied] == [{}, {}]
        mine.destroy(*applied)
        assert objects.take(user.connection) == before


def test_a_second_cluster_of_the_project_stays_the_same(
    cluster: roots.MakeCluster,
) -> None:
    first, user = cluster("Standard")
    room = first.room / "second"
    room.mkdir()
    block = {**first.document["standard"], "internalNetworkCIDR": "10.77.0.0/24"}
    second = dataclasses.replace(
        first,
        room=room,
        prefix="other",
        uuid=inputs.UUID.replace("5", "6"),
        document={**first.document, "standard": block},
    )
    applied = (roots.BASE, roots.master(0))
    for root in applied:
        second.apply(root)
    before = objects.take(user.connection)

    for root in applied:
        first.apply(root)
    assert [second.plan(root) for root in applied] == [{}, {}]
    first.destroy(*applied)

    assert objects.take(user.connection) == before
    second.destroy(*applied)


def test_a_prefix_in_use_is_refused_with_the_ids(cluster: roots.MakeCluster) -> None:
    first, user = cluster("Standard")
    first.apply(roots.BASE)
    (subnet,) = user.connection.network.subnets(name="prod")
    room = first.room / "second"
    room.mkdir()
    second = dataclasses.replace(first, room=room, uuid=inputs.UUID.replace("5", "6"))

    text = second.refusal(roots.BASE)

    assert subnet.id in text
    assert 'cloud.prefix is "prod", which is in use' in text
    first.destroy(roots.BASE)
