"""`mooring orphans`: owned resources that belong to no Kubernetes object."""

import dataclasses
import datetime
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
import rich.console
import rich.table

from mooring.commands import daemon, documents, edge, outputs, printable, reach

if TYPE_CHECKING:
    from lib.cloud import protocol
    from lib.kube import client
    from lib.orphans import cleanup, model

NONE_FOUND, UNKNOWN, FOUND = 0, 1, 3
"""Exit codes."""
KINDS = (
    "load-balancer",
    "shared-use",
    "pool",
    "floating-ip",
    "security-group",
    "route",
    "address-pair",
    "volume",
    "machine",
    "layout",
)
"""In the order of `lib.orphans.model.SUBJECTS`."""
_COLUMNS = (
    outputs.Column("Kind"),
    outputs.Column("ID"),
    outputs.Column("Name"),
    outputs.Column("Age"),
    outputs.Column("Created", is_wide=True),
    outputs.Column("Created for"),
    outputs.Column("Reason"),
)


class Duration(click.ParamType[datetime.timedelta]):
    """A duration such as 10m0s, as Go writes it."""

    name = "duration"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> datetime.timedelta:
        """Return the duration, or fail with one sentence."""
        from lib.process import kinds

        if isinstance(value, datetime.timedelta):
            return value
        try:
            seconds = kinds.read_duration(str(value))
            if seconds >= 0:
                return datetime.timedelta(seconds=seconds)
        except (ValueError, OverflowError):
            pass
        text = "must be a duration from 0 such as 10m, 1h30m or 240h"
        return self.fail(f'invalid value "{value}": {text}', param, ctx)


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """Selection of a deletion, and whether it must be confirmed."""

    deletes: bool
    is_confirmed: bool
    with_kept: bool
    with_volumes: bool


@click.command()
@reach.options("mooring-orphans")
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only these kinds."
)
@click.option(
    "--older-than",
    type=Duration(),
    default="0",
    help="Only resources of at least this age; younger than 10m are never listed.",
)
@daemon.cluster_id_option
@daemon.cluster_name_option
@click.option(
    "--volume-cluster-id",
    default="",
    help="--cluster of csi-controller, a UUID; as --cluster-id if empty.",
)
@click.option(
    "--layout-cluster-uuid",
    default="",
    help="clusterUUID of the layout, of kind layout; as --cluster-id if empty.",
)
@click.option(
    "--cluster-is-gone",
    "is_gone",
    is_flag=True,
    help="All that --cluster-id owns is orphaned; its API server must not answer.",
)
@click.option("--delete", "deletes", is_flag=True, help="Delete what is listed.")
@click.option("--yes", "is_confirmed", is_flag=True, help="Do not ask before.")
@click.option("--kept", "with_kept", is_flag=True, help="Also delete kept addresses.")
@click.option("--volumes", "with_volumes", is_flag=True, help="Also delete volumes.")
@click.option("--min-age", type=Duration(), default="10m", hidden=True)
def orphans(  # noqa: PLR0913 - one argument for each option
    target: reach.Target,
    kinds: tuple[str, ...],
    older_than: datetime.timedelta,
    cluster_id: str,
    cluster_name: str,
    volume_cluster_id: str,
    layout_cluster_uuid: str,
    is_gone: bool,
    deletes: bool,
    is_confirmed: bool,
    with_kept: bool,
    with_volumes: bool,
    min_age: datetime.timedelta,
) -> None:
    """List resources of the cloud that no object needs.

    Only reads, unless --delete is set. Exit code 0: none; 3: some remain; 1: a kind
    could not be listed. Objects of layouts are listed only with --cluster-is-gone, and
    never deleted: destroy the layout.

    Example: mooring orphans --older-than 1h
    """
    choice = Choice(deletes, is_confirmed, with_kept, with_volumes)
    _check(choice, cluster_id, volume_cluster_id, is_gone=is_gone)
    if is_gone and not target.cloud_config:
        raise click.UsageError(
            "--cluster-is-gone: requires --cloud-config, since the cluster that has the"
            " Secret does not answer any more."
        )
    with edge.plainly():
        from lib.orphans import observe

        reach.quiet()
        configured = target.configured()
        age = max(min_age, older_than)
        api = _api(target, is_gone=is_gone)
        manager = (
            daemon.ManagerDeployment({}, "")
            if is_gone
            else daemon.ManagerDeployment.of(target.provider, api)
        )
        name = manager.value("--cluster-name", cluster_name, "kubernetes")
        settings = _settings(kinds, name, volume_cluster_id, age)
        settings = dataclasses.replace(
            settings,
            machine_kind=_machine_kind(target),
            layout_cluster=layout_cluster_uuid or cluster_id,
        )
        own_id = manager.value("--cluster-id", "", configured.cluster_id)
        settings = _identified(api, settings, cluster_id, own_id, is_gone=is_gone)
        opened = configured.owner(settings.volume_cluster)
        recorded = observe.records(api, settings)
        lists = observe.cloud_lists(opened, settings, recorded)
        survey = _survey(api, settings, lists, cluster_id, volume_cluster_id)
        run = _Run(opened, None if is_gone else api, settings, lists, target.output)
        code = run.report(survey, choice)
    sys.exit(code)


