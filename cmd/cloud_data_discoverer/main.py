"""Starts cloud-data-discoverer from the reference's own flags and environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cloud_data_discoverer import version
from lib.daemon import common_flags
from lib.discoverer import options
from lib.discovery.openstack import provider
from lib.process import command_line, config, flags, serving, shutdown

if TYPE_CHECKING:
    from collections.abc import Callable

    # Heavy, and not needed for --help.
    from lib.cloud.support.source import Observers, Opened

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


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, environment, files, credentials and addresses."""
    # Heavy, and not needed for --help.
    from lib.cloud.support.source import Unobserved
    from lib.daemon import server_certificate, starting

    cloud, pair = values[CLOUD], options.certificate_files(values)
    kubeconfig = options.kubeconfig(values, os.environ)
    address = values[common_flags.BIND_ADDRESS], values[options.SECURE_PORT]

    def connect() -> None:
        opener(values, NAME)(Unobserved())

    problems = config.collect(
        lambda: options.read(values, os.environ, PROVIDER),
        connect,
        lambda: starting.load(starting.Reach(kubeconfig), os.environ),
        lambda: server_certificate.check(pair),
        lambda: serving.check_address(*address),
    )
    if cloud in CLOUDS:
        return problems
    return (config.required("--cloud", cloud, "one of " + ", ".join(CLOUDS)), *problems)


def opener(values: flags.Values, agent: str) -> Callable[[Observers], Opened]:
    """Return what opens the cloud: of --cloud-config, else of the environment.

    Raises:
        ConfigError: variables of the environment cannot be used.
    """
    from cloud_data_discoverer import openstack

    if path := values[options.CLOUD_CONFIG]:
        return openstack.of_file(path, agent).open
    return openstack.source(openstack.read(os.environ), agent).open


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
    agent = f"{NAME}/{version.VERSION}"
    program = discoverer.DiscovererProgram(
        NAME,
        version.VERSION,
        cloud,
        opener(values, agent),
        openstack.REFERENCE,
    )
    code = discoverer.run(program, discoverer_options, os.environ)
    shutdown.end_now(code)  # a read that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
