"""OpenTofu ended with SIGKILL: what it created is listed, and added to its state."""

import random

from lib.lab import places
from tests.harness.layouts import objects, recovery, roots

SEED = 53
COUNT = 5
"""Moments for each of two roots."""
LONGEST_S = {"base-infrastructure": 8.0, "master-node": 14.0}
UNTAGGED = ("key pair", "server group")


def _moments(step: str) -> list[float]:
    chance = random.Random(f"{SEED} {step}")  # noqa: S311 - not for secrets
    return [chance.uniform(1.0, LONGEST_S[step]) for _ in range(COUNT)]


def _require_recovered(
    where: places.Places,
    mine: roots.LayoutCluster,
    root: roots.Root,
    before: objects.Objects,
    now: objects.Objects,
) -> None:
    """Require that all that exists is listed, and that the next apply completes."""
    expected = _taggable(before, now)

    listed = recovery.orphans(where, mine)
    with recovery.with_blocks(mine, root, recovery.blocks(mine, root)):
        mine.apply(root)

    assert listed == (3 if expected else 0, expected)
    assert mine.plan(root) == {}


def _taggable(before: objects.Objects, now: objects.Objects) -> list[str]:
    """Return the IDs of the objects that came and can have a tag.

    Nova's and Neutron's own ports have no name.
    """
    return sorted(
        id_
        for kind, items in now.items()
        if kind not in UNTAGGED
        for id_ in items.keys() - before[kind].keys()
        if kind != "port" or items[id_]["name"]
    )


def test_a_killed_apply_of_the_base_is_recovered(
    where: places.Places, cluster: roots.MakeCluster
) -> None:
    mine, user = cluster(
        "Standard", masters={"serverGroup": {"policy": "AntiAffinity"}}
    )
    before = objects.take(user.connection)
    for moment in _moments(roots.BASE.step):
        recovery.apply_until(mine, roots.BASE, moment)
        now = objects.take(user.connection)
        print(f"{moment:.1f} s: {objects.added(before, now)}")

        _require_recovered(where, mine, roots.BASE, before, now)

        mine.destroy(roots.BASE)
        assert objects.take(user.connection) == before


def test_a_killed_apply_of_a_master_is_recovered(
    where: places.Places, cluster: roots.MakeCluster
) -> None:
    mine, user = cluster("Standard", instance_class={"rootDiskSize": 1})
    root = roots.master(0)
    empty = objects.take(user.connection)
    mine.apply(roots.BASE)
    before = objects.take(user.connection)
    for moment in _moments(root.step):
        recovery.apply_until(mine, root, moment)
        now = objects.take(user.connection)
        print(f"{moment:.1f} s: {objects.added(before, now)}")

        _require_recovered(where, mine, root, empty, now)

        mine.destroy(root)
        assert objects.take(user.connection) == before
    mine.destroy(roots.BASE)
    assert objects.take(user.connection) == empty
