"""Starts zvirt-ccm from the reference's own command line."""

import dataclasses
import ipaddress
import os

from lib.ccm import flag_table, options, start_checks
from lib.daemon import common_flags
from lib.process import command_line, config, flags, kinds, shutdown
from zvirt_ccm import version

NAME = "zvirt-ccm"
PROVIDER = "zvirt"
LEASE_NAME = "zvirt-cloud-controller-manager"
HELP = """Keep Kubernetes Nodes and virtual machines of a zVirt engine 1:1.

A drop-in replacement for the cloud controller manager of Deckhouse's zVirt module: its
flags and its environment.
"""
_ENVIRONMENT = "environment variables and the files that they name are read instead"
_NO_BALANCERS = "an engine has no load balancers"
_NO_ROUTES = "an engine has no routes to Pods"
_NO_EFFECT = {
    flag_table.CLOUD_CONFIG: _ENVIRONMENT,
    flag_table.CLUSTER_ID: _NO_BALANCERS,
    flag_table.CLUSTER_NAME: _NO_BALANCERS,
    flag_table.SERVICE_SYNCS: _NO_BALANCERS,
    flag_table.LB_DRIFT_PERIOD: _NO_BALANCERS,
    flag_table.CONFIGURE_ROUTES: _NO_ROUTES,
    flag_table.CLUSTER_CIDR: _NO_ROUTES,
    flag_table.ROUTE_PERIOD: _NO_ROUTES,
}
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_NETWORKS = kinds.FlagKind[tuple[Network, ...]](
    "cidrs",
    "comma-separated CIDRs such as 10.0.0.0/8",
    lambda text: tuple(
        ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()
    ),
    lambda before, now: before + now,
    show=lambda networks: ",".join(map(str, networks)),
)
REPORTED_DEVICES = flags.Flag(
    "reported-devices",
    kinds.one_of("nics", "all"),
    "nics",
    "Devices reported by the guest agent whose addresses a Node gets: nics: those with"
    " the MAC address of a NIC of the VM, in the order of NICs; all: every one, as the"
    " reference.",
    group=flags.NODES,
)
NIC_NAMES = flags.Flag(
    "nic-names",
    kinds.LIST,
    ("*",),
    "Names of the NICs whose addresses a Node gets, separated by commas; * and ? as in"
    " a shell.",
    group=flags.NODES,
)
ADDRESS_NETWORKS = flags.Flag(
    "address-networks",
    _NETWORKS,
    (),
    "CIDRs that the addresses of a Node must be in; empty: any.",
    group=flags.NODES,
)
IPV6_ADDRESSES = flags.Flag(
    "ipv6-addresses",
    kinds.BOOLEAN,
    False,
    "Nodes get IPv6 addresses, too.",
    group=flags.NODES,
)
TOPOLOGY_LABELS = flags.Flag(
    "topology-labels",
    kinds.BOOLEAN,
    False,
    "New Nodes get the labels of zone (cluster of the engine), region (data center) and"
    " instance type (template); the reference sets none.",
    group=flags.NODES,
)
DATA_CENTER = flags.Flag(
    "data-center",
    kinds.TEXT,
    "",
    "Name or ID of the data center in which VMs are found by name; empty: all that the"
    " user of the engine sees. A Node with a provider ID is found by it.",
    group=flags.NODES,
)
FLAGS = (
    REPORTED_DEVICES,
    NIC_NAMES,
    ADDRESS_NETWORKS,
    IPV6_ADDRESSES,
    TOPOLOGY_LABELS,
    DATA_CENTER,
    *(
        (
            dataclasses.replace(flag, default=LEASE_NAME)
            if flag.name == flag_table.LEASE_NAME.name
            else flag
        )
        for flag in start_checks.shared_flags(_NO_EFFECT)
    ),
)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, environment, kubeconfig and of the address."""
    # Heavy, and not needed for --help.
    from zvirt_ccm import engine

    return start_checks.problems(values, PROVIDER, lambda: engine.read(os.environ))


def run(values: flags.Values) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: flags or environment cannot be used; every problem is named.
    """
    # Heavy, and not needed for --help.
    from lib.ccm import manager
    from lib.cloud.zvirt.instances.addresses import AddressRules
    from lib.cloud.zvirt.instances.cloud import InstanceRules
    from zvirt_ccm import engine

    settings = options.read(values, PROVIDER)
    if not values.is_given(flag_table.LEASE_NAME):
        settings = dataclasses.replace(settings, lease_name=LEASE_NAME)
    addresses = AddressRules(
        values[REPORTED_DEVICES] == "all",
        values[NIC_NAMES],
        values[ADDRESS_NETWORKS],
        values[IPV6_ADDRESSES],
    )
    rules = InstanceRules(addresses, values[TOPOLOGY_LABELS], values[DATA_CENTER])
    source = engine.source(os.environ, values[common_flags.USER_AGENT], rules)
    program = manager.ManagerProgram(NAME, version.VERSION, PROVIDER, source.open)
    code = manager.run(program, values, settings, os.environ)
    shutdown.end_now(code)  # a worker that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
