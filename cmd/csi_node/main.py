"""Starts csi-node from the reference's own command line."""

from __future__ import annotations

import dataclasses
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


def _dvp(values: flags.Values, kernel: Kernel) -> node_driver.NodeDriverProgram:
    from csi_node import dvp_node

    del kernel
    return dvp_node.program(NAME, version.VERSION, values)


def _dvp_flags(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    from csi_node import dvp_node

    return dvp_node.judge(values)


def _zvirt(values: flags.Values, kernel: Kernel) -> node_driver.NodeDriverProgram:
    from csi_node import zvirt_node

    del kernel
    return zvirt_node.program(NAME, version.VERSION, values)


def _any_flags(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    del values
    return ()


@dataclasses.dataclass(frozen=True, slots=True)
class NodeProvider:
    """A kind of cloud. judge: its flags. program: the plugin for its nodes."""

    judge: Callable[[flags.Values], tuple[config.FieldProblem, ...]]
    program: Callable[[flags.Values, Kernel], node_driver.NodeDriverProgram]


PROVIDERS: Mapping[str, NodeProvider] = {
    "openstack": NodeProvider(_any_flags, _openstack),
    "dvp": NodeProvider(_dvp_flags, _dvp),
    "zvirt": NodeProvider(_any_flags, _zvirt),
}
CLOUD = flag_table.cloud(tuple(PROVIDERS))
FLAGS = (CLOUD, *node_flags.WORKING, *node_flags.INERT)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return what is wrong with the flags."""
    from lib.csi import node_driver

    return (*node_driver.judge(values), *PROVIDERS[values[CLOUD]].judge(values))


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
    program = PROVIDERS[values[CLOUD]].program(values, kernel)
    code = node_driver.run(program, kernel, values)
    shutdown.end_now(code)  # a call that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
