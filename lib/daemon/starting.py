"""What every daemon does first: set up its logs, and find the API server."""

import dataclasses
import platform
from collections.abc import Mapping

import prometheus_client

from lib.daemon import counting
from lib.kube import client, errors, kube_config
from lib.process import config, start
from lib.process import metrics as process_metrics

USUAL_POOL = 64


@dataclasses.dataclass(frozen=True, slots=True)
class Reach:
    """How the API server is reached.

    kubeconfig, master: of the command line; empty: not given. pool_size: connections
    that are kept.
    """

    kubeconfig: str = ""
    master: str = ""
    pool_size: int = USUAL_POOL


def begin(
    build: process_metrics.Build, settings: start.StartSettings
) -> prometheus_client.CollectorRegistry:
    """Set logging up, log the start, and create the registry of the process."""
    start.log_start(build, settings)
    return process_metrics.new_registry(build)


def load(reach: Reach, env: Mapping[str, str]) -> kube_config.Configuration:
    """Read how the API server is reached.

    Raises:
        ConfigError: the kubeconfig, or a file that it names, cannot be used.
    """
    try:
        return kube_config.load(reach.kubeconfig or None, reach.master or None, env=env)
    except errors.KubeError as error:
        text = error.message
        problem = config.stated("--kubeconfig", text)
        raise config.ConfigError([problem]) from error


def connect(
    build: process_metrics.Build,
    reach: Reach,
    env: Mapping[str, str],
    registry: prometheus_client.CollectorRegistry,
) -> client.KubeClient:
    """Return an API server whose calls are counted; none is made yet.

    Raises:
        ConfigError: what leads to it can't be used.
    """
    configuration = load(reach, env)
    agent = f"{build.component}/{build.version} ({platform.system().lower()})"
    return client.KubeClient(
        configuration,
        user_agent=agent,
        pool_size=reach.pool_size,
        observer=counting.KubeMetrics(registry).observe,
    )
