"""Starts csi-controller from the reference's own command line."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from csi_controller import version
from lib.csi import flag_table, options
from lib.daemon import common_flags
from lib.process import command_line, config, flags, kinds, serving, shutdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Heavy, and not needed for --help.
    from lib.csi import driver

NAME = "csi-controller"
HELP = """Create, delete, attach, detach, grow and retype volumes for Kubernetes.

The controller plugin of CSI. With --cloud=openstack a drop-in replacement for the
controller service of cinder-csi-plugin: its flags, its cloud.conf, its volumes. With
--cloud=dvp one for that of dvp-csi-driver: its flags, its environment, its volumes.
With --cloud=zvirt one for that of ovirt-csi-driver: its flags, OVIRT_CONFIG, its disks.
"""
PARENT_KUBECONFIG = flags.Flag(
    "parent-kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig of the parent cluster, with --cloud=dvp; empty:"
    " DVP_KUBERNETES_CONFIG_BASE64. Also with it DVP_NAMESPACE and CLUSTER_UUID are"
    " required.",
)
DATA_CENTER = flags.Flag(
    "data-center",
    kinds.TEXT,
    "",
    "Name or ID of the data center whose storage domains are used, with --cloud=zvirt;"
    " empty: all that the user of the engine sees.",
)
_OF_OVIRT = (
    flags.Flag(
        "ovirt-conf",
        kinds.TEXT,
        "",
        "Ignored.",
        no_effect="the variable OVIRT_CONFIG names the file, as with the reference",
    ),
    flags.Flag(
        "namespace",
        kinds.TEXT,
        "",
        "Ignored.",
        no_effect="no object of a namespace is read",
    ),
)


def _openstack(
    values: flags.Values,
    driver_options: options.DriverOptions,
    env: Mapping[str, str],
) -> driver.DriverProgram:
    from csi_controller import openstack_clouds
    from lib.csi import driver, driver_nodes

    del values
    nodes = driver_nodes.DriverNodes(openstack_clouds.DRIVER)
    has_controller = driver_options.has_controller
    openers = openstack_clouds.openers(
        driver_options.cloud_configs if has_controller else (),
        driver_options.cloud_names if has_controller else (),
        env,
        driver_options.user_agents,
        driver_options.cluster,
        nodes.ids,
    )
    return driver.DriverProgram(
        NAME,
        version.VERSION,
        "openstack",
        openstack_clouds.DRIVER,
        openstack_clouds.FEATURES,
        openers,
        zone_key=openstack_clouds.ZONE_KEY,
        reference=openstack_clouds.REFERENCE,
        nodes=nodes,
    )


def _openstack_flags(values: flags.Values) -> tuple[config.FieldProblem, ...]:
    if values[flag_table.CLOUD_CONFIG]:
        return ()
    return (config.not_set("--cloud-config", "the path of a cloud.conf"),)


def _check_openstack(values: flags.Values, env: Mapping[str, str]) -> None:
    from csi_controller import openstack_clouds

    paths = values[flag_table.CLOUD_CONFIG]
    openstack_clouds.check(paths, values[flag_table.CLOUD_NAMES], env)


def _dvp(
    values: flags.Values,
    driver_options: options.DriverOptions,
    env: Mapping[str, str],
) -> driver.DriverProgram:
    from csi_controller import dvp_clouds
    from lib.csi import driver

    described = driver.DriverProgram(
        NAME, version.VERSION, "dvp", dvp_clouds.DRIVER, dvp_clouds.FEATURES, {}
    )
    if not driver_options.has_controller:
        return described
    settings = dvp_clouds.read(values[PARENT_KUBECONFIG], env)
    agent = " ".join((*driver_options.user_agents, f"{NAME}/{version.VERSION}"))
    return dataclasses.replace(
        described,
        openers={"": dvp_clouds.opener(settings, agent)},
        cluster=settings.cluster_uuid,
    )


def _check_dvp(values: flags.Values, env: Mapping[str, str]) -> None:
    from csi_controller import dvp_clouds

    dvp_clouds.read(values[PARENT_KUBECONFIG], env)


def _zvirt(
    values: flags.Values,
    driver_options: options.DriverOptions,
    env: Mapping[str, str],
) -> driver.DriverProgram:
    from csi_controller import zvirt_clouds
    from lib.cloud.support import cluster_witnesses
    from lib.csi import driver, driver_nodes

    nodes = driver_nodes.DriverNodes(zvirt_clouds.DRIVER)
    described = driver.DriverProgram(
        NAME,
        version.VERSION,
        "zvirt",
        zvirt_clouds.DRIVER,
        zvirt_clouds.FEATURES,
        {},
        nodes=nodes,
    )
    if not driver_options.has_controller:
        return described
    cluster = cluster_witnesses.OfCluster(driver_options.cluster, nodes.ids)
    agent = " ".join((*driver_options.user_agents, f"{NAME}/{version.VERSION}"))
    opener = zvirt_clouds.opener(env, agent, cluster, values[DATA_CENTER])
    return dataclasses.replace(described, openers={"": opener})


def _check_zvirt(values: flags.Values, env: Mapping[str, str]) -> None:
    from csi_controller import zvirt_clouds

    del values
    zvirt_clouds.read(env)


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A provider.

    judge: returns the problems of its flags. check: raises a ConfigError for its files.
    program: the plugin, with its clouds.
    """

    judge: options.Judge
    check: Callable[[flags.Values, Mapping[str, str]], None]
    program: Callable[
        [flags.Values, options.DriverOptions, Mapping[str, str]], driver.DriverProgram
    ]


