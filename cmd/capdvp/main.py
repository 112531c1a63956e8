"""Starts capdvp from the reference's own command line."""

import os

from capdvp import version
from lib.capi import flag_table, options
from lib.cloud.dvp import config as parent_config
from lib.daemon import common_flags
from lib.process import command_line, config, flags, serving, shutdown

NAME = "capdvp"
LEASE_NAME = "70c82521.cluster.x-k8s.io"
"""Source: capdvp-controller-manager of Deckhouse, cmd/main.go."""
HELP = """Provide Machines of Cluster API with VMs of a DVP parent cluster.

A drop-in replacement for capdvp-controller-manager of Deckhouse's DVP module: its
flags, its environment, its Lease, its custom resources.
"""
FLAGS = (parent_config.PARENT_KUBECONFIG, *flag_table.FLAGS)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, environment, kubeconfigs and of addresses."""
    # Heavy, and not needed for --help.
    from lib.daemon import starting

    reach = starting.Reach(values[common_flags.KUBECONFIG])
    path = values[parent_config.PARENT_KUBECONFIG]
    return config.collect(
        lambda: options.read(values, LEASE_NAME),
        lambda: parent_config.read(path, os.environ),
        lambda: starting.load(reach, os.environ),
        lambda: _check_addresses(values),
    )


def _check_addresses(values: flags.Values) -> None:
    """See that the addresses can be listened on.

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
    from capdvp import parent_cluster
    from lib.capi import provider_daemon

    settings = options.read(values, LEASE_NAME)
    path = values[parent_config.PARENT_KUBECONFIG]
    program = provider_daemon.ProviderProgram(
        NAME,
        version.VERSION,
        "dvp",
        parent_config.read(path, os.environ).cluster_uuid,
        parent_cluster.KINDS,
        parent_cluster.opener(path, os.environ, values[common_flags.USER_AGENT]),
    )
    code = provider_daemon.run(program, settings, os.environ)
    shutdown.end_now(code)  # a worker that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