def _check(
    choice: Choice, cluster_id: str, volume_cluster_id: str, *, is_gone: bool
) -> None:
    """Refuse options that contradict each other."""
    others = {
        "--yes": choice.is_confirmed,
        "--kept": choice.with_kept,
        "--volumes": choice.with_volumes,
    }
    for option, is_given in others.items():
        if is_given and not choice.deletes:
            raise click.UsageError(f"{option}: must be given with --delete.")
    if is_gone and not cluster_id:
        raise click.UsageError(
            "--cluster-is-gone: requires --cluster-id, the ID of that cluster."
        )
    from lib.orphans import cluster_identity

    if volume_cluster_id and not cluster_identity.is_uuid(volume_cluster_id):
        raise click.UsageError(
            f'--volume-cluster-id: invalid value "{volume_cluster_id}": must be a'
            " UUID, since several clusters may use any other text."
        )


def _settings(
    kinds: Sequence[str],
    cluster_name: str,
    volume_cluster: str,
    age: datetime.timedelta,
) -> "model.Settings":
    from lib.cloud.load_balancers import Cluster
    from lib.orphans import model

    by_word = dict(zip(KINDS, model.SUBJECTS, strict=True))
    subjects = frozenset(by_word[word] for word in kinds) or frozenset(model.SUBJECTS)
    return model.Settings(Cluster("", cluster_name), volume_cluster, subjects, age)


def _machine_kind(target: reach.Target) -> "model.MachineKind | None":
    """Return the kind of the provider's machine objects; None: it has none."""
    from lib.orphans import model

    if target.provider.kinds is None:
        return None
    kinds = target.provider.kinds()
    return model.MachineKind(kinds.machine, kinds.finalizer)


def _api(target: reach.Target, *, is_gone: bool) -> "client.Api":
    """Open the API server; only reads are let through."""
    from lib.daemon import read_only
    from lib.kube import errors

    try:
        api = target.api()
    except errors.KubeError as error:
        if not is_gone:
            raise
        raise click.UsageError(
            "--kubeconfig: must be that of the cluster that is gone, to check that it"
            f" does not answer any more ({error})."
        ) from error
    return read_only.read_only(api)


