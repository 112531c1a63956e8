"""What every daemon does first: say how it logs, and find the API server."""

import dataclasses
import platform
from collections.abc import Mapping

import prometheus_client

from lib.daemon import counting
from lib.kube import client, errors, kube_config
from lib.process import config, flags, logs
from lib.process import metrics as process_metrics

_PRETTY = {"text": True, "json": False, "": None}
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


def configure_logs(program: str, verbosity: int, format: str) -> None:
    """Log as --v and --logging-format say: text, json, or empty for either."""
    logs.configure(logs.LogSettings(program, verbosity, is_pretty=_PRETTY[format]))


def begin(
    build: process_metrics.Build,
    verbosity: int,
    format: str,
    values: flags.Values | None = None,
) -> prometheus_client.CollectorRegistry:
    """Log as asked, warn of flags without effect, and make the process's registry."""
    configure_logs(build.component, verbosity, format)
    if values is not None:
        flags.warn(values, logs.get(__name__))
    return process_metrics.new_registry(build)


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
    try:
        configuration = kube_config.load(
            reach.kubeconfig or None, reach.master or None, env=env
        )
    except errors.KubeError as error:
        text = error.message
        problem = config.FieldProblem("--kubeconfig", None, "", problem=text)
        raise config.ConfigError([problem]) from error
    agent = f"{build.component}/{build.version} ({platform.system().lower()})"
    return client.KubeClient(
        configuration,
        user_agent=agent,
        pool_size=reach.pool_size,
        observer=counting.KubeMetrics(registry).observe,
    )
