"""`mooring plan volumes`: volumes and claims that the CSI driver would refuse."""

import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, edge, outputs, providers, reach

if TYPE_CHECKING:
    from lib.migration.refused_volumes import RefusedVolumes


@click.command()
@reach.kubeconfig_option
@reach.context_option
@providers.option
@outputs.option
@reach.detailed_exitcode
def volumes(
    kubeconfig: str, context: str, cloud: str, output: str, is_detailed: bool
) -> None:
    """Show volumes and claims that the CSI driver refuses.

    For a change from a driver that accepts them. Only reads of the Kubernetes API.
    """
    with edge.plainly():
        from lib.daemon import read_only
        from lib.kube import client
        from lib.migration import refused_volumes
        from lib.process import config

        reach.quiet()
        named = providers.of(cloud).driver
        if named is None:
            text = f"--cloud: {cloud or providers.DEFAULT} has no CSI driver"
            raise config.ConfigError([text])
        address = reach.cluster(kubeconfig, context)
        api = client.KubeClient(address, user_agent="mooring-plan")
        readable, driver = read_only.read_only(api), named()
        read = refused_volumes.read(readable, reach.CALL_TIMEOUT_S, driver)
        show(read, driver, output)
    code = reach.exit_code(
        is_failed=False,
        is_invalid=bool(read.items),
        has_changes=False,
        is_detailed=is_detailed,
    )
    sys.exit(code)


def document(read: "RefusedVolumes", driver: str) -> documents.VolumesPlan:
    """Return the plan as its JSON document."""
    return {
        "driver": driver,
        "checked": read.checked,
        "refused": [
            {"object": item.subject, "cause": item.before, "reason": item.after}
            for item in read.items
        ],
    }


_COLUMNS = tuple(map(outputs.Column, ("Object", "Cause", "Reason")))


def show(read: "RefusedVolumes", driver: str, output: str = outputs.TABLE) -> None:
    """Print a row for each object that is refused, and a summary; or the document."""
    names = [outputs.name(*item.subject.split(" ")[:2]) for item in read.items]
    if outputs.document(output, document(read, driver), names):
        return
    if read.items:
        rows = [(item.subject, item.before, item.after) for item in read.items]
        outputs.print_table(output, _COLUMNS, rows)
    click.echo(summary(read, driver))


def summary(read: "RefusedVolumes", driver: str) -> str:
    """Return the numbers as one sentence."""
    count = len(read.items)
    text = f"{count} refused" if count else "Nothing refused"
    return f"{text}: {read.checked} objects of {driver} checked."
