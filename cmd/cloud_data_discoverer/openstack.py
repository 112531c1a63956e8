"""The discoverer's OpenStack: opened from the environment."""

from collections.abc import Mapping

from lib.cloud import protocol
from lib.cloud.openstack import reference_metrics
from lib.cloud.openstack.catalog import offers
from lib.cloud.openstack.config import environment, settings
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
    except settings.ConfigError as error:
        raise config.ConfigError(error.problems) from error


def connect(
    credentials: settings.Credentials, agent: str, calls: counting.CloudMetrics
) -> protocol.Cloud:
    """Open the cloud; nothing is asked of it yet.

    Raises:
        ConfigError: the CA's file can't be read.
    """
    try:
        return offers.connect(
            credentials, calls.observe, (agent,), on_circuit=calls.circuit
        )
    except settings.ConfigError as error:
        # The room speaks of cloud.conf's keys; here that one is a variable.
        told = [p.replace("[Global] ca-file", "OS_CACERT") for p in error.problems]
        raise config.ConfigError(told) from error
