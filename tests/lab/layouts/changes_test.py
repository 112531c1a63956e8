"""Each field's change does what docs/layout-changes.md describes; drift is repaired."""

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping

import pytest

from lib.lab import places
from lib.lab.layouts import tofu
from lib.lab.openstack import tenant
from tests.harness.layouts import changes, inputs, moved_state, objects, roots
from tests.harness.openstack import testing

STATIC = roots.static("front", 0)
ROOTS = (roots.BASE, roots.master(0), STATIC)
BY_STEP = {root.step: root for root in ROOTS}


@pytest.fixture(scope="module")
def applied(
    where: places.Places,
    program: tofu.Tofu,
    layouts: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[roots.LayoutCluster, tenant.Tenant]]:
    """Yield a cluster of layout Standard: base, a master, a node of a group."""
    with testing.projects(where) as project:
        account, user = project("changes")
        user.connection.network.create_security_group(name="more")
        images = user.connection.image
        images.create_image(
            "other", data=b"x" * 512, disk_format="raw", container_format="bare"
        )
        document = inputs.document(
            "Standard",
            roots.provider(where, account),
            instance_class={"rootDiskSize": 1},
            groups=[inputs.group(floatingIPPools=["public"])],
        )
        room = tmp_path_factory.mktemp("changes")
        mine = roots.LayoutCluster(program, layouts, room, document)
        for root in ROOTS:
            mine.apply(root)
        yield mine, user
        mine.destroy(*ROOTS)


def _effect(plan: Mapping[str, tuple[str, ...]]) -> changes.Effect:
    if any({"create", "delete"} <= set(actions) for actions in plan.values()):
        return changes.Effect.REPLACES
    return changes.Effect.IN_PLACE if plan else changes.Effect.NONE


@pytest.mark.parametrize("field", changes.CHANGES)
def test_a_change_has_the_documented_effect(
    applied: tuple[roots.LayoutCluster, tenant.Tenant], field: str
) -> None:
    mine, _ = applied
    change = changes.CHANGES[field]
    mine = mine.with_document(changes.changed(mine.document, change.change))
    root = BY_STEP[change.step]
    root = dataclasses.replace(root, extra={**root.extra, **change.extra})

    plan = mine.plan(root)

    expected = change.effect
    if expected is changes.Effect.NEW:
        expected = changes.Effect.NONE
    assert _effect(plan) == expected, plan


def test_a_state_of_the_reference_is_planned_without_replacement(
    applied: tuple[roots.LayoutCluster, tenant.Tenant], tmp_path: pathlib.Path
) -> None:
    mine, _ = applied
    reference = dataclasses.replace(mine, room=tmp_path)
    for root in ROOTS:
        state = json.loads(mine.state(root).read_text())
        reference.state(root).write_text(json.dumps(moved_state.of(root.step, state)))

    plans = [reference.plan(root) for root in ROOTS]

    # Floating IPs of nodes: their types are gone, see `mooring layouts recover`.
    actions = {name: done for plan in plans for name, done in plan.items()}
    assert set(actions.values()) == {("create",)}
    assert [name for name in actions if "floating_ip" not in name] == []


def test_manual_changes_are_repaired_and_nothing_else(
    applied: tuple[roots.LayoutCluster, tenant.Tenant],
) -> None:
    mine, user = applied
    network, blocks = user.connection.network, user.connection.block_storage
    (group,) = network.security_groups(
        name="prod", project_id=user.connection.current_project_id
    )
    (port,) = network.ports(name="prod-master-0")
    (volume,) = blocks.volumes(name="prod-kubernetes-data-0")
    (address,) = network.ips(port_id=port.id)
    rule = next(
        rule
        for rule in network.security_group_rules(security_group_id=group.id)
        if rule.port_range_max == 22
    )
    before = {root.name: mine.plan(root) for root in ROOTS}

    network.delete_security_group_rule(rule.id)
    network.update_port(port.id, allowed_address_pairs=[], security_groups=[])
    network.set_tags(port, [])
    network.delete_ip(address.id)
    blocks.set_volume_metadata(volume.id, **{"cluster-uuid": "other"})

    drift = {root.name: mine.plan(root) for root in ROOTS}
    for root in ROOTS:
        mine.apply(root)
    after = objects.take(user.connection)
    assert before == {root.name: {} for root in ROOTS}
    assert drift[STATIC.name] == {}
    assert sorted(
        name.rpartition(".")[2].partition("[")[0] for name in drift["master-node-0"]
    ) == [
        "floating_ip",
        "floating_ip",
        "kubernetes_data",
        "port",
    ]
    assert [mine.plan(root) for root in ROOTS] == [{}] * 3
    assert after["port"][port.id]["allowed_address_pairs"]
    assert after["volume"][volume.id]["metadata"]["cluster-uuid"] == inputs.UUID