PROVIDERS: Mapping[str, Provider] = {
    "openstack": Provider(_openstack_flags, _check_openstack, _openstack),
    "dvp": Provider(options.none, _check_dvp, _dvp),
    "zvirt": Provider(options.none, _check_zvirt, _zvirt),
}
CLOUD = flag_table.cloud(tuple(PROVIDERS))
FLAGS = (
    CLOUD,
    *flag_table.WORKING,
    PARENT_KUBECONFIG,
    DATA_CENTER,
    *flag_table.INERT,
    *_OF_OVIRT,
)


def main() -> None:
    """Run the program."""
    program = command_line.Program(NAME, HELP, version.VERSION, FLAGS, judge)
    command_line.main(program, run)


def judge(values: flags.Values) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, of the files they name, and of addresses."""
    # The core of gRPC would write lines of its own between the entries of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Heavy, and not needed for --help.
    from lib.csi import server
    from lib.daemon import starting

    endpoint = values[flag_table.ENDPOINT]
    reach = starting.Reach(values[flag_table.KUBECONFIG], values[common_flags.MASTER])
    http = options.http_endpoint(values[flag_table.HTTP_ENDPOINT], [])
    checks: list[Callable[[], object]] = [lambda: read(values)]
    if values[flag_table.CONTROLLER_SERVICE]:
        checks.append(lambda: PROVIDERS[values[CLOUD]].check(values, os.environ))
    if options.is_endpoint(endpoint):
        checks.append(lambda: server.check_endpoint(endpoint))
    if values[flag_table.CLAIM_ANNOTATIONS]:
        checks.append(lambda: starting.load(reach, os.environ))
    if http is not None:
        checks.append(lambda: serving.check_address(*http))
    return config.collect(*checks)


def read(values: flags.Values) -> options.DriverOptions:
    """Return the options, for the requested provider.

    Raises:
        ConfigError: with every problem.
    """
    return options.read(values, PROVIDERS[values[CLOUD]].judge)


def run(values: flags.Values) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: flags or files can't be used; every problem is named.
    """
    driver_options = read(values)
    # The core of gRPC would write lines of its own between the entries of the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Only the requested provider is imported.
    from lib.csi import driver

    program = PROVIDERS[values[CLOUD]].program(values, driver_options, os.environ)
    code = driver.run(program, values, driver_options, os.environ)
    shutdown.end_now(code)  # a call that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
