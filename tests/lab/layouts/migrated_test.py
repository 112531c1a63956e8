"""States of the reference that moved.tf alone cannot adopt are recovered."""

import dataclasses
import json
import pathlib

from lib.lab import places
from lib.layouts.openstack import states
from tests.harness.layouts import (
    inputs,
    moved_state,
    objects,
    recovery,
    reference_states,
    roots,
    second_pool,
)

MASTER, STATIC = roots.master(0), roots.static("front", 0)


def _write(mine: roots.LayoutCluster, root: roots.Root, *gone: inputs.Json) -> None:
    """Replace the state of a root by what the reference would have written."""
    file = mine.state(root)
    state = moved_state.of(root.step, json.loads(file.read_text()))
    file.write_text(json.dumps({**state, "resources": [*state["resources"], *gone]}))


def _recover(mine: roots.LayoutCluster, root: roots.Root) -> str:
    """Do what the printed comments ask for; return the blocks."""
    file = mine.state(root)
    content = recovery.text(file)
    for line in content.splitlines():
        if line.startswith("#   tofu state rm "):
            address = line.split()[-1].strip("'")
            mine.program.require(
                mine.folder(root), "state", "rm", f"-state={file}", address
            )
    return content


def test_floating_ips_and_ports_of_the_reference_are_adopted(
    where: places.Places, cluster: roots.MakeCluster, tmp_path: pathlib.Path
) -> None:
    mine, user = cluster("Standard")
    network = user.connection.network
    before = objects.take(user.connection)
    with second_pool.of(where, user) as pool:
        group = inputs.group(
            additionalNetworks=["prod"], floatingIPPools=["public", pool]
        )
        mine = mine.with_document({**mine.document, "nodeGroups": [group]})
        for root in (roots.BASE, MASTER, STATIC):
            mine.apply(root)
        room = tmp_path / "reference"
        room.mkdir()
        reference = dataclasses.replace(mine, room=room)
        for root in (MASTER, STATIC):
            reference.state(root).write_bytes(mine.state(root).read_bytes())
        (port,) = network.ports(name="prod-master-0")
        (address,) = network.ips(port_id=port.id)
        gone = reference_states.addresses(
            "module.master", "master", address.id, address.floating_ip_address
        )
        _write(reference, MASTER, *gone)
        state = json.loads(mine.state(STATIC).read_text())
        _write(reference, STATIC, *moved_state.node_additions(state))

        without = reference.plan(STATIC)
        plans = []
        for root in (MASTER, STATIC):
            with recovery.with_blocks(reference, root, _recover(reference, root)):
                plans.append(reference.plan(root))
                reference.apply(root)

        assert any("delete" in actions for actions in without.values())
        assert {done for plan in plans for done in plan.values()} <= {("update",)}
        for root in (MASTER, STATIC):
            assert reference.plan(root) == {}
            shown = json.loads(
                mine.program.require(
                    mine.folder(root), "show", "-json", str(reference.state(root))
                )
            )
            assert states.of_state(shown) == states.of_state(
                json.loads(reference.state(root).read_text())
            )
        reference.destroy(MASTER, STATIC)
        mine.destroy(roots.BASE)
    assert objects.take(user.connection) == before
