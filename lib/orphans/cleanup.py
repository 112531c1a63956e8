"""Deletes chosen findings in batches, each compared with the cluster once more."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from lib.cloud import protocol
from lib.cloud import routes as cloud_routes
from lib.cloud.load_balancers import Role
from lib.kube import client
from lib.orphans import decide, deletion_flow, model, observe
from lib.orphans.model import CloudLists, FailedList, Finding, Other, Settings
from lib.process.clock import utc_now
from lib.reconcile import waiting

IN_USE = "it is still in use"
UNCHANGED = "it is in use, or not owned by this cluster any more"
BATCH = 20
"""Services, or volumes, that are deleted in parallel."""


@dataclasses.dataclass(frozen=True, slots=True)
class CleanupResult:
    """Result of a finding. why: reason why it was not deleted; empty: deleted."""

    finding: Finding
    why: str = ""


Progress = Callable[[CleanupResult], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Cleanup:
    """Deletes findings of one survey. cloud_lists: those of the survey.

    api: None: the cluster does not exist any more.
    """

    cloud: protocol.Cloud
    api: client.Api | None
    settings: Settings
    cloud_lists: CloudLists
    clocks: deletion_flow.PollClocks = dataclasses.field(
        default_factory=deletion_flow.PollClocks
    )

    def run(self, chosen: Sequence[Finding], progress: Progress) -> None:
        """Delete the chosen findings, in an order that the cloud accepts.

        progress: called once for each finding.

        Raises:
            KeyboardInterrupt: started deletions continue in the cloud; run it again.
        """
        for batch in _batches(_by_service(chosen)):
            self._balancers(self._still(batch, progress), progress)
        entries = [
            finding
            for finding in chosen
            if isinstance(finding.source, cloud_routes.Owned)
        ]
        if entries:
            self._routes(self._still(entries, progress), progress)
        machines = [finding for finding in chosen if finding.subject is Other.MACHINE]
        for some in _batches(_by_machine(machines)):
            self._machines(self._still(some, progress), progress)
        volumes = [finding for finding in chosen if finding.subject is Other.VOLUME]
        for some in _batches([volume] for volume in volumes):
            self._volumes(self._still(some, progress), progress)

    def _still(
        self, batch: Sequence[Finding], progress: Progress
    ) -> tuple[Sequence[Finding], Sequence[model.Service]]:
        """Return the findings that are orphans of the cluster now, and its Services."""
        if self.api is None:
            return batch, ()
        cluster = observe.cluster_lists(self.api, self.settings)
        survey = decide.decide(self.cloud_lists, cluster, self.settings, utc_now())
        present = {_key(finding) for finding in survey.findings}
        why = "; ".join(unknown.why for unknown in survey.unknown)
        left: list[Finding] = []
        for finding in batch:
            if _key(finding) in present:
                left.append(finding)
            else:
                progress(
                    CleanupResult(
                        finding, why or "an object of the cluster uses it now"
                    )
                )
        services = () if isinstance(cluster.services, FailedList) else cluster.services
        return left, services

    def _balancers(
        self,
        still: tuple[Sequence[Finding], Sequence[model.Service]],
        progress: Progress,
    ) -> None:
        findings, services = still
        if not findings or self.cloud.load_balancers is None:
            return
        targets = deletion_flow.targets(findings, services, self.cloud.load_balancers)
        ended: dict[str, str] = {}
        flow = deletion_flow.PlannedDeletion(
            deletion_flow.of_balancers(self.cloud.load_balancers),
            targets,
            ended.__setitem__,
            self.clocks,
        )
        waiting.Settler(clock=self.clocks.monotonic).settle(flow, flow.name)
        left = self._left(findings)
        key_of = {
            id_: key for key, target in targets.items() for id_ in target.only or ()
        }
        for finding in findings:
            key = key_of.get(finding.id, "")
            is_left = (finding.subject, finding.id) in left or key not in flow.written
            usual = IN_USE if key in flow.written else UNCHANGED
            why = ended.get(key, "") or usual
            progress(CleanupResult(finding, why if is_left else ""))

    def _left(self, findings: Iterable[Finding]) -> frozenset[tuple[object, str]]:
        """Return subject and ID of the resources with an ownership tag now."""
        subjects = frozenset(finding.subject for finding in findings)
        others = {Other.VOLUME, Other.MACHINE}
        asked = dataclasses.replace(self.settings, subjects=subjects - others)
        lists = observe.cloud_lists(self.cloud, asked).balancers
        before = {(finding.subject, finding.id) for finding in findings}
        left: set[tuple[object, str]] = set()
        for role in subjects & frozenset(Role):
            listed = lists[Role(role)]
            if isinstance(listed, FailedList):
                left |= {known for known in before if known[0] is role}
            else:
                left |= {(role, resource.id) for resource in listed if resource.uid}
        return frozenset(left)

    def _machines(
        self,
        still: tuple[Sequence[Finding], Sequence[model.Service]],
        progress: Progress,
    ) -> None:
        findings, _ = still
        machines = self.cloud.machines
        if not findings or machines is None:
            return
        targets = deletion_flow.machine_targets(findings)
        ended: dict[str, str] = {}
        flow = deletion_flow.PlannedDeletion(
            deletion_flow.of_machines(machines),
            targets,
            ended.__setitem__,
            self.clocks,
        )
        waiting.Settler(clock=self.clocks.monotonic).settle(flow, flow.name)
        key_of = {
            id_: key for key, target in targets.items() for id_ in target.only or ()
        }
        for finding in findings:
            progress(CleanupResult(finding, ended.get(key_of[finding.id], IN_USE)))

    def _routes(
        self,
        still: tuple[Sequence[Finding], Sequence[model.Service]],
        progress: Progress,
    ) -> None:
        findings, _ = still
        api, tables = self.api, self.cloud.routes
        if not findings or tables is None or api is None:
            return
        by_entry = {
            finding.source.recorded.entry: finding
            for finding in findings
            if isinstance(finding.source, cloud_routes.Owned)
        }
        named = {str(entry): finding for entry, finding in by_entry.items()}

        def read() -> deletion_flow.Routed:
            recorded = observe.records(api, self.settings)
            listed = observe.routes(self.cloud, recorded)
            if isinstance(listed, FailedList):
                return deletion_flow.Routed((), listed.why)
            some = (
                route for route in listed or () if isinstance(route, cloud_routes.Owned)
            )
            return deletion_flow.Routed(tuple(some))

        flow = deletion_flow.RouteDeletion(
            tables,
            read,
            by_entry,
            lambda key, why: progress(CleanupResult(named[key], why)),
            self.clocks,
        )
        waiting.Settler(clock=self.clocks.monotonic).settle(flow, flow.name)

    def _volumes(
        self,
        still: tuple[Sequence[Finding], Sequence[model.Service]],
        progress: Progress,
    ) -> None:
        findings, _ = still
        if not findings or self.cloud.volumes is None:
            return
        by_id = {finding.id: finding for finding in findings}
        flow = deletion_flow.VolumeDeletion(
            self.cloud.volumes,
            by_id,
            self.settings.volume_cluster,
            lambda key, why: progress(CleanupResult(by_id[key], why)),
            self.clocks,
        )
        waiting.Settler(clock=self.clocks.monotonic).settle(flow, flow.name)


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.subject, finding.id, finding.name, finding.state


def _by_service(chosen: Iterable[Finding]) -> list[list[Finding]]:
    """Return findings of load balancers, those of one Service together."""
    groups: dict[str, list[Finding]] = {}
    for finding in chosen:
        if isinstance(finding.subject, Role):
            uid = getattr(finding.source, "uid", "")
            groups.setdefault(uid, []).append(finding)
    return list(groups.values())


def _by_machine(parts: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Yield the parts of each machine together; they are sorted by it."""
    for _, group in itertools.groupby(parts, lambda finding: finding.created_for):
        yield list(group)


def _batches(groups: Iterable[Sequence[Finding]]) -> Iterator[Sequence[Finding]]:
    rest = iter(groups)
    while some := list(itertools.islice(rest, BATCH)):
        yield [finding for group in some for finding in group]
