"""`mooring plan services`: what would be done to load balancers, as trees."""

import collections
import sys
from typing import TYPE_CHECKING

import click
import rich.console
import rich.text
import rich.tree

from mooring.commands import (
    daemon,
    documents,
    edge,
    outputs,
    printable,
    provider_entry,
    reach,
)

if TYPE_CHECKING:
    from lib.balancers import preview
    from lib.ccm import previews
    from lib.cloud import explained

SHOWN = 12
"""Number of fields of one object in the tree; the format wide has all of them."""
_SIGNS = {"create": ("+", "green"), "change": ("~", "yellow"), "delete": ("-", "red")}
_LABELS = {
    "InSync": ("InSync", "green"),
    "WouldCreate": ("would create", "green"),
    "WouldChange": ("would change", "yellow"),
    "WouldDelete": ("would delete", "red"),
    "Pending": ("Pending", "cyan"),
    "Invalid": ("Invalid", "bold red"),
    "Unknown": ("Unknown", "bold red"),
}
"""By state: text and colour in the tree."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME | NAMESPACE/NAME]...")
@reach.options("mooring-plan")
@click.option("-n", "--namespace", default="", help="Only Services of this namespace.")
@daemon.cluster_id_option
@daemon.cluster_name_option
@click.option(
    "--deep",
    "is_deep",
    is_flag=True,
    help="Also compare weights, monitor ports and subnets: one call per pool.",
)
@click.option(
    "--forwarded-annotations",
    default=None,
    help="Prefixes of annotations that dvp-ccm copies, separated by commas (default:"
    " that flag of its Deployment, or *).",
)
@click.option(
    "--forward-external-ips/--no-forward-external-ips",
    "forwards_external_ips",
    default=None,
    help="Whether dvp-ccm copies external IPs (default: that flag of its Deployment,"
    " or true).",
)
@reach.detailed_exitcode
def services(  # noqa: PLR0913 - one argument for each option
    names: tuple[str, ...],
    target: reach.Target,
    namespace: str,
    cluster_id: str,
    cluster_name: str,
    is_deep: bool,
    forwarded_annotations: str | None,
    forwards_external_ips: bool | None,
    is_detailed: bool,
) -> None:
    """Show what would be done to load balancers of Services.

    Of the named Services, or of all. Only reads: no Lease is acquired, no Event is
    recorded. Exit code 1 if the state of some Services is unknown.
    """
    with edge.plainly():
        from lib.ccm import previews

        reach.quiet()
        described = target.configured()
        balancers, explain = described.plans()  # refused here where they are disabled
        api = target.api()
        manager = daemon.ManagerDeployment.of(target.provider, api)
        configured = forwarding(
            described, manager, forwarded_annotations, forwards_external_ips
        )
        if configured is not described:
            balancers, explain = configured.plans()
        request = previews.ServicesRequest(
            manager.value("--cluster-id", cluster_id, configured.cluster_id),
            manager.value("--cluster-name", cluster_name, "kubernetes"),
            namespace,
            names,
            is_deep,
        )
        preview = previews.services(api, balancers, explain, request)
        shown_names = [outputs.name("service", row.service) for row in preview.rows]
        if not outputs.document(target.output, document(preview), shown_names):
            console = rich.console.Console(highlight=False)
            show(preview, console, is_wide=target.output == outputs.WIDE)
        manager.warn_if_idle(api)
    code = reach.exit_code(
        is_failed=bool(preview.unread),
        is_invalid=totals(preview).get("Invalid", 0) > 0,
        has_changes=bool(totals(preview).keys() - {"InSync", "Invalid"}),
        is_detailed=is_detailed,
    )
    sys.exit(code)


def forwarding(
    configured: provider_entry.Configured,
    manager: daemon.ManagerDeployment,
    annotations: str | None = None,
    external_ips: bool | None = None,
) -> provider_entry.Configured:
    """Return a cloud as with these flags of its manager; None: those that it has.

    Raises:
        UsageError: the manager of the cloud has no such flags.
    """
    if not isinstance(configured, provider_entry.Forwarding):
        if annotations is None and external_ips is None:
            return configured
        text = "--forwarded-annotations, --no-forward-external-ips: only with"
        raise click.UsageError(f"{text} --cloud=dvp")
    if annotations is None:
        annotations = manager.flags.get("--forwarded-annotations", "*")
    if external_ips is None:
        external_ips = manager.flags.get("--forward-external-ips", "true") == "true"
    prefixes = tuple(prefix.strip() for prefix in annotations.split(",") if prefix)
    return configured.forwarding(prefixes, external_ips)


def document(plan: "previews.ServicesPreview") -> documents.ServicesPlan:
    """Return the plan as its JSON document."""
    return {
        "services": [_entry(row) for row in plan.rows],
        "totals": totals(plan),
        "other_controllers": plan.others,
    }


def _entry(row: "preview.Row") -> documents.ServiceEntry:
    return {
        "service": row.service,
        "state": row.state.value,
        "reason": row.why,
        "load_balancer": row.load_balancer,
        "changes": [_change(touched) for touched in row.touched],
        "problems": [
            {
                "reason": problem.reason.value,
                "message": problem.message,
                "is_fatal": problem.is_fatal,
            }
            for problem in row.problems
        ],
        "events": list(row.notices),
        "not_owned": list(row.not_owned),
    }


def _change(touched: "explained.Touched") -> documents.ChangeEntry:
    return {
        "path": list(touched.path),
        "action": touched.verb.value,
        "reason": touched.why,
        "is_later": touched.is_later,
        "fields": [
            {
                "field": change.field,
                "observed": change.old,
                "desired": change.new,
                "requested_by": change.by,
            }
            for change in touched.changes
        ],
    }


def totals(plan: "previews.ServicesPreview") -> dict[str, int]:
    """Count the Services by state; a state without a Service is omitted."""
    return dict(collections.Counter(str(row.state) for row in plan.rows))


def show(
    plan: "previews.ServicesPreview",
    console: rich.console.Console,
    *,
    is_wide: bool = False,
) -> None:
    """Print a tree for each Service, and the totals. is_wide: with all fields."""
    for row in plan.rows:
        console.print(_tree(printable.deep(row), sys.maxsize if is_wide else SHOWN))
    click.echo(summary(plan))


def summary(plan: "previews.ServicesPreview") -> str:
    """Return the number of Services by state as one sentence."""
    counts = totals(plan)
    checked = "1 Service" if len(plan.rows) == 1 else f"{len(plan.rows)} Services"
    if set(counts) <= {"InSync"}:
        text = f"No changes: {checked} checked"
    else:
        states = ", ".join(f"{count} {_LABELS[s][0]}" for s, count in counts.items())
        text = f"{checked} checked: {states}"
    if plan.others:
        text += f"; {plan.others} with a class of another controller"
    return f"{text}."


def _tree(row: "preview.Row", limit: int) -> rich.tree.Tree:
    from lib.balancers import preview

    label = rich.text.Text(f"{row.service}: ")
    label.append(*_LABELS[str(row.state)])
    if row.why:
        label.append(f": {row.why}")
    elif row.load_balancer:
        label.append(f" ({row.load_balancer})")
    top = rich.tree.Tree(label)
    for problem in row.problems:
        text = rich.text.Text("! ", "red" if problem.is_fatal else "yellow")
        top.add(text.append(f"{problem.reason}: {problem.message}"))
    for notice in row.notices:
        top.add(rich.text.Text(f"! {notice}", "yellow"))
    for load_balancer in row.not_owned:
        top.add(rich.text.Text(f"! not owned: {load_balancer}", "cyan"))
    for branch in preview.tree(row.touched):
        _add(top, branch, limit)
    return top


def _add(above: rich.tree.Tree, branch: "preview.Branch", limit: int) -> None:
    if not branch.touched:
        here = above.add(rich.text.Text(branch.name))
    for touched in branch.touched:
        here = above.add(_object(branch.name, touched))
        _add_changes(here, touched, limit)
    for below in branch.branches:
        _add(here, below, limit)


def _object(name: str, touched: "explained.Touched") -> rich.text.Text:
    sign, colour = _SIGNS[str(touched.verb)]
    label = rich.text.Text(f"{sign} {name}", colour)
    label.append(" (afterwards)" if touched.is_later else "", "dim")
    if touched.why:
        label.append(f": {touched.why}", "default")
    return label


def _add_changes(
    here: rich.tree.Tree, touched: "explained.Touched", limit: int
) -> None:
    """Show each field that differs; fields of a new object in one line."""
    shown = touched.changes[:limit]
    more = len(touched.changes) - len(shown)
    if all(not change.old for change in shown) and touched.verb == "create":
        fields = ", ".join(f"{change.field} {change.new}" for change in shown)
        fields += f" and {more} more" if more else ""
        if fields:
            here.add(rich.text.Text(fields, "dim"))
        return
    for change in shown:
        text = f"{change.field}: {change.old or 'none'} -> {change.new or 'none'}"
        label = rich.text.Text(text)
        label.append(f" ({change.by})" if change.by else "", "dim")
        here.add(label)
    if more:
        here.add(rich.text.Text(f"and {more} more", "dim"))
