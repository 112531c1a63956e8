"""Starts capz from the reference's own command line."""

import dataclasses
import os

from capz import version
from lib.capi import flag_table, options
from lib.daemon import common_flags
from lib.process import command_line, config, flags, kinds, serving, shutdown

NAME = "capz"
LEASE_NAME = "2e318131.cluster.x-k8s.io"
"""Source: capz-controller-manager of Deckhouse, cmd/main.go."""
HELP = """Provide Machines of Cluster API with virtual machines of a zVirt engine.

A drop-in replacement for capz-controller-manager of Deckhouse's zVirt module: its
flags, its environment, its Lease, its custom resources.
"""
CLUSTER_UUID = flags.Flag(
    "cluster-uuid",
    kinds.TEXT,
    "",
    "UUID of the cluster, part of the ownership tag of each VM; empty: that of the tag"
    " cluster-UUID in ZVIRT_VM_TAGS.",
)
_DEFAULTS: dict[str, object] = {
    flag_table.METRICS_ADDRESS.name: ":8080",
    flag_table.METRICS_SECURE.name: False,
}
"""Those of the reference that differ from capdvp's."""
FLAGS: tuple[flags.Flag[object], ...] = (
    CLUSTER_UUID,
    *(
        dataclasses.replace(flag, default=_DEFAULTS.get(flag.name, flag.default))
        for flag in flag_table.FLAGS
    ),
)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, environment, kubeconfig and of addresses."""
    # Heavy, and not needed for --help.
    from capz import engine_cluster
    from lib.daemon import starting

    reach = starting.Reach(values[common_flags.KUBECONFIG])
    return config.collect(
        lambda: options.read(values, LEASE_NAME),
        lambda: engine_cluster.cluster_id(os.environ, values[CLUSTER_UUID]),
        lambda: engine_cluster.read(os.environ),
        lambda: starting.load(reach, os.environ),
        lambda: _check_addresses(values),
    )


def _check_addresses(values: flags.Values) -> None:
    """Check that the addresses can be listened on.

    Raises:
        ConfigError: one cannot.
    """
    for flag in (flag_table.PROBE_ADDRESS, flag_table.METRICS_ADDRESS):
        address = options.address(values, flag, [])
        if address is not None:
            serving.check_address(*address)


def run(values: flags.Values) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: flags or environment cannot be used; every problem is named.
    """
    # Heavy, and not needed for --help.
    from capz import engine_cluster
    from lib.capi import provider_daemon

    settings = options.read(values, LEASE_NAME)
    program = provider_daemon.ProviderProgram(
        NAME,
        version.VERSION,
        "zvirt",
        engine_cluster.cluster_id(os.environ, values[CLUSTER_UUID]),
        engine_cluster.KINDS,
        engine_cluster.opener(os.environ, values[common_flags.USER_AGENT]),
    )
    code = provider_daemon.run(program, settings, os.environ)
    shutdown.end_now(code)  # a worker that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
