"""`mooring layouts`: what layouts would create, and what a plan destroys.

Slow imports are inside the commands, so that `--help` is fast.
"""

import json
import pathlib
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import (
    documents,
    edge,
    layouts_cloud,
    outputs,
    paths,
    rendered,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lib.layouts.openstack import blocks

DESTROYS = 3
"""Exit code of `review` when a plan destroys a node or a disk."""


@click.group()
def layouts() -> None:
    """Check the inputs and plans of the layouts of terraform/."""


@layouts.command("list")
@outputs.option
def list_layouts(output: str) -> None:
    """Print the layouts of OpenStack and their purposes."""
    from lib.layouts.openstack import layout_objects

    entries: list[documents.LayoutEntry] = [
        {"layout": layout, "folder": folder, "purpose": layout_objects.PURPOSES[layout]}
        for layout, folder in layout_objects.LAYOUTS.items()
    ]
    names = [outputs.name("layout", layout) for layout in layout_objects.LAYOUTS]
    document: documents.Layouts = {"layouts": entries}
    if not outputs.document(output, document, names):
        columns = tuple(map(outputs.Column, ("Layout", "Folder", "Purpose")))
        rows = [tuple(map(str, entry.values())) for entry in entries]
        outputs.print_table(output, columns, rows)


@layouts.command()
@click.argument("file", type=paths.FILE)
@click.option("--online", is_flag=True, help="Also look up in the cloud what is named.")
@click.option(
    "--cluster-uuid",
    default="",
    help="With --online: UUID of the cluster, if it exists already.",
)
@outputs.option
def check(file: pathlib.Path, online: bool, cluster_uuid: str, output: str) -> None:
    """Print what each root would create, or all problems.

    FILE: YAML documents OpenStackClusterConfiguration and ClusterConfiguration, or the
    variables of a root as JSON. A password that it lacks is that of the variable
    OS_PASSWORD.
    """
    from lib.layouts.openstack import check as checking
    from lib.layouts.openstack import layout_objects
    from lib.process import config

    with rendered.reporting():
        document, cluster = _configuration(rendered.documents([file]))
        config.require(checking.problems(document, cluster))
        if online:
            from lib.layouts.openstack import online as looking_up

            with edge.plainly(), layouts_cloud.opened(document["provider"]) as project:
                offers = project.offers()
            config.require(looking_up.problems(document, cluster, offers, cluster_uuid))
        prefix = checking.prefix_of(cluster)
        planned = layout_objects.planned(document, prefix)
    entries: list[documents.LayoutObjectEntry] = [
        {"root": each.root, "kind": each.kind, "name": each.name} for each in planned
    ]
    report: documents.LayoutObjects = {"objects": entries}
    names = [outputs.name(each.kind, each.name) for each in planned]
    if not outputs.document(output, report, names):
        columns = tuple(map(outputs.Column, ("Root", "Kind", "Name")))
        rows = [tuple(map(str, entry.values())) for entry in entries]
        outputs.print_table(output, columns, rows)


@layouts.command()
@click.argument("plan", type=paths.FILE)
@outputs.option
def review(plan: pathlib.Path, output: str) -> None:
    """Print the changes of a plan and what is lost by each.

    PLAN: what `tofu show -json` prints of a plan. The exit code is 3 if a server or
    a volume would be deleted, replaced, wiped or made smaller.
    """
    from lib.layouts.openstack import review as reviewing

    try:
        changes = reviewing.review(json.loads(plan.read_text()))
    except ValueError as error:
        raise click.ClickException(f"{plan}: {error}") from error
    entries: list[documents.ReviewedChangeEntry] = [
        {
            "address": each.address,
            "action": each.action.value,
            "lost": each.lost,
            "is_destructive": each.is_destructive,
        }
        for each in changes
    ]
    report: documents.LayoutReview = {"changes": entries}
    names = [outputs.name("change", each.address) for each in changes]
    if not outputs.document(output, report, names):
        columns = tuple(map(outputs.Column, ("Object", "Action", "Lost")))
        rows = [(each.address, each.action.value, each.lost) for each in changes]
        outputs.print_table(output, columns, rows)
    if any(each.is_destructive for each in changes):
        sys.exit(DESTROYS)


@layouts.command()
@click.argument("file", type=paths.FILE)
@outputs.option_of(outputs.TERRAFORM)
def recover(file: pathlib.Path, output: str) -> None:
    """Print blocks that add to a state what it lacks.

    FILE: a plan, as `tofu show -json` prints it: what it would create although it
    exists is imported; the cloud is that of the plan. Or a state that the reference
    has written. Write the blocks to a file of the root, and remove it after the next
    apply. The exit code is 1 if something must be done by hand before.

    Example: mooring layouts recover plan.json > recover.tf
    """
    from lib.layouts.openstack import blocks as block_files

    try:
        recovery = layouts_cloud.recovery(json.loads(file.read_text()))
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}") from error
    entries = list(_blocks(recovery))
    report: documents.LayoutRecovery = {
        "blocks": entries,
        "problems": list(recovery.problems),
    }
    names = [outputs.name(each["block"], each["address"]) for each in entries]
    if output == outputs.TERRAFORM:
        click.echo(block_files.text(recovery), nl=False)
    elif not outputs.document(output, report, names):
        columns = tuple(map(outputs.Column, ("Block", "Address", "ID", "To")))
        rows = [tuple(map(str, entry.values())) for entry in entries]
        outputs.print_table(output, columns, rows)
    for problem in recovery.problems:
        click.echo(problem, err=True)
    if recovery.problems:
        sys.exit(1)


def _blocks(recovery: "blocks.Recovery") -> "Iterator[documents.LayoutBlockEntry]":
    for address in recovery.forgotten:
        yield {"block": "state rm", "address": address, "id": "", "to": ""}
    for moved in recovery.moves:
        yield {"block": "moved", "address": moved.source, "id": "", "to": moved.target}
    for each in recovery.imports:
        yield {"block": "import", "address": each.address, "id": each.id, "to": ""}


def _configuration(
    read: "Sequence[object]",
) -> "tuple[Mapping[str, object], Mapping[str, object]]":
    """Return the OpenStackClusterConfiguration and the ClusterConfiguration.

    read: both as documents, or as variables of a root.

    Raises:
        ConfigError: one of them is absent.
    """
    from lib.process import config

    by_kind = {str(each.get("kind")): each for each in read if isinstance(each, dict)}
    for each in read:
        if isinstance(each, dict) and "providerClusterConfiguration" in each:
            values = each["providerClusterConfiguration"], each["clusterConfiguration"]
            return layouts_cloud.with_password(values[0]), values[1]
    kinds = ("OpenStackClusterConfiguration", "ClusterConfiguration")
    config.require(
        [
            f"the file has no document of kind {kind}"
            for kind in kinds
            if kind not in by_kind
        ]
    )
    return layouts_cloud.with_password(by_kind[kinds[0]]), by_kind[kinds[1]]
