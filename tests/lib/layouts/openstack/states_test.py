"""Blocks for states that the reference has written, in both formats."""

from collections.abc import Mapping
from typing import Any

import pytest

from lib.layouts.openstack import blocks, states
from tests.harness.layouts import reference_states

ADDRESS = "openstack_networking_floatingip_v2.floating_ip[0]"
ASSOCIATION = "openstack_networking_floatingip_associate_v2.floating_ip"
MASTER, BASTION = "module.floating_ip[0]", "module.bastion_floating_ip[0]"
FIRST = 'module.static_node.module.floating_ip["public"]'
SECOND = 'module.static_node.module.floating_ip["second"]'
PORT = "openstack_networking_port_v2.port"
OLD_PORT = f"module.static-node.{PORT}"
NEW_PORT = "module.static_node.module.additional_port"

ROWS: Mapping[str, tuple[Mapping[str, Any], blocks.Recovery]] = {
    "a master with a floating IP": (
        reference_states.master(),
        blocks.Recovery(
            (
                blocks.ImportBlock(f"{MASTER}.{ADDRESS}", "f"),
                blocks.ImportBlock(f"{MASTER}.{ASSOCIATION}", "f"),
            ),
            (),
            (
                "module.master.openstack_compute_floatingip_v2.master",
                "module.master.openstack_compute_floatingip_associate_v2.master",
            ),
        ),
    ),
    "a base with a bastion": (
        reference_states.bastion(),
        blocks.Recovery(
            (
                blocks.ImportBlock(f"{BASTION}.{ADDRESS}", "f"),
                blocks.ImportBlock(f"{BASTION}.{ASSOCIATION}", "f"),
            ),
            (),
            (
                "openstack_compute_floatingip_v2.bastion",
                "openstack_compute_floatingip_associate_v2.bastion",
            ),
        ),
    ),
    "a node with three networks and two pools": (
        reference_states.static("openstack_networking_floatingip_v2"),
        blocks.Recovery(
            (
                blocks.ImportBlock(f"{FIRST}.{ASSOCIATION}", "f0"),
                blocks.ImportBlock(f"{SECOND}.{ASSOCIATION}", "f1"),
            ),
            (
                blocks.MovedBlock(f"{OLD_PORT}[1]", f'{NEW_PORT}["dmz"].{PORT}'),
                blocks.MovedBlock(f"{OLD_PORT}[2]", f'{NEW_PORT}["store"].{PORT}'),
                blocks.MovedBlock(
                    "module.static-node.openstack_networking_floatingip_v2"
                    ".floating_ip[0]",
                    f"{FIRST}.{ADDRESS}",
                ),
                blocks.MovedBlock(
                    "module.static-node.openstack_networking_floatingip_v2"
                    ".floating_ip[1]",
                    f"{SECOND}.{ADDRESS}",
                ),
            ),
            ("module.static-node.openstack_compute_floatingip_associate_v2.node",),
        ),
    ),
    "a node whose floating IPs have the type that is gone": (
        reference_states.static("openstack_compute_floatingip_v2"),
        blocks.Recovery(
            (
                blocks.ImportBlock(f"{FIRST}.{ADDRESS}", "f0"),
                blocks.ImportBlock(f"{FIRST}.{ASSOCIATION}", "f0"),
                blocks.ImportBlock(f"{SECOND}.{ADDRESS}", "f1"),
                blocks.ImportBlock(f"{SECOND}.{ASSOCIATION}", "f1"),
            ),
            (
                blocks.MovedBlock(f"{OLD_PORT}[1]", f'{NEW_PORT}["dmz"].{PORT}'),
                blocks.MovedBlock(f"{OLD_PORT}[2]", f'{NEW_PORT}["store"].{PORT}'),
            ),
            (
                "module.static-node.openstack_compute_floatingip_v2.floating_ip",
                "module.static-node.openstack_compute_floatingip_associate_v2.node",
            ),
        ),
    ),
    "a state that needs nothing": ({"version": 4, "resources": []}, blocks.Recovery()),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_blocks_for_a_state_file(
    row: tuple[Mapping[str, Any], blocks.Recovery],
) -> None:
    state, recovery = row

    assert states.is_state(state)
    assert states.of_state(state) == recovery


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_same_for_the_json_format(
    row: tuple[Mapping[str, Any], blocks.Recovery],
) -> None:
    """As `terraform show -json` and `tofu show -json` print a state."""
    state, recovery = row
    shown = reference_states.shown(state)

    assert states.is_state(shown)
    assert states.of_state(shown) == recovery
