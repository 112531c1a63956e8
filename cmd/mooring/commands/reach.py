"""Options of `plan`, `doctor` and `orphans` for cluster and cloud.

Rules: the Kubernetes client is imported when it is used; providers.py lists the
clouds.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from mooring.commands import outputs, providers

if TYPE_CHECKING:
    from lib.kube import kube_config

F = TypeVar("F", bound=Callable[..., None])

_OPTIONS = (
    click.option(
        "--kubeconfig",
        default="",
        help="Kubeconfig file (default: $KUBECONFIG, or in-cluster).",
    ),
    click.option(
        "--context", default="", help="Kubeconfig context (default: current)."
    ),
    providers.option,
    click.option(
        "--cloud-config",
        required=True,
        help=" ".join(known.config_help for known in providers.PROVIDERS.values()),
    ),
    outputs.option,
)


def options(command: F) -> F:
    """Add the options that all of these commands share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def quiet(*, verbose: bool = True) -> None:
    """Write log entries of our libraries to standard error, as text.

    verbose: False: warnings and errors alone.
    """
    from lib.process import logs

    logs.configure(logs.LogSettings("mooring", is_quiet=not verbose))


def cluster(kubeconfig: str, context: str) -> "kube_config.Configuration":
    """Return the address of the API server and the credentials.

    Raises:
        KubeError: no kubeconfig describes it.
    """
    from lib.kube import kube_config

    return kube_config.load(kubeconfig or None, None, context or None, env=os.environ)
