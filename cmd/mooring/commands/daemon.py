"""The running cloud controller manager: its command line, and whether it acts."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mooring.commands import provider_entry, reach

if TYPE_CHECKING:
    from lib.kube import client

_NAME, _NAMESPACE = "--leader-elect-resource-name", "--leader-elect-resource-namespace"

cluster_id_option = click.option(
    "--cluster-id",
    default="",
    help="Cluster ID of the daemon (default: that of its Deployment, or the UID of"
    " namespace kube-system).",
)
cluster_name_option = click.option(
    "--cluster-name",
    default="",
    help="Cluster name of the daemon (default: that of its Deployment, or kubernetes).",
)


@dataclasses.dataclass(frozen=True, slots=True)
class ManagerDeployment:
    """A daemon as its Deployment describes it. flags: empty if there is none."""

    flags: Mapping[str, str]
    lease: str

    @classmethod
    def of(
        cls, provider: provider_entry.Provider, api: "client.Api"
    ) -> "ManagerDeployment":
        """Read the Deployment of a cloud's component: one call.

        Raises:
            KubeError: it cannot be read; a denied permission is no error.
        """
        from lib.doctor import deployed

        flags = deployed.arguments(api, provider.component, reach.CALL_TIMEOUT_S)
        return cls(flags, flags.get(_NAME) or provider.lease)

    def value(self, flag: str, option: str, default: str = "") -> str:
        """Return an option, else the daemon's flag, else a default; empty: not set."""
        return option or self.flags.get(flag, "") or default

    def warn_if_idle(self, api: "client.Api") -> None:
        """Print to standard error that no process holds the Lease, or what it does.

        One call. Nothing where it cannot be read: `mooring doctor` names the reason.
        """
        from lib.doctor import cluster, judge
        from lib.kube import errors
        from lib.process.clock import utc_now

        namespace = self.flags.get(_NAMESPACE) or "kube-system"
        reader = cluster.ClusterReader(api, reach.CALL_TIMEOUT_S)
        try:
            lease = reader.lease(namespace, self.lease)
        except errors.KubeError:
            return
        if text := judge.idle(f"{namespace}/{self.lease}", lease, utc_now()):
            click.echo(f"{text}; see `mooring doctor`", err=True)
        elif text := judge.work(lease, utc_now()):
            click.echo(text, err=True)
