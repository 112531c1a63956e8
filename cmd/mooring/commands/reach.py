"""How `plan` and `doctor` reach a cluster and a cloud; options, and what they open.

Rules: the Kubernetes client is imported when it is needed; providers.py says which
cloud is.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from mooring.commands import providers

if TYPE_CHECKING:
    from lib.kube import kube_config

F = TypeVar("F", bound=Callable[..., None])

TABLE, JSON = "table", "json"

_OPTIONS = (
    click.option(
        "--kubeconfig",
        default="",
        help="How to reach the API server; in-cluster or $KUBECONFIG if empty.",
    ),
    click.option("--context", default="", help="Of the kubeconfig; its current one."),
    providers.option,
    click.option(
        "--cloud-config",
        required=True,
        help=" ".join(known.config_help for known in providers.PROVIDERS.values()),
    ),
    click.option(
        "--output",
        type=click.Choice((TABLE, JSON)),
        default=TABLE,
        help="For people, or for programs.",
    ),
)


def options(command: F) -> F:
    """Return a command the options that all of them share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def quiet(*, verbose: bool = True) -> None:
    """Send what our own libraries log to standard error, for people.

    verbose: False: warnings and errors alone.
    """
    from lib.process import logs

    logs.configure(logs.LogSettings("mooring", is_pretty=True, is_quiet=not verbose))


def cluster(kubeconfig: str, context: str) -> "kube_config.Configuration":
    """Return where the API server is, and who we are.

    Raises:
        KubeError: it can't be told.
    """
    from lib.kube import kube_config

    return kube_config.load(kubeconfig or None, None, context or None, env=os.environ)
