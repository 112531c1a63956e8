"""Starts cloud-data-discoverer from the reference's own flags and environment."""

import os

from cloud_data_discoverer import version
from lib.discoverer import options
from lib.discovery.openstack import provider
from lib.process import command_line, config, flags, shutdown

NAME = "cloud-data-discoverer"
CLOUDS = ("openstack",)
PROVIDER = provider.OPENSTACK
CLOUD = options.cloud(CLOUDS)
FLAGS = options.table(CLOUDS, PROVIDER.access_deployment)
HELP = """Publish flavors, images, zones and volume types of the cloud in the cluster.

Updates the Secret d8-cloud-provider-discovery-data, the InstanceTypesCatalog and,
optionally, a StorageClass for each volume type; reports disks without an object in the
cluster.
"""


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    """Return every problem of flags and environment; credentials are read later."""
    problems: list[config.FieldProblem | str] = []
    cloud = values[CLOUD]
    if cloud not in CLOUDS:
        problems.append(config.required("--cloud", cloud, ", ".join(CLOUDS)))
    try:
        options.read(values, os.environ, PROVIDER)
    except config.ConfigError as error:
        problems += error.problems
    return tuple(
        problem for problem in problems if isinstance(problem, config.FieldProblem)
    )


def run(values: flags.Values) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: flags or environment can't be used; every problem is listed.
    """
    cloud = values[CLOUD]
    # Heavy, and of one cloud only.
    from cloud_data_discoverer import openstack
    from lib.discoverer import discoverer

    discoverer_options = options.read(values, os.environ, PROVIDER)
    credentials = openstack.read(os.environ)
    agent = f"{NAME}/{version.VERSION}"
    program = discoverer.DiscovererProgram(
        NAME,
        version.VERSION,
        cloud,
        openstack.source(credentials, agent).open,
        openstack.REFERENCE,
    )
    code = discoverer.run(program, discoverer_options, os.environ)
    shutdown.end_now(code)  # a read that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
