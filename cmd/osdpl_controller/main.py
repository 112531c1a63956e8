"""Starts osdpl-controller."""

import os

from lib.osdpl import options
from lib.process import command_line, flags, shutdown
from osdpl_controller import version

NAME = "osdpl-controller"
HELP = """Turn an OpenStackDeployment into the helm releases of an OpenStack cloud.

Generates what credentials are missing, installs and upgrades the releases in their
order, and reports conditions and the state of each service.
"""


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, options.FLAGS)
    command_line.main(program, run)


def run(values: flags.Values) -> int:
    """Run until told to stop; return the exit code.

    Raises:
        ConfigError: flags cannot be used; every problem is named.
    """
    wanted = options.read(values)
    # Heavy, and not needed for --help.
    from lib.osdpl import controller

    program = controller.Program(NAME, version.VERSION)
    code = controller.run(program, wanted, os.environ)
    shutdown.end_now(code)  # a call that hangs must not keep the process
    return code
