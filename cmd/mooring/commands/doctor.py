"""`mooring doctor`: what is wrong between a cluster and its cloud."""

import json
import os
import pathlib
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import edge, printable, providers, reach

if TYPE_CHECKING:
    from lib.doctor import examine, model

_COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red", "skip": "cyan"}
_FILE = click.Path(exists=True, dir_okay=False, path_type=pathlib.Path)


@click.command()
@reach.options
@click.option(
    "--leader-elect-resource-name",
    "lease_name",
    default="cloud-controller-manager",
    help="The daemon's Lease.",
)
@click.option(
    "--leader-elect-resource-namespace",
    "lease_namespace",
    default="kube-system",
    help="Its namespace.",
)
@click.option(
    "--service-account",
    default="",
    metavar="NAMESPACE/NAME",
    help="Judge its rights, not those of the kubeconfig's user.",
)
@click.option("--rbac", type=_FILE, help="Manifest of the rights; the chart's own.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1),
    default=10.0,
    help="Seconds for each call.",
)
def doctor(  # noqa: PLR0913 - one argument for each option
    kubeconfig: str,
    context: str,
    cloud: str,
    cloud_config: str,
    output: str,
    lease_name: str,
    lease_namespace: str,
    service_account: str,
    rbac: pathlib.Path | None,
    timeout_s: float,
) -> None:
    """Look for what keeps the cloud controller manager from working.

    Run it with the daemon's own kubeconfig and cloud.conf, or name its ServiceAccount.
    One line for each thing looked at; exit code 1 if one has failed.
    """
    with edge.plainly():
        from lib.doctor import cluster, examine
        from lib.kube import client, greeting

        reach.quiet()
        wanted = _wanted(cloud, (lease_namespace, lease_name), service_account, rbac)

        def greet() -> greeting.Greeting:
            return greeting.ask(reach.cluster(kubeconfig, context), timeout_s)

        def ask() -> cluster.ClusterReader:
            found = reach.cluster(kubeconfig, context)
            api = client.KubeClient(found, user_agent="mooring-doctor")
            return cluster.ClusterReader(api, timeout_s)

        doors = examine.Doors(
            lambda: providers.of(cloud)
            .read(cloud_config, os.environ)
            .checkup(timeout_s),
            greet,
            ask,
        )
        from lib.process.clock import utc_now

        findings = examine.examine(doors, wanted, utc_now)
        _show(findings, output)
    sys.exit(0 if examine.is_well(findings) else 1)


def _wanted(
    cloud: str, lease: tuple[str, str], account: str, rbac: pathlib.Path | None
) -> "examine.Expected":
    from lib.doctor import examine, model, rights

    provider = providers.of(cloud)
    text = rbac.read_text() if rbac else rights.manifest(provider.component)
    try:
        wanted = rights.parse(text)
    except rights.ManifestError as error:
        raise click.BadParameter(str(error), param_hint="--rbac") from error
    named = account.split("/")
    if account and (len(named) != 2 or not all(named)):
        right = f"{account!r} is not of the form NAMESPACE/NAME"
        raise click.BadParameter(right, param_hint="--service-account")
    who = model.DaemonAccount(*named) if account else None
    return examine.Expected(cloud, provider.remedies(), wanted, *lease, who)


def _show(findings: "tuple[model.CheckResult, ...]", output: str) -> None:
    from lib.process import redaction

    if output == reach.JSON:
        lines = [
            {
                "check": one.check,
                "state": one.state.value,
                "text": redaction.scrub(one.text),
                "remedy": one.remedy,
            }
            for one in findings
        ]
        click.echo(json.dumps(lines, indent=2))
        return
    width = max(len(one.check) for one in findings)
    for one in findings:
        state = click.style(f"{one.state.value:4}", fg=_COLOURS[one.state.value])
        remedy = f"; remedy: {one.remedy}" if one.remedy else ""
        text = redaction.scrub(one.text)
        said = printable.text(f"{text}{remedy}")
        click.echo(f"{state}  {one.check:{width}}  {said}")
