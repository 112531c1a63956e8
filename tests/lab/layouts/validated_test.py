"""Each root is valid by the provider's own schema, which rejects what it lacks."""

import dataclasses
import pathlib
import shutil

import pytest

from lib.lab.layouts import tofu
from tests.harness.layouts import inputs

ROOTS = [
    f"{layout}/{step}" for layout in inputs.LAYOUTS.values() for step in inputs.STEPS
]


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_is_valid(program: tofu.Tofu, layouts: pathlib.Path, root: str) -> None:
    answer = program.run(layouts / "layouts" / root, "validate")

    assert answer.code == 0, answer.text
    assert "Warning" not in answer.text


def test_every_file_is_formatted(program: tofu.Tofu, layouts: pathlib.Path) -> None:
    answer = program.run(layouts, "fmt", "-check", "-recursive", "-diff")

    assert answer.code == 0, answer.text


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """A deliberate mistake in a module: its file, what is replaced, what is named."""

    module: str
    old: str
    new: str
    named: str


FAULTS = {
    "a misspelt argument": Fault(
        "keypair", "public_key = var", "public_kye = var", "public_kye"
    ),
    "a required argument is missing": Fault(
        "network-security", '  direction         = "ingress"\n', "", "direction"
    ),
    "a misspelt block": Fault(
        "network", "allocation_pool {", "allocation_pools {", "allocation_pools"
    ),
    "a block as an argument": Fault(
        "network", "allocation_pool {", "allocation_pool = {", "allocation_pool"
    ),
    "an argument as a block": Fault(
        "keypair", "name       = var.name", "name {}", "name"
    ),
    "a list in place of a number": Fault(
        "kubernetes-data",
        "size                 = var.size_gib",
        "size = [var.size_gib]",
        "size",
    ),
    "a text in place of a number": Fault(
        "network-security",
        "port_range_min    = 22",
        'port_range_min = "ssh"',
        "port_range_min",
    ),
    "a text in place of a truth value": Fault(
        "router",
        "admin_state_up      = true",
        'admin_state_up = "up"',
        "admin_state_up",
    ),
    "a direction that does not exist": Fault(
        "network-security",
        'direction         = "ingress"',
        'direction = "inward"',
        "inward",
    ),
    "an ethertype that does not exist": Fault(
        "network-security", "ethertype         = each.key", 'ethertype = "IPv5"', "IPv5"
    ),
    "an IP version that does not exist": Fault(
        "network", "ip_version      = 4", "ip_version = 5", "ip_version"
    ),
    "a protocol that does not exist": Fault(
        "network-security", 'protocol          = "tcp"', 'protocol = "tpc"', "tpc"
    ),
    "an attribute that is read-only": Fault(
        "floating-ip",
        "  pool        = var.pool",
        "  pool = var.pool\n  all_tags = []",
        "all_tags",
    ),
    "an attribute of a server that is read-only": Fault(
        "server",
        "  name              = var.name",
        "  name = var.name\n  access_ip_v4 = null\n  all_metadata = {}",
        "all_metadata",
    ),
    "two arguments that exclude each other": Fault(
        "network",
        "  gateway_ip      = var.has_gateway ? cidrhost(var.cidr, 1) : null\n"
        "  no_gateway      = var.has_gateway ? null : true\n",
        '  gateway_ip = "192.0.2.1"\n  no_gateway = true\n',
        "no_gateway",
    ),
    "a type that provider 3.0 has dropped": Fault(
        "floating-ip",
        '"openstack_networking_floatingip_associate_v2" "floating_ip" {',
        '"openstack_compute_floatingip_associate_v2" "floating_ip" {',
        "openstack_compute_floatingip_associate_v2",
    ),
    "a data source that does not exist": Fault(
        "image",
        'data "openstack_compute_flavor_v2"',
        'data "openstack_compute_flavour_v2"',
        "openstack_compute_flavour_v2",
    ),
    "an attribute that does not exist": Fault(
        "port",
        "openstack_networking_port_v2.port.all_fixed_ips[0]",
        "openstack_networking_port_v2.port.fixed_ips[0]",
        "fixed_ips",
    ),
    "an argument of a nested block that does not exist": Fault(
        "server", "boot_index            = 0", "boot_order = 0", "boot_order"
    ),
    "a required argument of a nested block is missing": Fault(
        "server", '      source_type           = "volume"\n', "", "source_type"
    ),
    "a variable that the module lacks": Fault(
        "keypair", "var.public_key", "var.key", "key"
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_rejected_by_name(
    program: tofu.Tofu, layouts: pathlib.Path, tmp_path: pathlib.Path, fault: Fault
) -> None:
    folder = tmp_path / "module"
    shutil.copytree(layouts / "modules" / fault.module, folder)
    main = folder / "main.tf"
    text = main.read_text()
    assert fault.old in text
    program.require(folder, "init", "-backend=false")

    main.write_text(text.replace(fault.old, fault.new, 1))
    answer = program.run(folder, "validate")

    assert answer.code == 1
    assert fault.named in answer.text
