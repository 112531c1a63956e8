"""`mooring layouts`: what layouts would create, and what a plan destroys.

Slow imports are inside the commands, so that `--help` is fast.
"""

import json
import pathlib
import sys
from typing import TYPE_CHECKING

import click

from mooring.commands import documents, outputs, paths, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
@outputs.option
def check(file: pathlib.Path, output: str) -> None:
    """Print what each root would create, or all problems.

    FILE: YAML documents OpenStackClusterConfiguration and ClusterConfiguration.
    """
    from lib.layouts.openstack import check as checking
    from lib.layouts.openstack import layout_objects
    from lib.process import config

    with rendered.reporting():
        document, cluster = _configuration(rendered.documents([file]))
        config.require(checking.problems(document, cluster))
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


def _configuration(
    read: "Sequence[object]",
) -> "tuple[Mapping[str, object], Mapping[str, object]]":
    """Return the OpenStackClusterConfiguration and the ClusterConfiguration.

    Raises:
        ConfigError: one of them is absent.
    """
    from lib.process import config

    by_kind = {str(each.get("kind")): each for each in read if isinstance(each, dict)}
    kinds = ("OpenStackClusterConfiguration", "ClusterConfiguration")
    config.require(
        [
            f"the file has no document of kind {kind}"
            for kind in kinds
            if kind not in by_kind
        ]
    )
    return by_kind[kinds[0]], by_kind[kinds[1]]
