"""Starts osdpl-controller."""

import os

from lib.daemon import common_flags
from lib.osdpl.daemon import options
from lib.process import command_line, config, flags, serving, shutdown
from osdpl_controller import version

NAME = "osdpl-controller"
HELP = """Turn an OpenStackDeployment into the helm releases of an OpenStack cloud.

Generates what credentials are missing, installs and upgrades the releases in their
order, and reports conditions and the state of each service.
"""


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, options.FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, of the files they name, and of addresses."""
    # Heavy, and not needed for --help.
    from lib.daemon import server_certificate, starting

    host = values[common_flags.BIND_ADDRESS]
    pair = values[common_flags.TLS_CERT], values[common_flags.TLS_KEY]
    reach = starting.Reach(values[common_flags.KUBECONFIG])
    return config.collect(
        lambda: options.read(values),
        lambda: starting.load(reach, os.environ),
        lambda: server_certificate.check(pair),
        lambda: serving.check_address(host, values[options.SECURE_PORT]),
        lambda: serving.check_address(host, values[options.WEBHOOK_PORT]),
    )


def run(values: flags.Values) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: flags cannot be used; every problem is listed.
    """
    osdpl_options = options.read(values)
    # Heavy, and not needed for --help.
    from lib.osdpl.daemon import controller

    program = controller.Program(NAME, version.VERSION)
    code = controller.run(program, osdpl_options, os.environ)
    shutdown.end_now(code)  # a call that hangs must not keep the process
    return code
