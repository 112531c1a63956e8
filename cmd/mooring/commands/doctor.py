"""`mooring doctor`: checks of a cluster and its cloud."""

import pathlib
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import (
    bundling,
    doctor_osdpl,
    edge,
    findings,
    paths,
    program,
    provider_entry,
    reach,
)

if TYPE_CHECKING:
    from lib.doctor import examine

USUAL = "ccm"
"""Command that needs no name."""


class _Doctor(click.Group):
    """A group whose first command needs no name: `mooring doctor` is older than it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the first command if the arguments name none."""
        named = bool(args) and args[0] in (*self.commands, "-h", "--help")
        return super().parse_args(ctx, args if named else [USUAL, *args])


@click.group(cls=_Doctor)
def doctor() -> None:
    """Check what a daemon requires of cluster and cloud.

    Without COMMAND the cloud controller manager is checked; `mooring doctor ccm -h`
    shows the options.

    Example: mooring doctor --wait 300
    """


doctor.add_command(doctor_osdpl.osdpl)


@doctor.command(USUAL)
@reach.options("mooring-doctor")
@click.option(
    "--leader-elect-resource-name",
    "lease_name",
    default="",
    help="The daemon's Lease (default: that of its chart).",
)
@click.option(
    "--leader-elect-resource-namespace",
    "lease_namespace",
    default="kube-system",
    help="Namespace of the Lease.",
)
@findings.account_option
@click.option(
    "--rbac",
    type=paths.FILE,
    help="Manifest of the permissions (default: that of the chart).",
)
@findings.timeout_option
@findings.wait_option
@bundling.option
def ccm(  # noqa: PLR0913 - one argument for each option
    target: reach.Target,
    lease_name: str,
    lease_namespace: str,
    service_account: str,
    rbac: pathlib.Path | None,
    timeout_s: float,
    wait_s: float,
    bundle: pathlib.Path | None,
) -> None:
    """Check the requirements of the cloud controller manager.

    Run it with the daemon's own kubeconfig, or name its ServiceAccount.
    One line for each check; exit code 1 if a check fails. `mooring doctor osdpl` does
    the same for osdpl-controller.
    """
    with edge.plainly():
        from lib.doctor import cluster, examine
        from lib.kube import greeting
        from lib.process.clock import utc_now

        reach.quiet()
        lease = (lease_namespace, lease_name or target.provider.lease)
        expected = _expected(target.provider, lease, service_account, rbac)
        sources = examine.Sources(
            lambda: target.configured().checkup(timeout_s),
            lambda: greeting.ask(target.address(), timeout_s),
            lambda: cluster.ClusterReader(target.api(), timeout_s),
        )
        results = findings.show(
            findings.until_well(
                lambda: examine.examine(sources, expected, utc_now), wait_s
            ),
            target.output,
        )
        if bundle is not None:
            bundling.write(bundle, target, results, timeout_s)
    sys.exit(0 if examine.is_well(results) else 1)


def _expected(
    provider: provider_entry.Provider,
    lease: tuple[str, str],
    account: str,
    rbac: pathlib.Path | None,
) -> "examine.Expected":
    from lib.doctor import examine, rights

    text = rbac.read_text() if rbac else provider.rights()
    try:
        permissions = rights.parse(text)
    except rights.ManifestError as error:
        raise click.BadParameter(str(error), param_hint="--rbac") from error
    user = findings.account(account)
    return examine.Expected(
        provider.name,
        provider.remedies(),
        permissions,
        *lease,
        provider.component,
        user,
        program.COMPONENTS,
        provider.machines() if provider.machines is not None else None,
        provider.chart() if provider.chart is not None else None,
    )
