"""Starts csi-node from the reference's own command line."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING

from csi_node import version
from lib.csi import flag_table, node_flags
from lib.process import command_line, config, flags, serving, shutdown

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


def _no_flags(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    del values
    return ()


def _openstack_files(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    from csi_node import openstack_node

    return openstack_node.judge(values)


@dataclasses.dataclass(frozen=True, slots=True)
class NodeProvider:
    """A kind of cloud. judge: its flags and files. program: plugin for its nodes."""

    judge: Callable[[flags.Values], tuple[config.FieldProblem | str, ...]]
    program: Callable[[flags.Values, Kernel], node_driver.NodeDriverProgram]


PROVIDERS: Mapping[str, NodeProvider] = {
    "openstack": NodeProvider(_openstack_files, _openstack),
    "dvp": NodeProvider(_dvp_flags, _dvp),
    "zvirt": NodeProvider(_no_flags, _zvirt),
}
CLOUD = flag_table.cloud(tuple(PROVIDERS))
FLAGS = (CLOUD, *node_flags.WORKING, *node_flags.INERT)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, of the files they name, and of addresses."""
    # The core of gRPC would write lines of its own between the entries of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from lib.csi import node_driver, options, server

    provider, endpoint = PROVIDERS[values[CLOUD]], values[node_flags.ENDPOINT]
    http = options.http_endpoint(values[node_flags.HTTP_ENDPOINT], [])
    checks: list[Callable[[], object]] = [
        lambda: config.require(node_driver.judge(values)),
        lambda: config.require(provider.judge(values)),
    ]
    if options.is_endpoint(endpoint):
        checks.append(lambda: server.check_endpoint(endpoint))
    if http is not None:
        checks.append(lambda: serving.check_address(*http))
    return config.collect(*checks)


def run(values: flags.Values) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: flags or files cannot be used; every problem is named.
    """
    from lib.csi import node_driver
    from lib.kernel.linux import commands
    from lib.kernel.linux import kernel as linux_kernel

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
