"""Starts cloud-data-discoverer from the references' own flags and environment."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from cloud_data_discoverer import version
from lib.daemon import common_flags
from lib.discoverer import options
from lib.discovery import provider as providers
from lib.discovery.openstack import provider as openstack_provider
from lib.process import command_line, config, flags, kinds, serving, shutdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry, Gauge

    # Heavy, and not needed for --help.
    from lib.cloud.support.source import Observers, Opened
    from lib.daemon import counting
    from lib.discovery.provider import Signal

NAME = "cloud-data-discoverer"
AGENT = f"{NAME}/{version.VERSION}"
PARENT_KUBECONFIG = flags.Flag(
    "parent-kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig of the parent cluster, with --cloud=dvp; empty:"
    " DVP_KUBERNETES_CONFIG_BASE64.",
)
DATA_CENTER = flags.Flag(
    "data-center",
    kinds.TEXT,
    "",
    "Name or ID of the data center of the cluster, with --cloud=zvirt; empty: the only"
    " one that the user of the engine sees.",
)
HELP = """Publish flavors, images, zones and volume types of the cloud in the cluster.

Updates the Secret with the discovery data, the InstanceTypesCatalog and, optionally, a
StorageClass for each volume type; reports disks without an object in the
cluster.
"""


@dataclasses.dataclass(frozen=True, slots=True)
class DiscoveredCloud:
    """A kind of cloud. published: settings of what is published for it.

    opener: reads flags and environment, and returns what opens the cloud; raises
    ConfigError. reference: its metrics; None: it has none.
    """

    published: providers.Provider
    opener: Callable[[flags.Values, Mapping[str, str]], Callable[[Observers], Opened]]
    reference: Callable[[], counting.Reference | None]


def _openstack(
    values: flags.Values, env: Mapping[str, str]
) -> Callable[[Observers], Opened]:
    from cloud_data_discoverer import openstack

    if path := values[options.CLOUD_CONFIG]:
        return openstack.of_file(path, AGENT).open
    return openstack.source(openstack.read(env), AGENT).open


def _openstack_reference() -> counting.Reference | None:
    from cloud_data_discoverer import openstack

    return openstack.REFERENCE


def _dvp(values: flags.Values, env: Mapping[str, str]) -> Callable[[Observers], Opened]:
    from cloud_data_discoverer import dvp

    settings = dvp.read(values[PARENT_KUBECONFIG], env)
    return lambda observers: dvp.open_cloud(settings, AGENT, observers)


def _dvp_signals(registry: CollectorRegistry) -> Mapping[Signal, Gauge]:
    from cloud_data_discoverer import dvp

    return dvp.signals(registry)


def _dvp_problems(document: object) -> tuple[str, ...]:
    from cloud_data_discoverer import dvp

    return tuple(dvp.problems(document))


def _zvirt(
    values: flags.Values, env: Mapping[str, str]
) -> Callable[[Observers], Opened]:
    from cloud_data_discoverer import zvirt

    return zvirt.source(env, AGENT, values[DATA_CENTER]).open


def _zvirt_problems(document: object) -> tuple[str, ...]:
    from cloud_data_discoverer import zvirt

    return tuple(zvirt.problems(document))


ZVIRT = providers.Provider(
    provisioner="csi.ovirt.org",
    type_parameter="storageDomainName",
    parameters=(("thinProvisioning", "false"),),
    access_deployment="d8-cloud-provider-zvirt/cloud-data-discoverer",
    problems=_zvirt_problems,
    lasting=("storageDomains",),
)
"""Source: deckhouse, modules/030-cloud-provider-zvirt."""
DVP = providers.Provider(
    provisioner="csi.dvp.deckhouse.io",
    type_parameter="dvpStorageClass",
    access_deployment="d8-cloud-provider-dvp/cloud-data-discoverer",
    problems=_dvp_problems,
    lasting=("storageClasses",),
    signals=_dvp_signals,
)
"""Source: deckhouse, modules/030-cloud-provider-dvp."""
PROVIDERS: Mapping[str, DiscoveredCloud] = {
    "openstack": DiscoveredCloud(
        openstack_provider.OPENSTACK, _openstack, _openstack_reference
    ),
    "dvp": DiscoveredCloud(DVP, _dvp, lambda: None),
    "zvirt": DiscoveredCloud(ZVIRT, _zvirt, lambda: None),
}
CLOUDS = tuple(PROVIDERS)
CLOUD = options.cloud(CLOUDS)
FLAGS = (
    *options.table(CLOUDS, openstack_provider.OPENSTACK.access_deployment),
    PARENT_KUBECONFIG,
    DATA_CENTER,
)


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
    # Without a known cloud, the problems of the first one's environment are reported.
    provider = PROVIDERS.get(cloud, PROVIDERS[CLOUDS[0]])
    kubeconfig = options.kubeconfig(values, os.environ)
    address = values[common_flags.BIND_ADDRESS], values[options.SECURE_PORT]
    problems = config.collect(
        lambda: options.read(values, os.environ, provider.published),
        lambda: provider.opener(values, os.environ)(Unobserved()),
        lambda: starting.load(starting.Reach(kubeconfig), os.environ),
        lambda: server_certificate.check(pair),
        lambda: serving.check_address(*address),
    )
    if cloud in CLOUDS:
        return problems
    return (config.required("--cloud", cloud, "one of " + ", ".join(CLOUDS)), *problems)


def run(values: flags.Values) -> int:
    """Run until stopped; return the exit code.

    Raises:
        ConfigError: flags or environment can't be used; every problem is listed.
    """
    cloud = values[CLOUD]
    provider = PROVIDERS[cloud]
    # Heavy.
    from lib.discoverer import discoverer

    discoverer_options = options.read(values, os.environ, provider.published)
    program = discoverer.DiscovererProgram(
        NAME,
        version.VERSION,
        cloud,
        provider.opener(values, os.environ),
        provider.reference(),
    )
    code = discoverer.run(program, discoverer_options, os.environ)
    shutdown.end_now(code)  # a read that hangs must not keep the process
    return code


if __name__ == "__main__":
    main()
