"""Options of `plan`, `doctor` and `orphans` for cluster and cloud.

Rules: the Kubernetes client is imported when it is used; providers.py lists the
clouds.
"""

import dataclasses
import functools
import os
import pathlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from mooring.commands import outputs, provider_entry, providers

if TYPE_CHECKING:
    from lib.doctor import deployed
    from lib.kube import client, kube_config

CALL_TIMEOUT_S = 30.0
"""Seconds for each of the two calls that read the configuration from the cluster."""

kubeconfig_option = click.option(
    "--kubeconfig",
    default="",
    help="Kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or in-cluster).",
)
context_option = click.option(
    "--context", default="", help="Kubeconfig context (default: current)."
)
_OPTIONS = (
    kubeconfig_option,
    context_option,
    providers.option,
    click.option(
        "--cloud-config",
        default="",
        help=" ".join(
            known.config_help
            for known in providers.PROVIDERS.values()
            if known.config_help
        )
        + " Default: the Secret that the daemon's Deployment mounts.",
    ),
    click.option(
        "--cloud-config-secret",
        default="",
        metavar="NAMESPACE/NAME[/KEY]",
        help="Read it from this Secret of the cluster.",
    ),
    outputs.option,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """Cluster and cloud of a command, as its options describe them.

    output: see outputs.py. agent: name of the command for the API server's audit log.
    """

    kubeconfig: str
    context: str
    cloud: str
    cloud_config: str
    cloud_config_secret: str
    output: str
    agent: str

    @property
    def provider(self) -> provider_entry.Provider:
        """The provider of the cloud."""
        return providers.of(self.cloud)

    def address(self) -> "kube_config.Configuration":
        """Return the address of the API server and the credentials.

        Raises:
            KubeError: no kubeconfig describes it.
        """
        return cluster(self.kubeconfig, self.context)

    def api(self) -> "client.KubeClient":
        """Open the API server.

        Raises:
            KubeError: no kubeconfig describes it.
        """
        from lib.kube import client

        return client.KubeClient(self.address(), user_agent=self.agent)

    def configuration(self) -> tuple[str, bytes]:
        """Return the name of the configuration for messages, and its content.

        Raises:
            ConfigError: it cannot be read. KubeError: the cluster cannot be read.
        """
        from lib.process import config

        if self.cloud_config:
            text = config.read_text(self.cloud_config, "--cloud-config")
            return self.cloud_config, text.encode()
        files = self._deployed()
        return files.title, files.content

    def configured(self) -> provider_entry.Configured:
        """Read the configuration of the cloud, from its file or from the cluster.

        Raises:
            ConfigError: it cannot be used. KubeError: the cluster cannot be read.
        """
        from lib.process import config

        if self.cloud_config and self.cloud_config_secret:
            problem = config.conflict("--cloud-config", "--cloud-config-secret")
            raise config.ConfigError([problem])
        is_configured = self.provider.is_configured
        in_environment = is_configured is not None and is_configured(os.environ)
        if self.cloud_config or (in_environment and not self.cloud_config_secret):
            return self.provider.read(self.cloud_config, os.environ)
        files = self._deployed()
        from mooring.commands import memory_files

        path = memory_files.write(files)
        keys = {
            name: files.keys[key].decode(errors="replace")
            for key, name in self.provider.variables.items()
            if key in files.keys
        }
        # A variable that the user has set wins.
        env = {**keys, **files.variables, **os.environ}
        return self.provider.read(path, env, files.title)

    def _deployed(self) -> "deployed.CloudFiles":
        from lib.doctor import deployed

        secret = self.cloud_config_secret
        where = deployed.parse(secret) if secret else None
        api = self.api()
        where = where or deployed.find(
            api,
            self.provider.component,
            CALL_TIMEOUT_S,
            tuple(self.provider.variables.values()),
        )
        return deployed.read(api, where, self.provider.config_keys, CALL_TIMEOUT_S)


def options(agent: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the shared options, as one argument `target`."""

    def decorator(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def packed(**values: object) -> None:
            names = [f.name for f in dataclasses.fields(Target) if f.name != "agent"]
            taken = {name: str(values.pop(name)) for name in names}
            command(target=Target(**taken, agent=agent), **values)

        result: Callable[..., None] = packed
        for option in reversed(_OPTIONS):
            result = option(result)
        return result

    return decorator


DETAILED = "--detailed-exitcode"
detailed_exitcode = click.option(
    DETAILED,
    "is_detailed",
    is_flag=True,
    help="Exit code 0: no changes; 2: changes; 1: an error, or an object that is"
    " invalid or unknown.",
)
FAILED, CHANGES = 1, 2


def exit_code(
    *, is_failed: bool, is_invalid: bool = False, has_changes: bool, is_detailed: bool
) -> int:
    """Return the exit code of a plan.

    is_failed: a read failed. is_invalid: an object is rejected. is_detailed:
    --detailed-exitcode is set.
    """
    if is_failed or (is_detailed and is_invalid):
        return FAILED
    return CHANGES if has_changes and is_detailed else 0


def quiet() -> None:
    """Write no log entries but errors: each command prints what it was asked for.

    An error is logged where a library failed in a way that its users did not expect. On
    a terminal a line names each server that has not answered for two seconds.
    """
    from lib.process import logs, outgoing

    logs.configure(logs.LogSettings("mooring", is_quiet=True))
    if sys.stderr.isatty():
        outgoing.Watcher(functools.partial(click.echo, err=True)).start()


def cluster(kubeconfig: str, context: str) -> "kube_config.Configuration":
    """Return the address of the API server and the credentials.

    The order is kubectl's, unlike that of daemons: a file of the user goes before the
    account of a pod.

    Raises:
        KubeError: no kubeconfig describes it.
    """
    from lib.kube import errors, kube_config

    usual = pathlib.Path("~/.kube/config").expanduser()
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not path and usual.exists():
        path = str(usual)
    if not path and not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise errors.KubeError(
            "--kubeconfig: not set: must be the path of a kubeconfig; $KUBECONFIG is"
            f" not set either, {usual} does not exist, and this is no pod",
            operation="load configuration",
        )
    return kube_config.load(path or None, None, context or None, env=os.environ)
