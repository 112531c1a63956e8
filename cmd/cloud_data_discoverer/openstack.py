"""The discoverer's OpenStack: opened from the environment."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.openstack import reference_metrics
from lib.cloud.openstack.catalog import offers
from lib.cloud.openstack.config import environment, settings
from lib.cloud.support.source import CloudSource, Observers, ReadConfig
from lib.daemon import counting
from lib.process import config

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
