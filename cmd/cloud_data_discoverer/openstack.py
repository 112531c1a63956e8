"""The discoverer's OpenStack: opened from the environment, or from a cloud.conf."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.openstack import reference_metrics
from lib.cloud.openstack.catalog import offers
from lib.cloud.openstack.config import cloud_conf, environment, settings
from lib.cloud.support.source import CloudSource, Observers, ReadConfig
from lib.daemon import counting
from lib.process import config

SECTIONS = frozenset({"global"})
"""Of cloud.conf; the others concern Nodes, volumes and load balancers."""
REFERENCE = counting.Reference(reference_metrics.CALLS, reference_metrics.request)


def read(env: Mapping[str, str]) -> settings.Credentials:
    """Read the credentials.

    Raises:
        ConfigError: every problem names the variable.
    """
    try:
        return environment.read(env)
    except settings.CloudConfError as error:
        raise config.ConfigError(error.problems) from error


def of_file(path: str, agent: str) -> CloudSource[settings.Config]:
    """Return the source of the cloud of a cloud.conf, which is read again on changes.

    `open` raises ConfigError: the file, or one that it names, cannot be used.
    """

    def connect(options: settings.Config, observers: Observers) -> protocol.Cloud:
        return offers.connect(
            options.credentials,
            observers.observe,
            (agent,),
            on_circuit=observers.circuit,
        )

    return cloud_conf.CloudConf((path,), {}, "", SECTIONS).source(connect)


def source(
    credentials: settings.Credentials, agent: str
) -> CloudSource[settings.Credentials]:
    """Return the source of the cloud of these credentials.

    `open` raises ConfigError: the CA's file can't be read.
    """

    def connect(login: settings.Credentials, observers: Observers) -> protocol.Cloud:
        try:
            return offers.connect(
                login, observers.observe, (agent,), on_circuit=observers.circuit
            )
        except settings.CloudConfError as error:
            # It names a key of cloud.conf, here set by an environment variable.
            problems = [
                problem.replace("[Global] ca-file", "OS_CACERT")
                for problem in error.problems
            ]
            raise config.ConfigError(problems) from error

    return CloudSource((), lambda: ReadConfig(credentials, frozenset()), connect)
