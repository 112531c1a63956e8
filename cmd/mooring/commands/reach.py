"""How `plan` and `doctor` reach a cluster and a cloud; options, and what they open.

Rules: provider rooms and the Kubernetes client are imported when they are needed, and
only the room of the cloud that was asked for.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from lib.kube import config as kube_config
    from mooring.commands import on_openstack

F = TypeVar("F", bound=Callable[..., None])

CLOUDS = ("openstack",)
TABLE, JSON = "table", "json"

_OPTIONS = (
    click.option(
        "--kubeconfig",
        default="",
        help="How to reach the API server; in-cluster or $KUBECONFIG if empty.",
    ),
    click.option("--context", default="", help="Of the kubeconfig; its current one."),
    click.option("--cloud", type=click.Choice(CLOUDS), default=CLOUDS[0]),
    click.option("--cloud-config", required=True, help="The daemon's cloud.conf."),
    click.option(
        "--output",
        type=click.Choice((TABLE, JSON)),
        default=TABLE,
        help="For people, or for programs.",
    ),
)


def options(command: F) -> F:
    """Give a command the options that all of them share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def quiet() -> None:
    """Send what our own libraries log to standard error, for people."""
    from lib.process import logs

    logs.configure(logs.Settings("mooring", is_pretty=True))


def cluster(kubeconfig: str, context: str) -> "kube_config.Configuration":
    """Say where the API server is, and who we are.

    Raises:
        KubeError: it can't be told.
    """
    from lib.kube import config as kube_config

    return kube_config.load(kubeconfig or None, None, context or None, env=os.environ)


def provider(cloud: str) -> "type[on_openstack.OnOpenStack]":
    """Load the one provider room that is asked for."""
    del cloud  # the only one so far; click has checked it
    from mooring.commands import on_openstack

    return on_openstack.OnOpenStack
