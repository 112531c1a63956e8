"""Starts openstack-ccm from the reference's own command line."""

import os

from lib.ccm import flag_table, options, start_checks
from lib.daemon import common_flags
from lib.process import command_line, config, flags, shutdown
from openstack_ccm import version

NAME = "openstack-ccm"
PROVIDER = "openstack"
HELP = """Keep Kubernetes Nodes and OpenStack servers 1:1.

A drop-in replacement for openstack-cloud-controller-manager: its flags, its cloud.conf.
"""


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, options.FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, of the files they name, and of the address."""
    # Heavy, and not needed for --help.
    from lib.cloud.support.source import Unobserved
    from openstack_ccm import cloud_conf

    path, agents = values[flag_table.CLOUD_CONFIG], values[common_flags.USER_AGENT]
    return start_checks.problems(
        values,
        PROVIDER,
        lambda: cloud_conf.source(path, os.environ, agents).open(Unobserved()),
    )


def run(values: flags.Values) -> int:
    """Run until a signal to stop; return the exit code.

    Raises:
        ConfigError: flags or cloud.conf cannot be used; every problem is named.
    """
    # Heavy, and not needed for --help.
    from lib.ccm import manager
    from openstack_ccm import cloud_conf

    settings = options.read(values, PROVIDER)
    agents = values[common_flags.USER_AGENT]
    source = cloud_conf.source(settings.cloud_config, os.environ, agents)
    program = manager.ManagerProgram(
        NAME, version.VERSION, PROVIDER, source.open, cloud_conf.REFERENCE
    )
    code = manager.run(program, values, settings, os.environ)
    shutdown.end_now(code)  # a worker that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
