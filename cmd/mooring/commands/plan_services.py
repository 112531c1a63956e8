"""`mooring plan services`: what would be done to load balancers, as trees."""

import collections
import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING

import click
import rich.console
import rich.text
import rich.tree

from mooring.commands import edge, printable, providers, reach

if TYPE_CHECKING:
    from lib.balancers import preview
    from lib.ccm import previews
    from lib.cloud import explained

SHOWN = 12
"""So many fields of one thing are shown to people; programs get them all."""
_SIGNS = {"create": ("+", "green"), "change": ("~", "yellow"), "delete": ("-", "red")}
_COLOURS = {
    "well": "green",
    "would create": "green",
    "would change": "yellow",
    "would delete": "red",
    "waits": "cyan",
    "can't be served": "bold red",
    "could not be judged": "bold red",
}


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME | NAMESPACE/NAME]...")
@reach.options
@click.option("-n", "--namespace", default="", help="Only Services of this one.")
@click.option(
    "--cluster-id", default="", help="The daemon's; the UID of kube-system if empty."
)
@click.option("--cluster-name", default="kubernetes", help="The daemon's.")
@click.option(
    "--deep",
    "is_deep",
    is_flag=True,
    help="Also what takes a call for each pool: weights, monitor ports, subnets.",
)
def services(  # noqa: PLR0913 - one argument for each option
    names: tuple[str, ...],
    kubeconfig: str,
    context: str,
    cloud: str,
    cloud_config: str,
    output: str,
    namespace: str,
    cluster_id: str,
    cluster_name: str,
    is_deep: bool,
) -> None:
    """Show what would be done to load balancers of Services.

    Of those named, or of all. Only reads: no Lease is taken, no Event is written. Exit
    code 1 if some Services could not be judged.
    """
    with edge.plainly():
        from lib.ccm import previews
        from lib.kube import client

        reach.quiet()
        balancers, explain = providers.of(cloud).read(cloud_config, os.environ).plans()
        api = client.KubeClient(
            reach.cluster(kubeconfig, context), user_agent="mooring-plan"
        )
        wanted = previews.ServicesWanted(
            cluster_id, cluster_name, namespace, names, is_deep
        )
        made = previews.services(api, balancers, explain, wanted)
        if output == reach.JSON:
            click.echo(json.dumps(document(made), indent=2))
        else:
            show(made, rich.console.Console(highlight=False))
    sys.exit(1 if made.unread else 0)


def document(made: "previews.ServicesPreview") -> dict[str, object]:
    """Return everything, for programs."""
    return {
        "services": [dataclasses.asdict(row) for row in made.rows],
        "totals": totals(made),
        "other_controllers": made.others,
    }


def totals(made: "previews.ServicesPreview") -> dict[str, int]:
    """Count the Services of each state that there is."""
    return dict(collections.Counter(str(row.state) for row in made.rows))


def show(made: "previews.ServicesPreview", console: rich.console.Console) -> None:
    """Print a tree for each Service, and the totals."""
    for row in made.rows:
        console.print(_tree(printable.deep(row)))
        if row in made.unread:
            why = printable.text(row.why)
            click.echo(f"{row.service} could not be judged: {why}", err=True)
    click.echo(summary(made))


def summary(made: "previews.ServicesPreview") -> str:
    """Return in one sentence what there is to do."""
    counted = totals(made)
    looked = "1 Service" if len(made.rows) == 1 else f"{len(made.rows)} Services"
    if set(counted) <= {"well"}:
        said = f"Nothing would change: {looked} looked at"
    else:
        told = ", ".join(f"{count} {state}" for state, count in counted.items())
        said = f"{looked} looked at: {told}"
    if made.others:
        said += f"; {made.others} with a class, which are another controller's"
    return f"{said}."


def _tree(row: "preview.Row") -> rich.tree.Tree:
    from lib.balancers import preview

    state = str(row.state)
    label = rich.text.Text(f"{row.service}: ")
    label.append(state, _COLOURS[state])
    if row.why:
        label.append(f" for {row.why}" if state == "waits" else f": {row.why}")
    elif row.load_balancer:
        label.append(f" ({row.load_balancer})")
    top = rich.tree.Tree(label)
    for problem in row.problems:
        text = rich.text.Text("! ", "red" if problem.is_fatal else "yellow")
        top.add(text.append(f"{problem.reason}: {problem.message}"))
    for notice in row.notices:
        top.add(rich.text.Text(f"! {notice}", "yellow"))
    for foreign in row.foreign:
        top.add(rich.text.Text(f"! foreign: {foreign}", "cyan"))
    for branch in preview.tree(row.touched):
        _add(top, branch)
    return top


def _add(above: rich.tree.Tree, branch: "preview.Branch") -> None:
    if not branch.touched:
        here = above.add(rich.text.Text(branch.name))
    for touched in branch.touched:
        here = above.add(_thing(branch.name, touched))
        _add_changes(here, touched)
    for below in branch.branches:
        _add(here, below)


def _thing(name: str, touched: "explained.Touched") -> rich.text.Text:
    sign, colour = _SIGNS[str(touched.verb)]
    label = rich.text.Text(f"{sign} {name}", colour)
    label.append(" (afterwards)" if touched.is_later else "", "dim")
    if touched.why:
        label.append(f": {touched.why}", "default")
    return label


def _add_changes(here: rich.tree.Tree, touched: "explained.Touched") -> None:
    """Show each field that differs; of what is new all in one line."""
    shown = touched.changes[:SHOWN]
    more = len(touched.changes) - len(shown)
    if all(not change.old for change in shown) and touched.verb == "create":
        said = ", ".join(f"{change.field} {change.new}" for change in shown)
        said += f" and {more} more" if more else ""
        if said:
            here.add(rich.text.Text(said, "dim"))
        return
    for change in shown:
        text = f"{change.field}: {change.old or 'none'} -> {change.new or 'none'}"
        label = rich.text.Text(text)
        label.append(f" ({change.by})" if change.by else "", "dim")
        here.add(label)
    if more:
        here.add(rich.text.Text(f"and {more} more", "dim"))