def _identified(
    api: "client.Api",
    settings: "model.Settings",
    cluster_id: str,
    own_id: str,
    *,
    is_gone: bool,
) -> "model.Settings":
    """Return the settings with the ID of the cluster, asked of itself if need be.

    own_id: as configured; empty: the UID of namespace kube-system.
    """
    from lib.ccm import cluster_id as cluster_ids
    from lib.cloud.load_balancers import Cluster
    from lib.orphans import cluster_identity

    if is_gone:
        if why := cluster_identity.answers(api):
            raise click.ClickException(
                f'--cluster-is-gone: cluster "{cluster_id}" still answers: {why}.'
            )
        own = cluster_id
    else:
        own = cluster_ids.read(api, own_id, settings.cluster.name).id
    is_uuid = cluster_identity.is_uuid(own)
    return dataclasses.replace(
        settings,
        cluster=Cluster(cluster_id or own, settings.cluster.name),
        volume_cluster=settings.volume_cluster or (own if is_uuid else ""),
        is_gone=is_gone,
        own_id=own,
    )


def _survey(
    api: "client.Api",
    settings: "model.Settings",
    lists: "model.CloudLists",
    cluster_id: str,
    volume_cluster_id: str,
) -> "model.Survey":
    """Compare cloud and cluster.

    Raises:
        ClickException: an ID is not the cluster's own.
    """
    from lib.orphans import cluster_identity, decide, observe
    from lib.process.clock import utc_now

    cluster = observe.cluster_lists(api, settings)
    if not settings.is_gone:
        if cluster_id and not cluster_identity.is_own(
            cluster_id, settings, lists, cluster
        ):
            raise click.ClickException(
                f'--cluster-id: invalid value "{cluster_id}": must be'
                f' "{settings.own_id}", or an ID in the ownership tag of a Service of'
                " this cluster."
            )
        wrong = volume_cluster_id
        if wrong and not cluster_identity.is_volumes_own(
            wrong, settings, lists, cluster
        ):
            raise click.ClickException(
                f'--volume-cluster-id: invalid value "{wrong}": must be'
                f' "{settings.own_id}", or an ID in the ownership metadata of a volume'
                " with a PersistentVolume in this cluster."
            )
    return decide.decide(lists, cluster, settings, utc_now())


@dataclasses.dataclass(frozen=True)
class _Run:
    """One survey, shown and if need be followed by its deletion. api: None: gone."""

    cloud: "protocol.Cloud"
    api: "client.Api | None"
    settings: "model.Settings"
    lists: "model.CloudLists"
    output: str

    def report(self, survey: "model.Survey", choice: Choice) -> int:
        """Show the survey, delete what was chosen, and return the exit code."""
        from lib.orphans.model import FindingState

        chosen = _chosen(survey, choice)
        is_document = outputs.is_document(self.output)
        if not is_document or (chosen and not choice.is_confirmed):
            console = rich.console.Console(highlight=False, stderr=is_document)
            show(survey, console, self.output)
        results: list[cleanup.CleanupResult] = []
        if choice.deletes and chosen and self._confirm(choice, len(chosen)):
            self._delete(chosen, results)
        names = [
            outputs.name(KINDS[_index(finding.subject)], finding.id)
            for finding in survey.of(FindingState.ORPHAN)
        ]
        outputs.document(self.output, document(survey, results), names)
        deleted = {id(result.finding) for result in results if not result.why}
        orphans = survey.of(FindingState.ORPHAN)
        remaining = [orphan for orphan in orphans if id(orphan) not in deleted]
        failed = any(result.why for result in results)
        if survey.unknown:
            return UNKNOWN
        return FOUND if remaining or failed else NONE_FOUND

    def _confirm(self, choice: Choice, count: int) -> bool:
        """Ask once; for a cluster that is gone its ID has to be typed in."""
        if self.settings.is_gone:
            own = self.settings.cluster.id
            text = f"Type the cluster ID to delete {count} resources"
            if click.prompt(text, default="", show_default=False, err=True) == own:
                return True
            raise click.ClickException("the cluster ID differs: nothing was deleted.")
        if choice.is_confirmed:
            return True
        return click.confirm(f"Delete {count} resources?", err=True)

    def _delete(
        self, chosen: Sequence["model.Finding"], results: "list[cleanup.CleanupResult]"
    ) -> None:
        from lib.orphans import cleanup

        def progress(result: "cleanup.CleanupResult") -> None:
            results.append(result)
            finding = result.finding
            shown = printable.text(f"{finding.kind} {finding.name or finding.id}")
            state = f"not deleted: {result.why}" if result.why else "deleted"
            count = f"[{len(results)}/{len(chosen)}]"
            click.echo(f"{count} {shown} ({finding.id}): {state}", err=True)

        work = cleanup.Cleanup(self.cloud, self.api, self.settings, self.lists)
        work.run(chosen, progress)


