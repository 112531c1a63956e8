"""Starts csi-node from the reference's own command line."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING

from csi_node import version
from lib.csi import flag_table, node_flags
from lib.process import command_line, config, flags, shutdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Heavy, and not needed for --help.
    from lib.csi import node_driver
    from lib.kernel.protocol import Kernel

NAME = "csi-node"
HELP = """Stage, publish and expand volumes on a node of Kubernetes.

The node plugin of CSI, without credentials of a cloud. With --cloud=openstack a drop-in
replacement for the node service of cinder-csi-plugin: its flags, its mounts.
"""


def _openstack(values: flags.Values, kernel: Kernel) -> node_driver.NodeDriverProgram:
    from csi_node import openstack_node

    return openstack_node.program(NAME, version.VERSION, values, kernel)


PROVIDERS: Mapping[
    str, Callable[[flags.Values, Kernel], node_driver.NodeDriverProgram]
] = {"openstack": _openstack}
CLOUD = flag_table.cloud(tuple(PROVIDERS))
FLAGS = (CLOUD, *node_flags.WORKING, *node_flags.INERT)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.command(program, run).main(prog_name=NAME)


def judge(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return what is wrong with the flags."""
    from lib.csi import node_driver

    return node_driver.judge(values)


def run(values: flags.Values) -> int:
    """Run until told to stop; return the exit code.

    Raises:
        ConfigError: flags or files cannot be used; every problem is named.
    """
    # The core of gRPC would write lines of its own between the entries of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from lib.csi import node_driver
    from lib.kernel.linux import commands
    from lib.kernel.linux import kernel as linux_kernel

    config.require(judge(values))
    kernel = linux_kernel.LinuxKernel(
        commands.Commands(os.environ),
        pathlib.Path(values[node_flags.DEV]),
        pathlib.Path(values[node_flags.SYS]),
    )
    program = PROVIDERS[values[CLOUD]](values, kernel)
    code = node_driver.run(program, kernel, values)
    shutdown.end_now(code)  # a call that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
