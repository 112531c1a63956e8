"""`mooring doctor osdpl`: what keeps osdpl-controller from working."""

import pathlib
import sys
import tempfile

import click

from mooring.commands import edge, findings, osdpl_options, reach


@click.command()
@osdpl_options.file
@osdpl_options.kubeconfig
@osdpl_options.context
@click.option(
    "-n",
    "--namespace",
    default="openstack",
    show_default=True,
    help="Namespace of the OpenStackDeployment.",
)
@osdpl_options.charts
@osdpl_options.access
@click.option(
    "--leader-elect-resource-name",
    "lease",
    default="osdpl-controller",
    show_default=True,
    help="The daemon's Lease.",
)
@findings.account_option
@findings.timeout_option
@findings.wait_option
@osdpl_options.output
def osdpl(  # noqa: PLR0913 - one argument for each option
    file: pathlib.Path | None,
    kubeconfig: str,
    context: str,
    namespace: str,
    source: str,
    access: pathlib.Path | None,
    lease: str,
    service_account: str,
    timeout_s: float,
    wait_s: float,
    output: str,
) -> None:
    """Check what keeps osdpl-controller from working.

    For the OpenStackDeployment in the cluster, or for FILE in its place. Only reads;
    objects are sent to the API server as dry runs. One line for each check, with a
    remedy; exit code 1 if a check fails.
    """
    with edge.plainly():
        from lib.doctor import examine
        from lib.kube import client
        from lib.osdpl.doctor import diagnosis
        from lib.process.clock import utc_now
        from mooring.commands import render_osdpl

        reach.quiet()
        document = render_osdpl.document(file) if file is not None else None
        address = reach.cluster(kubeconfig, context)
        settings = diagnosis.Settings(
            namespace=namespace,
            lease=lease,
            timeout_s=timeout_s,
            account=findings.account(service_account),
            default=osdpl_options.chart_source(source),
        )
        with tempfile.TemporaryDirectory(prefix="mooring-doctor-") as folder:
            api = client.KubeClient(address, user_agent="mooring-doctor")
            charts = osdpl_options.chart_cache(pathlib.Path(folder), access)
            checks = findings.until_well(
                lambda: diagnosis.Diagnosis(
                    api, charts, settings, utc_now, document
                ).examine(),
                wait_s,
            )
            lines = findings.show(checks, output)
    sys.exit(0 if examine.is_well(lines) else 1)