def _chosen(survey: "model.Survey", choice: Choice) -> list["model.Finding"]:
    from lib.orphans.model import FindingState, Other

    states = (
        (FindingState.ORPHAN, FindingState.KEPT)
        if choice.with_kept
        else (FindingState.ORPHAN,)
    )
    return [
        finding
        for finding in survey.of(*states)
        if finding.subject is not Other.LAYOUT
        and (choice.with_volumes or finding.subject is not Other.VOLUME)
    ]


def show(
    survey: "model.Survey", console: rich.console.Console, output: str = outputs.TABLE
) -> None:
    """Print the orphans, what is kept, what is not owned, and what is unknown."""
    from lib.orphans.model import FindingState

    titles = {
        FindingState.ORPHAN: "Orphans",
        FindingState.KEPT: "Kept (deleted with --kept)",
        FindingState.NOT_OWNED: "Not owned: they carry no ownership tag and are never"
        " deleted",
    }
    for state, title in titles.items():
        if some := survey.of(state):
            rows = [_row(finding) for finding in some]
            outputs.show(console, outputs.table(output, _COLUMNS, rows, title))
    for unknown in survey.unknown:
        word = KINDS[_index(unknown.subject)]
        console.print(f"Unknown: {word}: {printable.text(unknown.why)}", markup=False)
    orphans = len(survey.of(FindingState.ORPHAN))
    console.print("1 orphan." if orphans == 1 else f"{orphans or 'No'} orphans.")


def _row(finding: "model.Finding") -> tuple[str, ...]:
    return (
        finding.kind,
        finding.id,
        finding.name,
        _age(finding.created),
        finding.created.isoformat() if finding.created else "unknown",
        finding.created_for,
        finding.reason,
    )


def _age(created: datetime.datetime | None) -> str:
    """Return an age as Kubernetes shows it: one unit."""
    from lib.process.clock import utc_now

    if created is None:
        return "unknown"
    seconds = max(0, int((utc_now() - created).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _index(subject: "model.Subject") -> int:
    from lib.orphans import model

    return model.SUBJECTS.index(subject)


def document(
    survey: "model.Survey", results: Iterable["cleanup.CleanupResult"] = ()
) -> documents.OrphansReport:
    """Return the survey and the deletions as their JSON document."""
    from lib.orphans.model import FindingState

    def rows(state: FindingState) -> list[documents.OrphanEntry]:
        return [_entry(finding) for finding in survey.of(state)]

    done = [(_entry(result.finding), result.why) for result in results]
    return {
        "orphans": rows(FindingState.ORPHAN),
        "kept": rows(FindingState.KEPT),
        "not_owned": rows(FindingState.NOT_OWNED),
        "unknown": [
            {"kind": KINDS[_index(unknown.subject)], "reason": unknown.why}
            for unknown in survey.unknown
        ],
        "deleted": [entry for entry, why in done if not why],
        "failed": [{**entry, "error": why} for entry, why in done if why],
    }


def _entry(finding: "model.Finding") -> documents.OrphanEntry:
    return {
        "kind": KINDS[_index(finding.subject)],
        "id": finding.id,
        "name": finding.name,
        "created": finding.created.isoformat() if finding.created else None,
        "created_for": finding.created_for,
        "reason": finding.reason,
    }
